# The daily verbs. `make` alone lists them. Works with GNU Make 3.81.
.DEFAULT_GOAL := help
SHELL := /bin/sh
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
READY := $(VENV)/.surecut-ready
DEVELOP := $(VENV)/.surecut-develop
DOCS := $(VENV)/.surecut-docs
QUALITY := $(VENV)/.surecut-quality
FLOORS_VENV := .venv-floors
FLOORS := $(FLOORS_VENV)/.surecut-ready
WORKERS ?= 2
EXTRAS := fast,files,cli,plots,report
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11 python; do \
	command -v $$p >/dev/null 2>&1 && $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)

# The oldest Python that pyproject.toml allows
OLDEST_PYTHON ?= python3.11

.PHONY: help install demo test test-floors test-guarantees fuzz hypofuzz coverage mutants lint docs bench clean

help:
	@echo "make demo     set up .venv and show on real data what tuning the cut is worth"
	@echo "make test     set up .venv and run all tests"
	@echo "make test-floors  run all tests in .venv-floors: Python 3.11, and of each library the lowest version that pyproject.toml allows"
	@echo "make fuzz     compare 50,000 drawn cuts of every path, and 10,800 bands, with trying each threshold in exact fractions (some minutes)"
	@echo "make hypofuzz  the same cases chosen by coverage, under HypoFuzz; until it is stopped"
	@echo "make coverage  branches of the core and of the sources that tests take; fails below 100 %"
	@echo "make mutants  change core/rules.py in every way that mutmut knows; tests must notice (some minutes)"
	@echo "make test-guarantees  simulate every guarantee with 2,000 draws (hours; resumes; table in benchmarks/results)"
	@echo "make lint     ruff, formatting, mypy"
	@echo "make docs     build the documentation into docs/_build/html, offline, warnings as errors"
	@echo "make bench    speed beside the peers and the physical limit (about half an hour)"
	@echo "make install  only set up .venv, for all of these but docs and bench"
	@echo "make clean    remove .venv, .venv-floors and caches"

install: $(DEVELOP)

# What a user needs comes first, and is all that the demo waits for; tests, linters and the documentation add their own.
# Each stamp is written last: a set-up that was interrupted is done again.
$(READY): pyproject.toml
	@if [ -z "$(PYTHON)" ]; then echo "surecut needs Python 3.11 or newer, and found none. Install it (Debian: apt-get install python3 python3-venv), or say where it is: make PYTHON=/path/to/python3.12 $(MAKECMDGOALS)" >&2; exit 1; fi
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo "$(PYTHON) cannot make virtual environments: install its venv module (Debian: apt-get install python3-venv)" >&2; exit 1; }
	@rm -f $(READY) $(DEVELOP) $(DOCS) $(QUALITY)
	@echo "setting up $(VENV) with $(PYTHON): a minute or so"
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) --upgrade "pip>=25.1"
	@$(PIP) --editable ".[$(EXTRAS)]"
	@touch $(READY)

$(DEVELOP): $(READY)
	@rm -f $(DEVELOP)
	@echo "adding what tests and linters need to $(VENV): a minute or two"
	@$(PIP) --group test --group lint
	@touch $(DEVELOP)

$(DOCS): $(READY)
	@rm -f $(DOCS)
	@echo "adding what the documentation needs to $(VENV)"
	@$(PIP) --group docs
	@touch $(DOCS)

$(QUALITY): $(DEVELOP)
	@rm -f $(QUALITY)
	@echo "adding coverage, HypoFuzz and mutmut to $(VENV)"
	@$(PIP) --group quality
	@touch $(QUALITY)

demo: $(READY)
	@$(BIN)/surecut demo

test: $(DEVELOP)
	$(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal

# The environment is always made from nothing: an installer keeps the versions that it finds.
$(FLOORS): pyproject.toml .ci/check_floors.py
	@command -v $(OLDEST_PYTHON) >/dev/null || { echo "$(OLDEST_PYTHON) is not installed: say where Python 3.11 is: make OLDEST_PYTHON=/path/to/python3.11 test-floors" >&2; exit 1; }
	@rm -rf $(FLOORS_VENV)
	@echo "setting up $(FLOORS_VENV) with $(OLDEST_PYTHON): a minute or two"
	@$(OLDEST_PYTHON) -m venv $(FLOORS_VENV)
	@$(FLOORS_VENV)/bin/python -m pip install --quiet --disable-pip-version-check uv
	@$(FLOORS_VENV)/bin/uv pip install --quiet --python $(FLOORS_VENV)/bin/python --resolution lowest-direct \
		--editable ".[$(EXTRAS),study,spark,dask]" --group test
	@$(FLOORS_VENV)/bin/python .ci/check_floors.py test
	@touch $(FLOORS)

test-floors: $(FLOORS)
	$(FLOORS_VENV)/bin/python -m pytest -q -n $(WORKERS) --dist worksteal

# More of the same: make fuzz FUZZ="--runs 200000 --seed 1"; one case again: make fuzz FUZZ="--replay search/0/17/3".
FUZZ ?= --runs 50000

fuzz: $(DEVELOP)
	PYTHONPATH=tests $(BIN)/python -m fuzz $(FUZZ)
	PYTHONPATH=tests $(BIN)/python -m fuzz.bands

hypofuzz: $(QUALITY)
	PYTHONPATH=tests $(BIN)/hypothesis fuzz -- tests/fuzz/test_hypothesis.py

# What numba compiles (core/compiled) runs outside of Python, and cannot be measured: tests compare it with core/kernels.py.
coverage: $(QUALITY)
	OMP_NUM_THREADS=1 $(BIN)/python -m coverage run -m pytest -q tests/core tests/sources tests/contract tests/fuzz tests/tuning \
		tests/test_labels.py tests/cli/test_files.py src/surecut/core src/surecut/sources
	$(BIN)/python -m coverage report

mutants: $(QUALITY)
	OMP_NUM_THREADS=1 $(BIN)/mutmut run
	$(BIN)/mutmut results

test-guarantees: $(DEVELOP)
	OMP_NUM_THREADS=1 PYTHONPATH=tests $(BIN)/python -m guarantees.run

lint: $(DEVELOP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: $(DOCS)
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html
	@echo "docs/_build/html/index.html"

bench: $(DEVELOP)
	@$(PIP) --group bench || echo "the peers MAPIE, xCOLUMNs and LibMultiLabel could not be installed: their rows are left out"
	$(BIN)/python benchmarks/speed.py
	$(BIN)/python benchmarks/tuning.py
	$(BIN)/python benchmarks/multilabel.py
	$(BIN)/python benchmarks/linear.py
	$(BIN)/python benchmarks/frames.py
	$(BIN)/python benchmarks/readme_table.py

clean:
	rm -rf $(VENV) $(FLOORS_VENV) docs/_build docs/_made docs/auto_examples docs/generated .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage mutants
