#!/bin/bash
# Writes no finite number, or nothing at all.
if [ -e done ]; then
    echo nan > /logs/verifier/reward.txt
else
    : > /logs/verifier/reward.txt
fi
