# `make` prints the targets. Every target first creates the environment it needs.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.made-from

.PHONY: help setup demo test quick check bench soak lab catalog pins clean
.DEFAULT_GOAL := help

help:
	@echo "kafkascope: the Kafka wire, readable"
	@echo
	@echo "  make demo     four messages in short, then recorded incidents: lake, marts, report, verdict"
	@echo "  make test     check and all tests, with Kafka's Java codec as the judge"
	@echo "  make quick    tests that need no Java, Spark, browser or seconds of their own, in under two minutes"
	@echo "  make setup    .venv with compiled kernels, after which .venv/bin/kafkascope works"
	@echo "  make check    ruff, mypy strict, import-linter"
	@echo "  make bench    speed compared with kio, Java and tshark; memory, start-up, pages"
	@echo "  make soak     long fuzzing runs, ingests killed at eighty moments, a share group and Spark losing machines"
	@echo "  make lab      a real Kafka on this machine, until Ctrl-C"
	@echo "  make catalog  rebuild the catalog from Kafka's published jars (maintainers)"
	@echo "  make pins     rewrite constraints.txt: a hash for each file that may be installed (maintainers)"
	@echo "  make clean    remove .venv, caches and build output"

setup: $(STAMP)

# Keyed by what it installs, so that a changed pin rebuilds it.
$(STAMP): pyproject.toml constraints.txt src/kafkascope/codec/_native.c src/kafkascope/codec/_native_records.c
	@echo "creating .venv and installing the pinned packages"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "kafkascope needs Python 3.11 or newer; set PYTHON=")'
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(BIN)/python -m tools.install
	@$(BIN)/kafkascope warm-up
	@touch $(STAMP)
	@echo "done: .venv/bin/kafkascope --help"

demo: setup
	@$(BIN)/python -m tools.demo

check: setup
	@echo "ruff, mypy, import-linter"
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo

test: check
	@$(BIN)/python -m tools.debian_packages
	@$(BIN)/python -m pytest -n 3 --dist worksteal

quick: setup
	@KAFKASCOPE_QUICK=1 $(BIN)/python -m pytest -n 2 --dist worksteal --durations 10 --durations-min 2

bench: setup
	@$(BIN)/python -m bench

soak: setup
	@KAFKASCOPE_SOAK=1 $(BIN)/python -m pytest -n 2 --dist worksteal tests/codec tests/columnar tests/capture tests/hostile tests/lake/test_hostile_lake.py tests/lake/test_delta_spark.py tests/pipeline/test_marts_hostile.py tests/pipeline/test_killed.py tests/pipeline/test_archive.py tests/pipeline/test_views.py tests/client/test_restarts.py tests/client/test_share_soak.py tests/pipeline/share/test_share_kills.py tests/pipeline/test_machines.py tests/pipeline/test_marts_increments.py tests/pipeline/test_hdfs.py tests/logs

lab: setup
	@$(BIN)/python -m lab

catalog: setup
	@$(BIN)/python -m tools.catalog build

# Without setup, which refuses a pin that has no hash yet.
pins:
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(BIN)/python -m tools.pins

clean:
	rm -rf .venv .cache build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
