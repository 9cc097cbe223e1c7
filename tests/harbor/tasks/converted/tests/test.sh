#!/bin/bash
. "$(dirname "$0")/checks.sh"
check value has_text /app/value.txt "<>"
write_rewards
