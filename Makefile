# All targets share one environment. It is created once, and again when the lock, the project or the script changes.
# The script writes .venv/env, which puts the environment's programs first on PATH and sets JAVA_HOME.

ENV := .venv/env
RUN := . ./$(ENV) &&

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-fresh test-all check bench reproduce reproduction picture graph lines lock clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | while IFS="$$(printf '\t')" read -r name what; do \
		printf '  make %-12s %s\n' "$$name" "$$what"; done

setup: $(ENV) ## create .venv from requirements.lock and find Java; every other target does this first

$(ENV): requirements.lock pyproject.toml scripts/setup
	@bash scripts/setup

demo: ## run a bounded join on local Spark: ./demo
	@./demo

test: ## run the fast tests and the examples in docstrings, README and docs: ./test
	@./test

test-fresh: ## run ./demo and ./test in new Debian systems; needs root and debootstrap
	@bash scripts/test-fresh

test-all: $(ENV) ## run all tests
	@$(RUN) pytest

check: $(ENV) ## check lint, format, types and layers
	@$(RUN) ruff check
	@$(RUN) ruff format --check
	@$(RUN) mypy
	@$(RUN) lint-imports --no-logo

bench: $(ENV) ## compare the core with other libraries
	@$(RUN) tidegate bench core

reproduce: $(ENV) ## run the papers' experiments with fewer runs
	@$(RUN) tidegate reproduce --all --quick

# DATA=FOLDER also runs experiments that need recorded streams.
reproduction: $(ENV) ## write docs/reproduction.md with as many runs as the papers: hours
	@$(RUN) tidegate reproduce --all --docs docs/reproduction.md $(if $(DATA),--data $(DATA))

picture: ## run the demo and keep its picture as docs/demo.svg
	@./demo
	@cp tidegate-demo/picture.svg docs/demo.svg

graph: $(ENV) ## draw docs/import-graph.svg: which folder imports which
	@$(RUN) python scripts/import_graph.py

lines: $(ENV) ## count the lines of code of each folder
	@$(RUN) python scripts/code_lines.py

lock: $(ENV) ## update requirements.lock; versions change only if they must
	@bash scripts/lock

clean: ## delete everything that a fresh clone does not have
	rm -rf .venv .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache build dist spark-warehouse tidegate-demo tidegate-reproduced
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
