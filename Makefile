# Every target sets up what it needs by itself and reuses it the next time.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready

.DEFAULT_GOAL := help
.PHONY: help demo test check format docs bench gpu-test lock clean

help: ## show this list
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' $(MAKEFILE_LIST) | expand -t 20

$(READY): requirements.lock pyproject.toml src/podgpu/__init__.py
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

demo: $(READY) ## serve a simulated node on http://127.0.0.1:19400
	$(BIN)/podgpu demo --web.listen-address=127.0.0.1:19400

test: $(READY) ## run all tests
	$(BIN)/python -m pytest

check: $(READY) ## lint, types, walls, generated docs, shape
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/python -m tools.docs --check
	$(BIN)/python -m tools.shape

format: $(READY) ## rewrite the sources in the house style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(READY) ## regenerate the generated docs
	$(BIN)/python -m tools.docs

bench: $(READY) ## measure speed and size side by side
	$(BIN)/python -m bench

gpu-test: ## check podgpu against nvidia-smi on a machine with a GPU
	$(PYTHON) tests/gpu/check.py

lock: ## resolve the dependencies again
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	$(BIN)/uv pip compile --quiet --no-header --universal --python-version 3.11 --generate-hashes --group dev -o requirements.lock pyproject.toml

clean: ## remove what the targets made
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache build dist
