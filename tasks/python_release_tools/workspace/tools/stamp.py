"""Time stamps from the clock of this machine."""

import datetime
import json
import sys

from common import note, receipt


def frame(content):
    data = json.dumps(content, indent=1, ensure_ascii=False).encode()
    sys.stdout.buffer.write(b"STAMP/1 %d\n" % len(data) + data + b"\n")


def main(arguments):
    if len(arguments) != 2 or arguments[0] != "--signature":
        return 64
    token = receipt("t")
    now = datetime.datetime.now(datetime.timezone.utc)
    frame({"state": "waiting"})
    frame({"state": "done", "time": f"{now:%Y-%m-%dT%H:%M:%SZ}", "authority": "Prüfstelle (trial)", "receipt": token})
    note("stamp", receipt=token)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
