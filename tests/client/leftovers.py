"""A coroutine in, its result out; fails when it leaves a task or an open file behind."""

import asyncio
import gc
import os
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def run(work: Coroutine[Any, Any, T], kind: str = "") -> T:
    """`kind` of files to look at, where what is tested around the client opens others."""
    before = open_files()
    result = asyncio.run(_guarded(work))
    gc.collect()
    left = {file for file in open_files() - before if kind in file}
    assert not left, f"still open: {sorted(left)}"
    return result


async def _guarded(work: Coroutine[Any, Any, T]) -> T:
    complaints: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
    try:
        return await work
    finally:
        left = asyncio.all_tasks() - {task for task in [asyncio.current_task()] if task}
        gc.collect()
        assert not left, f"still running: {[task.get_name() for task in left]}"
        assert not complaints, complaints


def open_files() -> set[str]:
    """Number and what is behind it: sockets and pipes carry their own number."""
    files = set()
    for number in os.listdir("/proc/self/fd"):
        try:
            files.add(f"{number} {os.readlink(f'/proc/self/fd/{number}')}")
        except FileNotFoundError:
            continue
    return files
