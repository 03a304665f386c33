"""`kafkascope doctor` checks this machine for each part of kafkascope and prints the command that fixes a problem."""

from contextlib import suppress

import click

from kafkascope.cli.arguments import json_option

PURPOSES = {
    "columns": "decode many frames into Arrow columns, read captures",
    "live": "TLS key stores and SASL for live clusters",
    "lake": "Delta tables and reports",
    "spark": "the pipeline: ingest and marts",
    "explorer": "the web explorer",
}


@click.command
@click.option("--spark", "start", is_flag=True, help="Also start Spark with one worker; takes seconds.")
@json_option
def run(start: bool, as_json: bool) -> int:
    """Check this machine, and print fixes.

    Exits with 1 if the codec is damaged, or if --spark is given and Spark doesn't start. Missing extras aren't an
    error.
    """
    from kafkascope.cli.output import print_json
    from kafkascope.cli.terminal import paint

    checks = [
        _python(),
        _catalog(),
        _decoder(),
        _module("cramjam", "record batches"),
        _module("crc32c", "record batches"),
    ]
    extras = [_extra(name, purpose) for name, purpose in PURPOSES.items()]
    here = _here({str(extra["what"]) for extra in extras if extra["ok"]}, start)
    whole = all(check["ok"] for check in checks)
    ok = whole and (not start or bool(here[-1]["ok"]))
    if as_json:
        print_json({"ok": ok, "checks": checks + extras + here})
        return 0 if ok else 1
    _print(checks, "missing")
    _print(extras, "not installed")
    _print(here, "no")
    print()
    if whole and not ok:
        print(paint("Spark doesn't start: see above.", "bold"))
    else:
        print(paint("The catalog and the codec work." if whole else "The codec is damaged: see above.", "bold"))
    return 0 if ok else 1


def _here(extras: set[str], start: bool) -> list[dict[str, object]]:
    """Checks other than packages: kernels, Java, folders. Spark itself only on request, since it takes seconds."""
    from kafkascope.cli.spark.doctor import java, places, session
    from kafkascope.extras import install_line

    findings = []
    if "[columns]" in extras:
        findings.append(_kernels())
    runs = java()
    findings += [runs, *places()]
    if not start:
        return findings
    if "[spark]" not in extras:
        fix = install_line("spark")
        return [*findings, {"what": "Spark", "ok": False, "found": "cannot start: it is not installed", "fix": fix}]
    if not runs["ok"]:
        return [*findings, {"what": "Spark", "ok": False, "found": "cannot start without Java", "fix": runs["fix"]}]
    return [*findings, session()]


def _print(checks: list[dict[str, object]], lacking: str) -> None:
    from kafkascope.cli.tables import table

    rows = []
    for check in checks:
        fix = "" if check["ok"] else f"; {check['fix']}"
        rows.append((f"{'ok' if check['ok'] else lacking:<13}", f"{check['what']:<18}", f"{check['found']}{fix}"))
    table(rows, indent="")


def _python() -> dict[str, object]:
    import sys

    version = ".".join(map(str, sys.version_info[:3]))
    return {"what": "Python", "ok": sys.version_info >= (3, 11), "found": version, "fix": "use Python 3.11 or newer"}


def _catalog() -> dict[str, object]:
    from kafkascope.schema.catalog import index, message
    from kafkascope.schema.releases import releases

    fix = "reinstall kafkascope"
    try:
        for name in index():
            message(name)
        known = releases()
    except (OSError, ValueError, KeyError, IndexError) as error:
        return {"what": "catalog", "ok": False, "found": f"cannot be read: {error}", "fix": fix}
    contents = f"{len(index())} messages, Kafka {known[0].name} to {known[-1].name}"
    return {"what": "catalog", "ok": True, "found": contents, "fix": fix}


def _decoder() -> dict[str, object]:
    """The results are the same; with the C extension decoding is many times as fast."""
    from kafkascope.codec.fast.engine import is_native

    engine = "in C" if is_native() else "in Python, which is slower: kafkascope was built without a C compiler"
    return {"what": "decoder", "ok": True, "found": engine, "fix": ""}


def _kernels() -> dict[str, object]:
    """Kernels for many frames and packets are compiled once per version and kept, also for Spark workers."""
    import os

    from kafkascope.columnar.compiling.kernel_folder import base_folder, contents, folder, is_complete
    from kafkascope.errors import UsageError
    from kafkascope.formatting import size

    fix = "set NUMBA_CACHE_DIR to a writable folder, or every process compiles for itself"
    try:
        kept = folder()
    except UsageError as error:
        problem, _, fix = str(error).partition("; ")
        return {"what": "kernels", "ok": False, "found": problem, "fix": fix}
    if kept is None:
        return {"what": "kernels", "ok": False, "found": f"{base_folder()} cannot be written to", "fix": fix}
    count, total = contents(kept)
    kernels = f"{count} compiled, {size(total)} in {kept}"
    if is_complete(kept):
        return {"what": "kernels", "ok": True, "found": kernels, "fix": ""}
    if not os.access(kept, os.W_OK):
        return {"what": "kernels", "ok": False, "found": f"{kept} cannot be written to", "fix": fix}
    kernels += "; others are compiled when they are first needed, or all by `kafkascope warm-up`"
    return {"what": "kernels", "ok": True, "found": kernels, "fix": ""}


def _module(name: str, purpose: str) -> dict[str, object]:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return {"what": name, "ok": True, "found": f"{version(name)}, for {purpose}", "fix": ""}
    except PackageNotFoundError:
        return {"what": name, "ok": False, "found": f"for {purpose}", "fix": f"pip install {name}"}


def _extra(name: str, purpose: str) -> dict[str, object]:
    from importlib.metadata import PackageNotFoundError, version

    from kafkascope.extras import EXTRAS, install_line

    installed = {}
    for module in EXTRAS[name]:
        with suppress(PackageNotFoundError):
            installed[module] = version(module)
    ok = len(installed) == len(EXTRAS[name])
    detail = f"{purpose} ({', '.join(f'{module} {installed[module]}' for module in installed)})" if ok else purpose
    return {"what": f"[{name}]", "ok": ok, "found": detail, "fix": install_line(name)}
