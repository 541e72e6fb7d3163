# The commands of a contributor and of CI. Each sets up its own .venv when there is none, from
# nothing but Python >= 3.11, make and the package index. `make check` is the whole gate.
.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/ready
# More than there are cores: most tests wait half of their time, for leases and other processes.
TEST_JOBS ?= $(shell expr 2 \* $$(getconf _NPROCESSORS_ONLN))
# Each commit takes another sample of the mutants.
TURN ?= $(shell git rev-list --count HEAD 2>/dev/null || echo 0)

.PHONY: help install spark demo demo-spark test test-twice proof fuzz sim sim-log sim-sessions sim-jobs scale mutants check lint format types contracts proto docs site lock bench clean

help: ## list the commands
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 22

$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "DSS needs Python 3.11 or newer; pass PYTHON=/path/to/python3.11")'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing the locked dependencies into $(VENV) ..." >&2
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $(READY)

install: $(READY) ## make .venv with everything in it
	@echo "next: . $(BIN)/activate && dssd serve --dev; README.md goes on from there, or: make demo" >&2

spark: $(VENV)/ready-spark ## add PySpark to .venv, for bulk jobs on Spark; it needs Java 17

$(VENV)/ready-spark: $(READY) requirements-spark.lock
	@echo "installing PySpark into $(VENV) ..." >&2
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-spark.lock
	@touch $@

demo: $(READY) ## 336,776 flights to three consumers; one of them is killed, then the daemon
	@$(BIN)/python scripts/demo.py

demo-spark: spark ## the flights through Spark: in, through a function, out as Parquet; a driver is killed
	@$(BIN)/python scripts/demo_spark.py

test: $(READY) ## run the tests on all cores, with a sample of each kind of proof: five minutes
	$(BIN)/python -m pytest --jobs $(TEST_JOBS)

test-twice: $(READY) ## what CI does: run the tests, and the few that failed once more, each alone
	@$(BIN)/python scripts/test_twice.py --jobs $(TEST_JOBS)

proof: $(READY) ## run the whole proof, or go on with it: hours, with a report (ONLY=KIND: one kind)
	@$(BIN)/python -m dss_sim.proof $(if $(ONLY),--only "$(ONLY)")

sim: $(READY) ## run N seeds of the simulator (10,000), or replay one: make sim SEED=7
	@$(BIN)/python -m dss_sim.groups $(if $(SEED),--seed $(SEED),--seeds $(or $(N),10000))

sim-log: $(READY) ## run N seeds of the log on a simulated disk (2,000), or replay one: make sim-log SEED=7
	@$(BIN)/python -m dss_sim.log $(if $(SEED),--seed $(SEED),--seeds $(or $(N),2000))

sim-jobs: $(READY) ## run N seeds of a bulk job whose daemon dies (400), or replay one: make sim-jobs SEED=7
	@$(BIN)/python -m dss_sim.jobs $(if $(SEED),--seed $(SEED),--seeds $(or $(N),400))

sim-sessions: $(READY) ## run N seeds of the real sessions on virtual time (3,000), or replay one: make sim-sessions SEED=7
	@$(BIN)/python -m dss_sim.sessions $(if $(SEED),--seed $(SEED),--seeds $(or $(N),3000))

fuzz: $(READY) ## put drawn inputs through every parser of what others write, SECONDS each (10), or through one: PARSER=NAME SEED=7
	@$(BIN)/python -m dss_sim.fuzz $(if $(SECONDS),--seconds $(SECONDS)) $(if $(SEED),--seed $(SEED)) $(if $(PARSER),--parser "$(PARSER)") $(if $(INPUTS),--inputs $(INPUTS))

scale: $(READY) ## one large world: 10,000 borrowers, 1,000 faults (or make scale FACTOR=0.1), and what steps cost
	@$(BIN)/python -m dss_sim.scale --factor $(or $(FACTOR),1)

mutants: $(READY) ## put each seeded bug into a copy of the daemon, and see which seed finds it (SAMPLE=8: some, by turns)
	@$(BIN)/python -m dss_sim.mutants $(if $(SAMPLE),--sample $(SAMPLE) --turn $(TURN))

lint: $(READY)
	$(BIN)/ruff check . && $(BIN)/ruff format --check .

format: $(READY) ## format the code and mend what can be mended
	$(BIN)/ruff check --fix . && $(BIN)/ruff format .

types: $(READY)
	$(BIN)/mypy && $(BIN)/mypy tests scripts bench

contracts: $(READY)
	$(BIN)/lint-imports

check: lint types contracts test ## the whole gate: lint, strict types, import contracts, tests

proto: $(READY) ## regenerate the gRPC stubs
	$(BIN)/python scripts/gen_proto.py

docs: $(READY) ## write completions, help, manual pages and the synchronous client's twins anew
	$(BIN)/python scripts/gen_completions.py
	$(BIN)/python scripts/gen_help.py
	$(BIN)/python scripts/gen_manuals.py
	$(BIN)/python scripts/gen_schemas.py
	$(BIN)/python scripts/gen_golden.py
	$(BIN)/python scripts/gen_sync.py

site: $(VENV)/ready-site ## the pages of docs/ as a small site, in .cache/site
	@$(BIN)/zensical build --clean --strict --config-file zensical.toml

$(VENV)/ready-site: $(READY) requirements-site.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-site.lock
	@touch $@

bench: $(READY) ## measure against the targets, with baselines, into bench/results.json
	$(BIN)/python bench/run.py

lock: ## resolve pyproject.toml into requirements.lock anew
	$(PYTHON) -m venv .cache/lock && .cache/lock/bin/pip install --quiet uv
	.cache/lock/bin/uv pip compile pyproject.toml --group dev --generate-hashes --universal \
	    --python-version 3.11 --no-emit-index-url --no-annotate --no-header --quiet -o requirements.lock
	printf 'pyspark==%s\n' "$$(sed -n 's/^spark = \["pyspark==\([^"]*\)"\].*/\1/p' pyproject.toml)" | \
	    .cache/lock/bin/uv pip compile - --constraint requirements.lock --generate-hashes --universal \
	    --python-version 3.11 --no-emit-index-url --no-annotate --no-header --quiet -o requirements-spark.lock
	.cache/lock/bin/uv pip compile --group site --constraint requirements.lock --generate-hashes --universal \
	    --python-version 3.11 --no-emit-index-url --no-annotate --no-header --quiet -o requirements-site.lock
	sed -i '1i # Every dependency with its hashes, for `pip install --require-hashes`. Made by `make lock` from pyproject.toml.' requirements.lock
	sed -i '1i # PySpark on top of requirements.lock, for `make spark`. Made by `make lock` from pyproject.toml.' requirements-spark.lock
	sed -i '1i # Zensical on top of requirements.lock, for `make site`. Made by `make lock` from pyproject.toml.' requirements-site.lock

clean: ## remove .venv and caches
	rm -rf $(VENV) .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis
