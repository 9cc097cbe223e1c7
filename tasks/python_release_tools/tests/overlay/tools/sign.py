"""Signs with a key that is only good for trials."""

import base64
import hashlib
import hmac
import json
import secrets
import sys

from common import note, receipt

KEY = b"only for trials"
CHUNK_MAX = 96


def say(answer):
    print(json.dumps(answer), flush=True)


def main():
    challenge, chunks = secrets.token_bytes(16), []
    for line in sys.stdin:
        message = json.loads(line)
        if message["op"] == "hello" and message["version"] == 2:
            say({"challenge": challenge.hex(), "chunk_max": CHUNK_MAX})
        elif message["op"] == "data":
            chunk = base64.b64decode(message["base64"], validate=True)
            if message["seq"] != len(chunks) or len(chunk) > CHUNK_MAX:
                return 65
            chunks.append(chunk)
            say({"ack": message["seq"]})
        elif message["op"] == "finish":
            text, token = b"".join(chunks), receipt("s")
            is_right = message["answer"] == hashlib.sha256(challenge + text).hexdigest()
            note("sign", receipt=token)
            if not is_right:
                say({"refused": "wrong answer", "receipt": token})
            else:
                say({"signature": hmac.new(KEY, text, "sha256").hexdigest(), "receipt": token})
            sys.stdin.read()
            return 0 if is_right else 20
    return 65


if __name__ == "__main__":
    sys.exit(main())
