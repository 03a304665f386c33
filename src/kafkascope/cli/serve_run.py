"""Serves the explorer on a host and port until it's interrupted."""

import json
import os
import signal
import socket
import sys
import webbrowser

from kafkascope.errors import InputError, NotFoundError, ReachError
from kafkascope.explorer.server.app import create
from kafkascope.explorer.server.guard import is_loopback
from kafkascope.explorer.server.run import run
from kafkascope.extras import need_extras


def serve(host: str, port: int, lake: str | None, *, browser: bool, as_json: bool) -> int:
    if lake is not None:
        _check_lake(lake)
    app = create(lake, host)
    listening = _listen(host, port)
    if not is_loopback(host):
        warning = f"listening on {host}: anyone who can reach this machine can read the explorer"
        warning += " and the lake" if lake else ""
        print(f"kafkascope: {warning}, without password or encryption", file=sys.stderr, flush=True)
    port = listening.getsockname()[1]
    address = f"http://{_shown(host)}:{port}/"
    # One line, so that a program can wait for it.
    announcement = json.dumps({"address": address, "host": host, "port": port, "lake": lake})
    print(announcement if as_json else f"{address}  (Ctrl-C stops it)", flush=True)
    if browser and has_browser():
        webbrowser.open(address)
    # uvicorn shuts down cleanly, then passes the signal to the previous handler.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        run(app, listening)
    except (KeyboardInterrupt, SystemExit) as end:
        # At once: Python's own exit takes as long as its start after pages of a lake were made.
        sys.stdout.flush()
        os._exit(130 if isinstance(end, KeyboardInterrupt) else 0)
    return 0


def _check_lake(where: str) -> None:
    """Checked before anything listens: a missing lake is a mistake on the command line."""
    need_extras("serve --lake", "explorer", "lake")
    from kafkascope.lake.home import open_lake

    try:
        open_lake(where)
    except NotFoundError as error:
        raise InputError(str(error)) from None


def _listen(host: str, port: int) -> socket.socket:
    """A socket that already listens: a browser that connects before the server runs only waits."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listening = socket.create_server((host, port), family=family, backlog=512)
    except OSError as error:
        # socket.create_server appends text to the system's message.
        number = error.errno or 0
        why = os.strerror(number) if number > 0 else error.strerror or str(error)
        raise ReachError(f"cannot listen on {host}:{port}: {why.lower()}") from None
    # Connections inherit it. asyncio sets it only if the socket names its protocol, which this one doesn't: the body of
    # every response would wait 40 ms for the acknowledgement of its head.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening


def _shown(host: str) -> str:
    if host in ("0.0.0.0", "::"):  # noqa: S104
        return socket.gethostname()
    return f"[{host}]" if ":" in host else host


def has_browser() -> bool:
    """A browser with a window: one in the terminal would take over the terminal."""
    if sys.platform in ("darwin", "win32"):
        return True
    return any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))
