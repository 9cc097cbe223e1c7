#!/bin/bash
. "$(dirname "$0")/checks.sh"
check name has_text name worker
check home has_text home /home/worker
check folder has_text folder /app/place
check is_root has_text is_root no
check owns_solution has_text owns_solution no
check verifier test "$(id -un)" = grader
check verifier_home test "$HOME" = /home/grader
check verifier_folder test "$PWD" = /app/place
check agent_log test -r /logs/agent/oracle.txt
write_rewards
