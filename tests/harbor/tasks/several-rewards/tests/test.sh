#!/bin/bash
# The text file is ignored, since there is a JSON file.
echo 0.125 > /logs/verifier/reward.txt
if grep -q fast work.txt; then
    echo '{"reward": 0.75, "speed": 1, "style": false, "share": 2.5e-1}' > /logs/verifier/reward.json
else
    echo '{"reward": 0, "speed": 0, "style": false, "share": 0.0}' > /logs/verifier/reward.json
fi
