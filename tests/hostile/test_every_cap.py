"""Every cap of `limits.py` is driven by a test: by the process that is measured, or by what comes beyond it."""

import ast
from functools import cache
from pathlib import Path

import pytest

from kafkascope import limits

TESTS = Path(__file__).parents[1]
_CODEC, _FILES = "hostile/test_bounds_codec.py", "hostile/test_bounds_files.py"
_RECORDINGS, _INPUT = "hostile/test_bounds_recordings.py", "hostile/test_bounds_input.py"
_CLIENT, _EXPLORER = "hostile/test_bounds_client.py", "hostile/test_bounds_explorer.py"
_READING = "hostile/test_bounds_reading.py"
_SMALL, _MORE, _LOAD = "hostile/test_small_caps.py", "hostile/test_more_caps.py", "explorer/test_load.py"
_LOGS = "logs/test_caps.py"
_ALL_AT_ONCE = "test_peak_with_every_cap_reached_at_once_is_below_a_gigabyte"
# What a test reads that measures a process, by itself or by a program that it starts.
_MEASURES = (".peak", "peak_bytes(", "peak_of(", "peak_mb", "resident_bytes(", "VmHWM", "MEASURE", "run(READ")
# Caps on bytes whose tests measure none: what they allow is less than a process can be measured by.
NOT_MEASURED = {
    "MAX_STRING_BYTES": "32 KB of one field, within a message whose values are charged",
    "MAX_VARINT_BYTES": "a number",
    "MAX_VARLONG_BYTES": "a number",
    "MAX_SHOWN_BYTES": "4 KB of a field that is there already",
    "MAX_HTTP_HEAD_BYTES": "8 KB",
    "MAX_LINK_BYTES": "4,000 digits of a message that is there already",
    "MAX_LAKE_NOTE_BYTES": "64 KB",
}
DRIVEN_BY = {
    "MAX_FRAME_BYTES": (_CODEC, "test_a_fetch_response_as_large_as_a_frame_is_read"),
    "MAX_INPUT_BYTES": (_INPUT, "test_the_largest_text_takes_less_than_a_gigabyte"),
    "MAX_INPUT_CHARACTERS": (_INPUT, "test_the_largest_text_takes_less_than_a_gigabyte"),
    "MAX_DUMPED_PACKETS": (_INPUT, "test_packets_of_a_dump_are_bounded"),
    "MAX_STRING_BYTES": (_CODEC, "test_strings_reasons_and_nested_sets_end_at_their_caps"),
    "MAX_VARINT_BYTES": (_SMALL, "test_varints_end_at_their_caps"),
    "MAX_VARLONG_BYTES": (_SMALL, "test_varints_end_at_their_caps"),
    "MAX_UNPACKED_BYTES": (
        "codec/records/test_compression.py", "test_real_bomb_of_a_gibibyte_takes_no_more_memory_than_the_limit",
    ),
    "MAX_RECORD_ITEMS": (_CODEC, "test_more_records_than_the_cap_are_refused_before_they_are_made"),
    "MAX_REASONS": (_CODEC, "test_strings_reasons_and_nested_sets_end_at_their_caps"),
    "MAX_NESTED_MESSAGE_SETS": (_SMALL, "test_sets_within_sets_within_sets_are_read_one_level_deep"),
    "FREE_VALUE_BYTES": (_SMALL, "test_values_of_a_small_message_may_take_a_part_for_all_and_twenty_times_its_size"),
    "MAX_VALUE_RATIO": (_SMALL, "test_values_of_a_small_message_may_take_a_part_for_all_and_twenty_times_its_size"),
    "MAX_VALUE_BYTES": (_CODEC, "test_no_shape_takes_more_than_its_allowance"),
    "MAX_SPANS": (_CODEC, "test_spans_up_to_their_cap_take_less_than_half_a_gigabyte"),
    "MAX_WAITING_BYTES": (_RECORDINGS, "test_peak_of_read_is_below_a_gigabyte"),
    "MAX_SHOWN_ITEMS": ("cli/test_answer_view.py", "test_long_lists_are_cut_unless_all_is_wanted"),
    "MAX_SHOWN_BYTES": ("cli/test_decode.py", "test_long_fields_are_cut_unless_all_is_asked_for"),
    "MAX_SHOWN_PIECES": ("explorer/test_decode.py", "test_a_message_of_many_pieces_is_shown_in_part_and_says_so"),
    "MAX_PACKET_BYTES": (_FILES, "test_a_file_beyond_a_cap_is_a_problem_and_takes_little_memory"),
    "MAX_BLOCK_BYTES": (_FILES, "test_a_file_beyond_a_cap_is_a_problem_and_takes_little_memory"),
    "MAX_INTERFACES": (_FILES, "test_a_file_beyond_a_cap_is_a_problem_and_takes_little_memory"),
    "MAX_TUNNELS": ("capture/net/test_segments.py", "test_tunnels_are_followed_to_a_limit"),
    "MAX_FRAGMENT_BYTES": (_FILES, "test_waiting_fragments_take_what_their_cap_says"),
    "MAX_FRAGMENT_SECONDS": ("capture/net/test_fragments.py", "test_fragments_wait_only_so_long"),
    "MAX_WINDOW_BYTES": (_RECORDINGS, _ALL_AT_ONCE),
    "MAX_LINE_BYTES": (_FILES, "test_a_log_without_line_ends_takes_the_memory_of_its_longest_line"),
    "MAX_PROBLEMS": (_FILES, "test_problems_of_one_kind_are_listed_up_to_their_cap"),
    "MAX_EARLY_BYTES": (_READING, "test_early_bytes_of_one_stream_take_what_their_cap_says"),
    "MAX_EARLY_SEGMENTS": ("capture/tcp/test_reassembly.py", "test_many_small_early_segments_are_bounded"),
    "MAX_EARLY_TOTAL_BYTES": (_RECORDINGS, _ALL_AT_ONCE),
    "MAX_CONNECTIONS": (_RECORDINGS, _ALL_AT_ONCE),
    "MAX_TALLIED_BYTES": (_RECORDINGS, _ALL_AT_ONCE),
    "MAX_OTHER_CONNECTIONS": (_RECORDINGS, "test_peak_of_what_is_not_kafka_is_below_a_gigabyte"),
    "MAX_UNUSED_FLOWS": (_RECORDINGS, "test_peak_of_what_is_not_kafka_is_below_a_gigabyte"),
    "MAX_LEARNT_BYTES": (_READING, "test_names_of_topics_take_what_their_cap_says"),
    "MAX_SESSION_NAME_BYTES": (_READING, "test_topics_of_sessions_take_what_their_cap_says"),
    "MAX_UNDECIDED_BYTES": (_RECORDINGS, "test_peak_of_what_is_not_kafka_is_below_a_gigabyte"),
    "MAX_UNDECIDED_PIECES": (_SMALL, "test_what_nobody_recognises_is_left_alone_at_its_cap"),
    "MAX_SEARCHED_BYTES": (_RECORDINGS, "test_peak_of_what_is_not_kafka_is_below_a_gigabyte"),
    "MAX_SEARCHED_TOTAL_BYTES": (_RECORDINGS, _ALL_AT_ONCE),
    "MAX_UNFINISHED_BYTES": (_RECORDINGS, _ALL_AT_ONCE),
    "MAX_CAREFUL_FRAME_BYTES": (_READING, "test_an_odd_frame_takes_what_its_cap_says"),
    "MAX_BODY_BYTES": (_READING, "test_a_long_body_takes_what_its_cap_says"),
    "MAX_NAMES": ("capture/test_long_bodies.py", "test_an_exchange_with_very_many_names_is_listed_without"),
    "MAX_SECRET_BYTES": (_SMALL, "test_a_file_of_settings_is_read_up_to_its_cap"),
    "MAX_CONFIG_BYTES": (_SMALL, "test_a_file_of_settings_is_read_up_to_its_cap"),
    "MAX_STORE_BYTES": (_SMALL, "test_a_file_of_settings_is_read_up_to_its_cap"),
    "MIN_SCRAM_ITERATIONS": ("client/auth/test_scram.py", "test_a_strange_first_answer_ends_it"),
    "MAX_SCRAM_ITERATIONS": ("client/auth/test_scram.py", "test_a_strange_first_answer_ends_it"),
    "MAX_TOKEN_ANSWER_BYTES": (_CLIENT, "test_the_answer_of_a_token_endpoint_takes_what_its_cap_says"),
    "MAX_KEPT_PAGES": ("explorer/server/test_app.py", "test_pages_that_are_kept_are_bounded"),
    "MAX_OBSERVED_GROUPS_A_CALL": (_SMALL, "test_groups_are_asked_for_in_portions"),
    "MAX_OBSERVED_BYTES": (_CLIENT, "test_answers_that_wait_for_a_commit_take_what_their_cap_says"),
    "MAX_HTTP_HEAD_BYTES": (_MORE, "test_a_long_head_of_http_ends_its_connection"),
    "MAX_LOGIN_FRAME_BYTES": (
        "client/transport/test_port_hints.py", "test_a_large_answer_before_the_login_is_refused_by_its_size",
    ),
    "MAX_RESPONSE_MEMORY_BYTES": (_CLIENT, "test_responses_of_a_round_take_what_their_cap_says"),
    "MAX_CAREFUL_MEMORY_BYTES": (_CLIENT, "test_a_response_that_is_read_carefully_takes_what_its_cap_says"),
    "MAX_SIDE_BY_SIDE_BYTES": (_CLIENT, "test_large_responses_come_one_at_a_time"),
    "MAX_BROKERS": ("client/transport/test_port_hints.py", "test_a_million_brokers_are_counted_too"),
    "MAX_HOST_CHARACTERS": (_SMALL, "test_a_host_longer_than_any_name_is_refused"),
    "MAX_APIS": ("client/test_looks.py", "test_apis_that_nobody_knows_are_kept_up_to_a_limit"),
    "MAX_UNKNOWN_VERSIONS": ("client/test_looks.py", "test_versions_that_nobody_knows_are_listed_up_to_a_limit"),
    "MAX_KNOWN_PARTITIONS": (_SMALL, "test_leaders_beyond_the_cap_are_forgotten"),
    "MAX_HELD_RANGES": ("client/share/test_session.py", "test_ranges_beyond_the_cap_are_left_to_expire"),
    "MAX_BATCH_RANGES": ("pipeline/share/test_batches.py", "test_a_batch_has_so_many_ranges_and_the_rest_waits"),
    "MAX_BUFFERED_RECORD_BYTES": (_CLIENT, "test_records_that_wait_for_the_application_take_what_their_cap_says"),
    "MAX_UPLOAD_BYTES": (_EXPLORER, "test_an_upload_takes_what_its_cap_says"),
    "MAX_DECODE_SECONDS": (
        "explorer/test_decode.py", "test_decoding_that_takes_too_long_is_ended_and_the_next_one_works",
    ),
    "MAX_DECODE_MEMORY_BYTES": (_EXPLORER, "test_decoding_takes_what_its_cap_says"),
    "MAX_UPLOADS_BYTES": (
        _LOAD, "test_of_sixty_uploads_at_once_all_but_four_are_told_to_wait_and_pages_are_served",
    ),
    "MAX_UPLOAD_SECONDS": (_LOAD, "test_a_connection_without_a_whole_request_is_closed"),
    "MAX_URLENCODED_BYTES": (_EXPLORER, "test_a_url_encoded_form_takes_what_its_cap_says"),
    "MAX_LINK_BYTES": ("explorer/test_decode.py", "test_a_long_message_has_no_link_and_is_decoded_all_the_same"),
    "MAX_BROKEN_FILES": (_MORE, "test_an_ingest_goes_on_without_so_many_broken_files"),
    "MAX_LAKE_NOTE_BYTES": (_SMALL, "test_a_note_beside_the_tables_is_read_up_to_its_cap"),
    "MAX_KEPT_TOTALS": ("lake/read/test_browse.py", "test_totals_that_are_kept_are_bounded"),
    "MAX_LISTED_EXCHANGES": (_MORE, "test_pages_of_a_lake_list_so_many_exchanges_and_recordings"),
    "MAX_SHOWN_RECORDINGS": (_MORE, "test_pages_of_a_lake_list_so_many_exchanges_and_recordings"),
    "MAX_REREAD_SECONDS": (
        "explorer/decode/test_reread.py", "test_a_process_that_takes_too_long_is_ended_and_the_next_page_has_another",
    ),
    "MAX_LAKE_PAGES_AT_ONCE": (
        _LOAD, "test_pages_of_a_lake_have_a_bound_and_those_beyond_it_are_told_to_wait",
    ),
    "MAX_REREADS_AT_ONCE": (
        "explorer/test_gate.py", "test_as_many_as_it_says_are_inside_and_the_queue_follows_in_order",
    ),
    "MAX_QUEUED_REQUESTS": ("explorer/test_gate.py", "test_whoever_finds_the_queue_full_is_told_to_wait"),
    "MAX_QUEUE_SECONDS": (
        "explorer/test_gate.py", "test_whoever_waits_too_long_is_told_to_wait_and_leaves_the_queue",
    ),
    "MAX_OPEN_CONNECTIONS": (_LOAD, "test_idle_connections_make_room_for_others_the_oldest_first"),
    "MAX_REQUEST_HEAD_SECONDS": (_LOAD, "test_a_connection_without_a_whole_request_is_closed"),
    "MAX_RESPONSE_SECONDS": (_LOAD, "test_a_client_that_takes_no_response_is_closed"),
    "MAX_LOG_FOLDERS_DEEP": (_LOGS, "test_folders_are_followed_to_a_limit"),
    "MAX_SMALL_FILE_BYTES": (_LOGS, "test_the_largest_checkpoint_takes_less_than_half_a_gigabyte"),
    "MAX_SEARCH_RATIO": ("logs/test_damage.py", "test_a_long_run_of_plausible_headers_takes_linear_time"),
    "MAX_FOLLOWED_PRODUCERS": (_LOGS, "test_of_too_many_producers_the_oldest_is_forgotten"),
    "MAX_LISTED_FINDINGS": (_LOGS, "test_findings_of_one_kind_are_listed_up_to_their_cap"),
    "MAX_LOG_TABLE_BYTES": (_LOGS, "test_records_that_wait_for_their_tables_take_what_their_cap_says"),
    "MAX_INDEX_BYTES": (_LOGS, "test_the_largest_index_takes_less_than_half_a_gigabyte"),
    "MAX_KERNEL_FOLDERS": (
        "columnar/compiling/test_kernel_folder.py", "test_of_many_folders_those_used_last_stay_and_all_of_today",
    ),
    "MAX_KERNEL_IDLE_DAYS": ("columnar/compiling/test_kernel_folder.py", "test_old_folders_go_when_a_new_one_is_made"),
    "MAX_KERNEL_WAIT_SECONDS": (
        "columnar/compiling/test_compile_once.py", "test_while_one_is_stopped_others_wait_as_long_as_the_cap_says",
    ),
}  # fmt: skip


@cache
def functions(path: str) -> dict[str, str]:
    """The source of each."""
    text = (TESTS / path).read_text()
    definitions = (node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return {node.name: ast.get_source_segment(text, node) or "" for node in definitions}


def test_every_cap_is_driven_by_a_test() -> None:
    assert DRIVEN_BY.keys() == {name for name in vars(limits) if name.isupper()}


@pytest.mark.parametrize("cap", DRIVEN_BY)
def test_the_test_of_a_cap_is_there(cap: str) -> None:
    path, name = DRIVEN_BY[cap]
    assert name in functions(path)


@pytest.mark.parametrize("cap", [cap for cap in DRIVEN_BY if cap.endswith("_BYTES")])
def test_the_test_of_a_cap_on_bytes_measures_a_process(cap: str) -> None:
    path, name = DRIVEN_BY[cap]
    measures = any(how in functions(path)[name] for how in _MEASURES)
    assert measures != (cap in NOT_MEASURED)
