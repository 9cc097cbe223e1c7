use bench_domain::{Answer, Stage};
use serde_json::{Value, json};

use super::*;
use crate::grading::Grading;

const HASH: &str = "0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a";

const BENCHMARK: TerminalBenchHard = TerminalBenchHard::DEFAULT;

fn row(change: Value) -> Row {
    let row = json!({
        "task_id": "fix-it", "archive": "H4sI", "task_yaml": "instruction: |-\n  # canary 1\n  Do it.\n",
        "difficulty": "hard", "tags": ["a"], "author_email": "a@b.c", "category": "security",
        "base_description": "Do it, please.", "archive_bytes": 3, "tar_sha256": "AB", "n_files": 7,
    });
    let (Value::Object(mut row), Value::Object(change)) = (row, change) else { panic!("no objects") };
    row.extend(change);
    row.retain(|_, value| *value != json!("none"));
    row
}

fn item(change: Value) -> Item {
    BENCHMARK.item(3, row(change)).unwrap().unwrap()
}

fn options(pairs: &[(&str, &str)]) -> Options {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn prompt(change: Value) -> Result<String, ItemProblem> {
    Ok(BENCHMARK.prompt(&item(change), &Material::default())?.as_text().to_string())
}

#[test]
fn a_row_is_a_task() {
    let made = item(json!({}));
    assert_eq!((made.id.as_str(), made.group.as_deref()), ("3", Some("security")));
    assert_eq!(bench_items::source_id(&BENCHMARK, &made.row).as_deref(), Some("fix-it"));
    assert!(!made.row.contains_key("author_email") && !made.row.contains_key("tags"));
    assert_eq!(Benchmark::grade(&BENCHMARK, &made, &Answer::local("")), Grading::NeedsTurn(Stage::Episode));
    for missing in [json!({ "task_id": null }), json!({ "task_id": " " }), json!({ "task_id": "none" })] {
        assert_eq!(BENCHMARK.item(0, row(missing)).unwrap_err().column.as_deref(), Some("task_id"));
    }
}

#[test]
fn the_prompt_is_the_instruction() {
    assert_eq!(prompt(json!({})).unwrap(), "Do it.");
    for old in [json!({ "task_yaml": "descriptions:\n- key: base\n" }), json!({ "task_yaml": "none" })] {
        assert_eq!(prompt(old).unwrap(), "Do it, please.");
    }
    for (bad, part) in [
        (json!({ "task_yaml": "difficulty: hard", "base_description": " " }), "no instruction"),
        (json!({ "task_yaml": "- x" }), "task.yaml"),
    ] {
        let problem = prompt(bad).unwrap_err();
        assert!(matches!(&problem, ItemProblem::Content(text) if text.contains(part)), "{problem:?}");
    }
}

#[test]
fn a_packed_task_is_compared_with_its_row() {
    let mut stored = item(json!({}));
    assert_eq!(PackedTask::of_item(&stored).unwrap_err().column.as_deref(), Some("archive"));
    stored.row["archive"] = json!({ "sha256": "cd", "bytes": 3 });
    let task = PackedTask::of_item(&stored).unwrap().unwrap();
    assert_eq!((task.file.bytes, task.instruction.as_deref()), (3, Some("Do it, please.")));
    let form = |bytes: u64, sha256: &str| (bytes, sha256.to_owned());
    for (forms, problem) in [
        (vec![form(3, "ab"), form(9, "cd")], None),
        (vec![form(3, "cd"), form(9, "ab")], None),
        (vec![form(4, "ab"), form(9, "cd")], Some("4 bytes")),
        (vec![form(3, "cd"), form(9, "ef")], Some("SHA-256")),
    ] {
        let found = task.check(&forms).err();
        assert_eq!(found.is_some(), problem.is_some(), "{found:?}");
        assert!(problem.is_none_or(|part| found.unwrap().contains(part)));
    }
    stored.row["archive"] = Value::Null;
    assert!(PackedTask::of_item(&stored).is_err());
    assert_eq!(PackedTask::of_item(&Item::new("0", None, Row::new())).unwrap(), None);
}

#[test]
fn tasks_are_selected_by_difficulty_or_by_a_list() {
    let entry = |task: &str, difficulty: Option<&str>| {
        let Item { id, group, tags, .. } = item(json!({ "task_id": task, "difficulty": difficulty }));
        IndexEntry { id, source_id: None, group, tags, offset: 0, length: 0 }
    };
    let all =
        [entry("a", Some("hard")), entry("b", Some("easy")), entry("c", None), entry("d.1", Some("medium"))];
    let selected = |pairs: &[(&str, &str)]| {
        let options = options(pairs);
        assert!(BENCHMARK.with_options(&options).is_ok(), "{pairs:?}");
        let found = all.iter().filter(|entry| BENCHMARK.selects(&options, entry));
        found.map(|entry| entry.tags["task_id"].clone()).collect::<Vec<_>>().join(" ")
    };
    for (pairs, expected) in [
        (vec![], "a"),
        (vec![("difficulty", "easy")], "b"),
        (vec![("difficulty", "all")], "a b c d.1"),
        (vec![("tasks", "d.1, b,zz")], "b d.1"),
        (vec![("tasks", "c"), ("difficulty", "hard")], "c"),
        (vec![("agent", "bash"), ("agent.max_turns", "3")], "a"),
        (vec![("agent", "custom"), ("agent.content_hash", HASH), ("env.A", "1")], "a"),
    ] {
        assert_eq!(selected(&pairs), expected, "{pairs:?}");
    }
    for (pairs, part) in [
        (vec![("difficulty", "extreme")], "hard, medium, easy, all"),
        (vec![("tasks", "a"), ("difficulty", "easy")], "together"),
        (vec![("tasks", "a b")], "separated by commas"),
        (vec![("tasks", ",")], "names no task"),
        (vec![("env.A B", "1")], "a variable's name"),
        (vec![("agent", "bash"), ("env.A", "1")], "only agents of the kind `custom`"),
        (vec![("variable.A", "1")], "unknown option"),
        (vec![("agent", "oracle")], "asks no model"),
        (vec![("agent", "bash"), ("agent.parser_name", "xml")], "no option"),
    ] {
        let error = BENCHMARK.with_options(&options(&pairs)).err().unwrap().to_string();
        assert!(error.contains(part), "{pairs:?}: {error}");
    }
}

#[test]
fn the_agent_decides_the_official_texts() {
    let texts = |pairs: &[(&str, &str)]| {
        let changed = BENCHMARK.with_options(&options(pairs)).unwrap();
        changed.map(|benchmark| benchmark.templates().to_vec())
    };
    assert_eq!(BENCHMARK.templates(), Wording::Terminus2(ReplyFormat::Json).official());
    assert_eq!(texts(&[("difficulty", "all")]), None);
    assert_eq!(texts(&[("agent", "bash")]), Some(Vec::new()));
    assert_eq!(
        texts(&[("agent.parser_name", "xml")]),
        Some(Wording::Terminus2(ReplyFormat::Xml).official().to_vec())
    );
}

#[test]
fn agents_without_a_model_need_no_official_texts() {
    assert!(!BENCHMARK.templates().is_empty());
    for agent in ["oracle", "nop"] {
        assert!(BENCHMARK.without_model(agent).unwrap().templates().is_empty(), "{agent}");
    }
    assert!(BENCHMARK.without_model("openrouter").is_none());
}
