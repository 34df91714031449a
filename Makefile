PYTHON ?= python3
BIN := .venv/bin

.PHONY: setup demo test lint clean

.venv/.core: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet -c constraints.txt -e .
	touch $@

.venv/.dev: .venv/.core
	$(BIN)/pip install --quiet -c constraints.txt -e '.[dev,onnx,parquet,huggingface]'
	touch $@

setup: .venv/.dev

demo: .venv/.core
	$(BIN)/unweave demo --out demo

test: .venv/.dev
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest

lint: .venv/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

clean:
	rm -rf .venv demo runs
