# Everything a newcomer needs: `make demo`, `make test`. Needs Python 3.11+, a C compiler and make; Java 17+
# is used when there, fetched when not. Everything fetched lands in one cache folder; with it warm, nothing
# here touches the network, from a fresh clone either.

PYTHON ?= python3
VENV   ?= .venv
CACHE  ?= $(or $(THL_CACHE),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/thl)
# How long `make fuzz` goes on; how many processes `make faults` kills at least; what else to hand to pytest, the demo
# or the soak.
FUZZ_SECONDS ?= 600
KILLS  ?= 60
HOURS  ?= 1
# How many scenarios `make model` runs, all troubles together.
EXAMPLES ?= 1000000
ARGS   ?=

BIN     := $(VENV)/bin
SOURCES := connector spark_apps tests setup.py
PREPARE := $(PYTHON) -m tests.tools.prepare
export THL_CACHE := $(CACHE)
export VENV
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Some environments set it, as images of Python do: then each of hundreds of processes would compile every module again.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help venv build fetch test test-all mutants check unit model demo bench bench-peers figures sinks faults soak fuzz wheel pins clean
.DEFAULT_GOAL := help

help: ## What there is
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 20

# Everything that is needed is prepared side by side (tests/tools/prepare.py). Each file that is fetched must have a recorded
# hash; with a warm cache no network is used, from a fresh clone either.
venv: ## The virtual environment, with the exact versions of constraints.txt
	@$(PREPARE) venv

build: ## The compiled modules, in place
	@$(PREPARE) build

fetch: ## The servers and jars that tests need, into the cache
	@$(PREPARE) fetch

# Four processes with servers of their own, for tests wait half of their time; those that take longest stand first. What
# failed is run once more, alone, to tell what is broken from what is a race; either fails (tests/races.py).
test: check fetch ## What CI runs: the checks, then every test that is not long (25 minutes on two quiet cores)
	$(BIN)/python -m pytest -m 'not long' -n 4 --dist loadfile --no-loadscope-reorder --cache-clear --durations=20 $(ARGS) || \
		{ test $$? -eq 1 && $(BIN)/python -m tests.races $(ARGS); }

test-all: test ## Everything: the long tests, damaged logs and messages, more of the model
	$(BIN)/python -m pytest -m long -n 3 --dist loadfile --durations=20 $(ARGS)
	$(BIN)/python -m tests.unit.log.model.scenarios --scenarios 20000
	$(MAKE) fuzz FUZZ_SECONDS=120

mutants: fetch ## Puts faults into the code one by one: each must make a test fail (an hour; ARGS='--no-servers')
	$(BIN)/python -m tests.mutants $(ARGS)

unit: build ## The tests that need no server
	$(BIN)/python -m pytest -m 'not servers and not faults' $(ARGS)

# Others each time, where `make test` tells the same 2,000.
model: build ## The protocol's model for long, on all cores (EXAMPLES=1000000: hours; 10000: a minute)
	$(BIN)/python -m tests.unit.log.model.scenarios --scenarios $(EXAMPLES) $(ARGS)

check: build ## Style and types
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/mypy

demo: ## The main job on real servers: load, kill, compare
	@$(PREPARE) demo
	@$(BIN)/thl demo $(ARGS)

bench: fetch ## Rates, latencies, memory: three repeats, checked, as JSON into bench-results (20 minutes)
	$(BIN)/python -m tests.bench $(ARGS)

figures: build ## bench-results as tables into docs/performance.md and as plots into docs/img
	$(BIN)/python -m tests.bench.render $(ARGS)

bench-peers: fetch ## What others reach beside ours in the same run (15 minutes)
	$(BIN)/python -m tests.bench.peers $(ARGS)

sinks: fetch ## Debezium's JDBC sink fed by rows.py, on Kafka Connect; fetches both the first time (4 minutes)
	$(BIN)/python -m pytest tests/sinks/*.py $(ARGS)

# Locally with one partition on both targets; on a Spark cluster of this machine with three, on PostgreSQL.
faults: fetch ## The broker's network and the clocks; then kill things, many times, locally and on a cluster (KILLS=60 each)
	$(BIN)/python -m pytest -m 'long and faults'
	$(BIN)/python -m tests.faults.soak --kills $(KILLS) $(ARGS)
	$(BIN)/python -m tests.faults.soak --kills $(KILLS) --cluster --partitions 3 --target postgres $(ARGS)

# Reads memory, descriptors, threads and files all the time: what grows by the ten minutes is flagged, and fails.
soak: fetch ## Load, DDL, kills, cuts, failovers, loads for HOURS=1; is all equal, does anything grow (ARGS='--trouble-every 0')
	$(BIN)/python -m tests.faults.endurance --hours $(HOURS) $(ARGS)

fuzz: build ## Damaged binary logs, then wrong messages and relays, through all readers (FUZZ_SECONDS=600 each); fetches a fuzzer
	@$(BIN)/python -c 'import atheris' 2>/dev/null || $(BIN)/python -m pip install -q --no-deps atheris==3.0.0
	$(BIN)/python -m tests.fuzz --seconds $(FUZZ_SECONDS) $(ARGS)
	$(BIN)/python -m tests.fuzz.log --seconds $(FUZZ_SECONDS)

wheel: build ## The wheel into dist/, tried in an empty environment; fetches auditwheel the first time
	@$(BIN)/python -m tests.tools.package

pins: build ## What is installed now into constraints.txt, and the checksums of all that is fetched: look at the difference
	$(BIN)/python -m pip freeze --all --exclude-editable > constraints.txt
	$(BIN)/python -m tests.tools.pins

clean: ## What was built; the cache stays
	rm -rf build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis $(VENV)/.built
	find connector \( -name '*.so' -o -name '*.c' \) -delete
	find $(SOURCES) -name __pycache__ -prune -exec rm -rf {} +
