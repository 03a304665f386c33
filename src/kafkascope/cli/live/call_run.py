"""Runs `call`: sends the typed request and prints its responses. Without `--write` it sends nothing that changes
state."""

from collections.abc import Mapping
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any
from uuid import UUID

from kafkascope.cli.live.call_request import Request, RequestedApi, newest_fitting
from kafkascope.cli.live.options import note_of_client, settings_from
from kafkascope.errors import NotFoundError, UsageError
from kafkascope.schema.catalog import message
from kafkascope.schema.model import Message
from kafkascope.schema.releases import ReleaseSpan, newest_release

if TYPE_CHECKING:
    from kafkascope.client.answer import Answer
    from kafkascope.client.cluster import Cluster
    from kafkascope.client.settings import Settings
    from kafkascope.client.targets import Target


def run_call(requested: RequestedApi, content: Any, host: str, options: Mapping[str, Any]) -> int:
    """Checks everything that needs no connection before connecting."""
    target = _target(options["to"])
    request = newest_fitting(requested.api, requested.candidates, content)
    if not options["dry_run"]:
        _refuse(request, options["write"])
    elif not request.needs_names:
        from kafkascope.cli.live.call_view import print_dry_run

        where = "" if requested.version is not None else f"version {request.version} is the newest known here that fits"
        print_dry_run(request, options["client_id"] or "kafkascope", where, full=options["full"])
        return 0
    import asyncio

    settings = settings_from(host, options)
    return asyncio.run(_Run(requested, content, settings, target, options).run())


def _target(text: str | None) -> "Target | None":
    if text is None:
        return None
    from kafkascope.client.targets import parse_target

    return parse_target(text)


def _refuse(request: Request, write: bool) -> None:
    if request.effect.changes and not write:
        raise UsageError(request.effect.line)


class _Run:
    """One command: a connection, a version, names, then the call, N times."""

    def __init__(
        self,
        requested: RequestedApi,
        content: Any,
        settings: "Settings",
        target: "Target | None",
        options: Mapping[str, Any],
    ) -> None:
        self.requested = requested
        self.content = content
        self.settings = settings
        self.target = target
        self.options = options

    async def run(self) -> int:
        from kafkascope.client.cluster import time_limit

        # Connecting and the call share the timeout of a single call.
        with time_limit(self.settings.timeout) if self.options["repeat"] == 1 else nullcontext():
            return await self._run()

    async def _run(self) -> int:
        from kafkascope.client.cluster import connect

        async with connect(self.settings, on_note=note_of_client) as cluster:
            request = newest_fitting(self.requested.api, await self._versions(cluster), self.content)
            if not self.options["dry_run"]:
                _refuse(request, self.options["write"])
            request, names = await self._resolved(cluster, request)
            if self.options["dry_run"]:
                from kafkascope.cli.live.call_view import print_dry_run

                print_dry_run(request, self.settings.client_id, "only topics were looked up", full=self.options["full"])
                return 0
            await self._refuse_new_topics(cluster, request)
            return await self._calls(cluster, request, names)

    async def _versions(self, cluster: "Cluster") -> list[int]:
        """The versions that both know, or the requested one. The error names the node's versions, and releases with
        more."""
        known = message(f"{self.requested.api}Request")
        served = (await cluster.versions()).get(-1 if known.key is None else known.key)
        where = ", ".join(map(str, self.settings.bootstrap))
        if served is None:
            raise NotFoundError(
                f"{where} doesn't serve {self.requested.api}; {_who_serves(known, cluster.controllers)}"
            )
        both = [version for version in self.requested.candidates if served[0] <= version <= served[1]]
        if both:
            return both
        known_here = "none known here"
        if self.requested.version is not None:
            releases = ", ".join(map(str, known.releases_of(self.requested.version)))
            known_here = f"not v{self.requested.version}, which is in Kafka {releases}"
        raise UsageError(f"{where} serves {self.requested.api} v{served[0]}-{served[1]}, {known_here}")

    async def _resolved(self, cluster: "Cluster", request: Request) -> tuple[Request, dict[UUID, str]]:
        if not request.needs_names:
            return request, {}
        from dataclasses import replace

        from kafkascope.client.names import resolve

        value, names = await resolve(cluster, request.api, request.version, request.value, request.stand_ins)
        return replace(request, value=value), names

    async def _refuse_new_topics(self, cluster: "Cluster", request: Request) -> None:
        """FindCoordinator creates the coordinator's topic in a cluster that doesn't have it yet."""
        if self.options["write"]:
            return
        from kafkascope.client.routing import target_of
        from kafkascope.client.targets import COORDINATOR_KEY_TYPES, Coordinator
        from kafkascope.client.writes import COORDINATOR_TOPICS, has_topic

        target = self.target or target_of(request.api, request.value, controllers=self.settings.controllers)
        topic = request.effect.unless_topic
        if isinstance(target, Coordinator):
            topic = COORDINATOR_TOPICS[COORDINATOR_KEY_TYPES[target.kind]]
        if topic is not None and not await has_topic(cluster, topic):
            raise UsageError(
                f"{request.api} would create the topic {topic}, which this cluster doesn't have yet, to find a"
                " coordinator; add --write to send it"
            )

    async def _calls(self, cluster: "Cluster", request: Request, names: dict[UUID, str]) -> int:
        from kafkascope.cli.live.call_view import first_error, print_answer, print_answer_json, print_raw, print_times

        code = 0
        answers: list[Answer] = []
        times: list[float] = []
        for _ in range(self.options["repeat"]):
            answer = await cluster.call(request.api, request.value, version=request.version, to=self.target)
            times.append((answer.received_at - answer.sent_at) / 1e6)
            error = first_error(answer)
            code = 1 if error else code
            if self.options["timed"]:
                answers = [answer]
            elif self.options["raw"]:
                print_raw(answer)
            elif self.options["as_json"]:
                print_answer_json(answer, compact=self.options["repeat"] > 1)
            else:
                names |= await self._names(cluster, answer, names)
                answer = await self._with_node(cluster, answer)
                print_answer(answer, names, error, records=self.options["records"], full=self.options["full"])
        if self.options["timed"]:
            print_times(await self._with_node(cluster, answers[-1]), times, as_json=self.options["as_json"])
        return code

    async def _with_node(self, cluster: "Cluster", answer: "Answer") -> "Answer":
        """The node that responded, if it wasn't known before; a cluster may refuse to list its nodes."""
        if answer.node is not None:
            return answer
        from contextlib import suppress
        from dataclasses import replace

        from kafkascope.errors import RefusedError

        with suppress(RefusedError):
            brokers = await cluster.brokers()
            return replace(answer, node=next((b.node_id for b in brokers if b.address == answer.address), None))
        return answer

    async def _names(self, cluster: "Cluster", answer: "Answer", known: Mapping[UUID, str]) -> dict[UUID, str]:
        """Names for the topic ids of a response: its own first, then the cluster's."""
        from kafkascope.client.names import ids_of, names_of, topic_names

        own = names_of(answer.api, answer.api_version, answer.value) if answer.value else {}
        missing = (
            ids_of(answer.api, answer.api_version, answer.value) - own.keys() - known.keys() if answer.value else ()
        )
        if not missing or self.settings.controllers:
            return own
        return own | await topic_names(cluster, missing)


def _who_serves(known: Message, controllers: bool) -> str:
    """`Kafka 3.0+ has it; controllers serve it: give one and --bootstrap-controller`."""
    versions = known.all_versions()
    last = known.releases_of(versions[-1])[-1].last
    span = ReleaseSpan(known.releases_of(versions[0])[0].first, last)
    listeners = known.listeners_in(last or newest_release())
    hint = ""
    if not controllers and listeners == ("controller",):
        hint = "; controllers serve it: give one and --bootstrap-controller"
    elif controllers and "controller" not in listeners:
        hint = "; this is a controller, but brokers serve it: give a broker"
    return f"Kafka {span} has it{hint}"
