#!/bin/bash
mkdir -p variables
for name in PLAIN GIVEN FALLBACK EMPTY UNUSED INSIDE SHARED SOLUTION VERIFIER DEBIAN_FRONTEND; do
    if [ -n "${!name+set}" ]; then printf '%s' "${!name}" > "variables/$name"; fi
done
