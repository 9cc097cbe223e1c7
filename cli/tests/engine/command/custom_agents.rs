//! Custom agents ordered by the command: the documentation's example, and what results say.

use std::fs;
use std::io::Read as _;
use std::path::Path;
use std::process::Command;
use std::sync::PoisonError;

use serde_json::Value;

use super::episodes::{ENGINE, Place, objects};

/// Returns the documentation's example.
fn example() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/terminal-tasks.md");
    let text = fs::read_to_string(path).unwrap();
    let blocks = text.split("```sh account\n").skip(1).filter_map(|rest| rest.split("\n```").next());
    let found = blocks.into_iter().find(|block| block.contains("agent.toml"));
    found.unwrap_or_else(|| panic!("docs/terminal-tasks.md has no example of an agent")).to_owned()
}

#[test]
fn the_example_of_the_documentation_passes_a_task() {
    let _engine = ENGINE.lock().unwrap_or_else(PoisonError::into_inner);
    let (before, place) = (objects(), Place::new());
    let test = "#!/bin/sh\nif [ \"$(cat done)\" = hello ]; then echo 1; else echo 0; fi > /logs/verifier/reward.txt\n";
    let task = place.task("my-task", "#!/bin/sh\ntrue\n", test);
    fs::write(task.join("instruction.md"), "Greet:\n\n$ echo $GREETING > done\n").unwrap();
    let programs = Path::new(env!("CARGO_BIN_EXE_bench")).parent().unwrap();
    let bench = place.command(&[]);
    let variables = bench.get_envs().filter_map(|(name, value)| Some((name, value?)));
    let script = format!("set -euo pipefail\n{}", example().replace("bench run ", "bench run --json "));
    let output = Command::new("bash")
        .args(["-c", &script])
        .current_dir(task.parent().unwrap())
        .env_clear()
        .envs(variables)
        .env("PATH", format!("{}:{}", programs.display(), std::env::var("PATH").unwrap()))
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    // The other commands print text before and after.
    let json = text.split_once("\n[").map_or_else(|| text.to_string(), |(_, runs)| format!("[{runs}"));
    let runs: Value = serde_json::Deserializer::from_str(&json).into_iter().next().unwrap().unwrap();
    let (run, result) = (&runs[0], &runs[0]["results"][0]);
    assert_eq!((&run["model"], &result["correct"]), (&"custom/as-told@0.1".into(), &1.into()), "{runs:#}");
    // Table and archive name the agent, and the archive its content.
    let results = task.parent().unwrap().join("bench-results");
    let files: Vec<_> = fs::read_dir(results).unwrap().map(|entry| entry.unwrap().path()).collect();
    let table = files.iter().find(|path| path.extension().is_some_and(|end| end == "csv")).unwrap();
    let table = fs::read_to_string(table).unwrap();
    assert!(table.contains("custom/as-told@0.1"), "{table}");
    let archive = files.iter().find(|path| path.extension().is_some_and(|end| end == "zip")).unwrap();
    let verified = place.bench(&["verify", archive.to_str().unwrap()]);
    assert_eq!(verified.code, 0, "{}{}", verified.stdout, verified.stderr);
    assert!(verified.stdout.contains("as-told@0.1"), "{}", verified.stdout);
    let mut archive = zip::ZipArchive::new(fs::File::open(archive).unwrap()).unwrap();
    let mut manifest = String::new();
    archive.by_name("manifest.json").unwrap().read_to_string(&mut manifest).unwrap();
    let manifest: Value = serde_json::from_str(&manifest).unwrap();
    let stored: Value = serde_json::from_str(&place.bench(&["runs", "--json"]).stdout).unwrap();
    assert!(stored.to_string().contains("custom/as-told@0.1"), "{stored:#}");
    let named = find(&manifest, "agent.content_hash").unwrap_or_else(|| panic!("{manifest:#}"));
    assert_eq!(named.as_str().map(str::len), Some(64));
    assert_eq!(objects(), before);
}

/// Returns the value of the first key of this name, at any depth.
fn find<'a>(value: &'a Value, name: &str) -> Option<&'a Value> {
    match value {
        Value::Object(fields) => {
            fields.get(name).or_else(|| fields.values().find_map(|value| find(value, name)))
        }
        Value::Array(values) => values.iter().find_map(|value| find(value, name)),
        _ => None,
    }
}
