PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready
ALL_TESTS := $(BIN)/python -m pytest -n 4 --dist loadfile --no-loadscope-reorder
MKDOCS := NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

.DEFAULT_GOAL := help

help:  ## show this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-10s %s\n", $$1, $$2}'

$(STAMP): pyproject.toml constraints.txt
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt "torch"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	@touch $@

setup: $(STAMP)  ## make .venv with the exact versions of constraints.txt

demo: $(STAMP)  ## codecs that hide and that do not on the embedded digits: train, attack, advise
	$(BIN)/python -m lightsplit demo

test: check $(STAMP)  ## every check and every test
	$(ALL_TESTS)

coverage: $(STAMP)  ## the lines that all tests reach; takes half as long again as the tests
	$(ALL_TESTS) --cov --cov-report=term --cov-fail-under=95

test-fast: $(STAMP)  ## the quick tests: no whole runs, no processes
	$(BIN)/python -m pytest -n 2 -m "not slow"

check: $(STAMP)  ## formatting, lint, types, layers, generated code, length of files, the site
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python proto/generate.py --check
	$(BIN)/python benchmarks/longest_files.py
	$(MKDOCS) --quiet --site-dir $(VENV)/checked-site

docs: $(STAMP)  ## the documentation site, in build/site
	$(MKDOCS)

bench: $(STAMP)  ## speed as ratios within one run, JSON on standard output
	$(BIN)/python -m benchmarks

proto: $(STAMP)  ## write the Python code of proto/lightsplit.proto
	$(BIN)/python proto/generate.py

.PHONY: help setup demo test coverage test-fast check docs bench proto
