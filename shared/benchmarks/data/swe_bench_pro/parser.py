"""Reads the output of `run_script.sh`. usage: parser.py STDOUT STDERR OUTPUT"""

import json
import re
import sys

RESULT = re.compile(r"(test_\w+) \(.*\) ?(?:\.\.\.) (ok|FAIL|ERROR|skipped)")
LOADED = re.compile(r"(test_\w+) \(unittest\.loader\._FailedTest")
STATUS = {"ok": "PASSED", "FAIL": "FAILED", "ERROR": "ERROR", "skipped": "SKIPPED"}


def main(stdout, _stderr, output):
    tests = []
    file = ""
    with open(stdout, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            if line.startswith("== "):
                file = line[3:].strip()
            elif LOADED.match(line):
                continue
            elif found := RESULT.match(line):
                tests.append({"name": f"{file} | {found[1]}", "status": STATUS[found[2]]})
    with open(output, "w", encoding="utf-8") as written:
        json.dump({"tests": tests}, written)


main(*sys.argv[1:])
