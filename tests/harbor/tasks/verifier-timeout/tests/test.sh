#!/bin/bash
# A reward from before the time-out doesn't count.
echo 1 > /logs/verifier/reward.txt
sleep 300
