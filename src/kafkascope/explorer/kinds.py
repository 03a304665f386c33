"""Registers every kind of page. Each has its own module in `pages/`."""

from kafkascope.explorer.page import Kind
from kafkascope.explorer.pages import (
    api,
    batches,
    changelog,
    decode,
    diff,
    error,
    errors,
    field,
    home,
    kip,
    message,
    record,
    records,
    release,
    releases,
    search,
    upgrade,
)

KINDS: tuple[Kind, ...] = (
    home.KIND,
    api.KIND,
    message.KIND,
    record.KIND,
    records.KIND,
    batches.KIND,
    changelog.KIND,
    diff.KIND,
    release.KIND,
    upgrade.KIND,
    releases.RELEASES,
    releases.UPGRADES,
    error.KIND,
    errors.KIND,
    field.KIND,
    kip.KIND,
    decode.KIND,
    search.KIND,
)
