# The tasks of development and of a first run: `make help` lists them. CMake builds; the presets are in CMakePresets.json.
SHELL       := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.NOTPARALLEL:   # ninja and ctest use the cores; `make -j` changes nothing

JOBS ?= $(shell nproc)
ifneq ($(CI)$(NO_COLOR),)
  export CLICOLOR := 0
  export GTEST_COLOR := no
endif

# The command of `make run`, and the sizes of `make soak`.
RUN        ?= build/motley train examples/mixed.toml --require-target
WORLDS     ?= 5000
FUZZ_SECONDS ?= 60

CLANG_FORMAT ?= clang-format-14
CLANG_TIDY   ?= clang-tidy-14
SOURCES = $(shell find src tests fuzz -name '*.cpp' -o -name '*.h' | sort)
CTEST   = --parallel $(JOBS) --output-on-failure --no-tests=error

.PHONY: help
help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s%s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: setup
setup: ## install missing packages (Debian 12; elsewhere: list what is needed)
	@scripts/setup.sh

.PHONY: build
build: setup build/build.ninja ## build/motley and the tests, optimised
	@cmake --build build --parallel $(JOBS)

# Only the program: the tests take five times as long to compile.
.PHONY: motley
motley: setup build/build.ninja ## build/motley alone
	@cmake --build build --parallel $(JOBS) --target motley

.PHONY: run
run: motley ## set up, build, train Fashion-MNIST for real on this machine: a chief and four unlike workers; table and run folder
	$(RUN)

.PHONY: test
test: build ## set up, build, run every test
	@ctest --preset release $(CTEST)

.PHONY: asan
asan: setup build-asan/build.ninja ## the torch-free tests under address and undefined-behaviour sanitizers
	@cmake --build build-asan --parallel $(JOBS)
	@ctest --preset asan $(CTEST)

.PHONY: tsan
tsan: setup build-tsan/build.ninja ## the torch-free tests under the thread sanitizer
	@cmake --build build-tsan --parallel $(JOBS)
	@ctest --preset tsan $(CTEST)

.PHONY: soak
soak: build setup-dev ## thousands of seeded simulations (WORLDS=5000), then fuzzing of every parser of untrusted bytes (FUZZ_SECONDS=60)
	@MOTLEY_WORLDS=$(WORLDS) ctest --test-dir build -R '[Ww]orld' --timeout 36000 $(CTEST)
	@scripts/fuzz.sh $(FUZZ_SECONDS)

.PHONY: netns
netns: motley ## root only: a chief and two workers in network namespaces with slow links; agrees with the simulator to 15 %
	@sh tests/netns_test.sh build/motley

.PHONY: containers
containers: motley ## root only: the job of containers/ in containers with unlike CPU shares and links; batches follow the measured speeds
	@tests/containers_test.sh build/motley

.PHONY: chaos
chaos: build ## workers are killed every 5 s for 2 minutes under every strategy; every sample is still counted exactly once
	@scripts/chaos.sh

.PHONY: results
results: motley ## docs/results: each strategy on the standard cells, seeds 0-4; PAGES="hps" for some (hours on 2 cores)
	@scripts/results.sh $(PAGES)

.PHONY: tidy
tidy: setup-dev build-tidy/build.ninja ## clang-tidy over src and tests (not src/learn/torch), warnings are errors
	@find src tests -name '*.cpp' -not -path 'src/learn/torch/*' -print0 | sort -z | \
	  xargs -0 -n 1 -P $(JOBS) $(CLANG_TIDY) -p build-tidy --quiet 2>&1 | sed '/ warnings\? generated\.$$/d'
	@echo "tidy: no warnings"

.PHONY: format
format: setup-dev ## rewrite the sources as .clang-format says
	@$(CLANG_FORMAT) -i $(SOURCES)

.PHONY: format-check
format-check: setup-dev ## fail if .clang-format would change a file
	@$(CLANG_FORMAT) --dry-run --Werror $(SOURCES)

.PHONY: clean
clean: ## remove the build folders (runs/ stays)
	@rm -rf build build-dev build-no-torch build-asan build-tsan build-tidy build-fuzz

.PHONY: setup-dev
setup-dev:
	@scripts/setup.sh --dev

# Configured once per preset; ninja itself runs CMake again when a CMakeLists.txt or a folder of sources changes.
build/build.ninja: PRESET = release
build-asan/build.ninja: PRESET = asan
build-tsan/build.ninja: PRESET = tsan
build-tidy/build.ninja: PRESET = tidy
build/build.ninja build-asan/build.ninja build-tsan/build.ninja build-tidy/build.ninja: CMakePresets.json
	@cmake --preset $(PRESET)
	@touch $@
