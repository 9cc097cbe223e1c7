"""Runs the tests of a task whose test command loads the answer into the tests' own process.

There a program of the answer could replace the runner. What counts is therefore not an exit status: every test must be
reported by name, reports carry a secret of this round where the runner can keep one, and tests that must fail (canaries,
under random names) are added: if one of them isn't reported as failed, nothing that the runner says counts.
"""

import hashlib
import hmac
import json
import os
import re
import secrets

REPORT_MAX = 8 << 20
# Names of folders that have no tests of the task.
SKIPPED = {"target", "node_modules", ".git", "__pycache__", "workspace"}

PYTEST = r"""
import hashlib, hmac, json, os, sys
def main():
    secret, report = int(sys.argv[1]), int(sys.argv[2])
    key = os.read(secret, 64)
    os.close(secret)
    import pytest
    outcomes = {}
    class Recorder:
        @pytest.hookimpl(trylast=True)
        def pytest_runtest_logreport(self, report):
            before = outcomes.get(report.nodeid)
            if report.failed or report.skipped:
                outcomes[report.nodeid] = ["failed", str(report.longrepr)[-1000:], report.duration]
            elif report.when == "call" and before is None:
                outcomes[report.nodeid] = ["passed", "", report.duration]
        def pytest_collectreport(self, report):
            if report.failed:
                outcomes[report.nodeid or "collection"] = ["failed", str(report.longrepr)[-1000:], 0.0]
    write, dumps, new, close = os.write, json.dumps, hmac.new, os.close
    sys.path[:0] = ["", *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    pytest.main(sys.argv[3:], plugins=[Recorder()])
    text = dumps(outcomes).encode("utf-8")
    text = new(key, text, hashlib.sha256).hexdigest().encode("ascii") + text
    while text:
        text = text[write(report, text):]
    close(report)
main()
"""

NODE = r"""
import fs from "node:fs"
const secret = fs.readFileSync(SECRET, "utf8")
fs.closeSync(SECRET)
const { writeSync } = fs
const { exit } = process
const report = (how) => { try { writeSync(REPORT, `${secret}${how}\n`) } catch {} }
process.exit = (code) => {
  const frame = String(new Error().stack).split("\n")[2] ?? ""
  if (frame.includes("/tests/")) report("exit")
  exit(code)
}
process.on("beforeExit", () => report("end"))
"""


class Runner:
    """Runs one command with a pipe for its report."""

    def __init__(self, host, deadline, drained):
        self.host = host
        self.deadline = deadline
        self.drained = drained

    def run(self, argv, env=None, pass_fds=()):
        """Runs a program to its end; its output is logged. Returns its status, or `late`."""
        self.host.log("$ " + " ".join(part if len(part) < 200 else part[:200] + "…" for part in argv))
        process = self.host.start(argv, self.host.folders["workspace"], env or {}, pass_fds)
        process.stdin.close()
        status = self.drained(process, (process.stdout, process.stderr), self.deadline, self.host)
        self.host.end_all()
        if status != "late":
            self.host.note_status(status)
        return status

    def output_of(self, argv, env=None):
        """Runs a program and returns its status and the output that it added to the log."""
        kept = []
        add = self.host.output.add
        self.host.output.add = lambda text: (kept.append(text), add(text))[1]
        try:
            status = self.run(argv, env)
        finally:
            self.host.output.add = add
        return status, "".join(kept)


def outcome(is_passed, text="", seconds=0.0):
    return {"outcome": "passed" if is_passed else "failed", "seconds": round(seconds, 3), "text": text[-4000:]}


def without_canaries(tests, canaries):
    """Returns the tests, all failed if a canary isn't reported as failed."""
    forged = [name for name in canaries if tests.get(name, {}).get("outcome") != "failed"]
    left = {name: test for name, test in tests.items() if name not in canaries}
    if not forged or not left:
        return left
    return {name: outcome(False, "the runner doesn't report a test that must fail") for name in left}


def run(kind, host, args, deadline, drained):
    """Runs the tests. Returns the outcomes by name, the failed build or `None`, and whether the time was up."""
    runner = Runner(host, deadline, drained)
    return {"pytest": pytest, "go": go, "cargo": cargo, "node": node}[kind](host, runner, args)


def pytest(host, runner, args):
    word = secrets.token_hex(8)
    workspace = host.folders["workspace"]
    has_tests = os.path.isdir(os.path.join(workspace, "tests"))
    canary = f"tests/test_{word}.py" if has_tests else f"test_{word}.py"
    host.write_file(workspace, canary, f"def test_{word}():\n    assert sorted('{word}') == '{word}'\n".encode())
    config = os.path.join(host.folders["home"], "pytest.ini")
    host.write_file(host.folders["home"], "pytest.ini", b"[pytest]\n")
    options = ["-p", "no:cacheprovider", "-c", config, "--rootdir", workspace, "--ignore=workspace"]
    places = [arg for arg in args if not arg.startswith("-")]
    flags = [arg for arg in args if arg.startswith("-")]
    secret_read, secret_write = os.pipe()
    report_read, report_write = os.pipe()
    key = secrets.token_bytes(32)
    os.write(secret_write, key)
    os.close(secret_write)
    argv = ["python3", "-I", "-B", "-c", PYTEST, str(secret_read), str(report_write), *options, *flags]
    argv += places or (["tests"] if has_tests else ["."])
    os.set_blocking(report_read, False)
    report = Collected(report_read)
    try:
        status = runner.run(argv, {"PYTHONPATH": os.environ.get("PYTHONPATH", ".")}, (secret_read, report_write))
    finally:
        os.close(secret_read)
        os.close(report_write)
    text = report.rest()
    mac, body = text[:64], text[64:]
    expected = hmac.new(key, body, hashlib.sha256).hexdigest().encode("ascii")
    tests = {}
    if hmac.compare_digest(mac, expected):
        for name, (result, message, seconds) in json.loads(body).items():
            tests[name] = outcome(result == "passed", message, seconds)
    tests = without_canaries(tests, [f"{canary}::test_{word}"])
    return tests, None, status == "late"


class Collected:
    """What a program wrote to a pipe. It is read when the program has ended; a report that fills the pipe is lost."""

    def __init__(self, descriptor):
        self.descriptor = descriptor
        try:
            import fcntl

            fcntl.fcntl(descriptor, fcntl.F_SETPIPE_SZ, 1 << 20)
        except (OSError, AttributeError):
            pass

    def rest(self):
        text = b""
        while len(text) < REPORT_MAX:
            try:
                piece = os.read(self.descriptor, 1 << 16)
            except BlockingIOError:
                break
            if not piece:
                break
            text += piece
        os.close(self.descriptor)
        return text


def source_folders(workspace, ending):
    """Returns the folders with files of this ending, and their names there."""
    found = {}
    for above, folders, files in os.walk(workspace):
        folders[:] = sorted(name for name in folders if name not in SKIPPED and not os.path.islink(os.path.join(above, name)))
        names = sorted(name for name in files if name.endswith(ending))
        if names:
            found[os.path.relpath(above, workspace)] = names
    return found


def go(host, runner, args):
    word = secrets.token_hex(8)
    workspace = host.folders["workspace"]
    name = f"TestCanary{word}"
    canaries = 0
    for folder, names in source_folders(workspace, "_test.go").items():
        with open(os.path.join(workspace, folder, names[0]), encoding="utf-8", errors="replace") as file:
            package = re.search(r"^package\s+(\w+)", file.read(), re.MULTILINE)
        if package:
            text = f"package {package[1]}\n\nimport \"testing\"\n\nfunc {name}(t *testing.T) {{ t.Fatal() }}\n"
            host.write_file(workspace, os.path.join(folder, f"z{word}_test.go"), text.encode())
            canaries += 1
    env = {}
    if not any(os.path.exists(os.path.join(workspace, file)) for file in ("go.mod", "go.work")):
        env["GO111MODULE"] = "off"
    status, text = runner.output_of(["go", "test", "-json", "-count=1", "-vet=off", *args], env)
    tests, build, failed = {}, None, 0
    texts = {}
    for line in text.splitlines():
        try:
            event = json.loads(line)
        except ValueError:
            continue
        if not isinstance(event, dict):
            continue
        if event.get("Action") == "build-fail" or event.get("FailedBuild"):
            build = {"argv": ["go", "test", *args], "status": status if status != "late" else None}
        if "Test" not in event:
            continue
        full = f"{event.get('Package', '')}.{event['Test']}"
        if event.get("Action") == "output":
            texts[full] = (texts.get(full, "") + event.get("Output", ""))[-4000:]
        elif event.get("Action") in ("pass", "fail", "skip"):
            if event["Test"] == name:
                failed += event["Action"] == "fail"
                continue
            is_passed = event["Action"] == "pass" and tests.get(full, outcome(True))["outcome"] == "passed"
            message = "" if is_passed else texts.get(full, "")
            tests[full] = outcome(is_passed, message, float(event.get("Elapsed") or 0.0))
    if failed < canaries and build is None:
        tests = {full: outcome(False, "the runner doesn't report a test that must fail") for full in tests}
    return tests, build, status == "late"


def cargo(host, runner, args):
    word = secrets.token_hex(8)
    workspace = host.folders["workspace"]
    canaries = 0
    for path in ("src/lib.rs", "src/main.rs"):
        full = os.path.join(workspace, path)
        if os.path.isfile(full):
            with open(full, encoding="utf-8", errors="replace") as file:
                text = file.read()
            text += f"\n#[cfg(test)]\nmod canary_{word} {{\n    #[test]\n    fn canary_{word}() {{\n        panic!();\n    }}\n}}\n"
            host.write_file(workspace, path, text.encode("utf-8"))
            canaries += 1
    if os.path.isdir(os.path.join(workspace, "tests")) and source_folders(os.path.join(workspace, "tests"), ".rs"):
        host.write_file(workspace, f"tests/canary_{word}.rs", f"#[test]\nfn canary_{word}() {{\n    panic!();\n}}\n".encode())
        canaries += 1
    status = runner.run(["cargo", *args[:1], "--no-run", *args[1:]])
    if status != 0:
        return {}, {"argv": ["cargo", *args, "--no-run"], "status": None if status == "late" else status}, status == "late"
    status, text = runner.output_of(["cargo", *args[:1], "--no-fail-fast", *args[1:]])
    tests, failed = {}, 0
    for found in re.finditer(r"^test (.+?)(?: - should panic)? \.\.\. (ok|FAILED|ignored.*)$", text, re.MULTILINE):
        test, result = found[1], found[2]
        if word in test:
            failed += result == "FAILED"
            continue
        is_passed = result == "ok" and tests.get(test, outcome(True))["outcome"] == "passed"
        tests[test] = outcome(is_passed, "" if is_passed else result)
    if failed < canaries:
        tests = {test: outcome(False, "the runner doesn't report a test that must fail") for test in tests}
    return tests, None, status == "late"


def node(host, runner, args):
    secret_read, secret_write = os.pipe()
    report_read, report_write = os.pipe()
    key = secrets.token_hex(32)
    os.write(secret_write, key.encode("ascii"))
    os.close(secret_write)
    hook = NODE.replace("SECRET", str(secret_read)).replace("REPORT", str(report_write))
    host.write_file(host.folders["home"], "hook.mjs", hook.encode())
    os.set_blocking(report_read, False)
    report = Collected(report_read)
    argv = ["node", "--import", os.path.join(host.folders["home"], "hook.mjs"), *args]
    try:
        status = runner.run(argv, None, (secret_read, report_write))
    finally:
        os.close(secret_read)
        os.close(report_write)
    lines = report.rest().decode("utf-8", "replace").splitlines()
    ended = any(line in (key + "end", key + "exit") for line in lines)
    message = "" if status == 0 and ended else f"it ended with status {status}" if ended else "the program ended before its tests did"
    return {" ".join(args): outcome(status == 0 and ended, message)}, None, status == "late"
