//! The sample tasks of the repository.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::support::TestDir;

/// Returns the folders and archives of the sample tasks.
fn samples(is_wanted: impl Fn(&Path) -> bool) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../sample-tasks");
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    found.retain(|path| is_wanted(path));
    found.sort();
    found
}

/// Stores tasks, and returns their content hashes by name.
fn stored(paths: &[PathBuf]) -> BTreeMap<String, String> {
    let dir = TestDir::new();
    for path in paths {
        let output = dir.bench(&["tasks", "add", path.to_str().unwrap()]);
        assert_eq!(output.code, 0, "{}{}", output.stdout, output.stderr);
    }
    let tasks = dir.json(&["tasks", "list", "--json"]);
    let text = |task: &Value, field: &str| task[field].as_str().unwrap().to_owned();
    tasks.as_array().unwrap().iter().map(|task| (text(task, "name"), text(task, "content_hash"))).collect()
}

#[test]
fn sample_tasks_are_admitted_and_their_archives_have_the_same_files() {
    let folders = stored(&samples(|path| path.join("task.toml").exists()));
    assert_eq!(folders.len(), 5);
    let archives = stored(&samples(|path| path.extension().is_some_and(|extension| extension == "zip")));
    assert_eq!(archives, folders, "`sample-tasks/pack` writes the archives again");
}

#[test]
fn scripts_written_for_an_earlier_runner_find_its_samples_by_name() {
    for name in ["break-filter-js-from-html", "chess-best-move", "code-from-image"] {
        let archives = samples(|path| path.ends_with(format!("{name}.zip")));
        assert_eq!(stored(&archives).into_keys().collect::<Vec<_>>(), [name]);
    }
}
