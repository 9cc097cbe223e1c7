#!/bin/bash
# The tests of the step before are gone.
ls /tests > listing.txt 2>/dev/null
touch finished.txt
