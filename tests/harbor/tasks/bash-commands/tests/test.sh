#!/bin/bash
if [ -e collected.txt ]; then echo 1; elif [ -e done ]; then echo 0.5; else echo 0; fi > /logs/verifier/reward.txt
