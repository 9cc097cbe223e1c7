#!/bin/bash
. "$(dirname "$0")/checks.sh"
check stored has_text /data/value.txt "$(printf 'stored\ncollected')"
check name has_text /logs/artifacts/name.txt store
write_rewards
