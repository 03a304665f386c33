"""Logins to servers that are not what they say: they get no session, learn nothing, and say nothing to the terminal."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from kafkascope.client.cluster import connect
from kafkascope.client.settings import Sasl, Secret, Settings
from kafkascope.errors import ReachError
from tests.client.servers import Peer, serving

PLANTED = "Pl4nted-s3cret"
SALT = "c2FsdA=="


def refusal(sasl: Sasl, answers: list[dict[str, Any]], mechanisms: list[str] | None = None) -> str:
    """What is said about a server that gives these answers to SaslAuthenticate, one after the other."""

    async def play(peer: Peer) -> None:
        request = await peer.greet()
        assert request.api == "SaslHandshake"
        await peer.answer(request, {"mechanisms": [sasl.mechanism] if mechanisms is None else mechanisms})
        for answer in answers:
            request = await peer.request()
            assert request.body is not None
            sent = request.body.value["authBytes"].decode()
            nonce = sent.partition("r=")[2].partition(",")[0]
            if isinstance(answer.get("authBytes"), str):
                answer = {**answer, "authBytes": answer["authBytes"].format(nonce=nonce, salt=SALT).encode()}
            await peer.answer(request, {"sessionLifetimeMs": 0, **answer})

    async def ask() -> str:
        async with serving(play) as address:
            with pytest.raises(ReachError) as caught:
                async with connect(Settings((address,), sasl=sasl)):
                    pass
            return str(caught.value)

    return asyncio.run(ask())


def scram(password: str = PLANTED) -> Sasl:
    return Sasl("SCRAM-SHA-256", "alice", Secret(password))


def test_a_server_that_does_not_know_the_password_gets_no_session() -> None:
    """It says yes to everything; only the signature tells."""
    first = {"authBytes": "r={nonce}server,s={salt},i=4096"}
    message = refusal(scram(), [first, {"authBytes": "v=AAAA"}])
    assert message.endswith("the server's signature is wrong; it doesn't know the password")
    assert refusal(scram(), [first, {"authBytes": ""}]).endswith("the server's message isn't SCRAM")


def test_a_server_that_asks_for_a_weak_proof_gets_none() -> None:
    """With one iteration a proof could be tried against every password in a list. No more is asked."""
    assert "1 iterations" in refusal(scram(), [{"authBytes": "r={nonce}server,s={salt},i=1"}])


def test_a_secret_that_comes_back_is_not_shown() -> None:
    answer = {"errorCode": 58, "errorMessage": f"wrong: {PLANTED}"}
    message = refusal(Sasl("PLAIN", "alice", Secret(PLANTED)), [answer])
    assert message.endswith("login as alice with PLAIN failed: wrong: ***")


def test_a_token_of_a_file_that_comes_back_is_not_shown(tmp_path: Path) -> None:
    (tmp_path / "t").write_text(PLANTED)
    answer = {"errorCode": 58, "errorMessage": f"wrong: {PLANTED}"}
    assert refusal(Sasl("OAUTHBEARER", token_file=tmp_path / "t"), [answer]).endswith("failed: wrong: ***")


def test_what_a_server_says_moves_no_cursor() -> None:
    answer = {"errorCode": 58, "errorMessage": "\x1b[2Jgone\r\nkafkascope: all is well" + "x" * 9999}
    message = refusal(Sasl("PLAIN", "alice", Secret("x")), [answer])
    assert "failed: [2Jgone kafkascope: all is well" in message and message.isprintable() and len(message) < 500


def test_mechanisms_that_move_the_cursor_do_not() -> None:
    message = refusal(Sasl("PLAIN", "alice", Secret("x")), [], ["\x1b[2J", "OTHER"])
    assert message.endswith("the broker doesn't offer PLAIN here; the broker offers [2J, OTHER")


def test_a_server_without_mechanisms() -> None:
    assert refusal(scram(), [], []).endswith("the broker offers none")


@pytest.mark.parametrize("answer", ["garbage", "[]", '{"status": 7}', '{"status": "invalid_token\x1b"}'])
def test_a_refused_token_in_any_form_is_one_line(answer: str) -> None:
    replies: list[dict[str, Any]] = [
        {"authBytes": answer.replace("{", "{{").replace("}", "}}")},
        {"errorCode": 58, "errorMessage": "no"},
    ]
    message = refusal(Sasl("OAUTHBEARER", token=Secret(PLANTED)), replies)
    assert "with OAUTHBEARER failed" in message and message.isprintable() and PLANTED not in message


def test_another_error_is_named() -> None:
    message = refusal(scram(), [{"errorCode": 34, "errorMessage": None}])
    assert message.endswith("failed: ILLEGAL_SASL_STATE (34)")
