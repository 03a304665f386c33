"""Lists the conversations that an API is part of, with their exchanges in order."""

from dataclasses import dataclass
from functools import cache

from kafkascope.schema.files import lines


@dataclass(frozen=True, slots=True)
class FlowStep:
    """One request, from `sender` to `receiver`; its response, in the other direction, isn't listed."""

    sender: str
    receiver: str
    api: str
    remark: str


@dataclass(frozen=True, slots=True)
class Flow:
    title: str
    steps: tuple[FlowStep, ...]

    @property
    def actors(self) -> tuple[str, ...]:
        """The participants, in the order in which they appear."""
        return tuple(dict.fromkeys(name for step in self.steps for name in (step.sender, step.receiver)))


@cache
def flows() -> tuple[Flow, ...]:
    conversations: list[tuple[str, list[FlowStep]]] = []
    for line in lines("flows.txt"):
        if not line.startswith(" "):
            conversations.append((line, []))
            continue
        sender, _, rest = line.strip().partition(" > ")
        receiver, _, rest = rest.partition(": ")
        api, _, remark = rest.partition(" - ")
        conversations[-1][1].append(FlowStep(sender, receiver, api, remark))
    return tuple(Flow(title, tuple(steps)) for title, steps in conversations)


def flows_of(api: str) -> list[Flow]:
    return [flow for flow in flows() if any(step.api == api for step in flow.steps)]
