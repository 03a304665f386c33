"""Several machines, as near as one gets to them: each has a network, a host name, processes and a disk of its own. The
end of one is a power cut for all that runs in it. The first is the hub, to whose bridge the others are connected."""

import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from lab.process import Process
from lab.wire import until

_SUBNET = "10.77.0"
_TOOLS = ("ip", "unshare", "nsenter")
# Everything of the real disk is read-only, like an image that all machines were installed from; `$1` is the one folder
# that can be written to, in memory.
_SET_UP = """
set -e
while read -r _ place kind _; do
  case $kind in
    ext*|xfs|btrfs|overlay|tmpfs|zfs|9p|virtiofs) mount -o remount,ro,bind "$place" 2>/dev/null || true;;
  esac
done < /proc/self/mounts
mount -t tmpfs tmpfs /dev/shm
mount -t tmpfs tmpfs "$1"
echo 127.0.0.1 localhost > "$1/hosts"
for number in 1 2 3 4 5 6 7 8 9; do echo "$3.$number machine-$number"; done >> "$1/hosts"
mount --bind "$1/hosts" /etc/hosts
hostname "$2"
ip link set lo up
echo ready
exec sleep infinity
"""
_UNSHARE = ("unshare", "--net", "--mount", "--uts", "--pid", "--fork", "--kill-child", "--mount-proc")
_START_SECONDS = 30.0


class Machine:
    """`folder` is its disk: the same path on every machine, and another folder on each. `log` is outside of it."""

    def __init__(self, number: int, folder: Path, log: Path) -> None:
        self.number = number
        self.name = f"machine-{number}"
        self.address = f"{_SUBNET}.{number}"
        self.folder = folder
        self._log = log
        self._log.mkdir(exist_ok=True)
        command = [*_UNSHARE, "--propagation", "private", "sh", "-c", _SET_UP, "sh", str(folder), self.name, _SUBNET]
        self._output = log / f"{self.name}.log"
        self._output.unlink(missing_ok=True)
        self._process = Process(command, self._output)
        self._started: list[Process] = []
        until(f"{self.name}", self._is_ready, _START_SECONDS)
        children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children")
        # The first process of its own, which the namespaces are reached by.
        self.pid = int(children.read_text().split()[0])

    def start(self, name: str, command: list[str], environment: Mapping[str, str]) -> Process:
        """A process on this machine. It ends with the machine."""
        variables = [f"{key}={value}" for key, value in environment.items()]
        log = self._log / f"{self.name}-{name}.log"
        log.unlink(missing_ok=True)
        process = Process([*self._enter(), "env", *variables, *command], log, stdin=True)
        self._started.append(process)
        return process

    def run(self, *command: str) -> str:
        return _run([*self._enter(), *command])

    def in_network(self, *command: str) -> str:
        """A command of the real machine, in the network of this one."""
        return _run(["nsenter", f"--target={self.pid}", "--net", "--", *command])

    def cut_power(self) -> None:
        """Everything on it is gone at once, unsaid."""
        for process in (self._process, *self._started):
            process.kill()

    def _enter(self) -> list[str]:
        return ["nsenter", f"--target={self.pid}", "--net", "--mount", "--uts", "--pid", "--"]

    def _is_ready(self) -> bool:
        if self._process.status is not None:
            raise RuntimeError(f"{self.name} ended: {self._process.tail()}")
        return "ready" in self._output.read_text()


class Machines:
    """The hub is machine 1. All of them end with the `with` block."""

    def __init__(self, folder: Path, log: Path) -> None:
        self._folder, self._log = folder, log
        self._ends = ExitStack()
        self.by_number: dict[int, Machine] = {}

    @property
    def hub(self) -> Machine:
        return self.by_number[1]

    def add(self, number: int) -> Machine:
        """A new one, or one in place of another that is gone, connected to the others."""
        machine = Machine(number, self._folder, self._log)
        self._ends.callback(machine.cut_power)
        self.by_number[number] = machine
        if number == 1:
            machine.in_network("ip", "link", "add", "lan", "type", "bridge")
            device = "lan"
        else:
            port, device = f"port-{number}", "eth0"
            pair = ["type", "veth", "peer", "name", device, "netns", str(machine.pid)]
            self.hub.in_network("ip", "link", "add", port, *pair)
            self.hub.in_network("ip", "link", "set", port, "master", "lan", "up")
        machine.in_network("ip", "address", "add", f"{machine.address}/24", "dev", device)
        machine.in_network("ip", "link", "set", device, "up")
        return machine

    def set_cable(self, number: int, state: str) -> None:
        """`down` is a cable that is pulled: no other machine notices."""
        self.hub.in_network("ip", "link", "set", f"port-{number}", state)

    def __enter__(self) -> "Machines":
        self.add(1)
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.close()


@contextmanager
def machines(folder: Path, log: Path) -> Iterator[Machines]:
    folder.mkdir()
    with Machines(folder, log) as all_machines:
        yield all_machines


def why_not() -> str | None:
    """Why there can't be any here; None if there can."""
    for tool in _TOOLS:
        if shutil.which(tool) is None:
            return f"network namespaces need {tool}"
    script = "ip link add lan type bridge && ip link add cable type veth peer name end && mount -t tmpfs tmpfs /dev/shm"
    done = subprocess.run([*_UNSHARE, "sh", "-c", script], capture_output=True, text=True, check=False)
    return f"no network namespaces here: {done.stderr.strip()}" if done.returncode else None


def _run(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr}")
    return done.stdout
