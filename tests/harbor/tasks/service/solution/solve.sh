#!/bin/bash
getent hosts store | awk '{ print $2 }' | cut -d. -f1 > /logs/artifacts/name.txt
