import json
import sys

try:
    with open("/app/counts.json") as file:
        found = json.load(file)
except (OSError, ValueError) as error:
    sys.exit(f"1 failed: {error}")
if found != {"INFO": 4, "WARN": 2, "ERROR": 1, "DEBUG": 1}:
    sys.exit(f"1 failed: the counts are {found}")
print("1 passed")
