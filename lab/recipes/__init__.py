"""Recipes of incidents: what happens on the stage, in order, while tcpdump and the request log record it.
No step waits for a time, each waits for what the step before must have caused."""

from lab.recipes import clients, frozen, poison, quorum, share, streams
from lab.recipes.recipe import Recipe

__all__ = ["RECIPES", "Recipe"]

RECIPES = {
    "share": Recipe(
        "a share group with a member that hangs past its lock, one that halts, one that leaves with records in hand, a "
        "poison record released until it is archived, a record rejected, renewals",
        share.play,
    ),
    "streams": Recipe(
        "a streams group with standbys: members join, one crashes, one leaves",
        streams.play,
    ),
    "quorum": Recipe(
        "three controllers and an observer from their first byte: a follower frozen and thawed, the leader killed and "
        "started again, DescribeQuorum polled",
        quorum.play,
        {"nodes": 3, "observer": True},
        whole=True,
    ),
    "clients": Recipe(
        "Java 2.8.2, 3.9.1 and 4.3.1, librdkafka, kafka-python 3.0.12 and 2.0.6 produce and consume: five "
        "compressions, transactions, acks=0, SASL PLAIN and SCRAM, re-authentication, TLS",
        clients.play,
        {"tls": True, "sasl": True, "settings": {"listener.name.sasl.connections.max.reauth.ms": "3000"}},
        nanoseconds=True,
    ),
    "frozen": Recipe(
        "a broker frozen for 10 s under load: three nodes that are both controller and broker, and a fourth that is a "
        "broker only; a producer with default timeouts, one with short ones, and a consumer",
        frozen.play,
        {"nodes": 3, "observer": True},
    ),
    "poison": Recipe(
        "a share group of three with a poison record that everyone releases, a record rejected, and a slow member that "
        "needs most of its lock for each batch",
        poison.play,
    ),
}
