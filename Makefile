# Every target shares one set-up: it runs once, and again only when the lock, the project or the set-up itself changes.
# Setting up ends by writing .venv/env, which puts the environment's programs first on PATH and names the Java to use.

ENV := .venv/env
RUN := . ./$(ENV) &&

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-all check bench reproduce reproduction lock clean

help: ## say what there is
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | while IFS="$$(printf '\t')" read -r name what; do \
		printf '  make %-12s %s\n' "$$name" "$$what"; done

setup: $(ENV) ## make .venv from requirements.lock and find Java; every other target does so by itself

$(ENV): requirements.lock pyproject.toml scripts/setup
	@bash scripts/setup

demo: $(ENV) ## see a bounded join at work
	@$(RUN) tidegate demo

test: $(ENV) ## the fast tests and the examples in docstrings, README and docs
	@$(RUN) pytest -m "not slow" --numprocesses 2

test-all: $(ENV) ## every test
	@$(RUN) pytest

check: $(ENV) ## lint, format, types, layers, and the examples in README and docs
	@$(RUN) ruff check
	@$(RUN) ruff format --check
	@$(RUN) mypy
	@$(RUN) lint-imports --no-logo
	@$(RUN) pytest -q tests/test_docs.py

bench: $(ENV) ## measure, beside peers
	@$(RUN) tidegate bench core

reproduce: $(ENV) ## the figures and tables of the papers, with fewer runs than there
	@$(RUN) tidegate reproduce --all --quick

# With DATA=FOLDER also what needs recorded streams.
reproduction: $(ENV) ## docs/reproduction.md, from a run as long as in the papers: hours
	@$(RUN) tidegate reproduce --all --docs docs/reproduction.md $(if $(DATA),--data $(DATA))

lock: $(ENV) ## make requirements.lock anew; what need not change keeps its version
	@bash scripts/lock

clean: ## back to a fresh clone
	rm -rf .venv .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache build dist spark-warehouse tidegate-demo tidegate-reproduced
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
