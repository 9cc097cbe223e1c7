# Developer commands. `make run` needs only Rust and a C compiler; `make test` also needs bash and Python 3.10 to 3.12 with
# venv, `make test-page` Node.js 20 or later with npm.

CARGO ?= cargo
# The quick build, which `make run` uses. `make build` writes the optimized command to target/release/bench.
BENCH := target/debug/bench
# Folder of the results of `make run`.
OUT ?= bench-results
# Arguments of `bench run` in `make run`; see `bench run --help`.
RUN ?= --model oracle --demo

.PHONY: run test lint bench bench-lambda cost build clean timings

## Builds the command, runs the bundled benchmark suite and verifies the signed archive.
run:
	$(CARGO) build --locked --package bench-cli
	$(BENCH) run $(RUN) --out $(OUT)
	@for archive in $(OUT)/*.zip; do $(BENCH) verify "$$archive"; done

## Builds the optimized `bench` command.
build:
	$(CARGO) build --release --locked --package bench-cli

## Runs all tests, twice as many at once as there are processors, since most of them wait half of the time.
test: export RUST_TEST_THREADS ?= $(shell echo $$((2 * $$(getconf _NPROCESSORS_ONLN))))
test:
	$(CARGO) test --workspace --locked --no-fail-fast

## Checks formatting and lints, without changing anything.
lint:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	$(CARGO) clippy --workspace --test engine --locked -- -D warnings

## Measures speed and memory of the whole embedded system, the overhead of sandboxes, the cost of terminal tasks' turns, and the
## grading of programming tasks; not a test. `DOCKER_HOST` names a container engine for episodes on one.
bench:
	$(CARGO) build --release --locked --package bench-cli --package bench-tests
	target/release/bench-load
	target/release/bench-reports
	target/release/bench-sandboxes
	target/release/bench-jobs
	target/release/bench-episodes
	target/release/bench-code-lab

## Measures start-up time, memory and size of every function as deployed, and of an empty function for comparison; not a test.
## `make bench-lambda PROFILE=release` builds faster, but its results say less about the deployed functions.
PROFILE ?= lambda
bench-lambda:
	$(CARGO) build --locked --package bench-tests --bin bench-coldstart
	target/debug/bench-coldstart $(PROFILE)

## Measures the calls that runs make to AWS, and writes docs/cost.md from them.
cost:
	$(CARGO) run --locked --package bench-tests --bin bench-measure > infra/cost/measured.json.new
	mv infra/cost/measured.json.new infra/cost/measured.json
	$(CARGO) run --locked --package bench-cost -- tables > docs/cost.md

## Measures the time of a build of the command from scratch, and lists its most expensive crates; not a test.
## `make timings BUILD=release` measures the optimized build.
BUILD ?= dev
timings:
	CARGO="$(CARGO)" python3 infra/timings.py --profile $(BUILD)

clean:
	$(CARGO) clean

include infra/Makefile.inc
include tests/containers/Makefile.inc
include tests/harbor/Makefile.inc
include tests/stack/Makefile.inc
include tests/swe/Makefile.inc
include tests/tasks/Makefile.inc
include tests/tau2/Makefile.inc
include tests/page/Makefile.inc
