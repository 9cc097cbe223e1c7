//! SciCode with real programs: the recorded runs, the demo problems, and misbehaving programs.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;

use bench_benchmarks::{Benchmark, JobMaterial, Material, Round, SciCode, Templates, UnreadableReport};
use bench_domain::{Answer, FileContent, JobReport, Outcome, SampleBody, Step, StoredFile, Verdict};
use bench_items::{Item, Layout};
use serde_json::{Value, json};

use crate::job::JobFolder;
use crate::python;

const NONCE: &str = "nonce";
const VECTORS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/vectors");
const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/data");

fn rows(path: &str) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn item(row: &Value) -> Item {
    SciCode::INSPECT.item(0, row.as_object().unwrap().clone()).unwrap().unwrap()
}

/// Asks all steps and answers them with `reply`, which gets the name of the step.
fn body(benchmark: &dyn Benchmark, item: &Item, mut reply: impl FnMut(&str) -> String) -> SampleBody {
    let steps = benchmark.steps().unwrap();
    let mut answered = Vec::new();
    while let Some(next) = steps.next(item, &Material::default(), &answered).unwrap() {
        let answer = Answer::local(reply(&next.name));
        answered.push(Step { name: next.name, prompt: next.prompt, answer });
    }
    let last = answered.last().unwrap().clone();
    SampleBody { steps: answered, ..SampleBody::new("0", last.prompt, last.answer, "") }
}

fn targets(path: &str) -> BTreeMap<String, StoredFile> {
    let bytes = fs::metadata(path).unwrap().len();
    let file = StoredFile { key: path.into(), sha256: "0".repeat(64), bytes, url: None };
    BTreeMap::from([("targets".to_owned(), file)])
}

/// Grading modes: the default and the official one.
const BOTH: [&str; 2] = ["isolated", "official"];

fn in_mode(mode: &str) -> &'static dyn Benchmark {
    let options = BTreeMap::from([("grading".to_owned(), mode.to_owned())]);
    SciCode::INSPECT.with_options(&options).unwrap().unwrap_or(&SciCode::INSPECT)
}

fn place(item: &Item, body: &SampleBody, attachments: &BTreeMap<String, StoredFile>) -> JobFolder {
    place_in("isolated", item, body, attachments)
}

fn place_in(
    mode: &str,
    item: &Item,
    body: &SampleBody,
    attachments: &BTreeMap<String, StoredFile>,
) -> JobFolder {
    let templates = Templates::new();
    let material = JobMaterial { templates: &templates, attachments, nonce: NONCE };
    JobFolder::create(&in_mode(mode).sandbox().unwrap().job(item, body, &material).unwrap())
}

fn run(place: &JobFolder) -> JobReport {
    place.run(&[python::bin(), Path::new("/usr/bin"), Path::new("/bin")])
}

fn read(item: &Item, body: &SampleBody, report: &JobReport, round: u32) -> Result<Verdict, UnreadableReport> {
    read_in("isolated", item, body, report, round)
}

fn read_in(
    mode: &str,
    item: &Item,
    body: &SampleBody,
    report: &JobReport,
    round: u32,
) -> Result<Verdict, UnreadableReport> {
    in_mode(mode).sandbox().unwrap().read(item, body, report, Round { number: round, nonce: NONCE })
}

/// Calls a function for each element, on all cores.
fn for_each<T: Send>(work: Vec<T>, act: impl Fn(T) + Sync) {
    let work = Mutex::new(work.into_iter());
    let cores = std::thread::available_parallelism().map_or(1, Into::into);
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                loop {
                    let Some(next) = work.lock().unwrap().next() else { return };
                    act(next);
                }
            });
        }
    });
}

#[test]
fn recorded_runs_get_their_official_verdicts() {
    let problems = rows(&format!("{VECTORS}/scicode.jsonl"));
    let runs: Vec<(&Value, &Value)> = problems
        .iter()
        .flat_map(|problem| problem["runs"].as_array().unwrap().iter().map(move |run| (problem, run)))
        .collect();
    assert_eq!(runs.len(), 26);
    let attachments = targets(&format!("{VECTORS}/scicode_targets.h5"));
    let runs: Vec<_> = runs.into_iter().flat_map(|run| BOTH.map(|mode| (mode, run))).collect();
    for_each(runs, |(mode, (problem, recorded))| {
        let item = item(problem);
        let names =
            problem["problem"]["sub_steps"].as_array().unwrap().iter().map(|step| &step["step_number"]);
        let replies: BTreeMap<&str, &str> = names
            .zip(recorded["responses"].as_array().unwrap())
            .filter_map(|(name, reply)| Some((name.as_str().unwrap(), reply.as_str()?)))
            .collect();
        let benchmark = match recorded["with_background"].as_bool().unwrap() {
            true => SciCode::BACKGROUND,
            false => SciCode::INSPECT,
        };
        let body = body(&benchmark, &item, |step| replies[step].to_owned());
        let report = run(&place_in(mode, &item, &body, &attachments));
        let verdict = read_in(mode, &item, &body, &report, 1).unwrap();
        let (label, official) = (format!("{mode} {}", recorded["label"]), &recorded["official"]);
        assert_eq!(verdict.detail["grading"], mode, "{label}");
        assert!(!verdict.detail.contains_key("officially_graded"), "{label}: {:?}", verdict.detail);
        assert!(!verdict.detail.contains_key("readable_targets"), "{label}: {:?}", verdict.detail);
        let leaves_early = recorded["label"] == "early_exit";
        assert_eq!(verdict.detail.contains_key("early_exits"), leaves_early, "{label}");
        if leaves_early && mode == "isolated" {
            // The one forged pass: its programs exit with code 0 before any test.
            assert_eq!(verdict.detail["steps_passed"], 0, "{label}: {:?}", verdict.detail);
            return;
        }
        assert_eq!(verdict.detail["steps"], official["steps"], "{label}: {:?}", verdict.detail);
        assert_eq!(verdict.detail["programs"], official["code_file_sha256"], "{label}");
        assert_eq!(verdict.detail["steps_passed"], official["total_correct"], "{label}");
        assert_eq!(verdict.detail["steps_total"], official["total_steps"], "{label}");
        let right = official["problem_correct"] == 1;
        assert_eq!(verdict.outcome == Outcome::Correct, right, "{label}: {}", verdict.reason);
        let by_old_script = official["deprecated_script_problem_correct"] == 1;
        assert_eq!(verdict.detail["old_script_correct"], json!(by_old_script), "{label}");
    });
}

#[test]
fn right_programs_of_the_demo_pass() {
    let rows = rows(&format!("{DATA}/scicode.jsonl"));
    assert!(rows.len() >= 20);
    let attachments = targets(&format!("{DATA}/scicode_targets.h5"));
    for_each(rows, |row| {
        let item = item(&row);
        let body =
            body(&SciCode::INSPECT, &item, |step| SciCode::INSPECT.steps().unwrap().oracle(&item, step));
        let report = run(&place(&item, &body, &attachments));
        let verdict = read(&item, &body, &report, 1).unwrap();
        assert_eq!(verdict.outcome, Outcome::Correct, "{}: {:?}", row["problem_name"], verdict.detail);
        assert_eq!(verdict.detail["grader"], "own");
        assert_eq!(verdict.detail["environment"]["numpy"], "1.26.4");
    });
}

/// Returns the first two steps of a recorded problem, answered with these programs.
fn discs(first: &str, second: &str) -> (Item, SampleBody) {
    let mut row = rows(&format!("{VECTORS}/scicode.jsonl"))[0]["problem"].clone();
    row["sub_steps"].as_array_mut().unwrap().truncate(2);
    let item = item(&row);
    let body = body(&SciCode::INSPECT, &item, |step| {
        format!("```python\n{}\n```", if step.ends_with(".1") { first } else { second })
    });
    (item, body)
}

const AREA: &str = "def area(r):\n    return np.pi * r ** 2";
const AREAS: &str = "def areas(rs):\n    return np.array([area(r) for r in rs])";
const NO_AREAS: &str = "def areas(rs):\n    return 0";

#[test]
fn programs_cannot_reach_beyond_their_step() {
    let attachments = targets(&format!("{VECTORS}/scicode_targets.h5"));
    let forge =
        "os = __import__('os')\nfolder = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))\n";
    let spoil = "os = __import__('os')\nfor name in ('results.jsonl', 'job.json', 'code/901.2.py', 'package/scicode/parse/parse.py', 'driver.py'):\n    open(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), name), 'w').write('x')\n";
    let forged = "line = '{\"kind\": \"step\", \"sealed\": [\"901.2\", \"pass\", \"\"], \"seal\": \"00\"}\\n'\nopen(os.path.join(folder, 'results.jsonl'), 'a').write(line)\n";
    let seal = "assert not os.path.exists(os.path.join(folder, 'seal'))\n";
    let lingers = "if __import__('os').fork() == 0:\n    __import__('os').setsid()\n    __import__('time').sleep(3600)\n    raise SystemExit\n";
    let floods = "for _ in range(200):\n    print('x' * 100000)\n";
    let cases = vec![
        ("forges a result", format!("{forge}{forged}{seal}{AREA}"), NO_AREAS, ["pass", "fail"]),
        ("spoils the grader", format!("{spoil}{AREA}"), AREAS, ["pass", "pass"]),
        ("leaves a process", format!("{lingers}{AREA}"), AREAS, ["pass", "pass"]),
        ("floods", format!("{floods}{AREA}"), AREAS, ["pass", "pass"]),
        ("replies nothing", String::new(), NO_AREAS, ["fail", "fail"]),
        ("has a zero byte", format!("{AREA}\0"), AREAS, ["fail", "fail"]),
        (
            "is deep",
            format!("{AREA}\nx = {}1{}", "(".repeat(9000), ")".repeat(9000)),
            AREAS,
            ["fail", "fail"],
        ),
        (
            "signals itself",
            format!("{AREA}\n__import__('os').kill(__import__('os').getpid(), 15)"),
            AREAS,
            ["fail", "fail"],
        ),
        (
            "changes the right values",
            format!("{forge}open(os.path.join(folder, 'targets.h5'), 'r+b').write(b'x')\n{AREA}"),
            AREAS,
            ["fail", "fail"],
        ),
    ];
    let cases: Vec<_> = cases.into_iter().flat_map(|case| BOTH.map(|mode| (mode, case.clone()))).collect();
    for_each(cases, |(mode, (what, first, second, expected))| {
        let (item, body) = discs(&first, second);
        let report = run(&place_in(mode, &item, &body, &attachments));
        let verdict = read_in(mode, &item, &body, &report, 2)
            .unwrap_or_else(|why| panic!("{mode}, {what}: {why}, {report:?}"));
        assert_eq!(
            verdict.detail["steps"],
            json!({"901.1": expected[0], "901.2": expected[1]}),
            "{mode}, {what}: {:?}",
            verdict.detail
        );
        // In isolated mode the programs can't access the file.
        assert_eq!(
            verdict.detail.contains_key("changed_targets"),
            what == "changes the right values" && mode == "official",
            "{mode}, {what}"
        );
    });
}

/// Attacks on the first step of [`discs`], whose expected values no program computes: description, whether it passes in
/// official mode, and program.
const ATTACKS: &[(&str, bool, &str)] = &[
    ("replaces the comparison", true, "np.allclose = lambda *_, **__: True\ndef area(r): return 0"),
    ("leaves before its tests", true, "def area(r): return 0\nraise SystemExit(0)"),
    ("leaves without a word", true, "__import__('os')._exit(0)"),
    ("leaves in the middle of its tests", true, "def area(r): __import__('os')._exit(0)"),
    (
        "returns an object that agrees to everything",
        true,
        "class Equal:\n    def __array_function__(self, *_): return True\ndef area(r): return Equal()",
    ),
    (
        "reads the right values in its caller's frame",
        true,
        "def area(r): return __import__('sys')._getframe(1).f_globals['target']",
    ),
    (
        "reads the file with the right values",
        true,
        "h5py = __import__('h5py')\nos = __import__('os')\ndef area(r):\n    folder = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))\n    file = h5py.File(os.path.join(folder, 'targets.h5'), 'r')\n    values = [test[key][()] for test in file['901.1'].values() for key in test]\n    return max(values, key=lambda value: value * (r > 0) - value * (r == 0))",
    ),
    (
        "replaces what sends its values",
        false,
        "sys = __import__('sys')\nsend = type(sys)('scicode.parse.send')\nsend.send = lambda value: None\nsys.modules['scicode.parse.send'] = send\ndef area(r): return 0",
    ),
    (
        "sends what it likes",
        false,
        "os = __import__('os')\nframe = lambda text: len(text).to_bytes(8, 'big') + text\nfor text in (b'[\"pass\"]', b'[\"bool\", true]', b'[\"opaque\", \"float\"]', b'[\"float\", \"nan\"]'):\n    for fd in range(3, 32):\n        try:\n            os.write(fd, frame(text) * 9)\n        except OSError:\n            pass\ndef area(r): return 0",
    ),
    (
        "kills the comparison",
        false,
        "os = __import__('os')\nfor name in os.listdir('/proc'):\n    try:\n        stat = open(f'/proc/{name}/stat').read().rpartition(')')[2].split()\n    except OSError:\n        continue\n    if name.isdigit() and stat[1] == str(os.getppid()) and int(name) != os.getpid():\n        os.kill(int(name), 9)\ndef area(r): return 0",
    ),
    (
        "reads the memory of the processes beside it",
        false,
        "os = __import__('os')\nfound = []\nfor name in os.listdir('/proc'):\n    try:\n        stat = open(f'/proc/{name}/stat').read().rpartition(')')[2].split()\n    except OSError:\n        continue\n    if name.isdigit() and (int(name) == os.getppid() or stat[1] == str(os.getppid()) and int(name) != os.getpid()):\n        for file in ('mem', 'maps', 'environ'):\n            try:\n                found.append(open(f'/proc/{name}/{file}', 'rb').read(0))\n            except OSError:\n                pass\nassert found, 'nothing can be read'\ndef area(r): return 0",
    ),
];

#[test]
fn programs_written_against_their_grader_do_not_pass() {
    let attachments = targets(&format!("{VECTORS}/scicode_targets.h5"));
    let cases: Vec<_> = ATTACKS.iter().flat_map(|attack| BOTH.map(|mode| (mode, attack))).collect();
    for_each(cases, |(mode, (what, passes_officially, program))| {
        let (item, body) = discs(program, NO_AREAS);
        let report = run(&place_in(mode, &item, &body, &attachments));
        let verdict = read_in(mode, &item, &body, &report, 3)
            .unwrap_or_else(|why| panic!("{mode}, {what}: {why}, {report:?}"));
        let passes = verdict.detail["steps"]["901.1"] == "pass";
        let expected = mode == "official" && *passes_officially;
        assert_eq!(passes, expected, "{mode}, {what}: {:?}", verdict.detail);
        // The attack itself failed, not an earlier mistake in the program.
        let printed =
            verdict.detail.get("complaints").map(|printed| printed["901.1"].to_string()).unwrap_or_default();
        assert!(
            !printed.contains("NameError") && !printed.contains("SyntaxError"),
            "{mode}, {what}: {printed}"
        );
        if *what == "reads the memory of the processes beside it" && mode == "isolated" {
            assert!(printed.contains("nothing can be read"), "{printed}");
        }
    });
}

#[test]
fn a_file_that_sandboxes_share_is_hidden_from_programs() {
    let shared = tempfile::tempdir().unwrap();
    let path = shared.path().join("values.h5");
    fs::copy(format!("{VECTORS}/scicode_targets.h5"), &path).unwrap();
    let open = format!("open({:?}, 'rb').read(8)", path.display().to_string());
    let (item, body) = discs(&format!("{AREA}\n{open}"), AREAS);
    let place = place(&item, &body, &targets(&path.display().to_string()));
    // Sandbox hosts link to their own files in the same way.
    fs::remove_file(place.path("targets.h5")).unwrap();
    std::os::unix::fs::symlink(&path, place.path("targets.h5")).unwrap();
    let verdict = read(&item, &body, &run(&place), 1).unwrap();
    if verdict.detail.contains_key("readable_targets") {
        // In a kernel without Landlock, the verdict reports the readable file.
        assert!(!Path::new("/sys/kernel/security/lsm").exists() || !landlock(), "{:?}", verdict.detail);
        return;
    }
    assert_eq!(verdict.detail["steps"]["901.1"], "fail", "{:?}", verdict.detail);
    let printed = verdict.detail["complaints"]["901.1"].to_string();
    assert!(printed.contains("PermissionError"), "{printed}");
}

/// Landlock domains use memory that not every sandbox can account for, so the driver uses Landlock and denies it to
/// programs.
#[test]
fn programs_cannot_restrict_themselves() {
    let program = "ctypes = __import__('ctypes')\nlibc = ctypes.CDLL(None, use_errno=True)\n\
                   for number in (444, 445, 446):\n    ctypes.set_errno(0)\n    \
                   assert libc.syscall(number, None, 0, 1, 0) == -1\n    assert ctypes.get_errno() == 38, (number, ctypes.get_errno())\n\
                   def area(r): return 3.141592653589793 * r * r";
    let attachments = targets(&format!("{VECTORS}/scicode_targets.h5"));
    for mode in BOTH {
        let (item, body) = discs(program, AREAS);
        let report = run(&place_in(mode, &item, &body, &attachments));
        let verdict = read_in(mode, &item, &body, &report, 3).unwrap();
        assert_eq!(verdict.detail["steps"]["901.1"], "pass", "{mode}: {:?}", verdict.detail);
    }
}

fn landlock() -> bool {
    fs::read_to_string("/sys/kernel/security/lsm").is_ok_and(|modules| modules.contains("landlock"))
}

#[test]
fn tests_that_cannot_be_split_are_graded_in_official_mode() {
    let (mut item, body) = discs(AREA, AREAS);
    let tests = |code: &str| json!([code]);
    item.row["sub_steps"][1]["test_cases"] = tests(
        "def same(value, target): return np.allclose(value, target)\nassert same(areas([1.0, 2.0]), target)",
    );
    item.row["sub_steps"][0]["test_cases"] = tests("assert np.allclose(area(target) ** 0, 1.0)");
    let attachments = targets(&format!("{VECTORS}/scicode_targets.h5"));
    let verdict = read(&item, &body, &run(&place(&item, &body, &attachments)), 1).unwrap();
    assert_eq!(verdict.detail["steps"], json!({"901.1": "pass", "901.2": "pass"}), "{:?}", verdict.detail);
    assert_eq!(verdict.detail["officially_graded"], json!(["901.1"]));
}

/// Both modes agree on whether tests of many forms, with values of every kind, pass.
#[test]
fn both_modes_compare_alike() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/scicode/job");
    let output = Command::new(python::bin().join("python3"))
        .args(["-I", "-B"])
        .arg(folder.join("check_split.py"))
        .arg(&folder)
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    assert_eq!(printed, "all is as it should be\n", "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_program_that_kills_the_grader_fails_after_the_last_round() {
    let attachments = targets(&format!("{VECTORS}/scicode_targets.h5"));
    let kills = format!("os = __import__('os')\nos.kill(os.getppid(), 9)\n{AREA}");
    let (item, body) = discs(AREA, &kills.replace(AREA, AREAS));
    let report = run(&place(&item, &body, &attachments));
    for round in [1, 2] {
        assert!(read(&item, &body, &report, round).unwrap_err().why.contains("901.2 was not run"));
    }
    let verdict = read(&item, &body, &report, 3).unwrap();
    assert_eq!(verdict.detail["steps"], json!({"901.1": "pass", "901.2": "not run"}));
    assert_eq!(verdict.outcome, Outcome::Incorrect);

    // A program killed for lack of memory looks the same, so it is retried once.
    let (item, body) = discs(&format!("{AREA}\n__import__('os').kill(__import__('os').getpid(), 9)"), AREAS);
    let report = run(&place(&item, &body, &attachments));
    assert!(read(&item, &body, &report, 1).unwrap_err().why.contains("killed from outside"));
    assert_eq!(read(&item, &body, &report, 2).unwrap().outcome, Outcome::Incorrect);
}

#[test]
fn time_is_bounded_for_each_step() {
    let attachments = targets(&format!("{VECTORS}/scicode_targets.h5"));
    let first = format!("{AREA}\nwhile __file__.endswith('901.1.py'): pass");
    let (item, body) = discs(&first, AREAS);
    let place = place(&item, &body, &attachments);
    let path = place.path("job.json");
    let mut job: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    assert_eq!(job["seconds"], 1800);
    job["seconds"] = json!(20);
    fs::write(&path, job.to_string()).unwrap();
    let verdict = read(&item, &body, &run(&place), 1).unwrap();
    assert_eq!(verdict.detail["steps"], json!({"901.1": "time out", "901.2": "pass"}));
}

#[test]
fn a_sandbox_without_the_modules_gives_no_verdict() {
    let attachments = targets(&format!("{VECTORS}/scicode_targets.h5"));
    let (item, body) = discs(AREA, AREAS);
    let folder = tempfile::tempdir().unwrap();
    let bare = python::make_bare_environment(&folder.path().join("bare"));
    let report = place(&item, &body, &attachments).run(&[&bare, Path::new("/usr/bin"), Path::new("/bin")]);
    let unread = read(&item, &body, &report, 1).unwrap_err();
    assert!(!unread.retry, "{unread}");
    let why = "run `bench sandy setup`: the sandbox's Python has no h5py, numpy, scipy, sympy";
    assert_eq!(unread.why, why);
    let report = place(&item, &body, &attachments).run(&[folder.path()]);
    let unread = read(&item, &body, &report, 1).unwrap_err();
    let why = &unread.why;
    assert!(why.contains("no python3") && why.contains("`bench sandy setup`") && !unread.retry, "{why}");
}

#[test]
fn unusable_expected_values_make_the_item_ungradable() {
    let folder = tempfile::tempdir().unwrap();
    let whole = fs::read(format!("{VECTORS}/scicode_targets.h5")).unwrap();
    let (item, body) = discs(AREA, AREAS);
    let others = fs::read(format!("{DATA}/scicode_targets.h5")).unwrap();
    // A valid superblock that points to nothing.
    let mut hollow = whole.clone();
    hollow[96..].fill(0);
    for (what, content, printed) in [
        ("half", &whole[..whole.len() / 2], "cannot be opened as HDF5: OSError"),
        ("text", b"no HDF5", "cannot be opened as HDF5: OSError"),
        ("hollow", &hollow, ""),
        ("another problem's", &others, "has no values for step 901.1: there is no group 901.1/test1"),
    ] {
        let path = folder.path().join("t.h5").display().to_string();
        fs::write(&path, content).unwrap();
        let place = place(&item, &body, &targets(&path));
        let report = run(&place);
        let unread = read(&item, &body, &report, 1).expect_err(what);
        let why = &unread.why;
        assert!(!unread.retry && why.starts_with("The item cannot be graded: the .h5 file"), "{what}: {why}");
        assert!(why.contains("(SHA-256 000000000000…)") && why.contains(printed), "{what}: {why}");
        assert!(!report.text("results.jsonl").unwrap().contains("\"step\""), "{what}: nothing was run");
    }
}

#[test]
fn model_output_is_in_files_only() {
    let (item, body) = discs("'; touch /tmp/x #", "$(id)");
    let templates = Templates::new();
    let attachments = targets(&format!("{VECTORS}/scicode_targets.h5"));
    let material = JobMaterial { templates: &templates, attachments: &attachments, nonce: NONCE };
    let job = SciCode::INSPECT.sandbox().unwrap().job(&item, &body, &material).unwrap();
    assert_eq!(job.script, "exec python3 -I -B driver.py\n");
    let holding = job.files.iter().filter(|file| {
        let FileContent::Bytes(bytes) = &file.content else { return false };
        let text = String::from_utf8_lossy(bytes);
        text.contains("touch /tmp/x") || text.contains("$(id)")
    });
    assert_eq!(
        holding.map(|file| file.path.as_str()).collect::<Vec<_>>(),
        ["code/901.1.py", "code/901.2.py"]
    );
}
