"""Keeps the former names of columns in lakes of format 1. Tables have the new names; the views of `register_tables` and
`register_views` also have the former ones, until the next release."""

from collections.abc import Mapping

# Table to column to former name.
FORMER_NAMES: Mapping[str, Mapping[str, str]] = {
    "api_errors": {"minute_at": "minute"},
    "api_latency": {"minute_at": "minute"},
    "quarantine": {"recorded_at": "at"},
    "quorum_events": {"occurred_at": "at"},
    "share_deliveries": {"broker_address": "broker"},
    "share_group_health": {"minute_at": "window_start"},
    "throttling": {"minute_at": "minute"},
}


def former_names(table: str) -> Mapping[str, str]:
    return FORMER_NAMES.get(table, {})
