# Every target makes .venv and installs what it needs; a stamp file makes the second call do nothing.
# Another interpreter: make test PYTHON=python3.12. A part of the tests: make test ARGS="-k tiger".

PYTHON ?= python3
ARGS ?=
VENV := .venv
RUN := $(VENV)/bin/python
INSTALL = $(RUN) -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable

.PHONY: reproduce test deep nightly check format clean
.DELETE_ON_ERROR:

# The main job: every study in its small preset, compared with results/.
reproduce: $(VENV)/installed
	$(RUN) -m experiments reproduce $(ARGS)

test: $(VENV)/installed-test
	$(RUN) -m pytest -n 2 --dist worksteal $(ARGS)

# The same tests with 40 times as many examples each, and those that take minutes.
deep: $(VENV)/installed-test
	HYPOTHESIS_PROFILE=deep $(RUN) -m pytest -n 2 --dist worksteal $(ARGS)

# Every task, context map and control in the simulator, the runtime and LangGraph, 1,000 episodes each: some hours.
nightly: $(VENV)/installed
	$(RUN) -m experiments conform --preset nightly $(ARGS)

# Formatter, linter, type checker: report only.
check: $(VENV)/installed-test
	$(RUN) -m ruff format --check
	$(RUN) -m ruff check
	$(RUN) -m mypy

format: $(VENV)/installed-test
	$(RUN) -m ruff format
	$(RUN) -m ruff check --fix

# An environment that is there already, made by make or not, is kept and filled in.
$(RUN):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo 'error: Python 3.11 or newer is needed: make $(MAKECMDGOALS) PYTHON=python3.12' >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/installed: pyproject.toml constraints.txt | $(RUN)
	@echo 'Installing into $(VENV), once; this takes some minutes.'
	$(INSTALL) .
	@touch $@

$(VENV)/installed-test: pyproject.toml constraints.txt | $(RUN)
	@echo 'Installing into $(VENV) with what the tests need, once; this takes some minutes.'
	$(INSTALL) '.[test,oracles]'
	@touch $@ $(VENV)/installed

# Everything that can be made again; results/ is kept.
clean:
	rm -rf $(VENV) .cache .hypothesis .mypy_cache .pytest_cache .ruff_cache build dist runs *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
