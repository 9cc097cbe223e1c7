"""Compares what `supervisor.py` reads with Python's own modules. Takes its path and a file of vectors."""

import base64
import hashlib
import importlib.util
import json
import pickle
import random
import sys
import zlib

spec = importlib.util.spec_from_file_location("supervisor", sys.argv[1])
supervisor = importlib.util.module_from_spec(spec)
spec.loader.exec_module(supervisor)
rng = random.Random(20240101)


def digest(value):
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()


def vectors():
    count = 0
    with open(sys.argv[2], encoding="utf-8") as file:
        for line in file:
            known = json.loads(line)
            row = known["row"]
            public = supervisor.tests_of(row["public_test_cases"], "public")
            private = supervisor.tests_of(row["private_test_cases"], "private")
            assert (len(public), len(private)) == (known["n_public"], known["n_private"])
            shown = [[test["input"], test["output"], test["testtype"]] for test in private]
            assert digest(shown) == known["decoded_private_sha256"], row["question_id"]
            name = json.loads(row["metadata"]).get("func_name")
            record = supervisor.record_of(public + private, name)
            assert digest(record) == known["evaluation_sample_sha256"], row["question_id"]
            count += 1
    assert count == 20, count


def some_text():
    length = rng.choice([0, 1, 5, 255, 256, 257, 70_000])
    return "".join(chr(rng.choice([10, 34, 65, 233, 8364, 0x1F600, 0xD800])) for _ in range(length))


def pickles():
    for _ in range(400):
        text, protocol = some_text(), rng.randint(1, 5)
        content = pickle.dumps(text, protocol=protocol)
        assert supervisor.unpickled_text(content) == text
        # Whatever is changed in it, the outcome is a text or an error: nothing is called, and the parser terminates.
        changed = bytearray(content)
        for _ in range(rng.randint(1, 3)):
            changed[rng.randrange(len(changed))] = rng.randrange(256)
        cut = bytes(changed[: rng.randint(0, len(changed))])
        for broken in (bytes(changed), cut):
            try:
                assert isinstance(supervisor.unpickled_text(broken), str)
            except (supervisor.Unreadable, UnicodeDecodeError):
                pass


class Called:
    def __reduce__(self):
        return print, ("a pickle was run",)


def refused():
    values = [1, None, ["x"], {"a": "b"}, b"bytes", ("x",), Called()]
    for value in values:
        for protocol in range(1, 6):
            try:
                supervisor.unpickled_text(pickle.dumps(value, protocol=protocol))
            except supervisor.Unreadable:
                continue
            raise AssertionError(f"{value!r} was read")
    encoded = lambda value: base64.b64encode(zlib.compress(pickle.dumps(value))).decode()
    test = {"input": "1\n", "output": "2\n", "testtype": "stdin"}
    assert supervisor.tests_of(encoded(json.dumps([test])), "private") == [test]
    assert supervisor.tests_of("[]", "private") == []
    bomb = base64.b64encode(zlib.compress(bytes(1 << 20))).decode()
    supervisor.DECODED_MAX = 1 << 16
    for text in [
        "", "x", "null", "{}", "7", '["x"]', "é", "AAAA", encoded("x"), encoded("{}"), encoded([test]), bomb,
        encoded(json.dumps([test]))[:-8], json.dumps([{**test, "testtype": "other"}]),
        json.dumps([{**test, "input": 1}]), json.dumps([{"input": "1"}]), "[" * 100_000,
    ]:  # fmt: skip
        try:
            supervisor.tests_of(text, "private")
        except supervisor.Unreadable:
            continue
        raise AssertionError(f"{text[:60]!r} was read")


def messages():
    report = lambda lines: supervisor.report_in(lines, b"word", 2)
    line = lambda results, **metadata: b"plain\nword" + json.dumps({"results": results, "metadata": metadata}).encode()
    assert report(line([True, True]) + b"\n")["results"] == [True, True]
    assert report(line([True, -2], error_code=-2) + b"\n")["results"] == [True, -2]
    assert report(line([False, -4], error_code=-4) + b"\n") is not None
    forged = [
        line([True]), line([True, True, True]), line([]), line([True, True], error_code=-2), line([1, 1])[:-1],
        b"plain\n" + json.dumps({"results": [True, True], "metadata": {}}).encode(),
        b"plain\nword[]", b"plain\nword{}", b'plain\nword{"results": 1, "metadata": {}}', b"", b"plain",
    ]  # fmt: skip
    for content in forged:
        assert report(content + b"\n") is None, content
    assert report(line([True, True])) is None
    assert report(line([True, True]) + b"\n" + line([True, True]) + b"\n") is None


vectors()
pickles()
refused()
messages()
print("all is as it should be")
