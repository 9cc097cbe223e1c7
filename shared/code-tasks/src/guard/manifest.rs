//! Cargo manifests, which say what is a test and how it's built.

use toml::{Table, Value};

use crate::workspace::{Workspace, WorkspaceFile};

/// Name of a manifest.
const MANIFEST: &str = "Cargo.toml";
/// Tables that decide which sources are built as tests, and how.
const TABLES: [&str; 6] = ["lib", "test", "profile", "workspace", "patch", "replace"];
/// Fields of `package` that do.
const FIELDS: [&str; 5] = ["autotests", "autolib", "build", "links", "workspace"];

/// Returns the task's manifests in place of which an answer has one that says something else about tests, or none.
pub(super) fn restored<'a>(
    task: &'a Workspace,
    answer: &Workspace,
) -> impl Iterator<Item = (&'a str, &'a WorkspaceFile)> {
    let manifests = task.files().iter().filter(|(path, _)| path.rsplit('/').next() == Some(MANIFEST));
    let differing = manifests.filter(|(path, file)| {
        let given = answer.get(path);
        given != Some(file) && decisive(Some(file)) != decisive(given)
    });
    differing.map(|(path, file)| (path.as_str(), file)).collect::<Vec<_>>().into_iter()
}

/// Returns what a manifest says about tests; `None` if it can't be read.
fn decisive(file: Option<&WorkspaceFile>) -> Option<Table> {
    let mut manifest: Table = toml::from_str(std::str::from_utf8(&file?.bytes).ok()?).ok()?;
    let mut found = Table::new();
    for name in TABLES {
        found.extend(manifest.remove(name).map(|value| (name.to_owned(), value)));
    }
    if let Some(Value::Table(package)) = manifest.get_mut("package") {
        for name in FIELDS {
            found.extend(package.remove(name).map(|value| (format!("package.{name}"), value)));
        }
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn manifests_that_say_something_else_about_tests_are_restored() {
        const TASK: &str = "[package]\nname = \"calc\"\nversion = \"0.1.0\"\n\n[dependencies]\n";
        let restores = |manifest: &str| {
            let task = Workspace::from([(MANIFEST, TASK)]);
            restored(&task, &Workspace::from([(MANIFEST, manifest)])).count() == 1
        };
        for harmless in [
            "[package]\nname = \"calc\"\nversion = \"0.2.0\"\n\n[features]\nfast = []\n",
            "[package]\nname = \"calc\"\nversion = \"0.1.0\"\n[[bin]]\nname = \"calc\"\npath = \"src/main.rs\"\n",
        ] {
            assert!(!restores(harmless), "{harmless}");
        }
        for cheat in [
            "[[test]]\nname = \"more\"\npath = \"other.rs\"\n",
            "[lib]\ntest = false\n",
            "[profile.test]\npanic = \"abort\"\n",
            "[workspace]\nexclude = [\".\"]\n",
        ] {
            assert!(restores(&format!("{TASK}{cheat}")), "{cheat}");
        }
        assert!(restores(&TASK.replace("[dep", "autotests = false\n[dep")));
        assert!(restores("not a manifest"));
    }
}
