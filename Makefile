# SPDX-License-Identifier: BSD-3-Clause
# Phone book: the build is CMake's (CMakePresets.json), these are short names.
PREFIX ?= /usr/local
JOBS   ?= 2
SETUP  ?= scripts/setup
TOOL   := build/release/heddle
SHAPES := independent chain random cholesky replay

# $(call build,PRESET,TARGET) configures and builds, all or one target; quiet unless
# something is wrong.
build = cmake --preset $(1) >build/$(1).log 2>&1 || { cat build/$(1).log; exit 1; }; \
	cmake --build --preset $(1) -j $(JOBS) $(if $(2),--target $(2))
# $(call test,PRESET,CTEST-ARGS): CTest's closing line comes last.
test  = log=build/$(1)/ctest.log; \
	ctest --preset $(1) -j $(JOBS) --output-log $$log $(2); rc=$$?; \
	grep 'tests passed,' $$log 2>/dev/null | tail -n 1; exit $$rc

.DEFAULT_GOAL := all
.NOTPARALLEL:
.PHONY: all setup setup-check setup-clang setup-demo check demo debug asan tsan cuda no-deps \
	clang fuzz lint abi coverage bench bench-peers docs gpu-check install ptx format clean help

all: | build        ## build the release preset, the tool is build/release/heddle
	@$(call build,release)

setup:              ## install what is missing (Debian 12, Ubuntu 24.04)
	@$(SETUP)

setup-check:        # the same, and a browser for the tests of the trace page
	@$(if $(SETUP),$(SETUP) browser)

check: setup-check all ## set up, build, run all tests
	@$(call test,release)

setup-demo:         # what the tool is built with, and no more
	@$(if $(SETUP),$(SETUP) demo)

demo: setup-demo | build ## set up, build the tool, factorise a matrix on all cores and GPUs
	@$(call build,release,heddle)
	@$(TOOL) demo --log build/heddle-demo.log --page build/heddle-demo.html

debug asan tsan cuda no-deps: | build ## the same with another preset: build and test
	@$(call build,$@)
	@$(call test,$@)

setup-clang:
	@$(if $(SETUP),$(SETUP) clang)

clang: setup-clang | build ## the same with clang 14, and some of the tests
	@command -v clang-14 >/dev/null || { echo 'make clang: no clang-14, left out'; exit 0; }; \
	$(call build,$@) && { $(call test,$@); }

FUZZ_SECONDS ?= 60
fuzz: setup-clang | build ## libFuzzer on the readers of every format (FUZZ_SECONDS=3600)
	@command -v clang-14 >/dev/null || { echo 'make fuzz: no clang-14, left out'; exit 0; }; \
	cmake --preset $@ >build/$@.log 2>&1 || { cat build/$@.log; exit 1; }; \
	if grep -q '^HEDDLE_FUZZER_WORKS:INTERNAL=1' build/$@/CMakeCache.txt; then \
		cmake --build --preset $@ -j $(JOBS) && scripts/fuzz build/$@ $(FUZZ_SECONDS); \
	else echo 'make fuzz: clang-14 has no libFuzzer (libclang-rt-14-dev), left out'; fi

lint: all           ## layers, symbols, headers, style, format
	@$(call test,release,-L lint)

abi: all            ## do older programs run? layouts, sizes; OLD=libheddle.so: abidiff
	@scripts/abi build/release $(OLD)

coverage: | build   ## line and branch coverage per module
	@$(call build,coverage)
	@find build/coverage -name '*.gcda' -delete
	@$(call test,coverage)
	@scripts/coverage.py build/coverage

bench: all          ## nanoseconds per task, one JSON object per line
	@for s in $(SHAPES); do $(TOOL) bench tasks --shape $$s --json || exit 1; done

bench-peers: all    ## the same streams in StarPU, OpenMP and oneTBB, as ratios
	@bench/peers/run
	@bench/peers/run_nested
	@bench/peers/run_work

docs:               ## the API reference as one page, build/docs/reference.html
	@python3 scripts/reference.py build/docs/reference.html

gpu-check:          ## with an NVIDIA GPU: build, test and measure what needs it
	@scripts/gpu-check

install: all        ## install under PREFIX (/usr/local), honours DESTDIR
	@cmake --install build/release --prefix "$(PREFIX)"

ptx:                ## with nvcc: PTX anew from the .cu files that have changed
	@scripts/ptx_header.py

format:             ## clang-format 14 over the sources
	@scripts/check_format.sh --fix

clean:              ## remove build/
	rm -rf build

help:               ## this list
	@grep -h '^[a-z].*##' Makefile | sed 's/:[^#]*##/  /' | \
		awk '{n = index($$0, "  "); printf "%-34s%s\n", substr($$0, 1, n), substr($$0, n + 3)}'

build:
	@mkdir -p build
