"""A streams group whose members join, crash and leave."""

from typing import Any

from lab.program import Program
from lab.recipes.recipe import produce
from lab.stage import Stage
from lab.wire import until

_SETTLE_SECONDS = 120.0


def play(stage: Stage) -> None:
    group, topic, partitions = "counters", "words", 3
    tasks = {f"{part}_{partition}" for part in (0, 1) for partition in range(partitions)}
    standbys = "streams.num.standby.replicas=1"
    stage.set_up(f"{topic}:{partitions}:1,counts:1:1", f"{group}:{standbys}")
    produce(stage, "producer-1", topic, 60)

    def member(who: str) -> Program:
        options = {"topic": topic, "output": "counts", "kafka.application.id": group}
        stage.note("joining", member=who)
        return stage.java("StreamsMember", who, {**options, "kafka.state.dir": str(stage.folder / f"state-{who}")})

    def settle(*members: Program) -> None:
        def held() -> bool:
            last = [_holds(program) for program in members]
            active = [task for program in last for task in program["active"]]
            standby = [task for program in last for task in program["standby"]]
            backed_up = len(members) == 1 or sorted(standby) == sorted(tasks)
            return sorted(active) == sorted(tasks) and backed_up and all(program["active"] for program in last)

        until(f"tasks spread over {', '.join(program.who for program in members)}", held, _SETTLE_SECONDS)
        stage.note("settled", members=[program.who for program in members])

    first = member("first")
    settle(first)
    watch = stage.java("Watch", "watch", {"what": "streams", "group": group, "every": "1000"})
    second = member("second")
    settle(first, second)
    third = member("third")
    settle(first, second, third)
    produce(stage, "producer-2", topic, 60)
    second.process.tell("halt")
    second.finish(1)
    stage.note("halted", member="second")
    settle(first, third)
    first.close()
    stage.note("left", member="first")
    settle(third)
    third.close()
    watch.close()


def _holds(program: Program) -> dict[str, Any]:
    held = [event for event in program.events() if event["event"] == "holds"]
    return held[-1] if held else {"active": [], "standby": []}
