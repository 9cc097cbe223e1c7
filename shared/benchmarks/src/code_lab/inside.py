"""Runs the tests of a task whose test command loads the answer into the tests' own process.

There a program of the answer could replace the runner. What counts is therefore not an exit status: every test must be
reported by name, reports carry a secret of this round where the runner can keep one, and tests that must fail (canaries,
under random names) are added: if one of them isn't reported as failed, nothing that the runner says counts.
"""

import fcntl
import hashlib
import hmac
import json
import mmap
import os
import re
import secrets

# Room for a report.
PIPE_BYTES = 1 << 20
# Names of folders that have no tests of the task.
SKIPPED = {"target", "node_modules", ".git", "__pycache__", "workspace"}

PYTEST = r"""
import hashlib, hmac, json, os, sys
def main():
    secret, report = int(sys.argv[1]), int(sys.argv[2])
    key = os.read(secret, 64)
    os.close(secret)
    packages = sys.argv[3]
    if packages:
        sys.path.insert(0, packages)
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
            # A module that skips itself leaves out its tests.
            if report.failed or report.skipped:
                outcomes[report.nodeid or "collection"] = ["failed", str(report.longrepr)[-1000:], 0.0]
    write, dumps, new, close = os.write, json.dumps, hmac.new, os.close
    sys.path[:0] = [*sys.path[:bool(packages)], "", *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    pytest.main(sys.argv[4:], plugins=[Recorder()])
    text = dumps(outcomes).encode("utf-8")
    text = new(key, text, hashlib.sha256).hexdigest().encode("ascii") + text
    while text:
        text = text[write(report, text):]
    close(report)
main()
"""

NODE = r"""
import assert from "node:assert"
import fs from "node:fs"
import { syncBuiltinESMExports } from "node:module"
const secret = fs.readFileSync(SECRET, "utf8")
fs.closeSync(SECRET)
const { writeSync } = fs
const { exit } = process
const { defineProperty, getOwnPropertyDescriptor } = Object
const { apply, deleteProperty, ownKeys, set } = Reflect
const OwnError = Error
const includes = Function.prototype.call.bind(String.prototype.includes)
const split = Function.prototype.call.bind(String.prototype.split)
// Returns the stack without what a program does to traces, which packages need while they are loaded; nothing if it can't be undone.
const frames = () => {
  const own = getOwnPropertyDescriptor(OwnError, "prepareStackTrace")
  if (!deleteProperty(OwnError, "prepareStackTrace")) return []
  const limit = OwnError.stackTraceLimit
  set(OwnError, "stackTraceLimit", 50)
  const { stack } = new OwnError()
  set(OwnError, "stackTraceLimit", limit)
  if (own) defineProperty(OwnError, "prepareStackTrace", own)
  return split(stack, "\n")
}
// True if the nearest caller outside of Node is a file of the tests.
const isOfTests = (own) => {
  for (let at = 3; at < own.length; at += 1) {
    if (!includes(own[at], "node:") && !includes(own[at], import.meta.url)) return includes(own[at], TESTS)
  }
  return false
}
const report = (what) => { try { writeSync(REPORT, `${secret}${what}\n`) } catch {} }
// Without an argument, the status is that which was set before.
process.exit = (...args) => {
  if (isOfTests(frames())) report("end")
  return apply(exit, process, args)
}
process.on("beforeExit", () => {
  // One that the answer emits has a caller.
  const own = frames()
  if (own.length < 4) return
  for (let at = 3; at < own.length; at += 1) if (!includes(own[at], "(node:events:")) return
  report("end")
})
// Handlers of errors belong to the tests: one of the answer would hide that a test failed.
let handlers = 0
for (const name of ["on", "addListener", "once", "prependListener", "prependOnceListener"]) {
  const add = process[name].bind(process)
  process[name] = (event, listener) => {
    if (event === "uncaughtException" || event === "unhandledRejection") {
      if (!isOfTests(frames())) return process
      handlers += 1
    }
    return add(event, listener)
  }
}
process.setUncaughtExceptionCaptureCallback = () => {}
process.on("uncaughtExceptionMonitor", () => { if (handlers === 0) report("status 1") })
// The first listener knows the status before others change it.
process.on("exit", (code) => report(`status ${code}`))
const { reallyExit } = process
process.reallyExit = (code) => reallyExit.call(process, includes(frames()[3] ?? "", "node:internal") ? code : code || 1)
// The answer can't replace assertions, but add some.
for (const one of [assert, assert.strict, assert.AssertionError]) {
  for (const name of ownKeys(one)) {
    const isValue = "value" in getOwnPropertyDescriptor(one, name)
    defineProperty(one, name, isValue ? { configurable: false, writable: false } : { configurable: false })
  }
}
syncBuiltinESMExports()
"""


def outcome(is_passed, text="", seconds=0.0):
    return {"outcome": "passed" if is_passed else "failed", "seconds": round(seconds, 3), "text": text[-4000:]}


def without_canaries(tests, canaries):
    """Returns the tests, all failed if a canary isn't reported as failed."""
    forged = [name for name in canaries if tests.get(name, {}).get("outcome") != "failed"]
    left = {name: test for name, test in tests.items() if name not in canaries}
    if not forged or not left:
        return left
    return {name: outcome(False, "the runner doesn't report a test that must fail") for name in left}


def run(kind, host, args, deadline):
    """Runs the tests. Returns the outcomes by name, the failed build or `None`, and whether the time was up."""
    return {"pytest": pytest, "go": go, "cargo": cargo, "node": node}[kind](host, args, deadline)


def pytest(host, args, deadline):
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
    key = secrets.token_bytes(32)

    def run(secret, report):
        packages = host.package_variables().get("PYTHONPATH", "")
        argv = ["python3", "-I", "-B", "-c", PYTEST, str(secret), str(report), packages, *options, *flags]
        argv += places or (["tests"] if has_tests else ["."])
        own = (host.task.get("env") or {}).get("PYTHONPATH") or os.environ.get("PYTHONPATH", ".")
        path = os.pathsep.join(filter(None, [own, packages]))
        return host.run(argv, deadline, {"PYTHONPATH": path}, (secret, report))

    status, text = with_report(key, run)
    mac, body = text[:64], text[64:]
    expected = hmac.new(key, body, hashlib.sha256).hexdigest().encode("ascii")
    tests = {}
    if hmac.compare_digest(mac, expected):
        for name, (result, message, seconds) in json.loads(body).items():
            tests[name] = outcome(result == "passed", message, seconds)
    tests = without_canaries(tests, [f"{canary}::test_{word}"])
    return tests, None, status is None


def with_report(key, run):
    """Calls `run` with a descriptor to read the key from, and one for a report. Returns its result, and the report.

    The report is read when the program has ended. One that fills the pipe keeps its program until the deadline.
    """
    secret_read, secret_write = os.pipe()
    report_read, report_write = os.pipe()
    os.write(secret_write, key)
    os.close(secret_write)
    try:
        fcntl.fcntl(report_read, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    except (OSError, AttributeError):
        pass
    os.set_blocking(report_read, False)
    try:
        result = run(secret_read, report_write)
    finally:
        os.close(secret_read)
        os.close(report_write)
    text = b""
    with open(report_read, "rb", buffering=0) as report:
        while piece := report.read(1 << 16):
            text += piece
    return result, text


def source_folders(workspace, ending):
    """Returns the folders with files of this ending, and their names there."""
    found = {}
    for above, folders, files in os.walk(workspace):
        folders[:] = sorted(name for name in folders if name not in SKIPPED and not os.path.islink(os.path.join(above, name)))
        names = sorted(name for name in files if name.endswith(ending))
        if names:
            found[os.path.relpath(above, workspace)] = names
    return found


def go(host, args, deadline):
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
    kept = []
    status = host.run(["go", "test", "-json", "-count=1", "-vet=off", *args], deadline, env, kept=kept)
    text = "".join(kept)
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
            build = {"argv": ["go", "test", *args], "status": status}
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
    return tests, build, status is None


# Tests that must fail, each by another macro: an answer could replace that which its tests use.
CANARIES = {"panic": "panic!()", "assert": "assert!(false)", "eq": "assert_eq!(1, 2)", "ne": "assert_ne!(1, 1)"}


# Sources that may have tests.
RUST_TESTS = re.compile(rb"#\[test\]|\bcfg\s*\([^\]]*\btest\b")


def cargo_canaries(word):
    """Returns the source of canaries, to be added to another one, whose last attribute must not be about them."""
    tests = (f"    #[test]\n    fn {name}_{word}() {{\n        {text};\n    }}\n" for name, text in CANARIES.items())
    return f"\nconst _: () = ();\n#[cfg(test)]\nmod canary_{word} {{\n{''.join(tests)}}}\n"


def rust_sources(package):
    """Returns the sources with tests by their paths in the package, and what is in them."""
    found = {}
    for top in ("src", "tests"):
        for folder, names in source_folders(os.path.join(package, top), ".rs").items():
            for name in names:
                path = os.path.normpath(os.path.join(top, folder, name))
                with open(os.path.join(package, path), "rb") as file:
                    text = file.read()
                # Each source in `tests` is a program; those in folders there are parts of them.
                is_root = path in ("src/lib.rs", "src/main.rs") or (top == "tests" and folder == ".")
                if is_root or (top == "src" and RUST_TESTS.search(text)):
                    found[path] = text
    return found


def built_canaries(package, text, words):
    """Returns the paths of sources whose canaries must fail, of all to which some were added.

    `text` is what Cargo says about programs of tests. Canaries are in them unless their source isn't compiled here, such
    as a module for another system, one that nothing declares, or data that looks like a source.
    """
    roots, found = set(), set()
    for line in re.finditer(r"Executable\S* +(unittests )?(\S.*) \((.+)\)\s*$", text, re.MULTILINE):
        program = os.path.join(package, line[3])
        if line[1]:
            roots.add(os.path.normpath(line[2]))
        if os.path.isfile(program) and os.path.getsize(program):
            with open(program, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
                found |= {name.decode() for name in re.findall(rb"canary_([0-9a-f]{16})::", content)}
    # The root of a program, which the answer may have written, decides whether any of its tests are in it.
    return {path for path, word in words.items() if path in roots or word in found}


def cargo(host, args, deadline):
    args = [arg for arg in args if arg not in ("-q", "--quiet")]
    package = os.path.normpath(os.path.join(host.folders["workspace"], host.task.get("working_dir") or "."))
    # One word for each source, so that none can fail in place of another.
    sources = rust_sources(package)
    words = {path: secrets.token_hex(8) for path in sources}
    for path, word in words.items():
        host.write_file(package, path, sources[path] + cargo_canaries(word).encode())
    build = ["cargo", *args[:1], "--no-run", *args[1:]]
    kept = []
    status = host.run(build, deadline, kept=kept)
    if status == 0:
        built = built_canaries(package, "".join(kept), words)
        # What isn't a source of these tests may be their data.
        for path in sources.keys() - built:
            host.write_file(package, path, sources[path])
        if sources.keys() - built:
            status = host.run(build, deadline)
    if status != 0:
        return {}, {"argv": build, "status": status}, status is None
    canaries = {f"{name}_{words[path]}" for path in built for name in CANARIES}
    kept = []
    status = host.run(["cargo", *args[:1], "--no-fail-fast", *args[1:]], deadline, kept=kept)
    text = "".join(kept)
    tests, failed = {}, set()
    for found in re.finditer(r"^test (.+?)(?: - should panic)? \.\.\. (ok|FAILED|ignored.*)$", text, re.MULTILINE):
        test, result = found[1], found[2]
        if test.rsplit("::", 1)[-1] in canaries:
            failed |= {test.rsplit("::", 1)[-1]} if result == "FAILED" else set()
            continue
        is_passed = result == "ok" and tests.get(test, outcome(True))["outcome"] == "passed"
        tests[test] = outcome(is_passed, "" if is_passed else result)
    if failed != canaries:
        tests = {test: outcome(False, "the runner doesn't report a test that must fail") for test in tests}
    return tests, None, status is None


def node(host, args, deadline):
    key = secrets.token_hex(32)

    def run(secret, report):
        # Node names files by their real paths.
        tests = json.dumps(os.path.join(os.path.realpath(host.folders["workspace"]), "tests", ""))
        hook = NODE.replace("SECRET", str(secret)).replace("REPORT", str(report)).replace("TESTS", tests)
        host.write_file(host.folders["home"], "hook.mjs", hook.encode())
        argv = ["node", "--import", os.path.join(host.folders["home"], "hook.mjs"), *args]
        return host.run(argv, deadline, None, (secret, report))

    status, text = with_report(key.encode("ascii"), run)
    lines = set(text.decode("utf-8", "replace").splitlines())
    if status == 0 and lines != {key + "end", key + "status 0"}:
        result = outcome(False, "the program ended before its tests did, or hid their status")
    else:
        result = outcome(status == 0, "" if status == 0 else f"it ended with status {status}")
    return {" ".join(args): result}, None, status is None
