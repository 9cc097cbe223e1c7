import sys

EXPECTED = """name,age,city
Ada,36,London
Grace,85,New York
Alan,41,Wilmslow
Katherine,101,Newport News
"""

try:
    with open("/app/fixed.csv") as file:
        found = file.read()
except OSError as error:
    sys.exit(f"1 failed: {error}")
if found.rstrip("\n") != EXPECTED.rstrip("\n"):
    sys.exit(f"1 failed: the table is\n{found}")
print("1 passed")
