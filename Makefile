# Two commands set everything up: `make demo` and `make test`. Each makes its own .venv on a machine that
# has make and Python 3.11 or newer.

PYTHON ?= python3
VENV ?= .venv
OUT ?= out/demo
# The PyTorch to install; with a GPU, another build: make test TORCH='torch --index-url https://...'
TORCH ?= torch==2.13.0

PIP = $(VENV)/bin/python -m pip --disable-pip-version-check --quiet

.PHONY: demo test lint bench clean

demo: $(VENV)/.made
	$(VENV)/bin/flopwitness demo --out $(OUT)

test: $(VENV)/.made-dev
	$(VENV)/bin/python -m pytest

lint: $(VENV)/.made-dev
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/ruff check .
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports

# Speeds as ratios to named peers in one run; a peer that is not installed is said to be missing.
bench: $(VENV)/.made-dev
	$(PIP) install pandas prometheus_client
	for file in benchmarks/*.py; do echo "== $$file"; $(VENV)/bin/python $$file || exit 1; done

$(VENV)/.made: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("flopwitness needs Python 3.11 or newer, this is %d.%d" % sys.version_info[:2] if sys.version_info < (3, 11) else 0)'
	test -x $(VENV)/bin/python || $(PYTHON) -m venv $(VENV)
	$(PIP) install --upgrade pip
	$(PIP) install --editable .
	touch $@

$(VENV)/.made-dev: $(VENV)/.made
	$(PIP) install $(TORCH)
	$(PIP) install --editable '.[dev,torch]'
	touch $@

clean:
	rm -rf $(VENV) out build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
