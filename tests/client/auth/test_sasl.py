"""Logins to a real broker: every mechanism, right and wrong, and again when the session ends."""

# ruff: noqa: S106 - the passwords are planted

import asyncio
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from kafkascope.client.auth.sasl import SASL_AUTHENTICATE, authenticate
from kafkascope.client.cluster import connect
from kafkascope.client.opening import open_connection
from kafkascope.client.settings import Address, Sasl, Secret, Settings, Tls, parse_address, parse_addresses
from kafkascope.client.transport.connection import Connection
from kafkascope.client.transport.deadline import after
from kafkascope.errors import ReachError
from lab.cluster import Cluster
from lab.secured import MECHANISMS, SASL_TLS, SECURED_USERS, SHORT, SHORT_SESSION_MS
from lab.settings import PLAIN, SASL, TLS
from lab.tokens import TokenServer

PASSWORDS = [mechanism for mechanism in MECHANISMS if mechanism != "OAUTHBEARER"]


def user(mechanism: str, name: str = "alice", password: str | None = None) -> Sasl:
    return Sasl(mechanism, name, Secret(SECURED_USERS[name] if password is None else password))


def topics(addresses: str, sasl: Sasl | None, tls: Tls | None = None) -> list[int]:
    """Error codes of a topic that only alice may create: 0 tells that the broker took us for her."""

    async def ask() -> list[int]:
        async with connect(Settings(parse_addresses(addresses), sasl=sasl, tls=tls)) as cluster:
            request = {"topics": [{"name": "probe", "numPartitions": 1, "replicationFactor": 1}], "validateOnly": True}
            answer = await cluster.call("CreateTopics", request)
            return [row["errorCode"] for row in answer.value["topics"]]

    return asyncio.run(ask())


TOPIC_AUTHORIZATION_FAILED = 29


def refusal(addresses: str, sasl: Sasl | None) -> str:
    with pytest.raises(ReachError) as caught:
        topics(addresses, sasl)
    message = str(caught.value)
    assert caught.value.exit_code == 4 and "\n" not in message and addresses in message
    return message


@pytest.mark.parametrize("mechanism", PASSWORDS)
def test_a_user_logs_in_as_himself(secured_cluster: Cluster, mechanism: str) -> None:
    assert topics(secured_cluster.addresses(SASL), user(mechanism)) == [0]
    assert topics(secured_cluster.addresses(SASL), user(mechanism, "bob")) == [TOPIC_AUTHORIZATION_FAILED]


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_3_9_takes_the_same_logins(secured_cluster_39: Cluster, mechanism: str) -> None:
    token = Secret(secured_cluster_39.tokens.token("alice"))
    sasl = Sasl(mechanism, token=token) if mechanism == "OAUTHBEARER" else user(mechanism)
    assert topics(secured_cluster_39.addresses(SASL), sasl) == [0]
    tls = Tls(ca=secured_cluster_39.certificates.ca.read_bytes())
    assert topics(secured_cluster_39.addresses(SASL_TLS), sasl, tls) == [0]


@pytest.mark.parametrize("mechanism", PASSWORDS)
def test_a_user_logs_in_through_tls(secured_cluster: Cluster, mechanism: str) -> None:
    tls = Tls(ca=secured_cluster.certificates.ca.read_bytes())
    assert topics(secured_cluster.addresses(SASL_TLS), user(mechanism), tls) == [0]


@pytest.mark.parametrize("mechanism", PASSWORDS)
def test_a_wrong_password_is_one_line_without_it(secured_cluster: Cluster, mechanism: str) -> None:
    message = refusal(secured_cluster.addresses(SASL), user(mechanism, password="topsecret"))
    assert f"login as alice with {mechanism} failed" in message and "topsecret" not in message


def test_a_given_token(secured_cluster: Cluster) -> None:
    for name, expected in (("alice", 0), ("bob", TOPIC_AUTHORIZATION_FAILED)):
        token = Secret(secured_cluster.tokens.token(name))
        assert topics(secured_cluster.addresses(SASL), Sasl("OAUTHBEARER", token=token)) == [expected]


def test_a_token_out_of_a_file_through_tls(secured_cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "t").write_text(secured_cluster.tokens.token("alice") + "\n")
    tls = Tls(ca=secured_cluster.certificates.ca.read_bytes())
    sasl = Sasl("OAUTHBEARER", token_file=tmp_path / "t", extensions=(("traceId", "7"),))
    assert topics(secured_cluster.addresses(SASL_TLS), sasl, tls) == [0]


def test_a_token_by_client_credentials(secured_cluster: Cluster) -> None:
    with TokenServer(secured_cluster.tokens, SECURED_USERS) as server:
        secret = Secret(SECURED_USERS["alice"])
        sasl = Sasl("OAUTHBEARER", token_url=server.url, token_client_id="alice", token_client_secret=secret)
        assert topics(secured_cluster.addresses(SASL), sasl) == [0]


@pytest.mark.parametrize("claims", [{"seconds": -60}, {"aud": "someone-else"}], ids=str)
def test_a_token_that_the_broker_refuses_is_one_line_without_it(
    secured_cluster: Cluster, claims: Mapping[str, Any]
) -> None:
    token = secured_cluster.tokens.token("alice", **claims)
    message = refusal(secured_cluster.addresses(SASL), Sasl("OAUTHBEARER", token=Secret(token)))
    assert "with OAUTHBEARER failed: the broker refuses the token: invalid_token" in message and token not in message


@pytest.mark.parametrize(
    ("mechanism", "named"), [("GSSAPI", "Kerberos"), ("AWS_MSK_IAM", "Amazon MSK"), ("NONSENSE", "NONSENSE; it has")]
)
def test_a_mechanism_that_we_lack_is_named_with_what_the_broker_offers(
    secured_cluster: Cluster, mechanism: str, named: str
) -> None:
    message = refusal(secured_cluster.addresses(SASL), Sasl(mechanism))
    assert "kafkascope doesn't have" in message and named in message
    offered = message.rpartition("the broker offers ")[2].split(", ")
    assert sorted(offered) == sorted(MECHANISMS)


def test_a_mechanism_that_the_broker_lacks_is_named_with_what_it_offers(secured_cluster: Cluster) -> None:
    message = refusal(secured_cluster.addresses(SHORT), user("SCRAM-SHA-256"))
    assert message.endswith("the broker doesn't offer SCRAM-SHA-256 here; the broker offers PLAIN")


@pytest.mark.parametrize("listener", [PLAIN, TLS])
def test_a_login_where_none_is_taken_says_so(secured_cluster: Cluster, listener: tuple[str, str]) -> None:
    tls = Tls(ca=secured_cluster.certificates.ca.read_bytes()) if listener == TLS else None
    with pytest.raises(ReachError, match="takes no SASL login"):
        topics(secured_cluster.addresses(listener), user("PLAIN"), tls)


def test_no_login_where_one_is_wanted_says_so(secured_cluster: Cluster) -> None:
    assert "--sasl-mechanism" in refusal(secured_cluster.addresses(SASL), None)


def test_the_login_is_done_again_on_the_same_connection_when_the_session_ends(secured_cluster: Cluster) -> None:
    """The broker closes a connection whose session is over, at its next request: without logging in again, three
    sessions take four connections. One more than one is left to a machine that stands still for a moment."""

    async def ask() -> tuple[int, set[int]]:
        address = parse_address(secured_cluster.addresses(SHORT))
        settings = Settings((address,), sasl=user("PLAIN"))
        codes: list[int] = []
        opened: list[int] = []
        async with connect(settings, every_answer=lambda answer: opened.append(answer.api == "ApiVersions")) as cluster:
            end = time.monotonic() + 3.2 * SHORT_SESSION_MS / 1000
            while time.monotonic() < end:
                answer = await cluster.call("DescribeCluster", {})
                codes.append(answer.value["errorCode"])
                await asyncio.sleep(0.1)
        return sum(opened), set(codes)

    opened, codes = asyncio.run(ask())
    assert codes == {0} and opened <= 2


class Old:
    """A connection as to a broker before 1.0, which has no SaslAuthenticate: bare tokens after SaslHandshake v0."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.address: Address = connection.address
        self.versions = {key: span for key, span in connection.versions.items() if key != SASL_AUTHENTICATE}
        self.call, self.token = connection.call, connection.token


@pytest.mark.parametrize("mechanism", PASSWORDS)
def test_bare_tokens_of_brokers_before_1_0(secured_cluster: Cluster, mechanism: str) -> None:
    """4.3 still takes them from clients that speak SaslHandshake v0."""

    async def ask(sasl: Sasl) -> int:
        address = parse_address(secured_cluster.addresses(SASL))
        connection = await open_connection(Settings((address,)), address, after(30), lambda _: None)
        try:
            assert await authenticate(Old(connection), sasl) is None
            answer = await connection.call("DescribeCluster", 0, {})
            code: int = answer.value["errorCode"]
            return code
        finally:
            await connection.close()

    assert asyncio.run(ask(user(mechanism))) == 0
    with pytest.raises(ReachError):
        asyncio.run(ask(user(mechanism, password="topsecret")))
