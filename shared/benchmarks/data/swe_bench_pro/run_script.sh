#!/bin/bash
# Runs test files, or all of them. usage: run_script.sh [FILE,FILE]
files=${1:-$(ls tests/test_*.py | paste -sd,)}
for file in ${files//,/ }; do
    echo "== $file"
    module=${file%.py}
    python -m unittest -v "${module//\//.}" 2>&1
done
