# Everything a developer of Outlive does. `make` alone lists the targets.
#
# Needs Python 3.11 or newer with its venv module, and make. Nothing is installed outside this folder.
# All paths are relative, so the folder may have any name, also one with spaces.

.DEFAULT_GOAL := help
.NOTPARALLEL:
.SUFFIXES:

# The first of these that is new enough makes the virtual environments: make test PYTHON=python3.12
PYTHON ?= python3.11 python3 python3.12 python3.13 python3.14
KILLS ?= 200
OPS ?= 100000
SEEDS ?= 10000
FIRST ?= 0
SEED ?= 0
MUTANTS ?= 100
N ?= 100000
MINUTES ?= 30
STORE ?= sqlite
# What is not said on the command line: a storm is longer than a kill trial, and over both stores.
CHAOS_KILLS = $(if $(filter command line environment,$(origin KILLS)),$(KILLS),300)
CHAOS_STORE = $(if $(filter command line environment,$(origin STORE)),$(STORE),both)
# Processes at once, each with its part of the test files.
JOBS ?= 2
ARGS ?=
UV_VERSION := 0.13.7
PIP_AUDIT_VERSION := 2.10.1
VERSION = $(shell sed -n 's/^version = "\(.*\)"/\1/p' pyproject.toml)

export PIP_DISABLE_PIP_VERSION_CHECK := 1
unexport PYTHONHOME PYTHONPATH
# The tests start hundreds of Pythons; where what they compile is not kept, that takes half of their time.
unexport PYTHONDONTWRITEBYTECODE

RUN := .venv/.installed-run
DEV := .venv/.installed-dev
BENCH := .venv-bench/.installed-bench
SITE := .venv-site/.installed-site
# Outlive, and the package for authors of stores, which the tests and the proofs import too.
PROJECTS := pyproject.toml conformance/pyproject.toml

.PHONY: help demo test lint type unit e2e screenshots slow mutate generate format dashboard kill chaos limits live drill differential simulate cron fuzz schema verbs malformed languages bench pythons site lock sbom audit clean

help: ## List these targets.
	@awk -F ':.*## ' '/^[a-z0-9]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile

demo: $(RUN) ## Kill a worker in the middle of its work and watch another one finish it. STAY=1 shows it in the dashboard.
	.venv/bin/outlive demo $(if $(STAY),--stay,--once)

test: lint type unit ## All checks a change must pass: lint, types, tests. This is what CI runs.

lint: $(DEV) ## Check style and formatting.
	.venv/bin/python -m ruff check .
	.venv/bin/python -m ruff format --check .

type: $(DEV) ## Check types.
	.venv/bin/python -m mypy --strict

unit: $(DEV) ## Run the tests that take seconds.
	$(if $(ARGS),,BESIDE="-m live tests/live") .ci/parts $(JOBS) .venv/bin/python -m pytest $(ARGS)

e2e: $(DEV) ## Run all tests of the dashboard in a browser. OUTLIVE_SCREENSHOTS=folder takes pictures.
	.venv/bin/python -m pytest tests/e2e -m "" $(ARGS)

screenshots: $(DEV) ## Take the pictures of the dashboard for the docs again.
	OUTLIVE_SCREENSHOTS=build/screenshots .venv/bin/python -m pytest tests/e2e -m "" $(ARGS)
	for path in docs/images/dashboard/*.png; do cp "build/screenshots/$${path##*/}" "$$path"; done

slow: $(DEV) ## Run the tests marked slow, and a small sample of mutants.
	.venv/bin/python -m pytest -m slow --timeout=1800 $(ARGS)
	.venv/bin/python -m tests.mutation --mutants 24 --seed $(SEED) --jobs $(JOBS) --again

mutate: $(DEV) ## Plant MUTANTS=100 one-line defects; the tests must notice 95 % of them. SEED=0 chooses others.
	.venv/bin/python -m tests.mutation --mutants $(MUTANTS) --seed $(SEED) --jobs $(JOBS) $(ARGS)

generate: $(DEV) ## Write what is made from the code: docs/openapi.json, the pages of docs/reference and clients/typescript.
	.venv/bin/python -m tests.http.write_documents
	.venv/bin/python -m tests.docs.write_reference

format: $(DEV) ## Rewrite the code in the house style.
	.venv/bin/python -m ruff check --fix .
	.venv/bin/python -m ruff format .

dashboard: $(DEV) ## Format the source of the dashboard and check its types, with tools from npm. `make test` knows whether that was done.
	.venv/bin/python -m tests.dashboard.source

# A PostgreSQL server of one's own, and its driver, are part of the development environment.
kill: $(if $(filter postgres,$(STORE)),$(DEV),$(RUN)) ## Kill workers KILLS=200 times; nothing may be lost or done twice. Also STORE=postgres.
	.venv/bin/python -m proof.storm kill --store $(STORE) --kills $(KILLS) $(ARGS)

chaos: $(DEV) ## Let a storm rage over a fleet: KILLS=300 and much else. STORE=both unless given.
	.venv/bin/python -m proof.storm chaos --store $(CHAOS_STORE) --kills $(CHAOS_KILLS) $(ARGS)

limits: $(DEV) ## Kill and freeze workers KILLS=300 times; no queue may have more runs under way than it allows. STORE=both unless given.
	.venv/bin/python -m proof.storm limits --store $(CHAOS_STORE) --kills $(CHAOS_KILLS) $(ARGS)

live: $(DEV) ## Live with examples/invoices for MINUTES=30 while everything in it is killed: its ledgers must be exact, and nothing grow.
	.venv/bin/python -m proof.live --minutes $(MINUTES) $(ARGS)

drill: $(DEV) ## Measure how a fleet on PostgreSQL survives the loss of a worker. ARGS=--help lists the drills.
	.venv/bin/python -m proof.storm.drills $(ARGS)

differential: $(DEV) ## Play OPS=100000 random operations on all stores and compare them with an oracle.
	.venv/bin/python -m proof.differential --ops $(OPS) --seed $(SEED) $(ARGS)

simulate: $(RUN) ## Simulate a fleet with every fault for SEEDS=10000 seeds, from FIRST=0 on.
	.venv/bin/python -m proof.simulation --seeds $(SEEDS) --first $(FIRST) --jobs $(JOBS) $(ARGS)

cron: $(RUN) ## Hold the ticks of 400 cron expressions in all time zones against a second implementation, over ten years.
	.venv/bin/python -m proof.cron --jobs $(JOBS) --seed $(SEED) $(ARGS)

fuzz: $(DEV) ## Try N=100000 random expressions and documents of flows: none may crash, hang or differ from CEL.
	.venv/bin/python -m proof.fuzz --inputs $(N) --seed $(SEED) $(ARGS)

schema: $(DEV) ## Send N=100 requests of each kind to every operation of the HTTP API; no answer may miss in its document.
	.venv/bin/python -m proof.http.schema --store $(STORE) --examples $(if $(filter command line environment,$(origin N)),$(N),100) --seed $(SEED) $(ARGS)

verbs: $(DEV) ## Kill the server of the HTTP API in every operation, KILLS=10 times; the request sent again has the same answer. Also STORE=postgres.
	.venv/bin/python -m proof.http.verbs --store $(STORE) --kills $(if $(filter command line environment,$(origin KILLS)),$(KILLS),10) --seed $(SEED) $(ARGS)

languages: $(DEV) ## Kill remote workers in Python, TypeScript and Go, the server and the worker of flows, KILLS=200 times; every flow ends exactly. Needs Go.
	KILLS=$(if $(filter command line environment,$(origin KILLS)),$(KILLS),200) .venv/bin/python -m pytest -m slow tests/remote_steps --timeout=1800 --log-cli-level=INFO $(ARGS)

malformed: $(DEV) ## Send N=10000 malformed, oversized, slow and truncated requests to a server, beside clients that behave; then measure what hostile ones cost. Also STORE=postgres.
	.venv/bin/python -m proof.http.malformed --store $(STORE) --requests $(if $(filter command line environment,$(origin N)),$(N),10000) --seed $(SEED) $(ARGS)
	.venv/bin/python -m proof.http.costs --store $(STORE)

bench: $(BENCH) ## Measure, and compare with others. ARGS=--help lists the measurements.
	.venv-bench/bin/python -m bench $(ARGS)

pythons: ## Run the tests on Python 3.13 and 3.14, each in a Debian of its own. Only as root; see .ci/pythons.
	ARGS='$(ARGS)' JOBS=$(JOBS) .ci/pythons

site: $(SITE) ## Build the documentation as a searchable site in build/site; a broken link is an error.
	NO_MKDOCS_2_WARNING=1 .venv-site/bin/python -m mkdocs build --config-file site/mkdocs.yml

lock: .venv-lock/bin/pip ## Renew requirements/*.txt from pyproject.toml. ARGS=--upgrade takes newer versions.
	.venv-lock/bin/python -m pip install --quiet uv==$(UV_VERSION)
	$(call LOCK,run.txt,--extra server)
	$(call LOCK,dev.txt,--extra dev --constraint requirements/run.txt)
	$(call LOCK,image.txt,--extra server --extra postgres --extra otel --constraint requirements/run.txt --constraint requirements/dev.txt)
	$(call LOCK,bench.txt,--extra bench --constraint requirements/run.txt)
	$(call LOCK,site.txt,--extra site --constraint requirements/run.txt)
	echo pip | $(COMPILE) - --output-file requirements/pip.txt

sbom: ## Write dist/outlive.cdx.json: what a server of Outlive is made of (CycloneDX), from requirements/run.txt.
	@mkdir -p dist
	$(firstword $(wildcard .venv/bin/python) python3) .ci/sbom requirements/run.txt "$(VERSION)" > dist/outlive.cdx.json

# An advisory that cannot be looked up counts as one that was found.
audit: .venv-lock/bin/pip ## Ask PyPI for advisories about all that is locked. ARGS="-s osv --osv-url URL" asks another service.
	.venv-lock/bin/python -m pip install --quiet pip-audit==$(PIP_AUDIT_VERSION)
	for lock in requirements/*.txt; do .venv-lock/bin/pip-audit --strict --disable-pip --require-hashes -r $$lock $(ARGS) || exit 1; done

clean: ## Remove the virtual environments and everything that was generated.
	rm -rf .venv .venv-bench .venv-site .venv-lock .hypothesis .mypy_cache .pytest_cache .ruff_cache .mutation build dist htmlcov
	rm -f .coverage .coverage.*
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# --- How the environments are made -----------------------------------------------------------------------
# A stamp is renewed when the lock or a pyproject.toml changes. Only locked versions with known hashes come in;
# hatchling is one of them, so building Outlive itself fetches nothing.

# The locks name everything, so pip has nothing to work out; and Python compiles what it uses when it uses it.
INSTALL_OPTIONS = --quiet --no-deps --no-compile
INSTALL = $(@D)/bin/python -m pip install $(INSTALL_OPTIONS)
INSTALL_OUTLIVE = $(INSTALL) --no-index --no-build-isolation --editable . --editable ./conformance
# The pip that comes with Python 3.11 compares every file of every release with all tags of this machine, which is a third
# of all that it does. It can do without a newer one.
RENEW_PIP = -@$(INSTALL) --require-hashes -r requirements/pip.txt

$(RUN): requirements/run.txt $(PROJECTS) | .venv/bin/pip
	$(INSTALL) --require-hashes -r requirements/run.txt
	$(INSTALL_OUTLIVE)
	@touch $@

$(DEV): requirements/dev.txt requirements/pip.txt $(PROJECTS) | .venv/bin/pip
	$(RENEW_PIP)
	$(INSTALL) --require-hashes -r requirements/dev.txt
	$(INSTALL_OUTLIVE)
	@touch $@ $(RUN)

$(BENCH): requirements/bench.txt $(PROJECTS) | .venv-bench/bin/pip
	$(INSTALL) --require-hashes -r requirements/bench.txt
	$(INSTALL_OUTLIVE)
	@touch $@

# The pip of .venv does it: one of its own would cost as much as all that comes in.
$(SITE): requirements/site.txt | .venv/bin/pip
	.venv/bin/python -m venv --clear --without-pip $(@D)
	.venv/bin/python -m pip --python $(@D)/bin/python install $(INSTALL_OPTIONS) --require-hashes -r requirements/site.txt
	@touch $@

# pip is the last thing venv puts in: an environment without it was interrupted and is made again.
.venv/bin/pip .venv-bench/bin/pip .venv-lock/bin/pip: %/bin/pip:
	@for python in $(PYTHON); do \
		if "$$python" -c 'import ensurepip, sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
			echo "Making $* with $$python: $$("$$python" --version)"; \
			exec "$$python" -m venv --clear $*; \
		fi; \
	done; \
	echo >&2 "Outlive needs Python 3.11 or newer with its venv module. None of these will do:"; \
	for python in $(PYTHON); do \
		echo >&2 "  $$python: $$("$$python" -c 'import sys; print(sys.version.split()[0]); import ensurepip' 2>&1 | tail -n 1)"; \
	done; \
	echo >&2 "On Debian or Ubuntu: apt install python3 python3-venv. Elsewhere: make PYTHON=/path/to/python3.11 ..."; \
	exit 1

# The locks hold for Python 3.11 and newer on every platform, and name no index.
LOCK = .venv-lock/bin/python -c 'import tomllib; \
	print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"], sep="\n")' | \
	$(COMPILE) pyproject.toml - --output-file requirements/$(1) $(2)
COMPILE = .venv-lock/bin/uv pip compile \
	--quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links \
	--no-annotate --no-strip-extras --custom-compile-command "make lock" $(ARGS)
