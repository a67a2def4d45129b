# `make` alone lists what there is. Everything runs from .venv, which `make setup` makes.
SHELL := /bin/bash
MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := help
.PHONY: help setup demo serve test test-long lint format protos stubs release lock bench

bin := .venv/bin
# bench/NAME.py, in this order; each prints its figures.
benches := edge_overhead measure calls memory hostile quality parsing growth dispatch edges health pool_scale overload simulate store
# As many at once as there are processors, and no more than have memory for the models; a file's tests stay together.
side_by_side := -n logical --maxprocesses 4 --dist loadfile --no-loadscope-reorder

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | awk -F'\t' '{printf "make %-10s %s\n", $$1, $$2}'

setup: ## system libraries, .venv with pinned packages, model files; a second run takes seconds
	@scripts/setup.sh

demo: setup ## two workers and an edge: one photo through every call, every bad input, workers killed and back
	@$(bin)/hairmesh demo

serve: setup ## the same two workers and edge, until interrupted
	@$(bin)/hairmesh serve

lint: setup ## ruff, formatting, strict types, protos and what they promised
	$(bin)/ruff check
	$(bin)/ruff format --check
	$(bin)/mypy
	$(bin)/buf lint
	scripts/gen_protos.sh --check
	scripts/breaking.sh

test: lint ## lint and all tests but the long ones
	$(bin)/pytest $(side_by_side) -m "not long"

test-long: test ## the same and the tests that take minutes
	$(bin)/pytest -m long

format: setup ## formats the code and fixes what ruff can fix
	$(bin)/ruff format
	$(bin)/ruff check --fix

protos: setup ## generates protos/python and protos/typescript from protos/hair
	@scripts/gen_protos.sh

stubs: setup ## builds what other teams take into dist: wheel, npm package, descriptor set
	@scripts/stubs.sh

release: setup ## builds what is released of the last commit into dist, the same bytes each time
	@scripts/release.sh

lock: setup ## pins requirements.lock anew from pyproject.toml
	@scripts/lock.sh

bench: setup ## every figure in turn (needs an otherwise idle machine)
	@set -e; for name in $(benches); do echo "== bench/$$name.py"; $(bin)/python bench/$$name.py; done
