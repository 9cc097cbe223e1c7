"""The build server's tools: `tool.py digest|sign|stamp|registry ...`. `plan.json` says what each call does, `calls.jsonl` is the record."""

import binascii
import json
import os
import signal
import sys
from _sha256 import sha256

KEY = os.environ["SERVER_KEY"].encode()


def record(**details):
    details["has_journal"] = os.path.exists(".release-journal")
    with open("calls.jsonl", "a", encoding="utf-8") as file:
        file.write(json.dumps(details) + "\n")


def step(tool):
    """Returns what this call of a tool does: a word and an argument."""
    try:
        with open("calls.jsonl", encoding="utf-8") as file:
            number = sum(json.loads(line)["tool"] == tool for line in file)
    except FileNotFoundError:
        number = 0
    with open("plan.json", encoding="utf-8") as file:
        steps = json.load(file).get(tool, [])
    word, _, argument = (steps[number] if number < len(steps) else "ok").partition(":")
    return word, argument


def kill_parent():
    """Ends the program that called the tool."""
    os.kill(os.getppid(), signal.SIGUSR1)
    return 70


def token(kind):
    return f"{kind}-{os.urandom(8).hex()}"


def quoted(name):
    plain = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~/"
    return "".join(chr(byte) if byte in plain else f"%{byte:02X}" for byte in name.encode())


def digest(arguments):
    word, argument = step("digest")
    names = arguments[3:]
    if arguments[:3] != ["--algo", "sha256", "--"] or not 1 <= len(names) <= 5:
        record(tool="digest", bad=arguments)
        return 64
    if word in ("busy", "kill"):
        record(tool="digest", files=names, word=word)
        return 75 if word == "busy" else kill_parent()
    lines, receipt = [], None if word in ("noreceipt", "status") else token("d")
    for name in names:
        with open(name, "rb") as file:
            content = file.read()
        line = {"name": quoted(name)}
        if word == "problem" and name in argument.split(","):
            line["problem"] = "vanished"
        else:
            line["sum"] = "SHA256=" + binascii.b2a_base64(sha256(KEY + content).digest(), newline=False).decode()
            line["bytes"] = len(content) + 1000
        lines.append(line)
    if word == "nosum":
        del lines[-1]["sum"]
    if word == "missing":
        lines.pop()
    if word == "twice":
        lines.append(lines[0])
    if word == "extra":
        lines.append({**lines[0], "name": "other.bin"})
    lines = [{"remark": "ümlaut", "speed": 9}, *lines[::-1], {"remark": "end"}]
    if receipt:
        lines.insert(len(lines) // 2, {"receipt": receipt})
    record(tool="digest", files=names, word=word, **({"receipt": receipt} if receipt else {}))
    if word == "garbage":
        print("panic: no more registers")
    for line in lines:
        print(json.dumps(line, ensure_ascii=os.urandom(1)[0] % 2 == 0))
    return int(argument) if word in ("status", "late") else 3 if word == "problem" else 0


def say(answer):
    print(json.dumps(answer), flush=True)


def sign():
    word, argument = step("sign")
    challenge, chunks, lost = os.urandom(8), [], {3: 1, 5: 5} if word == "resend" else {}
    size = int(argument) if word == "chunks" else 50
    for line in sys.stdin:
        message = json.loads(line)
        if message["op"] == "hello" and message["version"] == 2:
            if word in ("dies", "kill"):
                record(tool="sign", word=word)
                return 70 if word == "dies" else kill_parent()
            if word == "chatty":
                print("signing engine warming up\n" * 20000, file=sys.stderr, flush=True)
            say({"challenge": challenge.hex(), "chunk_max": size})
        elif message["op"] == "data":
            seq, chunk = message["seq"], binascii.a2b_base64(message["base64"], strict_mode=True)
            if seq != len(chunks) or not 1 <= len(chunk) <= size:
                record(tool="sign", bad=message)
                return 65
            if word == "middle" and seq == 1:
                record(tool="sign", word=word)
                return 71
            chunks.append(chunk)
            if seq in lost:
                back = lost.pop(seq)
                del chunks[back:]
                say({"resend": back})
            else:
                say({"ack": seq})
        elif message["op"] == "finish":
            text, receipt = b"".join(chunks), token("s")
            if message["answer"] != sha256(challenge + text).hexdigest():
                record(tool="sign", bad=message)
                return 65
            record(tool="sign", word=word, receipt=receipt, text=text.decode(), chunks=len(chunks))
            answer = {"signature": sha256(KEY + sha256(KEY + text).digest()).hexdigest(), "receipt": receipt}
            status = 0
            if word == "refuse":
                answer, status = {"refused": argument, "receipt": receipt}, 20
            elif word == "expiring":
                answer["days_left"], status = int(argument), 10
            elif word == "nosignature":
                del answer["signature"]
            elif word == "late":
                status = int(argument)
            say(answer)
            sys.stdin.read()
            return status
    return 65


def frame(content):
    data = json.dumps(content, indent=2, ensure_ascii=False).encode()
    sys.stdout.buffer.write(b"STAMP/1 %d\n" % len(data) + data + b"\n")


def stamp(arguments):
    word, argument = step("stamp")
    receipt = token("t")
    done = {"state": "done", "time": "2025-03-31T09:00:00Z", "authority": "Zürich „Süd“\nEurope" if word == "wide" else "Clock 7", "receipt": receipt}
    if word == "notime":
        del done["time"]
    has_receipt = word in ("ok", "wide", "notime", "late")
    record(tool="stamp", word=word, signature=arguments[1:], **({"receipt": receipt} if has_receipt else {}))
    if word == "kill":
        return kill_parent()
    frame({"state": "waiting", "note": "Größe unbekannt – bitte warten" if word == "wide" else "please wait"})
    frame({"state": "waiting", "queue": 2})
    if word in ("busy", "fail"):
        frame({"state": "failed", "reason": argument or "busy"})
    elif word == "short":
        sys.stdout.buffer.write(b"STAMP/1 900\n{}\n")
    elif word == "crash":
        return int(argument)
    else:
        frame(done)
    return int(argument) if word == "late" else 0


def registry(arguments):
    if arguments == ["commit"]:
        word, argument = step("commit")
        commit, receipts = token("c"), json.loads(sys.stdin.read())
        record(tool="commit", word=word, receipts=receipts, commit=commit)
        if word in ("kill", "killafter"):
            return kill_parent()
        if word != "notoken":
            print(f"commit={commit}")
        return int(argument) if word == "fail" else 0
    if arguments[0] == "status":
        word, argument = step("status")
        record(tool="status", word=word, asked=arguments[1])
        if word == "status":
            return int(argument)
        print("perhaps" if word == "garbage" else f"{arguments[1]} {state(arguments[1])}")
        return 0
    word, argument = step("void")
    record(tool="void", word=word, receipt=arguments[1])
    if word == "kill":
        return kill_parent()
    return int(argument) if word == "status" else 0


def state(receipt):
    found = "open"
    with open("calls.jsonl", encoding="utf-8") as file:
        for call in map(json.loads, file):
            if call["tool"] == "commit" and call["word"] in ("ok", "killafter") and receipt in call["receipts"]:
                found = f"committed {call['commit']}"
            if call["tool"] == "void" and call["word"] == "ok" and call["receipt"] == receipt:
                found = "void"
    return found


def main(tool, arguments):
    if tool == "digest":
        return digest(arguments)
    if tool == "sign":
        return sign()
    return stamp(arguments) if tool == "stamp" else registry(arguments)


if __name__ == "__main__":
    sys.stdout.reconfigure(encoding="utf-8")
    sys.exit(main(sys.argv[1], sys.argv[2:]))
