"""SCRAM by the examples of its RFCs, and servers that are not what they say."""

import base64

import pytest

from kafkascope.client.auth.scram import ScramError, Started, finish, prove, start
from kafkascope.client.settings import Secret
from kafkascope.limits import MAX_SCRAM_ITERATIONS

PENCIL = Secret("pencil")
# RFC 5802, 5 (SHA-1) and RFC 7677, 3 (SHA-256); of SHA-512 there is none
EXAMPLES = {
    "sha1": (
        "fyko+d2lbbFgONRv9qkxdawL",
        "r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,s=QSXCR+Q6sek8bf92,i=4096",
        "c=biws,r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,p=v0X8v3Bz2T0CJGbJQyF0X+HI4Ts=",
        "v=rmF9pqV8S7suAoZWja4dJRkFsKQ=",
    ),
    "sha256": (
        "rOprNGfwEbeRWgbNEkqO",
        "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096",
        "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=",
        "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=",
    ),
}


@pytest.mark.parametrize("digest", EXAMPLES)
def test_examples_of_the_rfcs(digest: str) -> None:
    nonce, first, final, signature = EXAMPLES[digest]
    started = start("user", nonce=nonce)
    assert started.message.decode() == f"n,,n=user,r={nonce}"
    proven = prove(started, first.encode(), PENCIL, digest)
    assert proven.message.decode() == final
    finish(proven, signature.encode())


def test_names_with_commas_and_equals_are_escaped() -> None:
    assert start("a,b=c", nonce="x").bare == "n=a=2Cb=3Dc,r=x"


def test_a_delegation_token_says_so() -> None:
    assert start("id", nonce="x", delegation_token=True).bare == "n=id,r=x,tokenauth=true"


def test_every_login_has_its_own_nonce() -> None:
    assert start("user").nonce != start("user").nonce


@pytest.fixture
def started() -> Started:
    return start("user", nonce="abc")


SALT = base64.b64encode(b"salt").decode()


@pytest.mark.parametrize(
    ("message", "problem"),
    [
        (f"r=xyz1,s={SALT},i=4096", "nonce"),
        (f"r=abc,s={SALT},i=4096", "nonce"),
        (f"r=abcd,s={SALT},i=4095", "4095 iterations"),
        (f"r=abcd,s={SALT},i={MAX_SCRAM_ITERATIONS + 1}", "iterations"),
        (f"r=abcd,s={SALT},i=99999999999999999999", "iterations"),
        (f"r=abcd,s={SALT},i=-4096", "iterations"),
        (f"r=abcd,s={SALT}", "no iterations"),
        ("r=abcd,s=%%,i=4096", "base64"),
        (f"m=ext,r=abcd,s={SALT},i=4096", "extension"),
        ("e=unknown-user", "unknown-user"),
        ("garbage", "isn't SCRAM"),
        ("", "isn't SCRAM"),
        (f"r=abcd,r=abce,s={SALT},i=4096", "isn't SCRAM"),
    ],
)
def test_a_strange_first_answer_ends_it(started: Started, message: str, problem: str) -> None:
    with pytest.raises(ScramError, match=problem):
        prove(started, message.encode(), PENCIL, "sha256")


def test_bytes_that_are_no_text_end_it(started: Started) -> None:
    with pytest.raises(ScramError, match="isn't SCRAM"):
        prove(started, b"\xff\xfe", PENCIL, "sha256")


@pytest.mark.parametrize("message", ["v=AAAA", "v=", "e=invalid-proof", "x", f"v={SALT},i=1"])
def test_a_server_that_does_not_know_the_password_is_refused(started: Started, message: str) -> None:
    proven = prove(started, f"r=abcd,s={SALT},i=4096".encode(), PENCIL, "sha512")
    with pytest.raises(ScramError):
        finish(proven, message.encode())
