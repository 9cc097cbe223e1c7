#!/bin/bash
if [ "$(cat /app/value.txt)" = "<>" ]; then echo 1; else echo 0; fi > /logs/verifier/reward.txt
