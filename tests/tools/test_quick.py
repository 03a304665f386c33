"""`make quick` leaves out what takes seconds."""

from tests.support.slow import is_slow, missing


def test_every_test_that_is_left_out_exists() -> None:
    assert missing() == []


def test_a_folder_a_module_and_a_function_are_left_out_whole() -> None:
    assert is_slow("tests/hostile/test_fuzzers.py::test_any")
    assert is_slow("tests/codec/test_mutations.py::test_any[3]")
    assert is_slow("tests/test_docs.py::test_every_command_shown_runs_and_prints_what_is_shown[README.md]")
    assert not is_slow("tests/test_docs.py::test_every_page_is_linked_from_the_readme[logs.md]")
