# Every target works on a machine that has only Python >= 3.11, make and a package registry.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
unexport PYTHONDONTWRITEBYTECODE  # each worker would compile the tests and their libraries anew

.PHONY: demo test slow lint doctest docs wheel figures results check clean

demo: $(READY)  ## what works today, on real data
	$(BIN)/ruleout demo

test: $(READY)  ## the tests that run anywhere
	$(BIN)/python -m pytest -n 2 --dist loadfile

slow: $(READY)  ## larger counts; RULEOUT_COUNT scales them (CI: 0.3)
	$(BIN)/python -m pytest -n 2 --dist loadfile -m slow

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

doctest: $(READY)
	$(BIN)/python -m pytest --doctest-modules --doctest-glob='*.md' --ignore-glob="src/ruleout/training/gpu_*.py" src README.md CONTRIBUTING.md docs

docs: $(READY)
	$(BIN)/sphinx-build -W --keep-going -q -b html docs docs/_build/html
	$(BIN)/python docs/widths.py docs/_build/html
	@echo "docs: docs/_build/html/index.html"

wheel: $(READY)  ## build the wheel and try it away from the source tree
	rm -rf dist && $(BIN)/python -m build --wheel --outdir dist .
	$(BIN)/python -m pip install --quiet --force-reinstall --no-deps dist/*.whl
	cd dist && ../$(BIN)/python -m pytest -q -p no:cacheprovider -c ../pyproject.toml --rootdir .. ../tests/test_wheel.py
	$(BIN)/python -m pip install --quiet --no-deps -e .

figures: $(READY)  ## the pictures in README and docs
	$(BIN)/ruleout demo --figure docs/_static/demo.png
	$(BIN)/python docs/growth.py
	$(BIN)/python docs/pictures.py

results: $(READY)  ## results/, docs/reproduction.md and docs/which.md, from the ledgers there
	$(BIN)/python docs/reproduction.py
	$(BIN)/python docs/which.py

check: test slow lint doctest docs wheel  ## all that CI runs

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "ruleout needs Python 3.11 or newer: make PYTHON=python3.11")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev,plot]'
	touch $@

clean:
	rm -rf .venv dist docs/_build
