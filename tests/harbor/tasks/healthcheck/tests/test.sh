#!/bin/bash
# The environment is ready at the third check.
if [ -e done ]; then wc -l < /tmp/tries | awk '{ print $1 / 4 }'; else echo 0; fi > /logs/verifier/reward.txt
