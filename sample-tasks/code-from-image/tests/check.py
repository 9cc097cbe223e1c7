import os
import sys

PATH = "/app/printed.txt"
EXPECTED = ["mtuidfacajyt", "799"]

if not os.path.isfile(PATH) or os.path.getsize(PATH) > 1000:
    sys.exit(f"1 failed: {PATH} is missing, not a file, or longer than 1,000 bytes")
with open(PATH, errors="replace") as file:
    found = file.read()
if [line.rstrip() for line in found.strip().splitlines()] != EXPECTED:
    sys.exit(f"1 failed: the text is\n{found}")
print("1 passed")
