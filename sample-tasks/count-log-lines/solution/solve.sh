#!/bin/bash
set -e
python3 - <<'PYTHON'
import collections
import glob
import json
import re

counts = collections.Counter()
for path in glob.glob("/app/logs/*.log"):
    with open(path) as log:
        for line in log:
            found = re.match(r"\S+ \[(\w+)\]", line)
            if found:
                counts[found.group(1).upper()] += 1
with open("/app/counts.json", "w") as file:
    json.dump(counts, file)
PYTHON
