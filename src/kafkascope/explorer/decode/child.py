"""Runs the decoding process: reads requests from standard input and writes facts to standard output, until it closes.

Its memory is capped, and it exits when a request takes too long; its parent then starts another.
"""

import json
import signal
import sys
from contextlib import suppress
from typing import IO, Any

from kafkascope.errors import InputError, KafkascopeError
from kafkascope.extras import install_line
from kafkascope.limits import MAX_DECODE_MEMORY_BYTES


def main() -> None:
    limit_memory()
    while (request := receive(sys.stdin.buffer)) is not None:
        if "prepare" in request[0]:
            prepare()
            send(sys.stdout.buffer, {}, b"")
            continue
        if hasattr(signal, "SIGALRM"):
            signal.setitimer(signal.ITIMER_REAL, request[0]["seconds"])
        answer = respond(*request)
        if hasattr(signal, "SIGALRM"):
            signal.setitimer(signal.ITIMER_REAL, 0)
        send(sys.stdout.buffer, answer, b"")


def prepare() -> None:
    """Loads or compiles the kernels that read recordings. If that fails, the first recording reports why."""
    with suppress(ImportError, KafkascopeError, MemoryError):
        from kafkascope.capture.warm_up.kernels import load_readers

        load_readers()


def respond(options: dict[str, Any], content: bytes) -> dict[str, Any]:
    try:
        return {"facts": facts_of(options, content)}
    except KafkascopeError as error:
        return {"error": str(error), "wrong": not isinstance(error, InputError)}
    except ModuleNotFoundError as error:
        return {"error": f"reading a recording needs {error.name}: {install_line('columns')}", "wrong": False}
    except (MemoryError, RecursionError):
        megabytes = MAX_DECODE_MEMORY_BYTES >> 20
        return {"error": f"decoding it takes more than {megabytes} MiB of memory, the limit", "wrong": False}


def facts_of(options: dict[str, Any], content: bytes) -> dict[str, Any]:
    if "lake" in options:
        from kafkascope.explorer.decode.exchange_bytes import exchange_bytes

        return exchange_bytes(options["lake"], options["row"])
    from kafkascope.capture.formats import looks_recorded
    from kafkascope.codec.text.byte_text import as_text, form_of, parse_text
    from kafkascope.explorer.decode.decoded import decoded_facts
    from kafkascope.explorer.decode.recordings import permalink, recording_facts

    if options["form"] in ("auto", "raw") and looks_recorded(content):
        return {"recording": recording_facts(content, options["file"])}
    raw, read_as = content, "raw"
    text = as_text(content) if options["form"] != "raw" else None
    if options["form"] not in ("auto", "raw") and text is None:
        raise InputError(f"this isn't {options['form']}: it has bytes that aren't text")
    if text is not None:
        if not text.strip():
            raise InputError("nothing to decode: the input is empty")
        read_as = form_of(text) if options["form"] == "auto" else options["form"]
        raw = parse_text(text, options["form"])
    decoded = decoded_facts(raw, options["as"], options["release"])
    link = permalink(raw, options["as"], options["release"])
    return {"decoded": decoded, "readAs": read_as, "permalink": link}


def limit_memory() -> None:
    """Caps the memory that is written to, if the system can: reserved address space costs nothing. Set at the start of
    the process, since without a cap allocators take more than it at once."""
    try:
        import resource
    except ImportError:
        return
    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    most = MAX_DECODE_MEMORY_BYTES if hard == resource.RLIM_INFINITY else min(MAX_DECODE_MEMORY_BYTES, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (most, hard))


def send(pipe: IO[bytes], header: dict[str, Any], content: bytes) -> None:
    """Reads two lengths, a JSON object, and bytes."""
    head = json.dumps(header).encode()
    pipe.write(len(head).to_bytes(4, "big") + len(content).to_bytes(4, "big") + head)
    pipe.write(content)
    pipe.flush()


def receive(pipe: IO[bytes]) -> tuple[dict[str, Any], bytes] | None:
    """None if the other side is gone."""
    lengths = pipe.read(8)
    if len(lengths) < 8:
        return None
    head = pipe.read(int.from_bytes(lengths[:4], "big"))
    size = int.from_bytes(lengths[4:], "big")
    content = pipe.read(size)
    return None if len(content) < size else (json.loads(head), content)


if __name__ == "__main__":
    main()
