#!/bin/bash
# Neither the solution's exit code nor that of this script counts.
if [ -e done ]; then echo 1; else echo 0; fi > /logs/verifier/reward.txt
exit 7
