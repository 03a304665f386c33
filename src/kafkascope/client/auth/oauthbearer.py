"""OAUTHBEARER (RFC 7628): sends a token, with Kafka's extensions (KIP-342)."""

import json

from kafkascope.client.auth.mechanisms import Login
from kafkascope.client.auth.oauth import endpoint_of, token_of
from kafkascope.errors import ReachError

# RFC 7628: after an error the client sends one control character and the server ends the exchange
_GIVE_UP = b"\x01"


async def log_in(login: Login) -> None:
    login.waits_for(endpoint_of(login.sasl))
    token = await token_of(login.sasl)
    login.waits_for(None)
    login.hide(token)
    extensions = "".join(f"{name}={value}\x01" for name, value in login.sasl.extensions)
    refusal = await login.send(f"n,,\x01auth=Bearer {token.reveal()}\x01{extensions}\x01".encode())
    if refusal:
        status = _status(refusal)
        try:
            await login.send(_GIVE_UP)
        except ReachError:
            # the broker's next message is only that authentication failed
            if not status:
                raise
        raise login.failed(f"the broker refuses the token: {status or 'no reason given'}")


def _status(refusal: bytes) -> str:
    try:
        reason = json.loads(refusal)
    except (ValueError, RecursionError):
        return ""
    return str(reason.get("status", ""))[:100] if isinstance(reason, dict) else ""
