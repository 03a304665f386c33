"""ASGI middleware that refuses requests for other hosts and sets the security headers of every response.

Another site can make its name point to this machine (DNS rebinding) and its pages could then read the explorer. Their
requests have that name in `Host`, so only requests for this server's own names are served.
"""

import re
from ipaddress import ip_address
from socket import gethostname

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # With `no-referrer` a browser would hide the origin of our own form too.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-cache",
}
_HOST = re.compile(r"(?:\[([^\]]+)\]|([^\s:\[\]]+))(?::[0-9]*)?")
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


class Guard:
    """`host` is what the server listens on: a name, an address, or a wildcard (`0.0.0.0`, `::`)."""

    def __init__(self, app: ASGIApp, host: str = "127.0.0.1") -> None:
        self.app = app
        self.names = _LOOPBACK | {host.lower()}
        self.any_address = _is_wildcard(host)
        if self.any_address:
            self.names |= {gethostname().lower()}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        if not self.knows(Headers(scope=scope).get("host", "")):
            refusal = PlainTextResponse(
                "this server has another name: use the address that it printed at its start\n", 421
            )
            await refusal(scope, receive, with_headers)
            return
        await self.app(scope, receive, with_headers)

    def knows(self, header: str) -> bool:
        name = _host_name(header)
        # A rebinding site has a name. With a wildcard, any address of the machine is right.
        return name in self.names or (self.any_address and _is_address(name))


def _host_name(header: str) -> str:
    """`[::1]:8080` is `::1`, `localhost:8080` is `localhost`. Anything but a name and a port matches no host."""
    match = _HOST.fullmatch(header)
    return (match[1] or match[2]).lower() if match else ""


def is_loopback(host: str) -> bool:
    if host.lower() == "localhost":
        return True
    return _is_address(host) and ip_address(host).is_loopback


def _is_wildcard(host: str) -> bool:
    return _is_address(host) and ip_address(host).is_unspecified


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
