# The one door. `make` alone prints what there is. Everything can be run twice; the second time is fast and needs no network.
# Variables: ARGS (arguments of demo and bench), PYTEST (arguments of pytest in test), PYTHON (the interpreter for .venv), SECONDS, TARGETS and SEED
# (of fuzz: how long each, and which; of soak and kills: how long in all, which families, and the seed of their draws).

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.SUFFIXES:
MAKEFLAGS += --no-builtin-rules
.DEFAULT_GOAL := help

PYTHON ?= python3
ARGS ?=
PYTEST ?=
SECONDS ?= 600
TARGETS ?=
SEED ?=

# rustup installs here and the shell that called make may not know it yet; mkfs is in sbin, which not every PATH has.
export CARGO_HOME ?= $(HOME)/.cargo
export PATH := $(CARGO_HOME)/bin:$(PATH):/usr/sbin:/sbin
export PYTHON
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_ROOT_USER_ACTION := ignore

VENV := $(CURDIR)/.venv
BIN := $(VENV)/bin
ONE_AT_A_TIME := flock .venv
TARGET := $(abspath $(or $(CARGO_TARGET_DIR),target))

NATIVE := python/fscost/_native.abi3.so
NATIVE_SOURCES := $(shell find crates/bindings crates/explain/src crates/explain/Cargo.toml crates/latency/src crates/latency/Cargo.toml crates/raid crates/recording crates/replay/src crates/replay/Cargo.toml crates/ssd/src crates/ssd/Cargo.toml crates/traces/src crates/traces/Cargo.toml crates/wear -name '*.rs' -o -name Cargo.toml)

# A copied, moved or half-made .venv (or one whose Python was upgraded away) is made again.
ifneq ($(shell $(BIN)/python -c 'import pip' 2>/dev/null && cat .venv/.made-for 2>/dev/null),$(VENV))
.PHONY: .venv/.made-for
endif

.PHONY: help
help: ## Print this
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' Makefile

.PHONY: setup
setup: $(NATIVE) binaries ## Install what is needed (packages as root, Rust, .venv), build; the program is then .venv/bin/fscost

.PHONY: demo
demo: setup ## Compare ext4, ext4 noatime, ext4 without journal, xfs and btrfs on reading a tree (needs root)
	@$(BIN)/fscost compare --workload read-all --repetitions 3 $(ARGS)

.PHONY: test
test: setup .venv/.dev-packages ## Run all tests, Rust's and then Python's (as root: without it those that mount are skipped)
	cargo test --workspace --exclude fscost-bindings --locked
	fuzz/run 3
	$(BIN)/python -m pytest --numprocesses 2 $(PYTEST)

.PHONY: fuzz
fuzz: system ## Explain damaged recordings until one breaks what must hold: SECONDS=600 for each of TARGETS="ext xfs btrfs others arrays strip recording dm_log_writes trace_FORMAT latency"
	@fuzz/run $(SECONDS) $(TARGETS)

.PHONY: soak
soak: setup ## Compare rows with what their writes held, on random file systems (needs root): SECONDS=3600 in all, TARGETS="ext xfs f2fs", SEED=…
	PYTHONPATH=. $(BIN)/python -m tests.oracles.soak $(SECONDS) $(or $(SEED),$(shell date +%s)) $(TARGETS)

.PHONY: kills
kills: setup ## Kill processes of runs in guests at random instants, count what each kill costs (needs root): SECONDS=3600, SEED=…
	PYTHONPATH=. $(BIN)/python -m tests.whole.kill_soak $(SECONDS) $(or $(SEED),$(shell date +%s))

.PHONY: check check-rust check-python check-repository
check: check-rust check-python check-repository ## Formats, lints, types, walls between the rooms, lock files; with -k all that is wrong, not the first

check-rust: system
	cargo fmt --version >/dev/null && cargo clippy --version >/dev/null || rustup component add rustfmt clippy
	cargo fmt --all -- --check
	cargo fmt --manifest-path fuzz/Cargo.toml -- --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	cargo fetch --quiet --locked --manifest-path fuzz/Cargo.toml
	cargo clippy --manifest-path fuzz/Cargo.toml --no-default-features --all-targets --locked --target-dir $(TARGET) -- -D warnings

check-python: .venv/.dev-packages $(NATIVE)
	$(BIN)/ruff format --check --quiet .
	$(BIN)/ruff check --quiet .
	$(BIN)/mypy
	MYPYPATH=python $(BIN)/stubtest --concise fscost._native
	PYTHONPATH=python $(BIN)/lint-imports --no-logo

check-repository: .venv/.dev-packages
	$(BIN)/pip --quiet check
	$(BIN)/python -m pytest --quiet tests/repo

.PHONY: bench
bench: setup .venv/.dev-packages ## Measure the overhead of recording, explanations, guests, wear, arrays and trace readers (needs root); one: ARGS='explain …', 'classify …', 'overhead …', 'report', 'vm …', 'wear …', 'raid' or 'traces …'
	cargo build --package fscost-explain --package fscost-device --examples --release --locked
	set -- $(ARGS); \
	if [[ $$# -gt 0 ]]; then $(BIN)/python benches/$$1.py "$${@:2}"; \
	else for each in overhead classify explain report vm wear raid traces; do $(BIN)/python benches/$$each.py; done; fi

.PHONY: fmt
fmt: setup .venv/.dev-packages ## Format the Rust and Python code and mend what the linter can mend safely
	cargo fmt --all
	cargo fmt --manifest-path fuzz/Cargo.toml
	$(BIN)/ruff check --fix-only --quiet .
	$(BIN)/ruff format .

PIN = $(BIN)/uv --quiet pip compile pyproject.toml --universal --generate-hashes $(if $(UPGRADE),--upgrade) \
	  --custom-compile-command 'make lock'

.PHONY: lock
lock: .venv/.dev-packages ## Bring the lock files up to the declared dependencies (UPGRADE=1: to the newest versions)
	cargo $(if $(UPGRADE),update,metadata --format-version 1 >/dev/null)
	cargo $(if $(UPGRADE),update,metadata --format-version 1 >/dev/null) --manifest-path fuzz/Cargo.toml
	$(PIN) --extra build --output-file requirements.lock
	$(PIN) --extra dev --constraint requirements.lock --output-file requirements-dev.lock
	$(PIN) --extra docs --constraint requirements-dev.lock --output-file requirements-docs.lock

.PHONY: docs
docs: setup .venv/.docs-packages ## Build the documentation as a site in target/site, with pages made of the program itself
	PATH=$(BIN):$$PATH NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs --quiet build --clean
	@echo target/site/index.html

TOOLS := $(TARGET)/tools

$(TOOLS)/bin/cargo-%: | system
	cargo install --quiet --locked --root $(TOOLS) cargo-$*@$(VERSION_$*) $(FEATURES_$*)

VERSION_deny := 0.20.2
VERSION_about := 0.9.3
FEATURES_about := --features cli

.PHONY: audit
audit: .venv/.dev-packages $(TOOLS)/bin/cargo-deny ## Look for known vulnerabilities, foreign sources and licences that do not fit (needs network)
	$(TOOLS)/bin/cargo-deny --locked check
	$(TOOLS)/bin/cargo-deny --locked --manifest-path fuzz/Cargo.toml --config deny.toml check
	for lock in requirements.lock requirements-dev.lock; do \
	  $(BIN)/uv --quiet tool run pip-audit@2.10.1 --strict --progress-spinner off --disable-pip --require-hashes --requirement $$lock; done

# maturin puts what lies in MODULE.data/scripts beside the entry point; it lies there only while the wheel is made.
.PHONY: wheel
wheel: setup $(TOOLS)/bin/cargo-about ## Make target/wheels/fscost-….whl, complete with the two binaries and the licences of their crates
	trap 'rm -rf fscost._native.data LICENSE-THIRD-PARTY.md' EXIT; \
	$(TOOLS)/bin/cargo-about generate --locked --fail about.hbs >LICENSE-THIRD-PARTY.md; \
	mkdir -p fscost._native.data/scripts; \
	install -s $(TARGET)/release/fscost-disk $(TARGET)/$(STATIC)/release/fscost-agent fscost._native.data/scripts/; \
	$(BIN)/maturin build --release --locked --interpreter $(BIN)/python --out target/wheels

.PHONY: clean
clean: ## Remove everything built here, and .venv; results of runs stay
	rm -rf .venv target build .pytest_cache .ruff_cache .mypy_cache .import_linter_cache .hypothesis
	find python tests \( -name __pycache__ -prune -o -name '*.so' \) -exec rm -rf {} +

# What follows is one file for each thing that setup does, so that it is done once.

.PHONY: system
system:
	@tools/setup-system

.venv/.made-for: | system
	rm -rf .venv
	$(PYTHON) -m venv .venv
	echo $(VENV) >$@

.venv/.packages: requirements.lock .venv/.made-for
	$(ONE_AT_A_TIME) $(BIN)/pip --quiet install --require-hashes --no-deps --requirement requirements.lock
	touch $@

.venv/.dev-packages: requirements-dev.lock .venv/.packages
	$(ONE_AT_A_TIME) $(BIN)/pip --quiet install --require-hashes --no-deps --requirement requirements-dev.lock
	touch $@

.venv/.docs-packages: requirements-docs.lock .venv/.packages
	$(ONE_AT_A_TIME) $(BIN)/pip --quiet install --require-hashes --no-deps --requirement requirements-docs.lock
	touch $@

$(NATIVE): Cargo.toml Cargo.lock pyproject.toml $(NATIVE_SOURCES) .venv/.packages | system
	PIP_QUIET=1 VIRTUAL_ENV=$(VENV) $(ONE_AT_A_TIME) $(BIN)/maturin develop --release --locked
	touch $@

.PRECIOUS: $(NATIVE)

# The agent is the first process of guests, which have no library: static. The target is named so that only it is, not what builds it.
STATIC := $(shell uname -m)-unknown-linux-gnu

.PHONY: binaries
binaries: | system .venv/.made-for
	cargo build --package fscost-device --release --locked
	RUSTFLAGS='-C target-feature=+crt-static' cargo build --package fscost-agent --release --locked --target $(STATIC)
	@ln -sfn $(TARGET)/release/fscost-disk $(TARGET)/$(STATIC)/release/fscost-agent $(BIN)/
