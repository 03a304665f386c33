"""Traffic with a secret in every place that Kafka has for one, as a capture and as a request log.

Every secret is a word of its own that is nowhere else, so that bytes can be searched for it in all its forms."""

import base64
import json
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from kafkascope.codec.frame import encode_frame
from kafkascope.codec.json_form import to_json
from kafkascope.codec.message import encode
from kafkascope.codec.records.record_data import Record, encode_records, new_batch
from kafkascope.columnar.secrets import METADATA_TOPIC, METADATA_TOPIC_ID
from kafkascope.schema.catalog import message
from kafkascope.schema.layouts.examples import example
from tests.support.packet_build import Talk, merged, pcap
from tests.support.traffic import framed

# Never stored; `CONTENTS` are where they are asked for.
CREDENTIALS = (
    "pw-plain-raw", "pw-plain-v1", "proof-scram-raw", "proof-scram-v1", "server-proof-v1", "salt-of-scram",
    "salted-password", "pw-incremental", "pw-altered", "pw-of-a-topic", "pw-answered", "pw-described", "pw-a-synonym",
    "hmac-created", "hmac-described", "hmac-renewed", "hmac-expired", "pw-enveloped", "pw-in-the-log", "key-in-the-log",
    "pw-in-a-snapshot", "telemetry-blob", "pw-of-a-changelog", "salt-enveloped", "salted-enveloped", "hmac-enveloped",
)  # fmt: skip
PLACES = ("produced", "gzipped", "zstded", "snappied", "lz4ed", "fetched", "shared")
CONTENTS = tuple(f"{part}-{place}" for place in PLACES for part in ("key", "value", "header"))
# Who and where: what `--pseudonymise` hides.
CLIENT, BROKER = "203.0.113.77", "198.51.100.42"
CLIENT_ID, USER, BROKER_HOST = "orders-of-erika", "erika.mustermann", "kafka-berlin.example.com"
PEOPLE = (
    CLIENT_ID, USER, BROKER_HOST, CLIENT, BROKER, "txn-of-erika", "rack-cellar-7", "static-erika", "endpoint.example",
    "said of erika",
)  # fmt: skip
PACKED = tuple(bytes(map(int, address.split("."))) for address in (CLIENT, BROKER))

# Message, version, secrets by path.
Planted = tuple[str, int, dict[str, Any]]


@cache
def forms(word: str) -> tuple[bytes, ...]:
    """As bytes may hold it: plain, hex, UTF-16, base64 at each of its three places."""
    raw = word.encode()
    forms_of = [raw, raw.hex().encode(), raw.hex().upper().encode(), word.encode("utf-16-le")]
    for shift in range(3):
        # Without the letters that depend on what stands around.
        text = base64.b64encode(bytes(shift) + raw).rstrip(b"=")
        part = text[-(-shift * 8 // 6) : len(text) - ((shift + len(raw)) % 3 > 0)]
        forms_of += [part, part.translate(bytes.maketrans(b"+/", b"-_"))]
    return tuple(forms_of)


def found_in(content: bytes, words: Iterable[str]) -> set[str]:
    return {word for word in words if any(form in content for form in forms(word))}


def planted(message: Planted) -> dict[str, Any]:
    name, version, secrets = message
    value = example(name, version)
    for path, secret in secrets.items():
        *above, last = (int(part) if part.isdigit() else part for part in path.split("."))
        inner: Any = value
        for part in above:
            inner = inner[part]
        inner[last] = secret
    return value


def records(place: str, compression: str = "none") -> bytes:
    key, value, header = (f"{part}-{place}".encode() for part in ("key", "value", "header"))
    # Enough alike that compression is one.
    some = [Record(number, 0, key, value * 3, ((f"h{number}", header),)) for number in range(4)]
    return encode_records([new_batch(some, compression=compression)])


def metadata_log(*secrets: str) -> bytes:
    """Records as controllers replicate them: version of the frame, type, version, body (KIP-631)."""
    bodies = []
    for name, fields in (
        ("ConfigRecord", {"resourceType": 4, "resourceName": "", "name": "ssl.key.password", "value": secrets[0]}),
        ("UserScramCredentialRecord", {"name": USER, "mechanism": 1, "storedKey": secrets[-1].encode()}),
    ):
        body = encode(name, 0, example(name, 0) | fields)
        bodies.append(bytes([1, message(name).key or 0, 0]) + body)
    return encode_records([new_batch([Record(number, 0, None, body) for number, body in enumerate(bodies)])])


PARTITION = "responses.0.partitions.0"
# What a broker passes on to the controller (KIP-590), and what comes back.
ENVELOPED: tuple[tuple[Planted, Planted], ...] = (
    (
        ("IncrementalAlterConfigsRequest", 1, {"resources.0.configs.0.value": "pw-enveloped"}),
        ("IncrementalAlterConfigsResponse", 1, {}),
    ),
    (
        ("AlterUserScramCredentialsRequest", 0, {
            "upsertions.0.name": USER, "upsertions.0.salt": b"salt-enveloped",
            "upsertions.0.saltedPassword": b"salted-enveloped", "deletions.0.name": USER,
        }),
        ("AlterUserScramCredentialsResponse", 0, {"results.0.user": USER}),
    ),
    (
        ("CreateDelegationTokenRequest", 3, {"ownerPrincipalName": USER}),
        ("CreateDelegationTokenResponse", 3, {"hmac": b"hmac-enveloped", "principalName": USER}),
    ),
)  # fmt: skip


def enveloped(request: Planted, answered: Planted) -> tuple[Planted, Planted]:
    header = {"correlationId": 5}
    inner = encode_frame(*request[:2], planted(request), header | {"clientId": CLIENT_ID}, length=False)
    answer = encode_frame(*answered[:2], planted(answered), header, length=False)
    values = {"requestData": inner, "requestPrincipal": USER.encode(), "clientHostAddress": PACKED[0]}
    return ("EnvelopeRequest", 0, values), ("EnvelopeResponse", 0, {"responseData": answer, "errorCode": 0})


def exchanges() -> list[tuple[Planted, Planted]]:
    batch = "topicData.0.partitionData.0.records"
    return [
        (("AlterUserScramCredentialsRequest", 0, {
            "upsertions.0.name": USER, "upsertions.0.salt": b"salt-of-scram",
            "upsertions.0.saltedPassword": b"salted-password", "deletions.0.name": USER,
        }), ("AlterUserScramCredentialsResponse", 0, {"results.0.user": USER})),
        (("DescribeUserScramCredentialsRequest", 0, {"users": [{"name": USER}]}),
         ("DescribeUserScramCredentialsResponse", 0, {"results.0.user": USER})),
        (("IncrementalAlterConfigsRequest", 1, {"resources.0.configs.0.value": "pw-incremental"}),
         ("IncrementalAlterConfigsResponse", 1, {"responses.0.errorMessage": "said of erika"})),
        (("AlterConfigsRequest", 2, {"resources.0.configs.0.value": "pw-altered"}), ("AlterConfigsResponse", 2, {})),
        (("CreateTopicsRequest", 7, {"topics.0.configs.0.value": "pw-of-a-topic"}),
         ("CreateTopicsResponse", 7, {"topics.0.configs.0.value": "pw-answered"})),
        (("DescribeConfigsRequest", 4, {}), ("DescribeConfigsResponse", 4, {
            "results.0.configs.0.value": "pw-described", "results.0.configs.0.synonyms.0.value": "pw-a-synonym",
        })),
        (("CreateDelegationTokenRequest", 3, {"ownerPrincipalName": USER}),
         ("CreateDelegationTokenResponse", 3, {"hmac": b"hmac-created", "principalName": USER})),
        (("DescribeDelegationTokenRequest", 3, {}), ("DescribeDelegationTokenResponse", 3, {
            "tokens.0.hmac": b"hmac-described", "tokens.0.principalName": USER,
        })),
        (("RenewDelegationTokenRequest", 2, {"hmac": b"hmac-renewed"}), ("RenewDelegationTokenResponse", 2, {})),
        (("ExpireDelegationTokenRequest", 2, {"hmac": b"hmac-expired"}), ("ExpireDelegationTokenResponse", 2, {})),
        *(enveloped(*pair) for pair in ENVELOPED),
        (("PushTelemetryRequest", 0, {"metrics": b"telemetry-blob"}), ("PushTelemetryResponse", 0, {})),
        (("StreamsGroupHeartbeatRequest", 0, {
            "topology.subtopologies.0.stateChangelogTopics.0.topicConfigs.0.value": "pw-of-a-changelog",
            "userEndpoint.host": "endpoint.example", "rackId": "rack-cellar-7", "instanceId": "static-erika",
        }), ("StreamsGroupHeartbeatResponse", 0, {})),
        *((("ProduceRequest", 9, {batch: records(place, packing), "transactionalId": "txn-of-erika"}),
           ("ProduceResponse", 9, {}))
          for place, packing in zip(PLACES, ("none", "gzip", "zstd", "snappy", "lz4"), strict=False)),
        (("FetchRequest", 12, {"rackId": "rack-cellar-7"}),
         ("FetchResponse", 12, {f"{PARTITION}.records": records("fetched", "zstd")})),
        (("ShareFetchRequest", 1, {}), ("ShareFetchResponse", 1, {f"{PARTITION}.records": records("shared")})),
        (("FetchRequest", 12, {"topics.0.topic": METADATA_TOPIC}), ("FetchResponse", 12, {
            "responses.0.topic": METADATA_TOPIC, f"{PARTITION}.records": metadata_log("pw-in-the-log"),
        })),
        (("FetchRequest", 17, {"topics.0.topicId": METADATA_TOPIC_ID}), ("FetchResponse", 17, {
            "responses.0.topicId": METADATA_TOPIC_ID, f"{PARTITION}.records": metadata_log("x", "key-in-the-log"),
        })),
        (("FetchSnapshotRequest", 1, {}), ("FetchSnapshotResponse", 1, {
            "topics.0.partitions.0.unalignedRecords": metadata_log("pw-in-a-snapshot"),
        })),
        (("FindCoordinatorRequest", 4, {"keyType": 1, "coordinatorKeys": ["txn-of-erika"]}),
         ("FindCoordinatorResponse", 4, {"coordinators.0.key": "txn-of-erika", "coordinators.0.host": BROKER_HOST})),
        (("MetadataRequest", 12, {}), ("MetadataResponse", 12, {
            "brokers": [{"nodeId": 1, "host": BROKER, "port": 9092, "rack": "rack-cellar-7"}],
        })),
        (("JoinGroupRequest", 9, {
            "memberId": f"{CLIENT_ID}-1", "groupInstanceId": "static-erika",
            "protocols.0.metadata": b"endpoint.example",
        }), ("JoinGroupResponse", 9, {"leader": f"{CLIENT_ID}-1", "memberId": f"{CLIENT_ID}-1"})),
        (("CreateAclsRequest", 3, {
            "creations.0.principal": f"User:{USER}", "creations.0.host": CLIENT, "creations.0.resourceType": 7,
            "creations.0.resourceName": f"User:{USER}",
        }), ("CreateAclsResponse", 3, {})),
        (("DescribeClientQuotasRequest", 1, {}), ("DescribeClientQuotasResponse", 1, {
            "entries.0.entity": [
                {"entityType": "user", "entityName": USER}, {"entityType": "client-id", "entityName": CLIENT_ID},
                {"entityType": "ip", "entityName": CLIENT},
            ],
        })),
    ]  # fmt: skip


def capture(path: Path) -> Path:
    """Four connections: two with SASL's tokens as they are, one with both mechanisms in SaslAuthenticate, and the rest;
    that one is cut off by the end of the recording, which is remembered too."""
    plain, scram, wrapped, rest = (
        Talk((CLIENT, 40_000 + n), (BROKER, 9092), time_ns=(1_700_000_000 + n) * 10**9).open() for n in range(4)
    )
    for talk, mechanism, tokens in (
        (plain, "PLAIN", ((b"\0alice\0pw-plain-raw", b""),)),
        (scram, "SCRAM-SHA-256", ((b"n,,n=a,r=x", b"r=xy"), (b"c=biws,p=proof-scram-raw", b"v=server-proof-v1"))),
    ):
        _say(talk, 1, ("SaslHandshakeRequest", 0, {"mechanism": mechanism}), ("SaslHandshakeResponse", 0, {}))
        for token, answer in tokens:
            talk.say(0, framed(token)).say(1, framed(answer))
        _say(talk, 2, ("ApiVersionsRequest", 3, {}), ("ApiVersionsResponse", 3, {}))
    for number, token in enumerate((b"\0alice\0pw-plain-v1", b"c=biws,r=x,p=proof-scram-v1")):
        _say(wrapped, 10 * number + 1, ("SaslHandshakeRequest", 1, {}), ("SaslHandshakeResponse", 1, {}))
        request: Planted = ("SaslAuthenticateRequest", 2, {"authBytes": token})
        _say(wrapped, 10 * number + 2, request, ("SaslAuthenticateResponse", 2, {"authBytes": b"v=server-proof-v1"}))
    for number, (question, response) in enumerate(exchanges()):
        _say(rest, 100 + number, question, response)
    rest.say(0, _frame(("AlterConfigsRequest", 2, {"resources.0.configs.0.value": "pw-altered"}), 999))
    rest.say(0, _frame(("CreateTopicsRequest", 7, {"topics.0.configs.0.value": "pw-of-a-topic"}), 1000)[:-9])
    path.write_bytes(pcap(merged([plain.close(), scram.close(), wrapped.close(), rest])))
    return path


def _say(talk: Talk, number: int, request: Planted, response: Planted) -> None:
    talk.say(0, _frame(request, number)).say(1, _frame(response, number))


def _frame(message: Planted, number: int) -> bytes:
    header = {"correlationId": number, **({"clientId": CLIENT_ID} if message[0].endswith("Request") else {})}
    return encode_frame(message[0], message[1], planted(message), header)


def request_log(path: Path) -> Path:
    """A broker hides some of these; one that does not is to be feared."""
    lines = list(_lines())
    path.write_text("\n".join(lines) + "\n")
    return path


def _lines() -> Iterator[str]:
    token: Planted = ("SaslAuthenticateRequest", 2, {"authBytes": b"\0alice\0pw-plain-v1"})
    for number, (request, response) in enumerate([(token, ("SaslAuthenticateResponse", 2, {})), *exchanges()]):
        key = message(request[0]).key
        header = {
            "requestApiKey": key, "requestApiVersion": request[1], "correlationId": number, "clientId": CLIENT_ID,
            "requestApiKeyName": request[0].removesuffix("Request").upper(),
        }  # fmt: skip
        fields = {
            "isForwarded": False,
            "requestHeader": header,
            "request": to_json(request[0], request[1], planted(request)),
            "response": to_json(response[0], response[1], planted(response)),
            "connection": f"{BROKER}:9092-{CLIENT}:51234-3-17",
            "totalTimeMs": 2.5,
            "principal": f"User:{USER}",
            "clientInformation": {"softwareName": "librdkafka", "softwareVersion": "2.16.1"},
        }
        yield f"[2026-11-15 10:06:17,{number:03}] DEBUG Completed request:{json.dumps(fields)} (kafka.request.logger)"
