"""A registry that forgets everything."""

import json
import sys

from common import note, receipt


def main(arguments):
    if arguments == ["commit"]:
        token, receipts = receipt("c"), json.loads(sys.stdin.read())
        note("commit", receipts=receipts, commit=token)
        print(f"commit={token}")
        return 0
    if len(arguments) == 2 and arguments[0] == "void":
        note("void", receipt=arguments[1])
        return 0
    return 64


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
