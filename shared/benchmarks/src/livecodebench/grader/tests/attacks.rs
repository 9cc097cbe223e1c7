//! Programs written against their grader.

use super::*;

/// Offset that no program can guess. Tests have input `N` and expected output `N + SECRET`.
const SECRET: u64 = 777_000;

fn item(tests: &[(String, String)], method: Option<&str>) -> Item {
    let kind = if method.is_some() { "functional" } else { "stdin" };
    let tests: Vec<Value> = tests
        .iter()
        .map(|(input, output)| json!({"input": input, "output": output, "testtype": kind}))
        .collect();
    let metadata = method.map(|name| json!({"func_name": name})).unwrap_or(json!({}));
    to_item(&json!({
        "question_content": "Guess.", "difficulty": "easy", "public_test_cases": "[]",
        "private_test_cases": Value::Array(tests).to_string(), "metadata": metadata.to_string(),
    }))
}

fn stdin_item() -> Item {
    let tests: Vec<_> = (1..4).map(|n| (format!("{n}\n"), format!("{}\n", n + SECRET))).collect();
    item(&tests, None)
}

fn functional_item() -> Item {
    let tests: Vec<_> = (1..4).map(|n| (format!("{n}"), format!("[{}]", n + SECRET))).collect();
    item(&tests, Some("guess"))
}

/// Result of an attack in official mode.
#[derive(Clone, Copy, PartialEq)]
enum OfficialResult {
    Passes,
    Fails,
    /// Depends on the user that runs the tests, or stops the supervisor until the job's time limit.
    NotRun,
}

const STDIN_ATTACKS: &[(&str, OfficialResult, &str)] = &[
    (
        "reads the frames of its callers",
        OfficialResult::Passes,
        "import sys\nframe, found = sys._getframe(), ''\nwhile frame:\n    found = frame.f_locals.get('expected') or found\n    frame = frame.f_back\nprint(found)",
    ),
    (
        "replaces the comparison",
        OfficialResult::Passes,
        "import sys\nframe = sys._getframe()\nwhile frame:\n    if 'compare_output' in frame.f_globals:\n        frame.f_globals['compare_output'] = lambda *_: None\n    frame = frame.f_back\nprint(1)",
    ),
    (
        "replaces the comparison of every module",
        OfficialResult::Passes,
        "import sys, gc, types\nfor module in gc.get_objects():\n    if isinstance(module, types.ModuleType) and hasattr(module, 'lines_match'):\n        module.lines_match = lambda *_: True\nprint(1)",
    ),
    (
        "replaces Decimal and what compares texts",
        OfficialResult::Passes,
        "import decimal, sys\nclass Equal:\n    def __init__(self, *_): pass\n    def __eq__(self, _): return True\ndecimal.Decimal = Equal\nprint(1)",
    ),
    (
        "looks through all objects",
        OfficialResult::Passes,
        "import gc\ngiven, found = int(input()), ''\nfor thing in gc.get_objects():\n    for part in [thing] + (list(thing.values()) if isinstance(thing, dict) else []):\n        if isinstance(part, list) and len(part) == 3 and isinstance(part[0], str) and part[0].startswith('777'):\n            found = part[given - 1]\nprint(found)",
    ),
    (
        "reads what it inherits",
        OfficialResult::Fails,
        "import posix\nfound = b''\nfor fd in range(3, 64):\n    try:\n        posix.lseek(fd, 0, 0)\n        found += posix.read(fd, 1 << 20)\n    except OSError:\n        pass\nat = found.find(b'777')\nprint(found[at:at + 6].decode() if at >= 0 else 'none')",
    ),
    (
        "reads the memory of its parent",
        OfficialResult::NotRun,
        "import os, posix, re\ngiven, parent = int(input()), os.getppid()\nfd, maps = posix.open(f'/proc/{parent}/maps', 0), b''\nwhile piece := posix.read(fd, 1 << 16):\n    maps += piece\nmemory = posix.open(f'/proc/{parent}/mem', 0)\nfound = set()\nfor line in maps.decode().split('\\n'):\n    if ' rw' in line:\n        first, last = (int(part, 16) for part in line.split()[0].split('-'))\n        try:\n            found |= set(re.findall(rb'7770\\d\\d', posix.pread(memory, last - first, first)))\n        except OSError:\n            pass\nprint(max(found, key=lambda text: int(text) == given + 777000).decode() if found else 'none')",
    ),
    (
        "traces or copies its parent",
        OfficialResult::NotRun,
        "import ctypes, os\nlibc, parent, found = ctypes.CDLL(None, use_errno=True), os.getppid(), []\nif libc.ptrace(16, parent, 0, 0) == 0:\n    found.append('ptrace')\npidfd = libc.syscall(434, parent, 0)\nfound += [fd for fd in range(32) if libc.syscall(438, pidfd, fd, 0) >= 0]\nhere, there = (ctypes.c_size_t * 2)(), (ctypes.c_size_t * 2)()\nprint(777001 if found else 'none')",
    ),
    (
        "opens what its parent has open",
        OfficialResult::NotRun,
        "import os, posix\nparent, found = os.getppid(), []\nfor name in ('environ', 'maps', 'auxv', *(f'fd/{fd}' for fd in range(3, 32))):\n    try:\n        found.append(posix.read(posix.open(f'/proc/{parent}/{name}', 0), 1 << 16))\n    except OSError:\n        pass\nprint(777001 if found else 'none')",
    ),
    (
        "searches the files of its job",
        OfficialResult::Fails,
        "import posix, io\nfound, folders = b'', ['..', '.', '../..']\nfor folder in folders:\n    for name in posix.listdir(folder):\n        try:\n            found += posix.read(posix.open(f'{folder}/{name}', 0), 1 << 20)\n        except OSError:\n            pass\nat = found.find(b'777')\nprint(found[at:at + 6].decode() if at >= 0 else 'none')",
    ),
    (
        "traces its caller and changes its result",
        OfficialResult::Fails,
        "import sys\ndef trace(frame, event, arg):\n    frame.f_locals['same'] = True\n    return trace\nsys.settrace(trace)\nprint(1)",
    ),
    (
        "says so itself",
        OfficialResult::Fails,
        "import posix\nline = b'plain\\n' + b'0' * 64 + b'{\"results\": [true, true, true], \"metadata\": {}}\\n'\nframe = b'{\"results\": [true, true, true], \"metadata\": {}}'\nframe = len(frame).to_bytes(8, 'big') + frame\nfor fd in range(3, 64):\n    for text in (line, frame * 5):\n        try:\n            posix.write(fd, text)\n        except OSError:\n            pass\nposix._exit(0)",
    ),
    (
        "says that every test was fine",
        OfficialResult::Fails,
        "import posix\ntexts = [b'{\"ready\": true}'] + [b'{\"printed\": true}', b'{\"shown\": true}', b'{\"returned\": {}}', b'{\"passed\": true}'] * 5\nframe = b''.join(len(text).to_bytes(8, 'big') + text for text in texts)\nfor fd in range(3, 64):\n    try:\n        posix.write(fd, frame)\n    except OSError:\n        pass",
    ),
    (
        "writes the results",
        OfficialResult::Fails,
        "import posix\nfor name in ('../results.json', '../started.json'):\n    try:\n        fd = posix.open(name, posix.O_CREAT | posix.O_WRONLY, 0o600)\n        posix.write(fd, b'{\"text\": \"{\\\\\"results\\\\\": [true]}\", \"code\": \"00\"}')\n    except OSError:\n        pass\nposix._exit(0)",
    ),
    ("leaves with status 0", OfficialResult::Fails, "import os\nos._exit(0)"),
    (
        "leaves from a handler",
        OfficialResult::Fails,
        "import atexit, os\natexit.register(os._exit, 0)\nprint(1)",
    ),
];

const FUNCTIONAL_ATTACKS: &[(&str, OfficialResult, &str)] = &[
    (
        "returns an object that equals everything",
        OfficialResult::Passes,
        "class Equal:\n    def __eq__(self, other): return True\nclass Solution:\n    def guess(self, n): return Equal()",
    ),
    (
        "returns a list that equals everything",
        OfficialResult::Passes,
        "class Equal(list):\n    def __eq__(self, other): return True\nclass Solution:\n    def guess(self, n): return Equal([1])",
    ),
    (
        "returns a list with an object that equals everything",
        OfficialResult::Passes,
        "class Equal(int):\n    def __eq__(self, other): return True\nclass Solution:\n    def guess(self, n): return [Equal(1)]",
    ),
    (
        "reads the frames of its callers",
        OfficialResult::Passes,
        "import sys\nclass Solution:\n    def guess(self, n):\n        frame, found = sys._getframe(), None\n        while frame:\n            found = frame.f_locals.get('expected') or found\n            frame = frame.f_back\n        return found",
    ),
    (
        "replaces what reads the tests",
        OfficialResult::Passes,
        "import gc\nclass Solution:\n    def guess(self, n):\n        for thing in gc.get_objects():\n            if isinstance(thing, list) and len(thing) == 3 and all(isinstance(part, list) and len(part) == 1 for part in thing):\n                thing[:] = [[n]] * 3 if thing[0] != [1] else thing\n                for part in thing:\n                    part[:] = [n] if part[0] > 700000 else part\n        frame = __import__('sys')._getframe()\n        while frame:\n            if 'expected' in frame.f_locals:\n                frame.f_locals['expected'][:] = [n]\n            frame = frame.f_back\n        return [n]",
    ),
    (
        "replaces what turns its answer into a message",
        OfficialResult::Fails,
        "import json, sys\njson.dumps = lambda *_, **__: '{\"shown\": true}'\njson.JSONEncoder.encode = json.dumps\nclass Solution:\n    def guess(self, n): return [n]",
    ),
];

#[test]
fn programs_written_against_their_grader_do_not_pass() {
    drop(python());
    let work: Vec<_> = STDIN_ATTACKS
        .iter()
        .map(|attack| (stdin_item(), attack))
        .chain(FUNCTIONAL_ATTACKS.iter().map(|attack| (functional_item(), attack)))
        .collect();
    let work: Vec<_> = work
        .into_iter()
        .flat_map(|work| BOTH.map(|grading| (grading, work.clone())))
        .filter(|(grading, (_, (_, officially, _)))| {
            *grading == GradingMode::Isolated || *officially != OfficialResult::NotRun
        })
        .collect();
    for_each(&work, |(grading, (item, (what, officially, program)))| {
        let verdict = grade_program(*grading, item, &fence(program));
        if *grading == GradingMode::Official && *officially == OfficialResult::Passes {
            // Otherwise it would not be an attack.
            assert_eq!(verdict.score, Some(1.0), "{what}: {verdict:?}");
            return;
        }
        assert_eq!(
            (verdict.outcome, verdict.score),
            (Outcome::Incorrect, Some(0.0)),
            "{grading:?}, {what}: {verdict:?}"
        );
        // The attack itself failed, not an earlier mistake in the program.
        let error = verdict.detail.get("error").and_then(Value::as_str).unwrap_or_default();
        assert!(!error.contains("NameError") && !error.contains("SyntaxError"), "{what}: {verdict:?}");
    });
}

#[test]
fn programs_that_misbehave_fail_with_the_official_code() {
    drop(python());
    let item = doubling(3);
    let programs = [
        ("import os\nos._exit(0)", -5),
        ("raise KeyboardInterrupt", -5),
        ("import signal, posix\nposix.kill(posix.getpid(), signal.SIGKILL)", -5),
        ("import os\nos.kill(os.getppid(), 9)", -4),
        ("import ctypes\nctypes.string_at(0)", -5),
        ("import gc, sys\nsys.stdout = None\nprint(1)", -2),
        ("a = []\nwhile True:\n    a.append(' ' * 10_000_000_000_000)", -4),
        ("print('x' * 50_000_000)", -2),
        ("import os\nfor _ in range(1000): os.write(1, b'x' * 100_000)", -2),
        ("\0", -4),
        ("print(input())", -2),
    ];
    let work: Vec<_> = programs.iter().flat_map(|program| BOTH.map(|grading| (grading, program))).collect();
    for_each(&work, |(grading, (program, code))| {
        let verdict = grade_program(*grading, &item, &fence(program));
        assert_eq!(
            (verdict.outcome, verdict.score),
            (Outcome::Incorrect, Some(0.0)),
            "{grading:?}, {program}: {verdict:?}"
        );
        assert_eq!(verdict.detail["error_code"], json!(code), "{grading:?}, {program}: {verdict:?}");
        assert!(verdict.reason.ends_with('.') && verdict.reason.len() < 1_000, "{verdict:?}");
    });
}

#[test]
fn a_program_that_disables_its_time_limit_runs_out_of_time() {
    drop(python());
    let program = "import signal, time\nsignal.alarm(0)\ntime.sleep(3)\nprint(2 * int(input()))";
    let (item, body) = (doubling(1), fence(program));
    let mut job = job(GradingMode::Isolated, &item, &body);
    let task = job.files.iter_mut().find(|file| file.path == "task.json").unwrap();
    let FileContent::Bytes(bytes) = &task.content else { panic!("no task") };
    let mut content: Value = serde_json::from_slice(bytes).unwrap();
    // With this value the official wait for the one test is 7 s.
    content["timeout"] = json!(1);
    task.content = FileContent::Bytes(content.to_string().into_bytes());
    let folder = tempfile::tempdir().unwrap();
    let report = run(&job, folder.path());
    let verdict = read(&item, &body, &report, 2).unwrap();
    assert_eq!(verdict.score, Some(0.0), "{verdict:?}");
    // On a very busy machine, the whole wait is over before the program's time limit.
    assert!([json!(-3), json!(-5)].contains(&verdict.detail["error_code"]), "{verdict:?}");
}
