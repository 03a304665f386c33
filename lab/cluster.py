"""Runs Apache Kafka on loopback. Everything it started is stopped when the `with` block ends, however it ends."""

import base64
import random
import shutil
import socket
import tempfile
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from lab import secured as security
from lab.certificates import Certificates, make_certificates
from lab.jars import JVM, KAFKA, archive, joined, kafka_path, locked, programs, run
from lab.keys import Keys, make_keys
from lab.process import Process
from lab.settings import CONTROLLER, HOST, PLAIN, SASL, TLS, USERS, Place, log4j1, log4j2, server_properties
from lab.tokens import Tokens
from lab.wire import call, until

# 8 s when the machine is idle; other work on the same two cores can make it ten times that
_READY_SECONDS = 120.0
_HEAP = ("-Xms64m", "-Xmx400m")
# below the range that the kernel takes clients' ports from, so that none is taken between choice and bind
_PORTS = range(20000, 30000)


@dataclass(slots=True)
class Node:
    """One JVM: where it is, and the process while there is one."""

    place: Place
    process: Process | None = None

    @property
    def request_log(self) -> Path:
        return self.place.folder / "request.log"

    @property
    def server_log(self) -> Path:
        return self.place.folder / "server.log"


class Cluster:
    """`nodes` combined brokers and controllers, numbered from 1, and with `observer` one more that is a broker only."""

    def __init__(
        self,
        nodes: int = 1,
        *,
        observer: bool = False,
        tls: bool = False,
        sasl: bool = False,
        secured: bool = False,
        release: str = KAFKA,
        settings: Mapping[str, str] | None = None,
        flags: tuple[str, ...] | None = None,
        before_start: Callable[["Cluster"], None] | None = None,
    ) -> None:
        """`secured` adds every kind of login (`lab.secured`) and turns ACLs on; `settings` go into every
        server.properties; `flags` replace the JVM's use of the class archive; `before_start` is called when ports are
        known and no node runs yet."""
        self.release = release
        self._count = nodes
        self._observer = observer
        self._secured = secured
        self._listeners = [PLAIN[0], *([TLS[0]] if tls else []), *([SASL[0]] if sasl else [])]
        if secured:
            self._listeners = [PLAIN[0], *security.LISTENERS]
        self._settings = dict(settings or {})
        self._flags = flags
        self._before_start = before_start
        self.folder = Path()
        self.nodes: dict[int, Node] = {}
        self.keys: Keys | None = None
        self._certificates: Certificates | None = None
        self._tokens: Tokens | None = None

    def __enter__(self) -> "Cluster":
        if self._flags is None:
            _make_archive(self.release)
            self._flags = (f"-XX:SharedArchiveFile={archive(self.release)}",)
        self.folder = Path(tempfile.mkdtemp(prefix="kafkascope-lab-"))
        try:
            self._lay_out()
            self._format()
            if self._before_start is not None:
                self._before_start(self)
            for number in self.nodes:
                self.start(number)
            self.wait_until_ready()
            if self._secured:
                security.add_acls(self.nodes[1].place.address(PLAIN[0]))
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        # brokers first, the last controller needs nobody to say goodbye to
        running = [node.process for node in self.nodes.values() if node.process is not None]
        try:
            for process in running:
                process.ask_to_stop()
        finally:
            for process in running:
                process.stop()
            shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def bootstrap(self) -> str:
        return self.addresses(PLAIN)

    @property
    def tls_bootstrap(self) -> str:
        return self.addresses(TLS)

    @property
    def sasl_bootstrap(self) -> str:
        return self.addresses(SASL)

    @property
    def controllers(self) -> str:
        """The controllers' own listeners, for `--bootstrap-controller`."""
        return ",".join(node.place.address(CONTROLLER[0]) for node in self._controllers())

    def addresses(self, listener: tuple[str, str]) -> str:
        """Of a listener by (name, security protocol), as `lab.settings` and `lab.secured` name them."""
        if listener[0] not in self._listeners:
            raise RuntimeError(f"this cluster has no {listener[0]} listener")
        return ",".join(node.place.address(listener[0]) for node in self.nodes.values())

    @property
    def certificates(self) -> Certificates:
        if self._certificates is None:
            raise RuntimeError("only a secured cluster has certificates")
        return self._certificates

    @property
    def tokens(self) -> Tokens:
        if self._tokens is None:
            raise RuntimeError("only a secured cluster takes tokens")
        return self._tokens

    @property
    def ports(self) -> dict[int, dict[str, int]]:
        """Node → listener → port."""
        return {number: dict(node.place.ports) for number, node in self.nodes.items()}

    def start(self, number: int) -> None:
        """A node that is not running: for the first time, or after `kill`."""
        node = self.nodes[number]
        folder = node.place.folder
        command = ["java", *JVM, *_HEAP, *(self._flags or ()), f"-Dlog4j2.configurationFile={folder}/log4j2.xml"]
        command += [f"-Dlog4j.configuration=file:{folder}/log4j.properties"]
        command += security.jvm_flags(self._tokens) if self._tokens else ()
        # where Kafka's shutdown hooks would print; the logs are in files
        command += ["-cp", joined(kafka_path(self.release)), "kafka.Kafka", str(folder / "server.properties")]
        node.process = Process(command, folder / "output.log")

    def freeze(self, number: int) -> None:
        self._process(number).freeze()

    def thaw(self, number: int) -> None:
        self._process(number).thaw()

    def kill(self, number: int) -> None:
        """As a power cut: SIGKILL."""
        self._process(number).kill()
        self.nodes[number].process = None

    def stop(self, number: int) -> None:
        """In order: leadership is handed over first."""
        self._process(number).stop()
        self.nodes[number].process = None

    def leader(self) -> int:
        """The controller quorum's leader; the others name it too, but late."""
        return until("a controller quorum with a leader", self._ask_leader, _READY_SECONDS)

    def wait_until_ready(self) -> None:
        """Every running node knows every running broker."""
        running = {number for number, node in self.nodes.items() if node.process is not None}
        until(f"nodes {sorted(running)} ready", lambda: self._knows_all(running), _READY_SECONDS)

    def _lay_out(self) -> None:
        numbers = range(1, self._count + 1)
        roles: dict[int, tuple[str, ...]] = dict.fromkeys(numbers, ("broker", "controller"))
        if self._observer:
            roles[self._count + 1] = ("broker",)
        ports = iter(free_ports(len(roles) * (len(self._listeners) + 1)))
        for number, part in roles.items():
            names = [*self._listeners, *([CONTROLLER[0]] if "controller" in part else [])]
            folder = self.folder / f"node-{number}"
            folder.mkdir()
            self.nodes[number] = Node(Place(number, part, folder, {name: next(ports) for name in names}))
        if self._secured:
            self._certificates, self._tokens = make_certificates(self.folder), Tokens(self.folder)
        elif TLS[0] in self._listeners:
            self.keys = make_keys(self.folder)
        controllers = [node.place.address(CONTROLLER[0]) for node in self._controllers()]
        store = self.keys.store if self.keys else None
        for node in self.nodes.values():
            extra, listeners = self._settings, {}
            if self._certificates and self._tokens:
                extra = {**security.secured_properties(node.place, self._certificates, self._tokens), **extra}
                listeners = security.LISTENERS
            text = server_properties(node.place, controllers, min(3, len(roles)), store, extra, listeners)
            (node.place.folder / "server.properties").write_text(text)
            (node.place.folder / "log4j2.xml").write_text(log4j2(node.place.folder))
            (node.place.folder / "log4j.properties").write_text(log4j1(node.place.folder))

    def _format(self) -> None:
        cluster = _uuid()
        voters = ",".join(
            f"{node.place.node}@{node.place.address(CONTROLLER[0])}:{_uuid()}" for node in self._controllers()
        )
        arguments: list[str] = []
        for node in self.nodes.values():
            quorum = ["--initial-controllers", voters] if "controller" in node.place.roles else ["-N"]
            node_arguments = ["format", "-t", cluster, "-c", str(node.place.folder / "server.properties"), *quorum]
            if self._secured and "controller" in node.place.roles:
                node_arguments += security.scram_arguments()
            elif SASL[0] in self._listeners and "controller" in node.place.roles:
                for name, password in USERS.items():
                    node_arguments += ["--add-scram", f"SCRAM-SHA-256=[name={name},password={password}]"]
            arguments += (["--"] if arguments else []) + node_arguments
        path = joined([*kafka_path(self.release), programs()])
        run(["java", *JVM, *(self._flags or ()), "-cp", path, "Format", *arguments])

    def _controllers(self) -> list[Node]:
        return [node for node in self.nodes.values() if "controller" in node.place.roles]

    def _process(self, number: int) -> Process:
        process = self.nodes[number].process
        if process is None:
            raise RuntimeError(f"node {number} is not running")
        return process

    def _knows_all(self, running: set[int]) -> bool:
        for number in running:
            process = self._process(number)
            if process.status is not None:
                log = self.nodes[number].server_log
                log_end = log.read_text(errors="replace")[-2000:] if log.exists() else ""
                raise RuntimeError(f"node {number} exited with {process.status}: {log_end}{process.tail()}")
            try:
                answer = call(self.nodes[number].place.address(PLAIN[0]), "Metadata", 12, {"topics": []})
            except OSError:
                return False
            if not running <= {broker["nodeId"] for broker in answer["brokers"]}:
                return False
        return True

    def _ask_leader(self) -> int | None:
        request = {"topics": [{"topicName": "__cluster_metadata", "partitions": [{"partitionIndex": 0}]}]}
        for node in self._controllers():
            if node.process is None:
                continue
            try:
                answer = call(node.place.address(CONTROLLER[0]), "DescribeQuorum", 2, request)
            except OSError:
                continue
            partition: dict[str, Any] = answer["topics"][0]["partitions"][0] if answer["topics"] else {}
            if partition.get("errorCode") == 0 and partition["leaderId"] == node.place.node:
                return node.place.node
        return None


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on, all different."""
    ports: list[int] = []
    for port in random.sample(_PORTS, len(_PORTS)):
        with socket.socket() as probe:
            try:
                probe.bind((HOST, port))
            except OSError:
                continue
        ports.append(port)
        if len(ports) == count:
            return ports
    raise RuntimeError(f"no {count} free ports between {_PORTS.start} and {_PORTS.stop}")


def _make_archive(release: str = KAFKA) -> None:
    """Loaded classes of a broker in one file that later JVMs map: the first cluster of a machine takes longer."""
    target = archive(release)
    if target.exists():
        return
    with locked("archive"):
        if target.exists():
            return
        for stale in target.parent.glob("*.jsa"):
            stale.unlink()
        unfinished = target.with_suffix(".part")
        with Cluster(flags=("-Xshare:auto",), release=release) as cluster:
            cluster.stop(1)
            cluster._flags = (f"-XX:ArchiveClassesAtExit={unfinished}",)
            cluster.start(1)
            cluster.wait_until_ready()
            cluster.stop(1)
        unfinished.rename(target)


def _uuid() -> str:
    """Kafka's form: unpadded url-safe base64, and no leading dash, which tools would take for an option."""
    while True:
        text = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        if not text.startswith("-"):
            return text
