# Everything runs in .venv, which is made from nothing: python3 >= 3.11 and make are all that is needed.
PYTHON ?= python3
BIN := .venv/bin
INSTALL := $(BIN)/python -m pip install -qq --disable-pip-version-check -c constraints.txt
PAGES := README.md CONTRIBUTING.md CHANGELOG.md SECURITY.md docs/*.md docs/*/*.md docs/*/*/*.md

.PHONY: help serve demo reproduce test soak check package matrix format bench validate docs reference pictures clean

help:
	@echo "make reproduce run the paper's experiments into reproduction/"
	@echo "make test      run the tests"
	@echo "make serve     start the decision service with a made-up shop, http://127.0.0.1:8000, and keep its data"
	@echo "make demo      the same without a trace: its data are deleted when it stops"
	@echo "make soak      run the service for hours under load, killed again and again, and watch its memory"
	@echo "make check     ruff, mypy, import-linter, mdformat and the docs build"
	@echo "make package   build the wheel and the sdist, check them, and try them without extras on this Python"
	@echo "make matrix    the same on every supported Python, with the lowest and the newest dependencies"
	@echo "make format    lay out the code and the pages as make check wants them"
	@echo "make bench     print the speed as ratios, and write the table and the chart of docs/results/performance.md"
	@echo "make validate  print errors and calibration beside their targets, and write the table of docs/results/validation.md"
	@echo "make docs      build the documentation into docs/_build/html"
	@echo "make reference write docs/reference/cli.md from the command's help, and http.md from the OpenAPI document"
	@echo "make pictures  draw the pictures of the README and the docs again"
	@echo "make clean     remove .venv and everything that was built"

serve: .venv/.serve
	@$(BIN)/bough serve --data data/demo --demo

demo: .venv/.serve
	@data=$$(mktemp -d); trap 'rm -rf "$$data"' EXIT; trap : INT TERM; $(BIN)/bough serve --data "$$data" --demo

reproduce: .venv/.reproduce
	@$(BIN)/bough reproduce

test: .venv/.test
	@$(BIN)/python -m pytest

soak: .venv/.test
	@$(BIN)/python -m pytest -c soak/pytest.ini soak

check: .venv/.check
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/mypy --no-error-summary
	@found=$$($(BIN)/lint-imports --no-logo 2>&1) || { echo "$$found"; exit 1; }
	@$(BIN)/mdformat --check $(PAGES)
	@$(BIN)/sphinx-build -W --keep-going -q -b html docs docs/_build/html
	@echo "check: all clean"

package: .venv/.package
	@$(BIN)/nox -s build "clean-$$($(BIN)/python -c 'import sys; print(*sys.version_info[:2], sep=".")')(dependencies='newest')"

matrix: .venv/.package
	@$(BIN)/nox -s build clean

bench: .venv/.bench
	@OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1 $(BIN)/python -m pytest -c benchmarks/pytest.ini benchmarks --table docs/results/performance-table.md
	@$(BIN)/python docs/pictures.py performance

validate: .venv/.validate
	@OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1 $(BIN)/python -m pytest -c validation/pytest.ini validation --table docs/results/validation-table.md
	@$(BIN)/python tests/support/file_fuzz.py 10000

format: .venv/.check
	@$(BIN)/ruff format --quiet .
	@$(BIN)/mdformat $(PAGES)

docs: .venv/.check
	@$(BIN)/sphinx-build -W --keep-going -q -b html docs docs/_build/html
	@echo "open docs/_build/html/index.html"

reference: .venv/.test
	@$(BIN)/python -c 'from bough.cli.parser import reference; print(reference(), end="")' > docs/reference/cli.md
	@$(BIN)/python docs/http_reference.py

pictures: .venv/.test
	@$(BIN)/python docs/pictures.py

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "bough needs python3 >= 3.11; name one with make PYTHON=...")'
	@$(PYTHON) -m venv .venv

# One stamp for each set of extras, made anew when the dependencies change.
.venv/.%: pyproject.toml constraints.txt | .venv/bin/python
	@$(INSTALL) -e ".[$*]"
	@touch $@

clean:
	rm -rf .venv .nox docs/_build build dist
