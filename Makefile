# Each target works from a fresh clone: it makes .venv and installs what it needs, once.

PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install -qq --disable-pip-version-check

.PHONY: help demo test test-slow fuzz lint bench benchopt experiments examples format clean

help:
	@echo "make demo        train on a generated problem of the size of RCV1; draws demo.png"
	@echo "make test        tests and doctests"
	@echo "make test-slow   the tests marked slow"
	@echo "make fuzz        the readers of text, caches and models, on files changed at random, for ten minutes"
	@echo "make lint        ruff, mypy --strict, the import rules"
	@echo "make bench       measure against other libraries; writes docs/benchmarks.md"
	@echo "make benchopt    the same contestants under benchopt: curves, in benchmarks/linear_svm/outputs"
	@echo "make experiments measure what the papers claim; writes docs/results; up to 100 minutes, goes on where it was stopped"
	@echo "make examples    run the examples; their pictures are in examples/output"
	@echo "make format      let ruff rewrite the sources"
	@echo "make clean       remove .venv, caches and demo.png"

demo: .venv/.plot
	$(BIN)/primalsvm demo

# Two workers: the kernels that several test files share are compiled twice in the worst case, and it still pays.
test: .venv/.test
	$(BIN)/pytest -n 2 --dist loadfile -m "not slow" src tests

test-slow: .venv/.test
	$(BIN)/pytest -m slow tests

# Where a compiled kernel reads beyond an array, NUMBA_BOUNDSCHECK tells; such kernels are kept apart from the fast ones.
fuzz: .venv/.test
	$(BIN)/python -m tests.sources.fuzz 300
	NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=.venv/checked-kernels $(BIN)/python -m tests.sources.fuzz_caches 150
	NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=.venv/checked-kernels $(BIN)/python -m tests.estimators.fuzz_models 150

lint: .venv/.lint
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: .venv/.bench
	$(BIN)/python -m benchmarks.run

# No cache: benchopt would take results as known as long as its own small files, not what they wrap, are unchanged.
benchopt: .venv/.benchopt
	$(BIN)/benchopt run benchmarks/linear_svm -d simulated $(if $(PRIMALSVM_DATA),-d a9a -d arxiv) --timeout 60 --no-cache --no-display

experiments: .venv/.experiments
	$(BIN)/python -m experiments.run

# Each says what it finds; the real data are used where PRIMALSVM_DATA names a folder that holds them.
examples: .venv/.examples
	for example in $(filter-out %/common.py %/data.py,$(wildcard examples/*.py)); do \
		printf "\n== %s\n" $$example; $(BIN)/python $$example || exit 1; \
	done

format: .venv/.lint
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf .venv build dist demo.png examples/output .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find src tests benchmarks experiments examples -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "primalsvm needs Python 3.11 or newer: make PYTHON=/path/to/python3 …" >&2; exit 1; }
	$(PYTHON) -m venv .venv

# .venv/.NAME says that the extra NAME of pyproject.toml is installed.
.venv/.%: pyproject.toml | $(BIN)/python
	$(PIP) --editable ".[$*]"
	@touch $@
