#!/bin/bash
# Ends before it writes a reward, unless the task is solved.
set -e
ls done
echo 1 > /logs/verifier/reward.txt
