# Entry point for all tasks. `make` without arguments lists the targets.
# Every target can be repeated; the second run is fast and needs no network.
# Variables:
#   ARGS      arguments of demo and bench
#   PYTEST    arguments of pytest in test
#   WORKERS   number of pytest processes
#   PYTHON    interpreter for .venv
#   SECONDS   fuzz: duration of each target; soak, kills: total duration
#   TARGETS   fuzz: targets to run; soak: families to draw
#   DRAWS     soak: number of draws, of kinds that a seed repeats, instead of a duration
#   SEED      soak, kills: seed of the random draws
#   LONG      soak: tests whose long variants run
#   VERSION   debian: version of Debian, 12 or 13
#   RUN       debian: command

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.SUFFIXES:
MAKEFLAGS += --no-builtin-rules
.DEFAULT_GOAL := help

PYTHON ?= python3
ARGS ?=
PYTEST ?=
WORKERS ?= 4
SECONDS ?= 600
TARGETS ?=
LONG ?= $(if $(TARGETS),,tests)
SEED ?=
DRAWS ?=
VERSION ?= 13
# The demo, a cell in a guest under a kernel that is fetched there, and the tests.
RUN ?= make demo && .venv/bin/fscost compare --lab vm --on ext4 --min-repetitions 1 --max-repetitions 1 && make test

# rustup installs to this directory, which may not be in the caller's PATH yet.
# mkfs is in sbin, which is missing from some users' PATH.
export CARGO_HOME ?= $(HOME)/.cargo
export PATH := $(CARGO_HOME)/bin:$(PATH):/usr/sbin:/sbin
export PYTHON
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_ROOT_USER_ACTION := ignore

# setup compiles and downloads in two parallel sub-makes. They set SYSTEM to an empty value, so that
# they do not check the system packages again.
SYSTEM := system

VENV := $(CURDIR)/.venv
BIN := $(VENV)/bin
ONE_AT_A_TIME := flock .venv
TARGET := $(abspath $(or $(CARGO_TARGET_DIR),target))

# The wheel for other machines is linked by Debian's cross compiler.
CROSS := aarch64-unknown-linux-gnu
CROSS_GCC := aarch64-linux-gnu-gcc
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER := $(CROSS_GCC)

NATIVE := python/fscost/_native.abi3.so
NATIVE_SOURCES := $(wildcard crates/*/Cargo.toml) $(shell find crates/*/src -name '*.rs')

# .venv is rebuilt if it was copied, moved or left incomplete, or if an upgrade removed its Python.
ifneq ($(shell $(BIN)/python -c 'import pip' 2>/dev/null && cat .venv/.made-for 2>/dev/null),$(VENV))
.PHONY: .venv/.made-for
endif

.PHONY: help
help: ## Print this
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' Makefile

.PHONY: setup
setup: system .venv/.made-for ## Install what is missing (packages as root, Rust, .venv), build; the program is then .venv/bin/fscost
	@$(MAKE) --no-print-directory SYSTEM= binaries & compiling=$$!; \
	$(MAKE) --no-print-directory SYSTEM= .venv/.packages || { wait $$compiling; exit 1; }; \
	wait $$compiling
	@$(MAKE) --no-print-directory SYSTEM= $(NATIVE)

.PHONY: tools
tools: ## Also install QEMU, the mkfs programs for guests, the programs of all workloads, and what the tests need (as root)
	@tools/setup-system --all

.PHONY: demo
demo: setup ## Compare ext4, ext4 noatime, ext4 without journal, xfs and btrfs on reading a tree (needs root)
	@$(BIN)/fscost compare --workload read-all --repetitions 3 $(ARGS)

.PHONY: test
test: tools setup crates .venv/.dev-packages ## Run the Rust and Python tests in parallel, then the corpus of each fuzz target (without root, tests that mount are skipped)
	@$(MAKE) --no-print-directory SYSTEM= --jobs=2 test-rust test-python
	fuzz/run corpus

# A test checks the lock files offline, so all crates are fetched before the tests.
.PHONY: crates
crates: | system
	@for manifest in Cargo.toml fuzz/Cargo.toml; do cargo fetch --quiet --locked --manifest-path $$manifest; done

# The Python tests mostly wait for disks, timers and guests, so the Rust tests compile meanwhile.
# Neither may inherit this make's jobserver, because cargo would use it as its own.
# The output of the Rust tests is printed at once when they finish.
ALONE := env -u MAKEFLAGS -u MFLAGS

.PHONY: test-rust test-python
test-rust:
	@mkdir -p $(TARGET)
	@{ $(ALONE) cargo test --workspace --exclude fscost-bindings --locked && $(ALONE) fuzz/run build; } \
	  >$(TARGET)/test-rust.log 2>&1 || { cat $(TARGET)/test-rust.log; echo 'the Rust tests FAILED' >&2; exit 1; }
	@cat $(TARGET)/test-rust.log

test-python:
	$(ALONE) $(BIN)/python -m pytest --numprocesses $(WORKERS) $(PYTEST)

.PHONY: fuzz
fuzz: setup .venv/.fuzz-packages ## Run each fuzz target until an input violates an invariant: SECONDS=600 for each of TARGETS="ext xfs btrfs others arrays strip ondisk recording dm_log_writes trace_FORMAT latency wear raid replay nbd fuse suite device now profile manifest samples events"
	@fuzz/run $(SECONDS) $(TARGETS)

.PHONY: soak
soak: tools setup .venv/.dev-packages $(if $(filter tests tests/whole tests/whole/test_ray.py,$(LONG)),.venv/.ray-packages) ## Run the test variants that `make test` leaves out, then check the explanations of random file systems for SECONDS=3600 (needs root): LONG="tests/whole" limits the variants to those in that folder; TARGETS="ext xfs f2fs" draws only these families, and runs no variants without LONG; SEED=…
	$(if $(LONG),FSCOST_TEST_LONG=1 $(BIN)/python -m pytest --numprocesses $(WORKERS) -m long $(LONG))
	PYTHONPATH=. $(BIN)/python -m tests.oracles.soak $(if $(DRAWS),--repeatable $(DRAWS)) $(SECONDS) $(or $(SEED),$(shell date +%s)) $(TARGETS)

.PHONY: debian
debian: ## Run the demo, a guest and the tests in a new root of Debian, from a clean clone of the last commit (needs root, debootstrap and network): VERSION=12 or 13; RUN='make demo' runs only that
	@tools/in-debian $(VERSION) '$(RUN)'

.PHONY: kills
kills: tools setup ## Kill processes of runs in guests at random instants, count what each kill costs (needs root): SECONDS=3600, SEED=…
	PYTHONPATH=. $(BIN)/python -m tests.whole.kill_soak $(SECONDS) $(or $(SEED),$(shell date +%s))

.PHONY: check check-rust check-python check-repository
check: check-rust check-python check-repository ## Check formats, lints, types, imports between components and lock files; -k reports all problems, not only the first

check-rust: crates
	cargo fmt --version >/dev/null && cargo clippy --version >/dev/null || rustup component add rustfmt clippy
	cargo fmt --all -- --check
	cargo fmt --manifest-path fuzz/Cargo.toml -- --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	cargo clippy --manifest-path fuzz/Cargo.toml --no-default-features --all-targets --locked --target-dir $(TARGET) -- -D warnings

check-python: .venv/.dev-packages $(NATIVE)
	$(BIN)/ruff format --check --quiet .
	$(BIN)/ruff check --quiet .
	$(BIN)/mypy
	MYPYPATH=python $(BIN)/stubtest --concise fscost._native
	PYTHONPATH=python $(BIN)/lint-imports --no-logo

check-repository: crates .venv/.dev-packages
	$(BIN)/pip --quiet check
	$(BIN)/python -m pytest --quiet tests/repo

.PHONY: bench
bench: tools setup .venv/.dev-packages ## Measure the overhead of recording, explanations, live times, lives of devices, guests, wear, arrays and trace readers (needs root); one: ARGS='explain …', 'classify …', 'overhead …', 'crash …', 'pages', 'report', 'start', 'store', 'vm …', 'wear …', 'raid' or 'traces …'
	cargo build --package fscost-explain --package fscost-device --examples --release --locked
	set -- $(ARGS); \
	if [[ $$# -gt 0 ]]; then $(BIN)/python benches/$$1.py "$${@:2}"; \
	else for each in overhead classify explain live lives crash pages report start store vm wear raid traces; do $(BIN)/python benches/$$each.py; done; fi

.PHONY: fmt
fmt: setup .venv/.dev-packages ## Format the Rust and Python code and apply the safe fixes of the linter
	cargo fmt --all
	cargo fmt --manifest-path fuzz/Cargo.toml
	$(BIN)/ruff check --fix-only --quiet .
	$(BIN)/ruff format .

PIN = $(BIN)/uv --quiet pip compile --universal --generate-hashes $(if $(UPGRADE),--upgrade) \
	  --custom-compile-command 'make lock'

.PHONY: lock
lock: .venv/.dev-packages ## Update the lock files to match the declared dependencies (UPGRADE=1: to the newest versions)
	cargo $(if $(UPGRADE),update,metadata --format-version 1 >/dev/null)
	cargo $(if $(UPGRADE),update,metadata --format-version 1 >/dev/null) --manifest-path fuzz/Cargo.toml
	$(PIN) pyproject.toml --extra report --extra build --output-file requirements.lock
	$(PIN) pyproject.toml --extra report --extra dev --constraint requirements.lock --output-file requirements-dev.lock
	$(PIN) pyproject.toml --extra report --extra docs --constraint requirements-dev.lock --output-file requirements-docs.lock
	$(PIN) pyproject.toml --extra ray --constraint requirements-docs.lock --output-file requirements-ray.lock
	$(PIN) pyproject.toml --extra fuzz --constraint requirements-docs.lock --output-file requirements-fuzz.lock
	$(PIN) --output-file requirements-audit.lock - <<<'pip-audit>=2.10.1'

# Resumable: finished workloads are skipped. Guests have every file system, this kernel only some.
# Exit status 1 is expected: some cells fail, because their file system lacks what the workload needs.
ATLAS := native 6.12 6.1

.PHONY: atlas
atlas: tools setup ## Run the suite of the atlas natively and in guests of two kernels (hours), and make docs/atlas.md from it
	for kernel in $(ATLAS); do \
	    out=$(TARGET)/atlas/$$kernel; again=; [[ ! -d $$out ]] || again=--resume; \
	    where="--lab vm --kernel $$kernel --repetitions 1"; [[ $$kernel != native ]] || where="--lab native"; \
	    $(BIN)/fscost run docs/atlas/atlas.toml $$where $${again:---out} $$out || [[ $$? == 1 ]] || exit 2; \
	done
	$(BIN)/python tools/atlas.py collect $(TARGET)/atlas/*/*/
	$(BIN)/python tools/atlas.py page

.PHONY: docs
docs: setup .venv/.docs-packages ## Build the documentation as a site in target/site, with reference pages generated from the program
	RUSTDOCFLAGS=-Dwarnings cargo doc --quiet --workspace --exclude fscost-bindings --lib --no-deps --locked
	PATH=$(BIN):$$PATH NO_MKDOCS_2_WARNING=1 FSCOST_RUSTDOC=$(TARGET)/doc $(BIN)/mkdocs --quiet build --clean
	@echo target/site/index.html

TOOLS := $(TARGET)/tools

$(TOOLS)/bin/cargo-%: | system
	cargo install --quiet --locked --root $(TOOLS) cargo-$*@$(VERSION_$*) $(FEATURES_$*)

VERSION_deny := 0.20.2
VERSION_about := 0.9.3
FEATURES_about := --features cli

.PHONY: audit
audit: ## Look for known vulnerabilities, foreign sources and incompatible licences; warn about each database that cannot be reached
	@tools/audit $(TOOLS)/bin/cargo-deny $(TOOLS)/pip-audit/bin/pip-audit

$(TOOLS)/pip-audit/bin/pip-audit: requirements-audit.lock | system
	$(PYTHON) -m venv $(TOOLS)/pip-audit
	$(TOOLS)/pip-audit/bin/pip --quiet install --require-hashes --no-deps --requirement requirements-audit.lock

# maturin installs the files in MODULE.data/scripts beside the entry point. The folder exists only
# while a wheel is built. Arguments: the programs' folder, their strip, options of maturin.
define WHEEL
	trap 'rm -rf fscost._native.data LICENSE-THIRD-PARTY.md' EXIT; \
	$(TOOLS)/bin/cargo-about generate --locked --fail about.hbs >LICENSE-THIRD-PARTY.md; \
	mkdir -p fscost._native.data/scripts; \
	install -s --strip-program=$(2) $(1)/fscost-disk $(1)/fscost-agent fscost._native.data/scripts/; \
	$(BIN)/maturin build --release --locked $(3) --out target/wheels
endef

.PHONY: wheel
wheel: setup $(TOOLS)/bin/cargo-about ## Make target/wheels/fscost-….whl, complete with the two binaries and the licences of their crates
	$(call WHEEL,$(BIN),strip,--interpreter $(BIN)/python)

.PHONY: dist
dist: wheel ## Make all files of a release in target/wheels: the wheel of this machine, that of aarch64, the source (needs gcc-aarch64-linux-gnu)
	@command -v $(CROSS_GCC) >/dev/null || { echo 'dist: apt-get install gcc-aarch64-linux-gnu' >&2; exit 2; }
	rustup target add $(CROSS)
	$(call BINARIES,--target $(CROSS))
	$(call WHEEL,$(TARGET)/$(CROSS)/release,aarch64-linux-gnu-strip,--target $(CROSS))
	$(BIN)/maturin sdist --out target/wheels
	@ls -l target/wheels

# What reads and models bytes: the programs need a kernel of that processor.
PURE := crash explain latency ondisk raid recording replay ssd strip traces wear

.PHONY: test-aarch64
test-aarch64: ## Run the tests of the crates that read bytes, for aarch64 (needs gcc-aarch64-linux-gnu and qemu-user)
	@for each in $(CROSS_GCC) qemu-aarch64; do command -v $$each >/dev/null || { echo "test-aarch64: $$each is missing: apt-get install gcc-aarch64-linux-gnu qemu-user" >&2; exit 2; }; done
	rustup target add $(CROSS)
	CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER='qemu-aarch64 -L /usr/aarch64-linux-gnu' \
	  cargo test --quiet --locked --target $(CROSS) --lib $(PURE:%=--package fscost-%)

BASE ?= docker.io/library/debian:13-slim

.PHONY: image
image: wheel ## Build a container image named fscost (needs buildah; no root, no daemon); another base: BASE=…
	@command -v buildah >/dev/null || { echo 'image: apt-get install buildah' >&2; exit 2; }
	buildah build --isolation chroot --build-arg BASE=$(BASE) --tag fscost $(BUILDAH_FLAGS) .

.PHONY: clean
clean: ## Remove everything built here, and .venv; results of runs stay
	rm -rf .venv target build .pytest_cache .ruff_cache .mypy_cache .import_linter_cache .hypothesis
	find python tests \( -name __pycache__ -prune -o -name '*.so' \) -exec rm -rf {} +

# Each step of setup has its own target file, so that it runs only once.

.PHONY: system
system:
	@tools/setup-system

.venv/.made-for: | $(SYSTEM)
	@rm -rf .venv
	@$(PYTHON) -m venv .venv
	@echo $(VENV) >$@

# pip does not compile modules, because that takes as long as unpacking them; Python compiles them
# on import. Modules for tests are compiled in advance: there, a compiler warning would be an error.
.venv/.packages: requirements.lock .venv/.made-for
	@$(ONE_AT_A_TIME) $(BIN)/pip --quiet install --no-compile --require-hashes --no-deps --requirement requirements.lock
	@touch $@

.venv/.dev-packages: requirements-dev.lock .venv/.packages
	$(ONE_AT_A_TIME) $(BIN)/pip --quiet install --no-compile --require-hashes --no-deps --requirement requirements-dev.lock
	$(BIN)/python -W ignore -m compileall -qq -j 0 $(VENV)/lib || :
	touch $@

.venv/.docs-packages: requirements-docs.lock .venv/.packages
	$(ONE_AT_A_TIME) $(BIN)/pip --quiet install --no-compile --require-hashes --no-deps --requirement requirements-docs.lock
	touch $@

.venv/.fuzz-packages: requirements-fuzz.lock .venv/.packages
	$(ONE_AT_A_TIME) $(BIN)/pip --quiet install --no-compile --require-hashes --no-deps --requirement requirements-fuzz.lock
	touch $@

.venv/.ray-packages: requirements-ray.lock .venv/.packages
	$(ONE_AT_A_TIME) $(BIN)/pip --quiet install --no-compile --require-hashes --no-deps --requirement requirements-ray.lock
	touch $@

$(NATIVE): Cargo.toml Cargo.lock pyproject.toml $(NATIVE_SOURCES) .venv/.packages | $(SYSTEM)
	@PIP_QUIET=1 VIRTUAL_ENV=$(VENV) CARGO_TERM_QUIET=true $(ONE_AT_A_TIME) $(BIN)/maturin develop --quiet --release --locked
	@touch $@

.PRECIOUS: $(NATIVE)

# The agent is the first process of guests, which have no libraries: both programs are static.
# Only the final crate gets the flag, so that crates shared with the native module compile once.
define BINARIES
	@for program in device:fscost-disk agent:fscost-agent; do \
	  cargo rustc --quiet --package fscost-$${program%:*} --bin $${program#*:} --release --locked $(1) -- -C target-feature=+crt-static; \
	done
endef

.PHONY: binaries
binaries: | $(SYSTEM) .venv/.made-for
	@[[ -x $(TARGET)/release/fscost-disk ]] || echo 'setup: compiling fscost, a few minutes at the first time' >&2
	$(BINARIES)
	@install -C $(TARGET)/release/fscost-disk $(TARGET)/release/fscost-agent $(BIN)/
