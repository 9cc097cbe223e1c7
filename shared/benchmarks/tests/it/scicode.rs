//! SciCode with real programs: the recorded runs, our demo problems, and programs that do what they should not.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Mutex;

use bench_benchmarks::{
    Benchmark, Item, JobMaterial, Layout, Material, NoVerdict, Round, SciCode, Templates,
};
use bench_domain::{Answer, FileContent, JobReport, Outcome, SampleBody, Step, StoredFile, Verdict};
use serde_json::{Value, json};

use crate::job::Place;
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

/// Asks all steps; `reply` answers them by name.
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

fn place(item: &Item, body: &SampleBody, attachments: &BTreeMap<String, StoredFile>) -> Place {
    let templates = Templates::new();
    let material = JobMaterial { templates: &templates, attachments, nonce: NONCE };
    Place::of(&SciCode::INSPECT.sandbox().unwrap().job(item, body, &material).unwrap())
}

fn run(place: &Place) -> JobReport {
    place.run(&[python::bin(), Path::new("/usr/bin"), Path::new("/bin")])
}

fn read(item: &Item, body: &SampleBody, report: &JobReport, round: u32) -> Result<Verdict, NoVerdict> {
    SciCode::INSPECT.sandbox().unwrap().read(item, body, report, Round { number: round, nonce: NONCE })
}

/// Does all of it, as many at a time as there are cores.
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
    for_each(runs, |(problem, recorded)| {
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
        let report = run(&place(&item, &body, &attachments));
        let verdict = read(&item, &body, &report, 1).unwrap();
        let (label, official) = (&recorded["label"], &recorded["official"]);
        assert_eq!(verdict.detail["steps"], official["steps"], "{label}: {:?}", verdict.detail);
        assert_eq!(verdict.detail["programs"], official["code_file_sha256"], "{label}");
        assert_eq!(verdict.detail["steps_passed"], official["total_correct"], "{label}");
        assert_eq!(verdict.detail["steps_total"], official["total_steps"], "{label}");
        let right = official["problem_correct"] == 1;
        assert_eq!(verdict.outcome == Outcome::Correct, right, "{label}: {}", verdict.reason);
        let by_old_script = official["deprecated_script_problem_correct"] == 1;
        assert_eq!(verdict.detail["old_script_correct"], json!(by_old_script), "{label}");
        assert_eq!(verdict.detail.contains_key("early_exits"), label == "early_exit", "{label}");
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

/// The first two steps of a recorded problem, with these programs in a block.
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
    for_each(cases, |(what, first, second, expected)| {
        let (item, body) = discs(&first, second);
        let report = run(&place(&item, &body, &attachments));
        let verdict =
            read(&item, &body, &report, 2).unwrap_or_else(|why| panic!("{what}: {why}, {report:?}"));
        assert_eq!(
            verdict.detail["steps"],
            json!({"901.1": expected[0], "901.2": expected[1]}),
            "{what}: {:?}",
            verdict.detail
        );
        assert_eq!(
            verdict.detail.contains_key("changed_targets"),
            what == "changes the right values",
            "{what}"
        );
    });
}

#[test]
fn what_kills_the_grader_fails_in_the_end() {
    let attachments = targets(&format!("{VECTORS}/scicode_targets.h5"));
    let kills = format!("os = __import__('os')\nos.kill(os.getppid(), 9)\n{AREA}");
    let (item, body) = discs(AREA, &kills.replace(AREA, AREAS));
    let report = run(&place(&item, &body, &attachments));
    for round in [1, 2] {
        assert!(read(&item, &body, &report, round).unwrap_err().0.contains("901.2 was not run"));
    }
    let verdict = read(&item, &body, &report, 3).unwrap();
    assert_eq!(verdict.detail["steps"], json!({"901.1": "pass", "901.2": "not run"}));
    assert_eq!(verdict.outcome, Outcome::Incorrect);

    // What was killed for lack of memory looks like that, and is tried once more.
    let (item, body) = discs(&format!("{AREA}\n__import__('os').kill(__import__('os').getpid(), 9)"), AREAS);
    let report = run(&place(&item, &body, &attachments));
    assert!(read(&item, &body, &report, 1).unwrap_err().0.contains("killed from outside"));
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
    let bare = python::bare(&folder.path().join("bare"));
    let report = place(&item, &body, &attachments).run(&[&bare, Path::new("/usr/bin"), Path::new("/bin")]);
    let why = read(&item, &body, &report, 3).unwrap_err().0;
    assert!(why.contains("numpy (ModuleNotFoundError") && why.contains("`bench sandy setup`"), "{why}");
    let report = place(&item, &body, &attachments).run(&[folder.path()]);
    let why = read(&item, &body, &report, 3).unwrap_err().0;
    assert!(why.contains("no python3") && why.contains("`bench sandy setup`"), "{why}");
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
