#!/usr/bin/env bash
# Compares the official tau2 program with ours: `run.sh SOURCE BENCH`, in the project's folder.
set -euo pipefail
source=$1 bench=$2
work=$PWD/target/compare-tau2
export BENCH_HOME=$work/home
mkdir -p "$work"

# The environment for steps, as sandboxes have it. It refuses other versions and changed files.
"$bench" sandy setup tau2 --source "$source"
if [ -f "$source" ]; then
  rm -rf "$work/source" && mkdir "$work/source"
  "$BENCH_HOME/tau2/current/bin/python3" -m zipfile -e "$source" "$work/source"
  source=$(dirname "$(find "$work/source" -maxdepth 2 -name pyproject.toml | head -n 1)")
fi

# The official program has an environment of its own, with all of its libraries.
official=$work/official
if [ ! -f "$official/complete" ]; then
  rm -rf "$official"
  "$(readlink -f "$BENCH_HOME/tau2/current/bin/python3")" -m venv "$official"
  "$official/bin/python3" -m pip install --quiet --disable-pip-version-check "$source"
  touch "$official/complete"
fi

"$official/bin/python3" -I -B tests/tau2/official.py "$source" "$work/official.json"
failed=0
python3 -B tests/tau2/steps.py "$BENCH_HOME/tau2/current" "$work/official.json" || failed=1
python3 -B tests/tau2/turns.py "$bench" "$work/official.json" || failed=1
exit $failed
