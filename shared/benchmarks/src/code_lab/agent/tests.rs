use bench_domain::{HarvestedFile, JobEnd};
use serde_json::{Value, json};

use super::*;

fn task_item(eval: &str) -> Item {
    let metadata = format!(r#"{{"language": "python", "instructions_file": "i.md", "eval": {eval}}}"#);
    let row = json!({
        "task_id": "calc",
        "files": {
            "metadata.json": { "text": metadata },
            "i.md": { "text": "The sum is a difference." },
            "workspace/calc.py": { "text": "def add(a, b):\n    return a - b\n" },
            "tests/test_calc.py": { "text": "HIDDEN = 1\n" },
            "solutions/reference.diff": { "text": "HIDDEN" },
        }
    });
    let Value::Object(row) = row else { panic!("no row") };
    CodeLabAgent.item(0, row).unwrap().unwrap()
}

fn options(pairs: &[(&str, &str)]) -> Options {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn report(end: JobEnd, result: Option<Value>) -> JobReport {
    let text = result.map(|result| ("result.json".to_owned(), HarvestedFile::Text(result.to_string())));
    JobReport {
        end,
        files: text.into_iter().collect(),
        stdout_tail: "out".to_owned(),
        stderr_tail: "err".to_owned(),
        elapsed_ms: Some(7),
        isolation: None,
    }
}

#[test]
fn the_agent_is_told_how_it_is_graded_and_sees_no_test() {
    let build = r#"{"command": ["lab"], "build": [["make", "-C", "{build}"]]}"#;
    let text = WorkspaceProtocol::instruction(&CodeLabAgent, &task_item(build)).unwrap();
    for part in ["The sum is a difference.", "`make -C {build}`", "Hidden tests"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("HIDDEN") && !text.contains("return a - b"), "{text}");
    let own =
        WorkspaceProtocol::instruction(&CodeLabAgent, &task_item(r#"{"command": ["go", "test", "./..."]}"#));
    assert!(own.unwrap().contains("`go test ./...`"));
    let other = task_item(r#"{"command": ["bash", "t.sh"]}"#);
    assert!(WorkspaceProtocol::instruction(&CodeLabAgent, &other).is_err(), "nothing is paid for it");
}

#[test]
fn the_first_message_is_that_of_bash_without_a_folder() {
    let text = CodeLabAgent.first_message("Repair it.", &options(&[("agent.command_timeout_sec", "9")]));
    assert!(text.starts_with("Solve the task at the end of this message"), "{text}");
    assert!(text.contains("starts in `{folder}`") && text.contains("killed after 9 seconds"), "{text}");
    assert!(text.ends_with("Repair it.\n") && !text.contains("{seconds}"), "{text}");
}

#[test]
fn options_are_those_of_bash() {
    let accepted =
        options(&[("agent", "bash"), ("agent.max_turns", "3"), ("agent.command_timeout_sec", "9")]);
    assert!(CodeLabAgent.with_options(&accepted).unwrap().is_none());
    for (name, value, part) in [
        ("agent", "terminus-2", "is bash, not"),
        ("agent.folder", "/tmp", "can't be set"),
        ("agent.nope", "1", "no option `nope`"),
        ("agent.max_turns", "0", "must be a number from 1"),
        ("answer_form", "diff", "unknown option `answer_form`"),
    ] {
        let error = CodeLabAgent.with_options(&options(&[(name, value)])).err().unwrap().to_string();
        assert!(error.contains(part), "{name}: {error}");
    }
    assert_eq!(CodeLabAgent.default_agent(), Some(Agent::Bash));
}

#[test]
fn answers_that_no_agent_made_are_graded_as_replies() {
    for source in ["oracle", "nop", "replay"] {
        let other = CodeLabAgent.without_model(source).unwrap();
        assert_eq!((other.metadata().protocol_name, other.has_agent()), ("single-reply", false), "{source}");
    }
    assert!(CodeLabAgent.without_model("openrouter").is_none());
    let item = task_item(r#"{"command": ["lab"]}"#);
    let empty = Answer::local("");
    assert_eq!(Benchmark::grade(&CodeLabAgent, &item, &empty), Grading::NeedsTurn(Stage::Episode));
    let nothing = WorkspaceProtocol::grade(&CodeLabAgent, &item, &empty).done().unwrap();
    assert_eq!((nothing.outcome, &nothing.detail["verdict"]), (Outcome::NoAnswer, &json!("no-answer")));
    assert_eq!(nothing.reason, "The agent changed nothing that a patch can have.");
    let change = Answer::local("File: calc.py\n```\nx = 1\n```\n");
    for grading in [
        Benchmark::grade(&CodeLabAgent, &item, &change),
        WorkspaceProtocol::grade(&CodeLabAgent, &item, &change),
    ] {
        assert_eq!(grading, Grading::NeedsTurn(Stage::Sandbox));
    }
}

#[test]
fn results_of_jobs_are_read_whatever_the_agent_made_of_them() {
    let ran = json!({ "exit_code": 3, "timed_out": false, "head": "a", "tail": "b", "omitted": 9, "elapsed_ms": 12 });
    let end = CodeLabAgent.command_end(&report(JobEnd::Exited(0), Some(ran)));
    assert_eq!(
        (end.exit_code, end.output.as_str(), end.omitted_bytes, end.elapsed_ms),
        (Some(3), "ab", 9, 12)
    );
    for (how, code, is_late) in [
        (JobEnd::Exited(2), Some(2), false),
        (JobEnd::TimedOut, None, true),
        (JobEnd::Vanished, None, false),
        (JobEnd::Halted, None, false),
    ] {
        for result in [None, Some(json!("forged"))] {
            let end = CodeLabAgent.command_end(&report(how, result));
            assert_eq!((end.exit_code, end.is_timed_out, end.output.as_str()), (code, is_late, "outerr"));
        }
    }
    let item = task_item(r#"{"command": ["lab"]}"#);
    let collected = |value: Value| CodeLabAgent.change(&item, &report(JobEnd::Exited(0), Some(value)));
    for unreadable in [json!(1), json!({ "end": "complete" })] {
        assert!(matches!(collected(unreadable), Err(WorkspaceError::Unreadable(_))));
    }
    let forged = json!({
        "end": "complete",
        "files": { "../../etc/passwd": "x", "/etc/shadow": "x", "new.py": "y = 1\n" },
        "removed": ["not/there"],
        "skipped": [{ "path": "a\u{1b}[31m", "why": "it is a link" }],
        "more_skipped": 4
    });
    let change = collected(forged).unwrap();
    assert_eq!(change.reply, "```diff\n--- /dev/null\n+++ b/new.py\n@@ -0,0 +1 @@\n+y = 1\n```\n");
    assert_eq!(change.left_out.lines().count(), 4, "{}", change.left_out);
    assert!(change.left_out.contains("a [31m: it is a link\n") && change.left_out.ends_with("4 more\n"));
    for end in ["too-large", "too-many", "else"] {
        let value = json!({ "end": end, "files": {}, "removed": [], "skipped": [] });
        assert!(matches!(collected(value), Err(WorkspaceError::TooLarge(_))), "{end}");
    }
}
