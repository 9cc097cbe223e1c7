//! Cargo manifests, which say what is a test and how it's built.

use std::collections::BTreeMap;

use toml::{Table, Value};

use crate::workspace::{Workspace, WorkspaceFile};

/// Name of a manifest.
const MANIFEST: &str = "Cargo.toml";
/// Values that decide which sources are built as tests, and how.
const DECISIVE: [&[&str]; 15] = [
    &["lib", "path"],
    &["lib", "test"],
    &["lib", "harness"],
    &["test"],
    &["profile"],
    &["patch"],
    &["replace"],
    &["workspace", "members"],
    &["workspace", "exclude"],
    &["workspace", "default-members"],
    &["package", "autotests"],
    &["package", "autolib"],
    &["package", "build"],
    &["package", "links"],
    &["package", "workspace"],
];

/// Returns the manifests that an answer has, or lacks, with what the task's say about tests; none that say the same.
pub(super) fn restored(task: &Workspace, answer: &Workspace) -> BTreeMap<String, WorkspaceFile> {
    let mut changed = BTreeMap::new();
    for (path, file) in task.files().iter().filter(|(path, _)| path.rsplit('/').next() == Some(MANIFEST)) {
        let Some(own) = read(Some(file)) else { continue };
        let Some(given) = read(answer.get(path)) else {
            changed.insert(path.clone(), file.clone());
            continue;
        };
        let mut manifest = given.clone();
        for place in DECISIVE {
            put(&mut manifest, place, value(&own, place));
        }
        if manifest == own && given != own {
            changed.insert(path.clone(), file.clone());
        } else if manifest != given {
            let bytes = manifest.to_string().into_bytes();
            changed.insert(path.clone(), WorkspaceFile { bytes, is_executable: file.is_executable });
        }
    }
    changed
}

/// Reads a manifest. Returns `None` if it isn't one.
fn read(file: Option<&WorkspaceFile>) -> Option<Table> {
    toml::from_str(std::str::from_utf8(&file?.bytes).ok()?).ok()
}

fn value<'a>(table: &'a Table, place: &[&str]) -> Option<&'a Value> {
    match place {
        [] => None,
        [name] => table.get(*name),
        [name, rest @ ..] => value(table.get(*name)?.as_table()?, rest),
    }
}

/// Sets a value, or removes it together with tables that are empty without it.
fn put(table: &mut Table, place: &[&str], new: Option<&Value>) {
    match (place, new) {
        ([], _) => {}
        ([name], Some(new)) => drop(table.insert((*name).to_owned(), new.clone())),
        ([name], None) => drop(table.remove(*name)),
        ([name, rest @ ..], new) => {
            if new.is_some() && !table.get(*name).is_some_and(Value::is_table) {
                table.insert((*name).to_owned(), Value::Table(Table::new()));
            }
            if let Some(Value::Table(inner)) = table.get_mut(*name) {
                let was_empty = inner.is_empty();
                put(inner, rest, new);
                if inner.is_empty() && !was_empty {
                    table.remove(*name);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TASK: &str =
        "[package]\nname = \"calc\"\nversion = \"0.1.0\"\n\n[profile.dev]\nopt-level = 1\n\n[dependencies]\n";

    /// Returns the restored manifest, if it is.
    fn manifest(task: &str, answer: &str) -> Option<String> {
        let task = Workspace::from([(MANIFEST, task)]);
        let mut restored = restored(&task, &Workspace::from([(MANIFEST, answer)]));
        restored.remove(MANIFEST).map(|file| String::from_utf8(file.bytes).unwrap())
    }

    fn table(text: &str) -> Table {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn what_manifests_say_about_tests_is_restored() {
        for cheat in [
            "[[test]]\nname = \"more\"\npath = \"other.rs\"\n",
            "[lib]\ntest = false\n",
            "[profile.test]\npanic = \"abort\"\n",
            "[workspace]\nexclude = [\".\"]\n",
        ] {
            let text = manifest(TASK, &format!("{TASK}{cheat}")).unwrap();
            for place in DECISIVE {
                assert_eq!(value(&table(&text), place), value(&table(TASK), place), "{text}");
            }
        }
        let text =
            manifest(TASK, &TASK.replace("[dep", "[lib]\nname = \"x\"\npath = \"x.rs\"\n[dep")).unwrap();
        assert_eq!(table(&text)["lib"], Value::Table(table("name = \"x\"")));
        assert_eq!(manifest(TASK, "not a manifest").as_deref(), Some(TASK));
        let removed = TASK.replace("[profile.dev]\nopt-level = 1\n", "");
        assert_eq!(table(&manifest(TASK, &removed).unwrap()), table(TASK));
    }

    #[test]
    fn everything_else_of_an_answer_is_kept() {
        for harmless in [
            "[features]\nfast = []\n",
            "[[bin]]\nname = \"calc\"\npath = \"src/main.rs\"\n",
            "[lib]\nname = \"x\"\ncrate-type = [\"rlib\"]\n",
            "[workspace.dependencies]\na = \"1\"\n",
        ] {
            assert_eq!(manifest(TASK, &format!("{TASK}{harmless}")), None, "{harmless}");
        }
        let more = "log = { version = \"0.4\", features = [\"std\"] }\n[features]\nfast = [\"log/std\"]\n\"a.b\" = []\n[target.'cfg(unix)'.dependencies]\nlibc = \"0.2\"\n";
        let text = manifest(TASK, &format!("{TASK}{more}[profile.release]\nlto = true\n")).unwrap();
        assert_eq!(table(&text), table(&format!("{TASK}{more}")));
    }

    #[test]
    fn manifests_of_tasks_that_are_none_change_nothing() {
        assert_eq!(manifest("{{ template }}", TASK), None);
    }
}
