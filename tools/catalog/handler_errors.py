"""Finds the errors that each API's handler can return, in the jars of one Kafka release.

The definitions list errors for few APIs; the compiled broker knows all of them. From the method that the broker's or
the controller's dispatch names for an API, this follows lambdas, helpers of the same class, and the layers below that
do the work of that API, and collects `Errors.NAME` and `new SomethingException` on the way. Precise rather than
complete: calls into shared machinery (the log, the network, other brokers) are not followed.
"""

import re
import zipfile
from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path

from tools.catalog.classfile import ClassFile, Method, Step

_ERRORS = "org/apache/kafka/common/protocol/Errors"
API_KEYS = "org/apache/kafka/common/protocol/ApiKeys"
_REQUESTS = "org/apache/kafka/common/requests/"
_BROKER, _CONTROLLER = "kafka/server/KafkaApis", "kafka/server/ControllerApis"
_REPLICAS = "kafka/server/ReplicaManager"
_RAFT = "org/apache/kafka/raft/KafkaRaftClient"
GROUP = "org/apache/kafka/coordinator/group/"
SHARE = "org/apache/kafka/coordinator/share/"
_RUNTIME = "org/apache/kafka/coordinator/common/runtime/"
QUORUM = "org/apache/kafka/controller/"
_TRANSACTION = "kafka/coordinator/transaction/"
_SASL = "org/apache/kafka/common/security/authenticator/SaslServerAuthenticator"

# what a call to an interface ends in
_IMPLEMENTATIONS = {
    GROUP + "GroupCoordinator": [GROUP + "GroupCoordinatorService"],
    GROUP + "Group": [
        GROUP + "classic/ClassicGroup",
        GROUP + "modern/consumer/ConsumerGroup",
        GROUP + "streams/StreamsGroup",
    ],
    SHARE + "ShareCoordinator": [SHARE + "ShareCoordinatorService"],
    QUORUM + "Controller": [QUORUM + "QuorumController"],
    "org/apache/kafka/server/quota/ControllerMutationQuota": [
        "org/apache/kafka/server/quota/StrictControllerMutationQuota"
    ],
}

# a call from the class on the left to one of these (class.method) is the same request going down a layer
_RUNS = rf"{_RUNTIME}(CoordinatorRuntime\..*|CoordinatorOperationExceptionHelper\.handleOperationException)"
_LAYERS = {
    _BROKER: rf"kafka/server/(AuthHelper|AclApis|Config\w+|ReplicaManager|share/SharePartitionManager|handlers/\w+)\..*"
    rf"|org/apache/kafka/server/(FetchManager|ClientMetricsManager)\..*|{_TRANSACTION}TransactionCoordinator\..*"
    rf"|{GROUP}GroupCoordinatorService\..*|{SHARE}ShareCoordinatorService\..*",
    _CONTROLLER: rf"kafka/server/(AuthHelper|AclApis|ConfigHelper)\..*|{QUORUM}QuorumController\..*"
    r"|.*ControllerMutationQuota\.record",
    QUORUM + "QuorumController": rf"{QUORUM}(\w+ControlManager\.(?!replay).*|errors/ControllerExceptions\.newWrong.*)",
    _RAFT: r"org/apache/kafka/raft/internals/\w+VoterHandler\.handle\w+",
    QUORUM + "ReplicationControlManager": rf"{QUORUM}ClusterControlManager\.check.*",
    QUORUM + "ConfigurationControlManager": rf"{QUORUM}FeatureControlManager\.updateFeatures",
    GROUP + "GroupCoordinatorService": rf"{GROUP}GroupCoordinatorShard\..*|{_RUNS}",
    GROUP + "GroupCoordinatorShard": rf"{GROUP}(Group|Offset)MetadataManager\.(?!replay).*|{GROUP}Group\.validate.*",
    GROUP + "GroupMetadataManager": rf"{GROUP}.*Group\.(validate.*|get.*Member.*)",
    GROUP + "OffsetMetadataManager": rf"{GROUP}.*Group\.validate.*",
    SHARE + "ShareCoordinatorService": rf"{SHARE}ShareCoordinatorShard\..*|{_RUNS}",
    _TRANSACTION + "TransactionCoordinator": rf"{_TRANSACTION}TransactionStateManager\.(get|put|append|list).*",
    "kafka/server/share/SharePartitionManager": r"kafka/server/share/SharePartition"
    r"\.(acknowledge|releaseAcquiredRecords)",
}

# methods that respond to someone else's request (members that wait for a rebalance, fetches that wait for records) or
# apply what was decided (replay), and a timer whose error is turned into COORDINATOR_NOT_AVAILABLE before it is sent
_SKIPPED = re.compile(
    r".*\.(replay|prepareRebalance|convertTo(Classic|Consumer)Group|onBecomeFollower|transitionTo\w+)|.*OperationTimeout\.run"
)

# responded to before the dispatch, or by shared classes, in methods of theirs whose errors only this API sends on
LOG, _CACHE = "org/apache/kafka/storage/internals/log/", "org/apache/kafka/metadata/KRaftMetadataCache"
_EXTRA = {
    "SASL_HANDSHAKE": [(_SASL, "handleHandshakeRequest")],
    "SASL_AUTHENTICATE": [(_SASL, "handleSaslToken")],
    "METADATA": [(_CACHE, "getTopicMetadata")],
    "DESCRIBE_TOPIC_PARTITIONS": [(_CACHE, "describeTopicResponse")],
    "DESCRIBE_USER_SCRAM_CREDENTIALS": [("org/apache/kafka/image/ScramImage", "describe")],
    "DESCRIBE_CLIENT_QUOTAS": [("org/apache/kafka/image/ClientQuotasImage", "describe")],
    "OFFSET_FOR_LEADER_EPOCH": [("kafka/cluster/Partition", "lastOffsetForLeaderEpoch")],
    "PRODUCE": [
        ("kafka/cluster/Partition", "appendRecordsToLeader"),
        ("kafka/cluster/Partition", "checkEnoughReplicasReachOffset"),
        (LOG + "LogValidator", "validateMessagesAndAssignOffsets"),
        (LOG + "ProducerAppendInfo", "append"),
        ("org/apache/kafka/server/purgatory/DelayedProduce", "<init>"),
    ],
}

# reached in the code, but only with an argument that this API never passes: control records in Produce, a member epoch
# or a regular expression in JoinGroup, an offset commit outside a transaction, records or acks that a client chose
NEVER = {
    "PRODUCE": {"TRANSACTION_COORDINATOR_FENCED"},
    "JOIN_GROUP": {"FENCED_MEMBER_EPOCH", "INVALID_REGULAR_EXPRESSION"},
    "TXN_OFFSET_COMMIT": {"REBALANCE_IN_PROGRESS"},
    "WRITE_TXN_MARKERS": {
        "CORRUPT_MESSAGE",
        "INVALID_REQUIRED_ACKS",
        "INVALID_TOPIC_EXCEPTION",
        "MESSAGE_TOO_LARGE",
        "RECORD_LIST_TOO_LARGE",
    },
}

# helpers of one class that call helpers: beyond three steps they serve every request
_DEPTH = 3


class Classes:
    """The classes of some jars, parsed when asked for, and what the release calls its errors and its APIs."""

    def __init__(self, jars: Iterable[Path]) -> None:
        self._jars = [zipfile.ZipFile(jar) for jar in jars]
        self._where = {name: jar for jar in self._jars for name in jar.namelist()}
        self._classes: dict[str, ClassFile | None] = {}
        self.exceptions = dict(self._exceptions())

    def find(self, name: str) -> ClassFile | None:
        if name not in self._classes:
            jar = self._where.get(name + ".class")
            self._classes[name] = ClassFile(jar.read(name + ".class")) if jar else None
        return self._classes[name]

    def steps(self, method: Method) -> list[Step]:
        """Of the class itself or of the nearest superclass that has the method."""
        owner: str = method[0]
        while (class_file := self.find(owner)) is not None:
            if method[1:] in class_file.methods:
                return class_file.methods[method[1:]]
            owner = class_file.parent
        return []

    def methods(self, owner: str, name: str | None = None) -> list[Method]:
        """All of a class, or those of one name."""
        class_file = self.find(owner)
        return [(owner, *key) for key in class_file.methods if name in (None, key[0])] if class_file else []

    def _exceptions(self) -> Iterator[tuple[str, str]]:
        """`NAME(code, text, SomethingException::new)`: the name and the constructor are next to each other."""
        errors = self.find(_ERRORS)
        if errors is None:
            raise SystemExit("no kafka-clients among the jars: Errors is missing")
        constant = ""
        for kind, (owner, name, _) in errors.methods["<clinit>", "()V"]:
            if kind == "text" and re.fullmatch(r"[A-Z_]+", name):
                constant = name
            elif kind == "lambda" and name == "<init>":
                yield owner, constant

    def error_of(self, exception: str) -> str | None:
        """As Errors.forException does: the nearest superclass that an error names."""
        while exception not in self.exceptions:
            class_file = self.find(exception)
            if class_file is None:
                return None
            exception = class_file.parent
        return self.exceptions[exception]

    def apis(self) -> dict[str, tuple[int, str]]:
        """Constant of ApiKeys to key and name, out of the request definitions."""
        by_constant = {}
        for path, jar in self._where.items():
            if re.fullmatch(r"common/message/\w+Request\.json", path):
                key = re.search(rb'"apiKey":\s*(\d+)', jar.read(path))
                name = Path(path).stem.removesuffix("Request")
                if key:
                    by_constant[re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).upper()] = (int(key[1]), name)
        return by_constant


def _handlers(classes: Classes, constants: Iterable[str]) -> dict[str, list[Method]]:
    """Where each API starts, as the dispatch says: after `ApiKeys.X` comes the call that handles it."""
    by_api: dict[str, list[Method]] = {constant: [] for constant in constants}
    for dispatcher in (_BROKER, _CONTROLLER):
        current = ""
        steps = [step for method in classes.methods(dispatcher, "handle") for step in classes.steps(method)]
        for kind, (owner, name, descriptor) in steps:
            if owner == API_KEYS:
                current = name
            elif kind == "call" and name.startswith("handle") and current in by_api:
                by_api[current].append((owner, name, descriptor))
                current = ""
    return by_api


def _reached(classes: Classes, starts: list[Method], others: set[Method]) -> Iterator[tuple[str, str]]:
    """Every method that works on this API's request, nearest first, with each error that it can send."""
    queue: deque[tuple[Method, int, frozenset[str]]] = deque((start, 0, frozenset()) for start in starts)
    seen = others | set(starts)
    while queue:
        method, depth, caught = queue.popleft()
        steps = classes.steps(method)
        where = f"{method[0]}.{method[1]}"
        handled = caught
        if method[0] not in (_BROKER, _CONTROLLER):  # what these catch they send
            handled |= {classes.error_of(owner) or "" for kind, (owner, _, _) in steps if kind == "handles"}
        for step in steps:
            if (sent := error(classes, where, step)) and sent not in caught:
                yield where, sent
            for target, deeper in follow(classes, method[0].split("$")[0], step, depth):
                if target not in seen and deeper <= _DEPTH:
                    seen.add(target)
                    queue.append((target, deeper, handled))


def follow(classes: Classes, here: str, step: Step, depth: int) -> Iterator[tuple[Method, int]]:
    """The methods that a step leads to and how deep they lie; none where the trail of this request ends."""
    kind, (called, name, descriptor) = step
    if kind == "new" and called.startswith(here + "$"):
        # an event that a queue runs, or an operation written as an anonymous class
        anonymous = called.rsplit("$", 1)[1].isdigit()
        for method in classes.methods(called):
            if (method[1] == "run" or (anonymous and method[1] != "<init>")) and not _SKIPPED.fullmatch(
                f"{called}.{method[1]}"
            ):
                yield method, depth
    for owner in _IMPLEMENTATIONS.get(called, [called]) if kind in ("call", "lambda") else []:
        path = f"{owner}.{name}"
        if _SKIPPED.fullmatch(path):
            continue
        if owner.split("$")[0] == here:
            # lambdas and Scala's local functions belong to the method that they are written in
            yield (owner, name, descriptor), depth + (kind == "call" and "$" not in name)
        elif name.startswith("throwIf"):
            yield (owner, name, descriptor), _DEPTH
        elif here in _LAYERS and re.fullmatch(_LAYERS[here], path):
            yield (owner, name, descriptor), 0


def error(classes: Classes, where: str, step: Step) -> str | None:
    """The error that a step can send: one that it names or makes.

    An error that is only compared with counts where responses are built, as it is sent on; an exception that is only
    matched counts where a caught exception becomes a partition's error.
    """
    kind, (owner, name, _) = step
    if owner == _ERRORS and (kind == "static" or (kind == "compared" and where.startswith((_BROKER, _CONTROLLER)))):
        return name if name.isupper() and name != "NONE" else None
    return classes.error_of(owner) if kind == "new" or (kind == "caught" and where.startswith(_REPLICAS)) else None


def _handler_errors(jars: Iterable[Path]) -> Iterator[tuple[str, str, str]]:
    """API, error and the method that has it, by API key and then by the error's name."""
    classes = Classes(jars)
    apis = classes.apis()
    starts = _handlers(classes, apis)
    for constant, (_, name) in apis.items():
        raft = (_RAFT, f"handle{name.replace('RaftVoter', 'Voter')}Request")
        for owner, method in (raft, (_REQUESTS + name + "Request", "getErrorResponse"), *_EXTRA.get(constant, ())):
            starts[constant] += classes.methods(owner, method)
    for constant, (_, name) in sorted(apis.items(), key=lambda api: api[1]):
        others = {method for other, methods in starts.items() if other != constant for method in methods}
        first_seen: dict[str, str] = {}
        for where, sent in _reached(classes, starts[constant], others - set(starts[constant])):
            if sent not in NEVER.get(constant, ()):
                first_seen.setdefault(sent, where.split("/")[-1])
        yield from ((name, sent, first_seen[sent]) for sent in sorted(first_seen))


def handler_lines(release: str, jars: Iterable[Path]) -> list[str]:
    """As `handler_errors.txt` has them."""
    head = f"# API, error, place in the broker's compiled code that names it (Kafka {release})"
    return [head, *(" ".join(row) for row in _handler_errors(jars))]
