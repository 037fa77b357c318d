# Two commands on a fresh machine: `make run` and `make test`. Both set up what they need, once.

PYTHON ?= python3
VENV   := .venv
PY     := $(VENV)/bin/python
# A driver's file means an NVIDIA GPU (the second: Windows' Linux): then torch is its CUDA build.
GPU    := $(firstword $(wildcard /proc/driver/nvidia/version /usr/lib/wsl/lib/libcuda.so.1))
LOCK   ?= requirements/$(if $(GPU),cuda13,cpu).txt
STAMP  := $(VENV)/.installed-$(basename $(notdir $(LOCK)))
# The attention task that is meant for this GPU: Hopper's, or the one for smaller cards and for none.
CAP    := $(if $(GPU),$(firstword $(shell nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null)))
TASK   ?= $(if $(filter 9.0,$(CAP)),sdpa_h200,sdpa_l4)
TESTS  ?=
LINTED := evoengine tests benchmarks setup.py scripts/lock

.PHONY: help setup run test check lint types unit gpu clean

help:
	@echo "make run    set up, then search for faster kernels: task $(TASK) (choose with TASK=name)"
	@echo "make test   set up, then check style, types and behaviour"
	@echo "make gpu    set up, then run the tests that need a CUDA device"
	@echo "make clean  remove the environment and what was built; runs/ stays"

setup: $(STAMP)

# The path is in the scripts of the environment: one that was copied elsewhere is brought up to date.
ifneq ($(shell cat $(STAMP) 2>/dev/null),$(CURDIR))
.PHONY: $(STAMP)
endif

$(STAMP): $(LOCK) pyproject.toml setup.py
	@echo "== setting up $(VENV) from $(LOCK) ($(if $(GPU),an NVIDIA GPU,no NVIDIA GPU) here): minutes the first time, nothing afterwards"
	@PYTHON="$(PYTHON)" scripts/set-up $(VENV) $(LOCK)
	@echo "$(CURDIR)" > $@

run: setup
	@echo "== searching: $(VENV)/bin/evoengine run $(TASK)"
	@$(VENV)/bin/evoengine run $(TASK)

test check: lint types unit

lint: setup
	@echo "== style: ruff"
	@$(PY) -m ruff check $(LINTED)
	@$(PY) -m ruff format --check $(LINTED)

types: setup
	@echo "== types: mypy"
	@$(PY) -m mypy

# Side by side on all cores, but what needs a GPU alone, because it times. TESTS: options of pytest.
unit: setup
	@echo "== behaviour: pytest, samples of large corpora (make test TESTS=--whole tests all of them)"
	@$(PY) -m pytest -n auto --maxprocesses 8 --dist worksteal $(if $(GPU),-m "not gpu") $(TESTS)
	@$(if $(GPU),$(PY) -m pytest -m gpu $(TESTS))

gpu: setup
	@$(PY) -m pytest -m gpu

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
