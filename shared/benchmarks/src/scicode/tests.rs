use std::collections::BTreeMap;

use bench_domain::{Answer, HarvestedFile, JobEnd, JobReport, Outcome, SampleBody, Step, StoredFile};
use serde_json::{Value, json};

use super::*;
use crate::material::Templates;
use crate::scorers::sandbox::JobMaterial;
use crate::{Round, SandboxGrader as _};

/// Replacement for an official template: only its slots.
const SHOWN: &str = "<{problem_steps_str}|{next_step_str}|{dependencies}>";

const NONCE: &str = "nonce";

fn round(number: u32) -> Round<'static> {
    Round { number, nonce: NONCE }
}

fn vectors() -> Vec<Value> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/vectors/scicode.jsonl");
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn row(value: &Value) -> Row {
    value.as_object().cloned().unwrap()
}

fn item(value: &Value) -> Item {
    SciCode::INSPECT.item(4, row(value)).unwrap().unwrap()
}

fn step(name: &str, header: &str) -> Value {
    json!({
        "step_number": name, "step_description_prompt": format!("Do {name}."), "step_background": "Because.",
        "function_header": header, "test_cases": ["assert f() == target"], "return_line": "    return x",
    })
}

/// Returns a problem whose first step is given, as in the dataset's problem with the same number.
fn with_given_step() -> Value {
    json!({
        "problem_id": 62, "required_dependencies": "import numpy as np\n",
        "sub_steps": [step("62.1", "class A:\n    def __init__(self):"), step("62.2", "def f():"), step("62.3", "def g():")],
        "special_files": {"62.1": "class A:\n    def __init__(self):\n        self.x = 1 # one\n"},
    })
}

fn material(templates: &[(&str, &str)]) -> Material {
    let templates = templates.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
    Material { templates: templates.collect(), ..Material::default() }
}

fn answered_steps(steps: &[(&str, &str)]) -> Vec<Step> {
    let made = steps.iter().map(|(name, text)| Step {
        name: (*name).into(),
        prompt: Prompt::user("?"),
        answer: Answer::local(*text),
    });
    made.collect()
}

fn next_prompt(
    benchmark: &dyn Benchmark,
    item: &Item,
    material: &Material,
    steps: &[Step],
) -> (String, String) {
    let next = benchmark.steps().unwrap().next(item, material, steps).unwrap().unwrap();
    (next.name, next.prompt.as_text())
}

#[test]
fn prompts_contain_only_the_code_of_earlier_steps() {
    let item = item(&vectors()[0]["problem"]);
    let material = material(&[("without_background", SHOWN), ("with_background", SHOWN)]);
    let header = "def area(r):\n    '''Return the area of a disc of radius r.'''\n\n    return value";
    assert_eq!(
        next_prompt(&SciCode::INSPECT, &item, &material, &[]),
        ("901.1".into(), format!("<|Area of a disc.\n\n{header}|import numpy as np\n>"))
    );
    let steps = answered_steps(&[("901.1", "Text ```python\nimport os\nx{0}\n``` more"), ("901.2", "")]);
    let (name, text) = next_prompt(&SciCode::INSPECT, &item, &material, &steps);
    let last = "Total and list.\n\ndef summary(rs):\n    '''Return the total and the single areas.'''\n\n    return total, values";
    assert_eq!(name, "901.3");
    assert_eq!(
        text,
        format!(
            "<Area of a disc.\n\n\nx{{0}}\n\n\n------\n\nAreas of several discs.\n\n|{last}|import numpy as np\n>"
        )
    );
    let (_, text) = next_prompt(&SciCode::BACKGROUND, &item, &material, &steps[..1]);
    assert!(
        text.starts_with("<Area of a disc.\nBackground text for the step.\n\n\nx{0}\n|Areas of"),
        "{text}"
    );
    let all = answered_steps(&[("901.1", ""), ("901.2", ""), ("901.3", ""), ("901.4", "")]);
    assert_eq!(SciCode::INSPECT.next(&item, &material, &all).unwrap(), None);
    assert!(SciCode::INSPECT.next(&item, &material, &answered_steps(&[("901.2", "")])).is_err());
}

#[test]
fn each_protocol_has_its_own_wording() {
    let item = item(&vectors()[0]["problem"]);
    let asked = |benchmark: SciCode| benchmark.prompt(&item, &Material::default()).unwrap().as_text();
    assert!(asked(SciCode::INSPECT).contains("# Background: "));
    assert!(!asked(SciCode::BACKGROUND).contains("# Background: "));
    assert!(asked(SciCode::BACKGROUND).contains("Area of a disc.\nBackground text for the step."));
    let templates = material(&[("without_background", SHOWN)]).templates;
    assert_eq!(SciCode::INSPECT.template(&templates).source.as_str(), "official");
    assert_eq!(SciCode::BACKGROUND.template(&templates).source.as_str(), "own");
}

#[test]
fn given_steps_are_shown_and_not_asked() {
    let row = with_given_step();
    let material = material(&[("without_background", SHOWN)]);
    let (name, text) = next_prompt(&SciCode::INSPECT, &item(&row), &material, &[]);
    assert_eq!(name, "62.2");
    assert!(
        text.starts_with("<Do 62.1.\n\ndef __init__(self):\n    self.x = 1|Do 62.2.\n\ndef f():\n\n"),
        "{text}"
    );
    let options = Options::from([("given_steps".to_owned(), "whole".to_owned())]);
    let whole = SciCode::INSPECT.with_options(&options).unwrap().unwrap();
    let (_, text) = next_prompt(whole, &item(&row), &material, &[]);
    assert!(text.contains("class A:\n    def __init__(self):\n        self.x = 1 # one\n"), "{text}");
    assert!(
        whole.metadata().protocol.contains("whole")
            && !Benchmark::metadata(&SciCode::INSPECT).protocol.contains("whole")
    );

    // A name with the extension of the official file also works, and so does the loaded text. Without any text, nothing
    // is asked.
    for (special, template) in
        [(json!({"62.1.txt": "def __init__(): 1"}), None), (Value::Null, Some("def __init__(): 1"))]
    {
        let mut row = row.clone();
        row["special_files"] = special;
        let mut material = material.clone();
        material.templates.extend(template.map(|text| ("62.1".to_owned(), text.to_owned())));
        assert!(
            next_prompt(&SciCode::INSPECT, &item(&row), &material, &[]).1.contains("def __init__():\n    1|")
        );
    }
    let mut row = row;
    row["special_files"] = Value::Null;
    let problem = SciCode::INSPECT.next(&item(&row), &material, &[]).unwrap_err().to_string();
    assert!(problem.contains("step 62.1 is given") && problem.contains("could not be loaded"), "{problem}");
}

#[test]
fn options_choose_problems_and_given_steps() {
    let with_option = |name: &str, value: &str| {
        SciCode::BACKGROUND.with_options(&Options::from([(name.to_owned(), value.to_owned())]))
    };
    let validation = with_option("split", "validation").unwrap().unwrap();
    assert_eq!((validation.spec().items, validation.variant()), (15, "validation"));
    assert_eq!(validation.metadata().protocol_name, "background");
    assert_eq!(with_option("split", "all").unwrap().unwrap().spec().sources[0].items, [TEST, VALIDATION]);
    assert!(with_option("split", "test").unwrap().is_none());
    for (name, value, expected) in [
        ("split", "dev", "test, validation or all"),
        ("given_steps", "", "official or whole"),
        ("steps", "1", "split, given_steps"),
    ] {
        assert!(with_option(name, value).err().unwrap().to_string().contains(expected));
    }
    for choice in CHOICES {
        assert_eq!(*choice.as_static(), choice);
    }
}

#[test]
fn broken_rows_name_their_column() {
    let problem = vectors()[0]["problem"].clone();
    for (column, value) in [
        ("problem_id", Value::Null),
        ("required_dependencies", json!(7)),
        ("sub_steps", json!([])),
        ("sub_steps", json!([1])),
        ("sub_steps", json!([step("1.1", "x"), step("1.1", "x")])),
        ("sub_steps", json!([step("../x", "x")])),
        ("sub_steps", json!([step("a b", "x")])),
        ("sub_steps", json!([{"step_number": "1"}])),
        ("special_files", json!("x")),
        ("h5_file", json!(1)),
    ] {
        let mut broken = row(&problem);
        broken.insert(column.into(), value);
        assert_eq!(SciCode::INSPECT.item(0, broken).unwrap_err().column.as_deref(), Some(column));
    }
    // A recorded run has the problem in a column.
    let item = item(&vectors()[2]);
    assert_eq!(
        (item.id.as_str(), bench_items::source_id(&SciCode::INSPECT, &item.row).as_deref()),
        ("4", Some("76"))
    );
    assert!(item.row["special_files"]["76.3.txt"].is_string() && !item.row.contains_key("runs"));
}

fn attachments(names: &[&str]) -> BTreeMap<String, StoredFile> {
    let file = |name: &str| StoredFile { key: name.into(), sha256: String::new(), bytes: 1, url: None };
    names.iter().map(|name| ((*name).to_owned(), file(name))).collect()
}

fn body(steps: Vec<Step>) -> SampleBody {
    let last = steps.last().unwrap().clone();
    SampleBody { steps, ..SampleBody::new("4", last.prompt, last.answer, "") }
}

#[test]
fn a_row_may_name_its_own_file_with_expected_values() {
    let mut row = vectors()[0].clone();
    let body = body(answered_steps(&[("901.1", ""), ("901.2", ""), ("901.3", ""), ("901.4", "")]));
    let key = |row: &Value, names: &[&str]| {
        let (templates, attachments) = (Templates::new(), attachments(names));
        let material = JobMaterial { templates: &templates, attachments: &attachments, nonce: NONCE };
        let job = SciCode::INSPECT.job(&item(row), &body, &material)?;
        let stored = job.files.into_iter().find_map(|file| match file.content {
            bench_domain::FileContent::Stored(stored) => Some(stored.key),
            bench_domain::FileContent::Bytes(_) => None,
        });
        Ok::<_, ItemProblem>(stored.unwrap())
    };
    assert_eq!(key(&row, &["targets", "scicode_targets.h5"]).unwrap(), "scicode_targets.h5");
    assert_eq!(key(&row, &["targets"]).unwrap(), "targets");
    assert!(key(&row, &["other.h5"]).unwrap_err().to_string().contains("test_data.h5"));
    row["h5_file"] = Value::Null;
    assert_eq!(key(&row, &["targets", "scicode_targets.h5"]).unwrap(), "targets");
}

/// Returns lines as the driver writes them, sealed for this item and body.
fn report(item: &Item, body: &SampleBody, lines: &[(&str, &[&str])]) -> JobReport {
    let secret = seal::secret(item, &body.steps, NONCE);
    let lines = lines.iter().map(|(kind, sealed)| {
        let seal = seal::seal(&secret, kind, sealed);
        let versions = json!({"numpy": "2.1.0", "scipy": "1.14.1"});
        format!(
            "{}\n",
            json!({"kind": kind, "sealed": sealed, "seal": seal, "versions": versions, "broken": "ImportError: simps",
                "grader": "own", "seconds": 1.5, "stderr": "Traceback\nAssertionError\n", "sha256": ""})
        )
    });
    JobReport {
        end: JobEnd::Exited(0),
        files: BTreeMap::from([(seal::RESULTS.to_owned(), HarvestedFile::Text(lines.collect()))]),
        stdout_tail: String::new(),
        stderr_tail: String::new(),
        elapsed_ms: None,
        isolation: Some("namespaces".into()),
    }
}

#[test]
fn a_program_that_blocks_its_driver_has_failed() {
    let item = item(&with_given_step());
    let body = body(answered_steps(&[("62.2", "x"), ("62.3", "y")]));
    let read = |end| {
        let report = JobReport { end, ..report(&item, &body, &[("environment", &["numpy=2.1.0"])]) };
        SciCode::INSPECT.read(&item, &body, &report, round(1))
    };
    for end in [JobEnd::TimedOut, JobEnd::Halted] {
        assert_eq!(read(end).unwrap().outcome, Outcome::Incorrect, "{end:?}");
    }
    assert!(read(JobEnd::Vanished).unwrap_err().retry);
}

#[test]
fn the_verdict_counts_problems_and_steps() {
    let item = item(&with_given_step());
    let body = body(answered_steps(&[("62.2", "x"), ("62.3", "y")]));
    let read = |lines: &[(&str, &[&str])], round| {
        SciCode::INSPECT.read(&item, &body, &report(&item, &body, lines), super::tests::round(round))
    };
    let environment: (&str, &[&str]) = ("environment", &["numpy=2.1.0"]);
    let verdict =
        read(&[environment, ("step", &["62.2", "pass", "early-exit"]), ("step", &["62.3", "pass", ""])], 1)
            .unwrap();
    assert_eq!((verdict.outcome, verdict.extracted.as_deref()), (Outcome::Incorrect, Some("2/3")));
    assert!(verdict.reason.contains("never counts as right"), "{}", verdict.reason);
    for (name, value) in [
        ("steps_passed", json!(2)),
        ("steps_asked", json!(2)),
        ("steps_total", json!(3)),
        ("old_script_correct", json!(true)),
        ("early_exits", json!(["62.2"])),
        ("given_steps", json!("official")),
        ("isolation", json!("namespaces")),
        ("problem_id", json!("62")),
    ] {
        assert_eq!(verdict.detail[name], value, "{name}");
    }
    // Missing functions of the environment are reported next to the verdict.
    assert_eq!(verdict.detail["warnings"].as_array().unwrap().len(), 2);

    let verdict =
        read(&[environment, ("step", &["62.2", "time out", ""]), ("step", &["62.3", "fail", "exit 1"])], 1)
            .unwrap();
    assert_eq!(verdict.detail["steps"], json!({"62.2": "time out", "62.3": "fail"}));
    assert_eq!(verdict.reason, "0 of 3 steps pass; step 62.2 ends with time out: AssertionError.");
    for (lines, expected) in [
        (vec![], "not the grader's"),
        (
            vec![("environment", &["missing h5py", "missing scipy"] as &[&str])],
            "run `bench sandy setup`: the sandbox's Python has no h5py, scipy",
        ),
        (
            vec![environment, ("targets", &["useless", "t.h5 has no group 62.2/test1"])],
            "The item cannot be graded: t.h5 has no group 62.2/test1",
        ),
        (vec![environment, ("targets", &["unknown", "it took too long"])], "it took too long"),
        (vec![("environment", &["broken"] as &[&str])], "numpy 2.1.0 and scipy 1.14.1 (ImportError: simps)"),
        (vec![environment, ("step", &["62.2", "pass", ""])], "62.3 was not run"),
        (
            vec![environment, ("step", &["62.2", "error", ""]), ("step", &["62.3", "pass", ""])],
            "62.2 was not run",
        ),
    ] {
        let unread = read(&lines, 1).unwrap_err();
        assert!(unread.why.contains(expected), "{unread}");
        // A failure that an operator has to fix is not retried.
        let begins = |start: &&str| unread.why.starts_with(start);
        assert_eq!(unread.retry, !["run `bench", "The item "].iter().any(begins), "{unread}");
    }
}

#[test]
fn lines_without_the_seal_do_not_count() {
    let item = item(&with_given_step());
    let ours = body(answered_steps(&[("62.2", "x"), ("62.3", "y")]));
    // The same programs, but different answers.
    let others = body(answered_steps(&[("62.2", "x"), ("62.3", "y ")]));
    let lines: [(&str, &[&str]); 3] =
        [("environment", &[]), ("step", &["62.2", "pass", ""]), ("step", &["62.3", "pass", ""])];
    let report = report(&item, &ours, &lines);
    assert!(SciCode::INSPECT.read(&item, &ours, &report, round(1)).is_ok());
    assert!(SciCode::INSPECT.read(&item, &others, &report, round(1)).is_err());
    let verdict = SciCode::INSPECT.read(&item, &others, &report, round(3)).unwrap();
    assert!(verdict.score == Some(0.0) && verdict.detail["steps_passed"] == 0, "{verdict:?}");
    // Storing and loading the answers doesn't change the seal.
    let loaded: SampleBody = serde_json::from_str(&serde_json::to_string(&ours).unwrap()).unwrap();
    assert!(SciCode::INSPECT.read(&item, &loaded, &report, round(1)).is_ok());
}

#[test]
fn the_first_wrong_step_decides_the_outcome() {
    let item = item(&with_given_step());
    let mut steps = answered_steps(&[("62.2", "x"), ("62.3", "y")]);
    steps[1].answer.finish = bench_domain::Finish::Length;
    let body = body(steps);
    let lines: [(&str, &[&str]); 3] =
        [("environment", &[]), ("step", &["62.2", "pass", ""]), ("step", &["62.3", "fail", "exit 1"])];
    let verdict = SciCode::INSPECT.read(&item, &body, &report(&item, &body, &lines), round(1)).unwrap();
    assert_eq!((verdict.outcome, verdict.score), (Outcome::Truncated, Some(0.0)));
    assert_eq!(verdict.detail["steps_passed"], 1);
}

#[test]
fn any_reply_makes_a_job() {
    let problem = item(&vectors()[0]["problem"]);
    let templates = Templates::new();
    let attachments = attachments(&["targets"]);
    let material = JobMaterial { templates: &templates, attachments: &attachments, nonce: NONCE };
    for reply in [
        "",
        "```",
        "```python",
        "\0",
        "```python\n```\n```python\nx\n```",
        &"x = 1\n".repeat(300_000),
        "\u{1c}import os",
    ] {
        let steps = answered_steps(&[("901.1", reply), ("901.2", reply), ("901.3", reply), ("901.4", reply)]);
        let job = SciCode::INSPECT.job(&problem, &body(steps), &material).unwrap();
        assert!(job.files.iter().any(|file| file.path == "code/901.4.py"));
        assert_eq!(job.time_limit.as_secs(), 4 * 1800 + 900);
    }
    let steps = answered_steps(&[("901.1", "")]);
    assert!(SciCode::INSPECT.job(&problem, &body(steps), &material).is_err());
}
