"""Serves the explorer at a host and port until it is interrupted."""

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
        warning = f"listening on {host}: whoever reaches this machine can read the explorer"
        warning += " and the lake" if lake else ""
        print(f"kafkascope: {warning}, without password or encryption", file=sys.stderr, flush=True)
    port = listening.getsockname()[1]
    address = f"http://{_shown(host)}:{port}/"
    # One line, so that a program can wait for it.
    announcement = json.dumps({"address": address, "host": host, "port": port, "lake": lake})
    print(announcement if as_json else f"{address}  (Ctrl-C ends it)", flush=True)
    if browser and has_browser():
        webbrowser.open(address)
    # uvicorn ends in good order, then hands the signal on to whoever had it before.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        run(app, listening)
    except (KeyboardInterrupt, SystemExit) as end:
        # At once: Python's own end takes as long as its start where pages of a lake were made.
        sys.stdout.flush()
        os._exit(130 if isinstance(end, KeyboardInterrupt) else 0)
    return 0


def _check_lake(where: str) -> None:
    """Before anything listens: a lake that is not there is a mistake at the command line."""
    need_extras("serve --lake", "explorer", "lake")
    from kafkascope.lake.home import open_lake

    try:
        open_lake(where)
    except NotFoundError as error:
        raise InputError(str(error)) from None


def _listen(host: str, port: int) -> socket.socket:
    """Already listening: a browser that comes before the server runs has to wait, no more."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listening = socket.create_server((host, port), family=family, backlog=512)
    except OSError as error:
        # socket.create_server adds a tail of its own to what the system says.
        number = error.errno or 0
        why = os.strerror(number) if number > 0 else error.strerror or str(error)
        raise ReachError(f"cannot listen on {host}:{port}: {why.lower()}") from None
    # Connections have it from here. asyncio sets it only where the protocol is named, and this socket names none: the
    # body of every answer would wait 40 ms for the acknowledgement of its head.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening


def _shown(host: str) -> str:
    if host in ("0.0.0.0", "::"):  # noqa: S104
        return socket.gethostname()
    return f"[{host}]" if ":" in host else host


def has_browser() -> bool:
    """One with a window: a browser in the terminal would take it from us."""
    if sys.platform in ("darwin", "win32"):
        return True
    return any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))
