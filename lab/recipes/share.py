"""A share group in which members hang, halt, leave, release, reject and renew."""

from lab.program import Program
from lab.recipes.recipe import produce, settled
from lab.stage import Stage


def play(stage: Stage) -> None:
    group = "processors"
    stage.set_up("orders:1:1,payments:2:1", f"{group}:share.auto.offset.reset=earliest")

    def member(who: str, rules: str, topics: str = "orders", **more: str) -> Program:
        # the same for everyone: one record is poison, one is not wanted
        rules = f"orders-0-3=release;orders-0-5=reject;{rules}"
        few = {"kafka.max.poll.records": "4", "kafka.share.acquire.mode": "record_limit"}
        return stage.java("ShareMember", who, {"topic": topics, "kafka.group.id": group, "rules": rules, **few, **more})

    produce(stage, "producer-1", "orders", 30)
    watch = stage.java("Watch", "watch", {"what": "share", "group": group, "every": "1000"})
    # Locks last 3 s. The first record is held far longer, by renewals, and with it the start offset: an acknowledgement
    # that is late but before the start offset would be taken without an error.
    renewer = member("renewer", "orders-0-0=renew:14:600", commit="sync", **{"kafka.max.poll.records": "1"})
    renewer.wait_for("a renewal", lambda event: event.get("type") == "RENEW")
    stage.note("renewing", member="renewer")
    hung = member("hung", "n3=hang:4500")
    hung.wait_for_event("hanging")
    stage.note("hung", member="hung")
    steady = member("steady", "", "orders,payments", commit="sync")
    steady.wait_for_event("delivered")
    doomed = member("doomed", "n2=halt")
    produce(stage, "producer-payments", "payments", 12)
    rounds = 0
    while doomed.process.status is None:
        rounds += 1
        produce(stage, f"producer-more-{rounds}", "orders", 16)
    doomed.finish(1)
    stage.note("halted", member="doomed")
    leaver = member("leaver", "n2=leave")
    while leaver.process.status is None:
        rounds += 1
        produce(stage, f"producer-more-{rounds}", "orders", 16)
    leaver.finish()
    stage.note("left", member="leaver")
    hung.wait_for("a late acknowledgement refused", lambda event: bool(event.get("error")))
    renewer.wait_for("its record accepted", lambda event: event.get("offset") == 0 and event.get("type") == "ACCEPT")
    waiting = stage.note("waiting", record="all")
    watch.wait_for("every record settled", lambda event: event["at"] > waiting and settled(event, 3))
    for program in (hung, renewer, steady):
        program.close()
        stage.note("left", member=program.who)
    watch.wait_for("an empty group", lambda event: event.get("state") == "Empty")
    watch.close()
