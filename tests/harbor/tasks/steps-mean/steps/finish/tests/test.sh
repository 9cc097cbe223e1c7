#!/bin/bash
. "$(dirname "$0")/checks.sh"
check finished test -e finished.txt
check polished test -e polished.txt
check prepared has_text prepared.txt input
check setup has_text setup.txt "set up"
check hidden test ! -s listing.txt
check logs test ! -e /logs/verifier/reward.json
write_rewards
