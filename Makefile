# Everything from a fresh machine with Python 3.10 or newer, pip, venv and make.
# Every target installs what it needs into .venv first; a second call finds it there.

PYTHON ?= python3
VENV ?= .venv
TORCH := torch==2.13.0
PYTEST_ARGS ?=
FUZZ_SECONDS ?= 300
CORPUS_ARGS ?= -o docs/corpus.md

# A folder of real traces beside the repository, if there is one: the tests marked `traces` need it.
SELFTIME_TRACES ?= $(wildcard $(CURDIR)/../shared/traces)
ifneq ($(SELFTIME_TRACES),)
export SELFTIME_TRACES
endif

# Tests start hundreds of processes; without compiled files each compiles our four hundred anew.
unexport PYTHONDONTWRITEBYTECODE

# What is measured: megabytes of JSON of the traces, events of the recordings; the peers' folder.
BENCH_SIZES ?= 10 100 1000
BENCH_EVENTS ?= 10000 100000
BENCH_PEERS ?= $(VENV)/peers
export BENCH_PEERS
PLUGIN := $(wildcard $(BENCH_PEERS)/plugin/bin/python)
AGREEING := $(if $(PLUGIN),$(wildcard $(foreach name,v100-2021-* a100-2024-nccl*,$(SELFTIME_TRACES)/$(name))))

BIN := $(VENV)/bin
RUNS := selftime-runs
# A worker that was killed ends the run: without that, xdist waits for its tests for ever.
TESTING := --max-worker-restart=0 --durations=20 --durations-min=3 $(PYTEST_ARGS)
WORKERS := -n auto --dist loadgroup
NPM := $(BIN)/python -c 'import sys; from hatch_build import npm_in; npm_in("frontend")(*sys.argv[1:])'
PAGE := hatch_build.py $(shell find frontend -type f -not -path '*/node_modules/*')

.DEFAULT_GOAL := help
.PHONY: help demo wheel test sweep releases check check-types check-rest bench peers corpus docs clean audit fuzz

help:  ## say what there is to do
	@sed -n 's/^\([a-z]*\):.*## /\1:\t/p' Makefile

demo: $(VENV)/demo  ## record examples/digits/train.py; show its operators, what to change, and the trace
	$(BIN)/selftime run --quiet -o $(RUNS) examples/digits/train.py --epochs 2
	@set -e; trace=$$(ls -t $(RUNS)/*.pt.trace.json.gz | head -n 1); set -x; \
	$(BIN)/selftime view operators "$$trace" --rows 12; \
	$(BIN)/selftime advise "$$trace"; \
	set +x; echo "The trace: $$trace"

# The page is built here, so that the machine that installs the wheel needs no Node.
wheel: $(VENV)/made  ## build the wheel into dist/, with the page in it
	$(BIN)/python -m pip wheel . --no-deps -w dist

# It leaves out what takes long or holds only on a quiet machine (CONTRIBUTING.md). Nothing is retried.
test: $(VENV)/dev frontend/node_modules/made  ## run the tests of every subject, in minutes
	$(NPM) test
	$(BIN)/python -m compileall -q -j 0 src
	$(BIN)/python -m pytest --sample $(WORKERS) $(TESTING)

# What depends on time runs alone at the end, one test after another. Here tables are made by several
# threads, so that an order that is nobody's promise is seen to change.
sweep: export POLARS_MAX_THREADS ?= 4
sweep: $(VENV)/dev frontend/node_modules/made  ## run every test on every input, and those that depend on time
	$(NPM) test
	$(BIN)/python -m compileall -q -j 0 src
	$(BIN)/python -m pytest -m "not timed" $(WORKERS) $(TESTING)
	$(BIN)/python -m pytest -m timed -n 1 $(TESTING)

# Tables and recordings are held against each release of PyTorch, with each Python: an environment for every
# pair, of several GB. A table in docs/robustness.md tells which pairs were tried.
PYTHONS ?= $(PYTHON)
RELEASES ?= 2.14.1
RELEASE_FOLDERS := session capture frameworks ingest views advice cli reports analysis
RELEASE_TESTS ?= $(addprefix tests/,$(RELEASE_FOLDERS))
RELEASE_PACKAGES := pytest pytest-randomly pytest-timeout pytest-xdist hypothesis jsonschema scikit-learn scipy \
	ipython xlsxwriter mcp tensorboard bpe-openai hatchling "moto[s3]" flask flask-cors s3fs

releases:  ## run the tests of recordings and tables with the PYTHONS and RELEASES of PyTorch given
	@set -ex; for python in $(PYTHONS); do for release in $(RELEASES); do \
	home=$(VENV)/$$($$python -c 'import sys; print("python-%d.%d" % sys.version_info[:2])')-torch-$$release; \
	test -d $$home || { $$python -m venv $$home; \
	$$home/bin/pip install -q "torch==$$release"; \
	$$home/bin/pip install -q -e . $(RELEASE_PACKAGES); }; \
	$$home/bin/selftime doctor; \
	$$home/bin/python -m pytest --sample -n 2 $(TESTING) $(RELEASE_TESTS); done; done

check: check-types check-rest  ## run what a change must pass before its tests: lint, format, types, layers

# Types take as long as the rest: `make --jobs=2 check` takes half the time.
check-types: $(VENV)/dev
	$(BIN)/mypy

check-rest: $(VENV)/dev frontend/node_modules/made
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/lint-imports
	$(NPM) run check

bench: $(VENV)/bench  ## measure against the peers, write docs/benchmarks.md
	$(BIN)/python benchmarks/bench.py all --sizes $(BENCH_SIZES) --events $(BENCH_EVENTS)
	$(BIN)/python benchmarks/replay.py $(wildcard $(SELFTIME_TRACES)/*.json.gz)
	$(if $(AGREEING),$(BIN)/python benchmarks/plugin/agreement.py --plugin $(PLUGIN) $(AGREEING))

peers: $(VENV)/bench  ## make an environment for each peer that bench compares with
	$(BIN)/python benchmarks/peers/environments.py

corpus: $(VENV)/dev  ## hold the advice against programs with planted bottlenecks and their repaired twins
	$(BIN)/python corpus/run.py $(CORPUS_ARGS)

docs: $(VENV)/dev  ## write the reference, build the documents as a site in build/site, check them
	$(BIN)/python scripts/reference.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict
	$(BIN)/python -m pytest tests/test_docs.py tests/test_architecture.py

# It is no part of `check`: what it finds depends on what became known, not on what changed here.
audit: $(VENV)/audit frontend/node_modules/made  ## ask whether a package that is installed has a known fault
	$(BIN)/python scripts/audit.py --lenient --pip-audit $(VENV)/audit/bin/pip-audit \
		--packages "$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')"

fuzz: $(VENV)/fuzz  ## damage traces, send hostile ones, and fuzz what reads them, for FUZZ_SECONDS (fuzz/campaign.py)
	$(BIN)/python fuzz/campaign.py --seconds $(FUZZ_SECONDS)
	$(BIN)/python -m pytest -n auto -m hypothesis --hypothesis-profile=thorough

clean:  ## remove the virtual environment and what tools left behind
	rm -rf $(VENV) build dist src/selftime/reports/static frontend/node_modules fuzz/corpus fuzz/found .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

# pip of an old Python does not know dependency groups, hence the upgrade.
$(VENV)/made:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "selftime needs Python 3.10 or newer")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	touch $@

# torch comes first and alone, so that nothing else decides which build of it is taken.
$(VENV)/torch: $(VENV)/made Makefile
	$(BIN)/python -m pip install --quiet --no-compile $(TORCH)
	touch $@

# The package itself and what the demo's program needs. The install builds the page, so it is made anew
# when a source of the page changed.
$(VENV)/demo: $(VENV)/torch pyproject.toml $(PAGE)
	$(BIN)/python -m pip install --quiet --no-compile --group demo -e .
	touch $@

# Compiled by every core afterwards: pip has only one. Files for other Pythons fail, as with pip. A third of
# the packages is never imported here, or a few files of it: Python compiles those when they are.
$(VENV)/tools: $(VENV)/torch pyproject.toml | $(VENV)/demo
	$(BIN)/python -m pip install --quiet --no-compile --group dev
	-@$(BIN)/python -m compileall -qq -j 0 -x '/(tests|moto|rllib|transformers/models)/' $(VENV)/lib
	touch $@

$(VENV)/dev: $(VENV)/demo $(VENV)/tools
	touch $@

# What checks the page's types. The stamp goes when the install above makes the folder anew.
frontend/node_modules/made: $(VENV)/dev
	$(NPM) ci --ignore-scripts --prefer-offline
	touch $@

# atheris brings libFuzzer in its wheels, for Linux.
$(VENV)/fuzz: $(VENV)/dev
	$(BIN)/python -m pip install --quiet --group fuzz
	touch $@

$(VENV)/bench: $(VENV)/dev
	$(BIN)/python -m pip install --quiet --group bench
	touch $@

# pip-audit in an environment of its own: what it needs itself is no part of the project.
$(VENV)/audit: $(VENV)/made
	$(PYTHON) -m venv $@
	$@/bin/python -m pip install --quiet "pip-audit>=2.9" || { rm -rf $@; exit 1; }
