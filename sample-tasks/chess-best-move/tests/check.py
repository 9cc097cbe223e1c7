import os
import sys

PATH = "/app/answer.txt"

if not os.path.isfile(PATH) or os.path.getsize(PATH) > 1000:
    sys.exit(f"1 failed: {PATH} is missing, not a file, or longer than 1,000 bytes")
with open(PATH, errors="replace") as file:
    found = file.read()
if found.strip() != "g5g1":
    sys.exit(f"1 failed: the move is {found}")
print("1 passed")
