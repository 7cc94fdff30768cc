# Jobline: everything a checkout can do. `make help` lists it.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SETUP := $(VENV)/.setup-done

.PHONY: help
help:  ## Show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) \
	  | awk -F ':.*## ' '{printf "  \033[1m%-12s\033[0m %s\n", $$1, $$2}'

.PHONY: setup
setup: $(SETUP)  ## Make .venv with the client, the server and the tools

# Both paths in one command: otherwise pip would look for `jobline` on the package index.
$(SETUP): pyproject.toml clients/python/pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet -e clients/python -e '.[dev,native]'
	touch $@
