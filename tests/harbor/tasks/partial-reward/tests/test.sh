#!/bin/bash
found=0
for file in a b c d; do
    if [ -e "$file" ]; then found=$((found + 25)); fi
done
printf '0.%02d\n' "$found" > /logs/verifier/reward.txt
