#!/bin/bash
. "$(dirname "$0")/checks.sh"
check out has_text /app/out.txt out
check other test ! -e /app/other.txt
check data has_text /app/data/folder/kept.txt kept
check excluded test ! -e /app/data/scratch.tmp
check report has_text /logs/artifacts/report.txt report
check workdir test "$PWD" = /grading
check role test "$ROLE" = verifier
write_rewards
