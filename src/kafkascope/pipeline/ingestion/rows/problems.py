"""Places what a task's recordings contain besides exchanges, as rows of `quarantine`."""

from dataclasses import replace

import numpy as np

from kafkascope.capture.base.flow import Problem
from kafkascope.capture.exchanges.account import Account
from kafkascope.capture.exchanges.exchanges import Recordings
from kafkascope.pipeline.ingestion.rows.exchange_writer import ExchangeWriter

# The problem of a connection whose state can't be resumed.
UNFINISHED_KIND = "unfinished"
# Problems that end once a file is whole.
_NOT_WHOLE = frozenset({"cut", "compression"})


def write_problems(
    writer: ExchangeWriter, account: Account, recordings: Recordings, cut: ExchangeWriter | None = None
) -> None:
    """The first few problems of each kind, and one row for the rest. Files are read one after another, so that row
    begins in the file of the last one kept. Problems at cut ends go to `cut`, if given."""
    rows: list[tuple[str, Problem]] = []
    for kind, count in account.problems.items():
        kept = [_placed(recordings, uri, problem) for uri, problem in account.kept.get(kind, [])]
        rows += [(uri, _with_offset(problem)) for uri, problem in kept]
        more = count - len(kept)
        if more:
            uri = kept[-1][0] if kept else account.file
            lost = account.problem_bytes[kind] - sum(problem.lost_bytes for _, problem in kept)
            where = "" if uri == account.file else ", in this file and those read after it"
            rows.append((uri, Problem(kind, f"{more} more of this kind{where}", -1, -1, lost)))
    if cut is not None:
        cut.problems(row for row in rows if row[1].kind in _NOT_WHOLE)
        rows = [row for row in rows if row[1].kind not in _NOT_WHOLE]
    writer.problems(rows)


def _placed(recordings: Recordings, uri: str, problem: Problem) -> tuple[str, Problem]:
    """Packets are numbered across all files, and a problem may show only in a later file than its packet's. What can't
    be read again keeps the number that it had in its file."""
    if problem.place < 0 or problem.kind == UNFINISHED_KIND:
        return uri, problem
    files, packets = recordings.place(np.array([problem.place]))
    return recordings.uris[int(files[0])], replace(problem, place=int(packets[0]))


def _with_offset(problem: Problem) -> Problem:
    return replace(problem, detail=f"{problem.detail} (offset {problem.offset})") if problem.offset >= 0 else problem
