"""Checksums of files."""

import base64
import hashlib
import json
import sys
import urllib.parse

from common import note, receipt

FILES_MAX = 5


def main(arguments):
    if arguments[:3] != ["--algo", "sha256", "--"] or not 1 <= len(arguments) - 3 <= FILES_MAX:
        print("usage: digest --algo sha256 -- FILE... (at most 5)", file=sys.stderr)
        return 64
    names, status = arguments[3:], 0
    token = receipt("d")
    for name in reversed(names):
        line = {"name": urllib.parse.quote(name, safe="/")}
        try:
            with open(name, "rb") as file:
                content = file.read()
            line["sum"] = "SHA256=" + base64.b64encode(hashlib.sha256(content).digest()).decode()
            line["bytes"] = len(content)
        except OSError:
            line["problem"] = "unreadable"
            status = 3
        print(json.dumps(line))
    print(json.dumps({"receipt": token}))
    note("digest", files=names, receipt=token)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
