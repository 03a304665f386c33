"""Calls every version of every API that a node serves and checks that each response decodes and encodes to its bytes.
Makes one call at a time, none that waits, and none that changes state unless `write` is set."""

import asyncio
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from kafkascope.client.cluster import Cluster
from kafkascope.client.names import substitute
from kafkascope.client.probe.arguments import PROBE_PREFIX, ClusterSurvey, ProbeCase, cases
from kafkascope.client.probe.missing_ids import with_missing_ids
from kafkascope.client.probe.release import matching_releases
from kafkascope.client.probe.result import ObservedError, Probe, VersionProof, unique_errors
from kafkascope.client.probe.survey import survey_cluster
from kafkascope.client.routing import target_of
from kafkascope.client.targets import COORDINATOR_KEY_TYPES, AnyBroker, Coordinator, Target
from kafkascope.client.transport.reading import Response, read_response
from kafkascope.client.writes import COORDINATOR_TOPICS, effect, kind_of
from kafkascope.codec.frame import encode_frame, header_version
from kafkascope.codec.json_form import parse_uuid
from kafkascope.errors import DecodeError, EncodeError, NotFoundError, ReachError, RefusedError
from kafkascope.limits import MAX_UNKNOWN_VERSIONS
from kafkascope.schema.catalog import apis, message
from kafkascope.schema.errors.error_codes import error_name
from kafkascope.schema.errors.message_errors import is_error_field
from kafkascope.schema.layouts.examples import example
from kafkascope.schema.layouts.layout import LayoutField, layout
from kafkascope.schema.releases import newest_release

_INVALID_REQUEST, _UNSUPPORTED_VERSION = 42, 35
# The id of the topic in all examples.
_ORDERS = parse_uuid("ZRMnDiaeTTeyp03kUua0OA")
# Versions that brokers offer but always refuse with UNSUPPORTED_VERSION.
UNSERVED = {
    ("OffsetCommit", 0): "it kept offsets in ZooKeeper; brokers without ZooKeeper offer it and do not serve it",
    ("OffsetFetch", 0): "it read offsets from ZooKeeper; brokers without ZooKeeper offer it and do not serve it",
    ("ConsumerGroupHeartbeat", 0): "the new group protocol is off, as it is in 3.9 unless turned on",
    ("ConsumerGroupDescribe", 0): "the new group protocol is off, as it is in 3.9 unless turned on",
}
# Longest pause after throttling: the probe sends one small request at a time anyway.
_LONGEST_PAUSE = 2.0
_CALL_SECONDS = 5.0
# Time of a call that doesn't wait. The rest counts as waiting, since there are two thousand calls.
_USUAL_SECONDS = 0.2


async def probe(
    cluster: Cluster,
    *,
    write: bool = False,
    prefer: str = "",
    apis_only: frozenset[str] = frozenset(),
    seconds: float | None = None,
) -> Probe:
    """With `write` the catalog's examples of requests that change something are sent too, but only to a cluster that
    isn't in use. `prefer` is a prefix of topics and groups to use first. `apis_only` limits it to some APIs;
    NotFoundError if the node doesn't serve one of them. `seconds` are for the survey and all waiting after it, by
    default those of one call."""
    patience, began = cluster.settings.timeout if seconds is None else seconds, time.monotonic()
    with cluster.look(patience):
        await check_offered(cluster, apis_only)
        survey = await survey_cluster(cluster, prefer, write=write)
    patience -= time.monotonic() - began
    return await _Prober(cluster, write, survey, patience).run(apis_only)


async def check_offered(cluster: Cluster, names: Iterable[str]) -> None:
    offered = await cluster.versions()
    for api in sorted(names):
        request = message(f"{api}Request")
        if request.key not in offered:
            served = request.listeners_in(newest_release())
            here, other = ("controller", "broker") if cluster.controllers else ("broker", "controller")
            hint = f"; it is for {other}s" if other in served and here not in served else ""
            raise NotFoundError(f"this {here} doesn't serve {api}{hint}")


@dataclass(slots=True)
class _Tally:
    """The results of the calls of one (API, version) so far."""

    answers: int = 0
    sightings: list[ObservedError] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)


class _Prober:
    def __init__(self, cluster: Cluster, write: bool, survey: ClusterSurvey, patience: float) -> None:
        self.cluster = cluster
        self.write = write
        self.survey = survey
        self.correlation_id = 1_000_000
        # Seconds left for waiting.
        self.patience = patience

    async def run(self, apis_only: frozenset[str]) -> Probe:
        with self.cluster.look(max(self.patience, 0.0)):
            offered = await self.cluster.versions()
        proofs = []
        for key, (first, last) in sorted(offered.items()):
            api = apis().get(key)
            if apis_only and api not in apis_only:
                continue
            known_versions = message(f"{api}Request").all_versions() if api else []
            unknown = 0
            for version in range(first, last + 1):
                if api is not None and version in known_versions:
                    proofs.append(await self._prove(api, key, version))
                elif unknown < MAX_UNKNOWN_VERSIONS:
                    unknown += 1
                    name = api or f"API key {key}"
                    range_note = f"; the node serves up to v{last}" if unknown == MAX_UNKNOWN_VERSIONS else ""
                    why = f"newer than the catalog, or not in it{range_note}"
                    proofs.append(VersionProof(name, key, version, "unknown", "unknown", 0, why=why))
        address = ", ".join(map(str, self.cluster.settings.bootstrap))
        return Probe(address, matching_releases(offered), self.write, tuple(proofs))

    async def _prove(self, api: str, key: int, version: int) -> VersionProof:
        tally = _Tally()
        refused: list[ObservedError] | str = []
        skipped: list[str] = []
        for case in cases(api, version, self.survey):
            why = self._why_not(api, version, case.value)
            if why:
                skipped.append(f"{case.label}: {why}")
                continue
            await self._probe_case(api, version, case, tally)
        case = _example(api, version, self.survey)
        why = self._why_not(api, version, case.value) or self._why_no_example(api)
        if not why:
            refused = await self._probe_case(api, version, case, tally)
        state = "failed" if tally.wrong else "proven" if tally.answers else "not sent"
        reason = "; ".join(dict.fromkeys(tally.wrong)) or ("" if tally.answers else "; ".join([*skipped, why][:1]))
        return VersionProof(
            api,
            key,
            version,
            kind_of(api),
            state,
            tally.answers,
            unique_errors(tally.sightings),
            reason,
            *self._judged(api, version, refused, why),
        )

    def _judged(self, api: str, version: int, refused: list[ObservedError] | str, why: str) -> tuple[str, str]:
        """The result of the example, and why."""
        if why:
            return "not sent", why
        if isinstance(refused, str):
            return "refused", refused
        if refused and all(seen.code == _UNSUPPORTED_VERSION for seen in refused) and (api, version) in UNSERVED:
            return "unserved", UNSERVED[api, version]
        errors = "; ".join(f"{seen.error} in {seen.place}" for seen in refused)
        return ("refused" if refused else "accepted"), errors

    def _why_not(self, api: str, version: int, value: Mapping[str, Any]) -> str:
        """Why it must not be sent, or empty."""
        writes = effect(api, version, value)
        creates = writes.unless_topic is not None and writes.unless_topic not in self.survey.internal
        if writes.changes or creates:
            if not self.write:
                return f"would {writes.does}"
            if writes.changes and self.survey.in_use:
                return f"would {writes.does}, and this cluster is in use"
        return _never_sent(api, self.survey)

    def _why_no_example(self, api: str) -> str:
        """Examples are for brokers, except those of APIs that only controllers serve."""
        served = message(f"{api}Request").listeners_in(newest_release())
        return "the example is for brokers" if self.survey.controllers and "broker" in served else ""

    async def _probe_case(self, api: str, version: int, case: ProbeCase, tally: _Tally) -> list[ObservedError] | str:
        """Sends the case and records the result. Returns the reason if the broker's validation refuses it or it gets no
        response."""
        place = f"{case.label}: " if case.label else ""
        began = time.monotonic()
        try:
            response = await self._exchange(api, version, case)
        except (ReachError, DecodeError, EncodeError, RefusedError, NotFoundError) as error:
            self._waited(f"{api} v{version}: {error}", time.monotonic() - began)
            tally.wrong.append(f"{place}{error}")
            return str(error)
        if not self.write:  # a group makes its first member wait
            self._waited(f"{api} v{version}", time.monotonic() - began)
        tally.answers += 1
        if not response.exact:
            tally.wrong.append(f"{place}not exact: {', '.join(response.reasons)}")
            return []
        errors = list(_sightings(layout(f"{api}Response", response.version).fields, response.value, ""))
        tally.sightings += errors
        await self._pause(f"{api} v{version}", response.value)
        return [seen for seen in errors if seen.code in (_INVALID_REQUEST, _UNSUPPORTED_VERSION)]

    async def _exchange(self, api: str, version: int, case: ProbeCase) -> Response:
        """Sends one request; the re-encoded response must be the same bytes."""
        self.correlation_id += 1
        header: dict[str, Any] = {"correlationId": self.correlation_id}
        if header_version(f"{api}Request", version) > 0:
            header["clientId"] = self.cluster.settings.client_id
        request = encode_frame(f"{api}Request", version, case.value, header, length=False)
        target = self._target(api, case)
        try:
            came = await self.cluster.send_bytes(request, to=target, timeout=self._call_seconds())
        except (RefusedError, NotFoundError):
            # it has no leader or coordinator, or this user may not see it: any broker returns an error for that too
            came = await self.cluster.send_bytes(request, to=AnyBroker(), timeout=self._call_seconds())
        response = await read_response(api, version, came)
        if response.exact:
            header = {"correlationId": self.correlation_id}
            again = encode_frame(f"{api}Response", response.version, response.value, header, length=False)
            if again != came:
                raise DecodeError(f"{api} v{version}: the response of {len(came)} bytes encodes to different bytes")
        return response

    def _call_seconds(self) -> float:
        return min(_CALL_SECONDS, max(self.patience, 0.0) + _USUAL_SECONDS)

    def _target(self, api: str, case: ProbeCase) -> Target:
        if case.any_broker:
            return AnyBroker()
        target = target_of(api, case.value, controllers=self.survey.controllers)
        if isinstance(target, Coordinator):
            topic = COORDINATOR_TOPICS[COORDINATOR_KEY_TYPES[target.kind]]
            if not self.write and topic not in self.survey.internal:
                # looking up the coordinator would create its topic
                return AnyBroker()
        return target

    async def _pause(self, place: str, value: Mapping[str, Any]) -> None:
        throttled = value.get("throttleTimeMs", 0)
        if throttled > 0:
            seconds = min(throttled / 1000, _LONGEST_PAUSE)
            self._waited(f"{place}: the broker requests a pause of {throttled} ms", seconds + _USUAL_SECONDS)
            await asyncio.sleep(seconds)

    def _waited(self, place: str, seconds: float) -> None:
        """ReachError if that took too long, with the place."""
        self.patience -= max(0.0, seconds - _USUAL_SECONDS)
        if self.patience < 0:
            reason = "calls and pauses took too long; --timeout SECONDS waits longer"
            raise ReachError(f"{place}; {reason}")


def _never_sent(api: str, survey: ClusterSurvey) -> str:
    if api in ("SaslHandshake", "SaslAuthenticate") and survey.sasl:
        return "this connection is already logged in"
    if survey.controllers and kind_of(api) == "internal":
        return "requests between nodes of the quorum are never sent"
    return ""


def _example(api: str, version: int, survey: ClusterSurvey) -> ProbeCase:
    """The catalog's example, changed so that it doesn't wait and names no existing node, directory or feature. Its
    topic `orders` gets the id of the topic that the probe created, if there is one. It isn't sent to a cluster in use
    (`ClusterSurvey.in_use`), so its topics, groups and users don't exist."""
    value = with_missing_ids(layout(f"{api}Request", version).fields, example(f"{api}Request", version), survey.nodes)
    for wait in ("maxWaitMs", "maxWait"):
        if wait in value:
            value[wait] = 0
    if api == "JoinGroup":
        # a member of one version would wait for the member of another
        value["groupId"] += f"-{version}"
    if survey.topics and survey.topics[0].name.startswith(PROBE_PREFIX):
        value = substitute(value, {_ORDERS: survey.topics[0].topic_id})
    return ProbeCase("the catalog's example", value, any_broker=True)


def _sightings(fields: tuple[LayoutField, ...], value: Mapping[str, Any], place: str) -> Iterator[ObservedError]:
    for layout_field in fields:
        content = value.get(layout_field.name)
        path = f"{place}{layout_field.source.name}"
        if layout_field.type == "int16" and not layout_field.array and is_error_field(layout_field.name) and content:
            yield ObservedError(path, error_name(content), content)
        elif layout_field.type == "struct" and content is not None:
            for item in content if layout_field.array else [content]:
                yield from _sightings(layout_field.fields, item, f"{path}.")
