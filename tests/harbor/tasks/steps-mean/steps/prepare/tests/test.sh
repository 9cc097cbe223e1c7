#!/bin/bash
. "$(dirname "$0")/checks.sh"
check prepared has_text prepared.txt input
write_rewards
