"""Accounts for what a task found in each of its files; the driver adds up those of all tasks."""

from collections.abc import Mapping
from dataclasses import dataclass

from kafkascope.capture.exchanges.file_tally import FileTally
from kafkascope.lake.upkeep.settle import PENDING_COLUMNS


@dataclass(slots=True)
class FileAccount:
    """What one task found in one file. `pending` counts what is final only because the recording ends here: an ingest
    that continues from there counts it itself. `gone` counts parts that the file didn't have any more."""

    packets: int = 0
    log_lines: int = 0
    frames: int = 0
    exchanges: int = 0
    quarantined: int = 0
    lost_bytes: int = 0
    lost_places: int = 0
    pending_frames: int = 0
    pending_bytes: int = 0
    pending_places: int = 0
    pending_tls_bytes: int = 0
    pending_tcp_bytes: int = 0
    tls_bytes: int = 0
    tcp_bytes: int = 0
    first_ns: int | None = None
    last_ns: int | None = None
    gone: int = 0
    error: str | None = None


def row_accounts(
    uris: tuple[str, ...], exchanges: Mapping[str, int], quarantined: Mapping[str, int], bad: Mapping[str, str]
) -> dict[str, FileAccount]:
    """Counts rows by their files; `bad` is why files couldn't be read."""
    accounts = {uri: FileAccount() for uri in uris}
    for uri, count in exchanges.items():
        # What began in a file of an earlier ingest without making a row counts in the first file of this one.
        accounts[uri if uri in accounts else uris[0]].exchanges += count
    for uri in quarantined.keys() & accounts.keys():
        accounts[uri].quarantined = quarantined[uri]
    for uri, error in bad.items():
        accounts[uri].error = error
    return accounts


def add_tallies(
    accounts: Mapping[str, FileAccount], tallies: Mapping[str, FileTally], settled: Mapping[str, Mapping[str, int]]
) -> None:
    """Adds what a reading counted. `settled` is what it had counted before it came to what is pending."""
    for uri in tallies.keys() & accounts.keys():
        account, tally = accounts[uri], tallies[uri]
        for name in ("frames", "lost_bytes", "lost_places", "tls_bytes", "tcp_bytes"):
            setattr(account, name, getattr(tally, name))
        for name, waiting in PENDING_COLUMNS.items():
            setattr(account, waiting, getattr(tally, name) - settled.get(uri, {}).get(name, 0))


def add_file_facts(
    accounts: Mapping[str, FileAccount], tallies: Mapping[str, FileTally], skip: Mapping[str, int]
) -> None:
    """Adds what one task reports for all: packets, lines and times. `skip` are packets that earlier ingests read."""
    for uri in tallies.keys() & accounts.keys():
        account, tally = accounts[uri], tallies[uri]
        account.packets, account.log_lines = tally.packets + skip.get(uri, 0), tally.log_lines
        account.first_ns, account.last_ns = tally.first_ns, tally.last_ns
