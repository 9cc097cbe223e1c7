#!/bin/bash
# Half of the work is done when the time is over.
if [ -e done ]; then echo 1; elif [ -e begun ]; then echo 0.5; else echo 0; fi > /logs/verifier/reward.txt
