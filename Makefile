# What one types. `make run` needs Rust and a C compiler, nothing else; `make test` also bash and Python 3.10 to 3.12 with
# venv.

CARGO ?= cargo
BENCH := target/release/bench
# Where `make run` leaves its results.
OUT ?= bench-results
# What `make run` measures; see `bench run --help`.
RUN ?= --model oracle --demo

.PHONY: run test lint bench bench-lambda cost build clean

## Builds the command, runs the bundled benchmark suite and verifies the signed archive.
run: build
	$(BENCH) run $(RUN) --out $(OUT)
	@for archive in $(OUT)/*.zip; do $(BENCH) verify "$$archive"; done

## Builds the `bench` command.
build:
	$(CARGO) build --release --locked --package bench-cli

## All tests, then the lints.
test:
	$(CARGO) test --workspace --locked --no-fail-fast
	$(MAKE) --no-print-directory lint

## Formatting and lints, without changing anything.
lint:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings

## Speed and memory of the whole embedded system, and what sandboxes cost; not a test.
bench:
	$(CARGO) build --release --locked --package bench-cli --package bench-tests
	target/release/bench-load
	target/release/bench-sandboxes
	target/release/bench-jobs

## Start-up, memory and size of every function as it is deployed, beside one that does nothing; not a test.
## `make bench-lambda PROFILE=release` builds quicker and says less.
PROFILE ?= lambda
bench-lambda:
	$(CARGO) build --locked --package bench-tests --bin bench-coldstart
	target/debug/bench-coldstart $(PROFILE)

## What runs ask of AWS, measured, and docs/cost.md from it.
cost:
	$(CARGO) run --locked --package bench-tests --bin bench-measure > infra/cost/measured.json.new
	mv infra/cost/measured.json.new infra/cost/measured.json
	$(CARGO) run --locked --package bench-cost -- tables > docs/cost.md

## Time of a build of the command from scratch, and its most expensive crates; not a test.
timings:
	CARGO="$(CARGO)" python3 infra/timings.py

clean:
	$(CARGO) clean

include infra/Makefile.inc
include tests/stack/Makefile.inc
