#!/bin/bash
# Writes the reward: 1 if all checks hold, otherwise 0.
if python3 /tests/check.py; then
    echo 1 > /logs/verifier/reward.txt
else
    echo 0 > /logs/verifier/reward.txt
fi
