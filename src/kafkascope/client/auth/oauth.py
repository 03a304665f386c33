"""Gets the token that the settings name: the token itself, from its file, or from a token endpoint by client
credentials (RFC 6749, 4.4), as Java does. No error contains a token or a client secret."""

import base64
import json
from typing import Any
from urllib.parse import urlsplit

from kafkascope.client.secret_file import read_secret
from kafkascope.client.settings import Sasl, Secret, Tls, sanitize
from kafkascope.client.transport.http_post import Reply, post_form
from kafkascope.errors import InputError, ReachError, UsageError

# visible characters: what the separators of OAUTHBEARER (RFC 7628) and HTTP allow
_TOKEN = range(33, 127)


async def token_of(sasl: Sasl) -> Secret:
    """Called for each authentication, since files and endpoints return the token that is valid now."""
    if sasl.token_file is not None:
        return _checked(read_secret(sasl.token_file), str(sasl.token_file))
    if sasl.token is not None:
        return _checked(sasl.token, "the given token")
    if sasl.token_url is not None:
        return await _fetch(sasl, sasl.token_url)
    raise UsageError(f"{sasl.mechanism} needs a token: --token-file FILE, KAFKASCOPE_TOKEN, or --token-url URL")


def endpoint_of(sasl: Sasl) -> str | None:
    """The endpoint of the token, without user and query, which may contain a secret."""
    if sasl.token_file is not None or sasl.token is not None or sasl.token_url is None:
        return None
    try:
        parts = urlsplit(sasl.token_url)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
    except ValueError:
        return None


async def _fetch(sasl: Sasl, url: str) -> Secret:
    form = {"grant_type": "client_credentials", **({"scope": sasl.token_scope} if sasl.token_scope else {})}
    secret = sasl.token_client_secret or Secret("")
    basic = base64.b64encode(f"{sasl.token_client_id or ''}:{secret.reveal()}".encode()).decode()
    reply = await post_form(url, form, {"Authorization": f"Basic {basic}"}, Tls(ca=sasl.token_ca))
    place = endpoint_of(sasl) or "the given URL"
    answer = _json(reply)
    if reply.status != 200:
        problem = " ".join(
            str(answer[name]) for name in ("error", "error_description") if isinstance(answer.get(name), str)
        )
        problem = sanitize(problem, [secret])
        raise ReachError(
            f"{place}: the token endpoint returned status {reply.status}{f' ({problem})' if problem else ''}"
        )
    # Java accepts either, in this order
    token = answer.get("access_token") or answer.get("id_token")
    if not isinstance(token, str):
        raise ReachError(f"{place}: the token endpoint's response has no access_token")
    return _checked(Secret(token), place)


def _json(reply: Reply) -> dict[str, Any]:
    try:
        answer = json.loads(reply.body)
    except (ValueError, RecursionError):
        return {}
    return answer if isinstance(answer, dict) else {}


def _checked(token: Secret, where: str) -> Secret:
    text = token.reveal().strip()
    if not text or any(ord(character) not in _TOKEN for character in text):
        raise InputError(f"{where}: a token is one word of visible characters")
    return Secret(text)
