# Each target works on a fresh clone: it sets up what it needs in .venv, then runs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
RUNNABLE := $(VENV)/.runnable
STAMP := $(VENV)/.installed
PROGRAMS := $(VENV)/.programs
PROOF := $(VENV)/.proof
DOTNET := .dotnet-test
WINDOWS := .windows-test
# Only files whose hashes are in requirements/, and no build of anything but this program, by a locked backend.
INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --only-binary :all:
INSTALL_OURSELVES = $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps --editable .
# More workers than cores of a small machine: the slow tests wait for processes, not for the CPU.
PYTEST_WORKERS ?= 4
# Some machines forbid .pyc files; then each worker, and each program that tests start, would compile everything anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup lock test .tests test-dotnet test-clients test-windows lint screenshots conformance bench chaos fuzz soak coverage release-check demo clean

help:  ## what can be done here
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 15

# The program and what it depends on: enough for the demo, which is the first thing that people try.
$(RUNNABLE): pyproject.toml requirements/run.txt requirements/build.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "uno-devserver needs Python 3.11 or newer; run: make PYTHON=/path/to/python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) -r requirements/run.txt -r requirements/build.txt
	$(INSTALL_OURSELVES)
	@touch $@

$(STAMP): $(RUNNABLE) requirements/dev.txt
	$(INSTALL) -r requirements/dev.txt
	@touch $@

$(PROOF): $(STAMP) requirements/proof.txt
	$(INSTALL) -r requirements/proof.txt
	@touch $@

setup: $(STAMP)  ## create .venv with everything the other targets need

# The present lock may lack what pyproject.toml asks for; uv, which writes the next one, is in it.
lock: $(PROOF)  ## take the newest versions of all packages into requirements/
	$(BIN)/python tests/support/lock.py

# Side by side: tests wait for processes most of the time, and mypy uses what they leave idle.
test: $(PROGRAMS)  ## lint, and every test
	$(MAKE) --jobs 2 lint .tests

# Compiled first: otherwise each worker would compile all tests. What fails there fails in the run, too.
.tests: $(STAMP)
	-@$(BIN)/python -m pytest --collect-only -qq >/dev/null
	$(BIN)/python -m pytest -n $(PYTEST_WORKERS) --dist worksteal -rsfE

$(PROGRAMS): tests/support/programs.py | $(STAMP)
	$(BIN)/python tests/support/programs.py
	@touch $@

# Not part of `test`: it downloads an SDK. The variable says where that is; without it the tests are not collected.
test-dotnet: $(DOTNET)/.installed  ## files, pipes, frames and MSBuild against real .NET (downloads 120 MB, once)
	UNO_TEST_DOTNET=$(abspath $(DOTNET)) $(BIN)/python -m pytest -n $(PYTEST_WORKERS) tests/dotnet

$(DOTNET)/.installed: tests/dotnet/install.py | $(STAMP)
	$(BIN)/python tests/dotnet/install.py $(DOTNET)
	@touch $@

# Not part of `test`: 2 GB of clients. `test` replays what they were seen to send, and to print.
test-clients: $(STAMP)  ## register with eight real AI clients, and let them connect to the proxy (takes 2 GB, once)
	$(BIN)/python tests/clients/run.py

# Not part of `test`: it makes a Debian with Wine in a folder, of 4 GB. ARGS: some tests only, by pytest's arguments.
test-windows: $(WINDOWS)/.installed  ## tests, every command and the speed on Windows, by Wine (root on Debian; downloads 900 MB, once)
	$(BIN)/python tests/windows/run.py $(WINDOWS) $(ARGS)

$(WINDOWS)/.installed: tests/windows/install.py tests/windows/python.c tests/windows/python.txt requirements/dev.txt requirements/run.txt | $(STAMP)
	$(BIN)/python tests/windows/install.py $(WINDOWS)
	@touch $@

lint: $(STAMP)  ## ruff, mypy --strict, and the layer rule
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

screenshots: $(STAMP) $(PROGRAMS)  ## the pictures of the documents, and the recording of the demo (INTO=folder: of each view of the inspector page)
	$(BIN)/python tests/browser/screenshots.py $(INTO)
	$(if $(INTO),,$(BIN)/python tests/documents/demo_recording.py)

conformance: $(STAMP)  ## run the public MCP conformance suite against the Host (also part of test)
	$(BIN)/python tests/conformance/run.py

bench: $(STAMP) $(PROGRAMS)  ## measure everything, and other MCP proxies beside ours (downloads them, once; SAVE=--save: into the documents)
	$(BIN)/python -m benchmarks $(SAVE)

chaos: $(STAMP)  ## break everything on purpose, for half an hour (ARGS='--seed 7 --minutes 5')
	$(BIN)/python tests/chaos/run.py $(SAVE) $(ARGS)

fuzz: $(PROOF)  ## two million hostile inputs to all parsers (ARGS='--target xml --seconds 60')
	$(BIN)/python tests/fuzz/run.py $(SAVE) $(ARGS)

soak: $(STAMP)  ## an hour of calls, edits and restarts: nothing may grow (ARGS='--minutes 20 --seed 4')
	$(BIN)/python tests/soak/run.py $(SAVE) $(ARGS)

coverage: $(PROOF) $(PROGRAMS)  ## every test, with the branches that they take, also in the processes they start (ARGS='tests/msbuild': those of a part, unjudged)
	$(BIN)/python tests/support/coverage_run.py $(SAVE) $(ARGS)

release-check: $(PROOF)  ## build the wheel and try it in empty environments, with every Python that is here
	$(BIN)/python tests/release/run.py $(ARGS)

demo: $(RUNNABLE)  ## watch it work: discovery, an agent's session, a crash that heals, an edit, a registration
	@$(BIN)/uno-devserver demo

clean:  ## remove everything that was generated
	@[ ! -d $(WINDOWS) ] || rm -rf --one-file-system $(WINDOWS)  # what is mounted there is not ours to remove
	rm -rf $(VENV) $(DOTNET) .pytest_cache .mypy_cache .ruff_cache .hypothesis benchmarks/work dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
