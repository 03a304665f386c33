"""A share group with a record that nobody can process, and a member that is slow for other reasons."""

from lab.program import Event, Program
from lab.recipes.recipe import settled
from lab.stage import Stage
from lab.wire import until

# of a lock of 3 s the slow member needs 2.5 s for a batch of four
_FEW = {"kafka.max.poll.records": "4", "kafka.share.acquire.mode": "record_limit"}
_SLOW_BATCHES = 6
_SETTLE_SECONDS = 120.0


def play(stage: Stage) -> None:
    group, topic = "accounting", "invoices"
    stage.set_up(f"{topic}:1:1", f"{group}:share.auto.offset.reset=earliest")

    def member(who: str, rules: str) -> Program:
        # the same for everyone: one record is poison, one is not wanted
        options = {"topic": topic, "kafka.group.id": group, "commit": "sync"}
        rules = f"{topic}-0-21=release;{topic}-0-26=reject;{rules}"
        return stage.java("ShareMember", who, {**options, "rules": rules, **_FEW})

    members = [member("quick", "all=work:20"), member("brisk", "all=work:30"), member("slow", "all=work:620")]
    watch = stage.java("Watch", "watch", {"what": "share", "group": group, "every": "2000"})
    watch.wait_for("three members", lambda event: len(event.get("members", ())) == len(members))
    stage.note("joined", members=[program.who for program in members])
    load = stage.java("Load", "invoicing", {"role": "produce", "topic": topic, "burst": "16", "every": "1000"})
    until("the slow member's batches", lambda: len(_commits(members[-1])) >= _SLOW_BATCHES, _SETTLE_SECONDS)
    load.close()
    waiting = stage.note("waiting", record="all")
    watch.wait_for("every record settled", lambda event: event["at"] > waiting and settled(event, 1))
    for program in members:
        program.close()
        stage.note("left", member=program.who)
    watch.wait_for("an empty group", lambda event: event.get("state") == "Empty")
    watch.close()


def _commits(program: Program) -> list[Event]:
    return [event for event in program.events() if event["event"] == "committed"]
