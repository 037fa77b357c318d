# Two commands on a fresh machine: `make run` and `make test`. Both set up what they need, once.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
# A driver's version file means an NVIDIA GPU: then torch and CuPy are the CUDA builds of the lock.
LOCK   := requirements/$(if $(wildcard /proc/driver/nvidia/version),cuda13,cpu).txt
STAMP  := $(VENV)/.installed-$(notdir $(basename $(LOCK)))
TASK   ?= $(if $(wildcard /proc/driver/nvidia/version),sdpa_h200,sdpa_l4)

.PHONY: help setup run test check lint types unit gpu clean

help:
	@echo "make run    set up, then search for faster kernels: task $(TASK) (choose with TASK=name)"
	@echo "make test   set up, then check style, types and behaviour"
	@echo "make gpu    the tests that need a CUDA device"
	@echo "make clean  remove the environment and what was built"

setup: $(STAMP)

$(STAMP): $(LOCK) pyproject.toml
	@echo "== setting up $(VENV) from $(LOCK): a few minutes the first time, nothing afterwards"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "evoengine needs Python >= 3.11; choose one with PYTHON=..."; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || scripts/install-venv
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --requirement $(LOCK)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

run: setup
	@echo "== searching: $(BIN)/evoengine run $(TASK)"
	@$(BIN)/evoengine run $(TASK)

test check: lint types unit

lint: setup
	@echo "== style: ruff"
	@$(BIN)/ruff check evoengine tests benchmarks
	@$(BIN)/ruff format --check evoengine tests benchmarks

types: setup
	@echo "== types: mypy"
	@$(BIN)/mypy

unit: setup
	@echo "== behaviour: pytest"
	@$(BIN)/python -m pytest

gpu: setup
	@$(BIN)/python -m pytest -m gpu

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
