#!/usr/bin/env bash
# Proves the programming tasks: `run.sh BENCH`, in the project's folder.
set -euo pipefail
bench=$1
# The data directory has the toolchains; it is kept for the next time.
export BENCH_HOME=$PWD/target/test-tasks

missing=()
command -v node > /dev/null || missing+=(nodejs)
command -v g++ > /dev/null || missing+=(g++)
if [ ${#missing[@]} -gt 0 ]; then
  if [ "$(id -u)" -ne 0 ] || ! command -v apt-get > /dev/null; then
    echo "error: these tests need ${missing[*]}; install them with your system's package manager" >&2
    exit 1
  fi
  apt-get update -qq
  apt-get install -y -qq --no-install-recommends "${missing[@]}"
fi

mkdir -p "$BENCH_HOME"
"$bench" sandy setup --toolchains
# Tasks with the test runners of other systems: references and wrong solutions, and all known cheats.
"$bench" tasks check tests/data/code-tasks
# Our tasks: each is proven once, with two of its wrong solutions if its recorded proof has all of them, and all known cheats are
# tried at one task of each language. At most five minutes on two cores.
"$bench" tasks check tasks --wrong 2 --cheats per-language
