# `make run` and `make test` need Python >= 3.11, make and nothing else.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: run test dev lint format bench clean

run: $(READY)  ## ingest the bundled sample, build the leaderboards, print them
	@$(BIN)/kernelindex ingest --dataset sample

test: $(READY)  ## every test that needs nothing but Python
	@$(BIN)/python -m pytest -m "not integration" -n auto --dist loadfile

dev: $(READY)  ## open the Dagster UI
	@$(BIN)/kernelindex dev

lint: $(READY)  ## style, types and formatting
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

format: $(READY)
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

bench: $(READY)  ## timings, as ratios within one run
	@$(BIN)/python bench/ingest.py

clean:
	rm -rf $(VENV) .dagster .mypy_cache .pytest_cache .ruff_cache .hypothesis build *.egg-info

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Python 3.11 or newer is needed; name one: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@echo "Setting up $(VENV) (once, about a minute)"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --disable-pip-version-check --no-input \
		--constraint constraints.txt --editable '.[dev]' >$(VENV)/install.log 2>&1 || \
		{ cat $(VENV)/install.log >&2; exit 1; }
	@touch $@
