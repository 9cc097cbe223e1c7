#!/bin/bash
. "$(dirname "$0")/checks.sh"
check collected has_text /logs/artifacts/state.txt solved
check user has_text /logs/artifacts/user.txt nobody
check fresh has_text state.txt new
write_rewards
