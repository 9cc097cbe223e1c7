//! Tests within Rust sources: modules under `#[cfg(test)]`.

mod source;

use std::collections::BTreeMap;

use crate::workspace::{Workspace, WorkspaceFile};

use source::{Module, Source};

/// Item between an answer's text and the tests, so that an attribute without an item belongs to it.
const SEPARATOR: &str = "\nconst _: () = ();\n\n";

/// Returns what to do to the Rust sources of an answer whose test modules differ from the task's: files with the task's
/// modules, and `None` for those that would be in their way.
pub(super) fn restored(task: &Workspace, answer: &Workspace) -> BTreeMap<String, Option<WorkspaceFile>> {
    let (mut changed, mut declared) = (BTreeMap::new(), BTreeMap::new());
    for (path, file) in task.files().iter().filter(|(path, _)| is_rust(path)) {
        // A source may become the root of a folder, and the reverse. One that is gone has no tests to restore.
        let places = [Some(path.clone()), other_place(path)];
        let Some(place) = places.into_iter().flatten().find(|place| answer.get(place).is_some()) else {
            continue;
        };
        let (Some(text), Some(given)) = (text_of(Some(file)), text_of(answer.get(&place))) else { continue };
        let wanted = Source::new(text).modules();
        for inner in
            wanted.iter().filter(|module| !module.has_body).flat_map(|module| declared_paths(path, module))
        {
            let Some(file) = task.get(&inner) else { continue };
            if let Some(other) =
                other_place(&inner).filter(|other| task.get(other).is_none() && answer.get(other).is_some())
            {
                declared.insert(other, None);
            }
            if answer.get(&inner) != Some(file) {
                declared.insert(inner, Some(file.clone()));
            }
        }
        if text != given
            && let Some(text) = with_tests(text, &wanted, given, |module| {
                is_elsewhere(task, answer, &text[module.range.clone()])
            })
        {
            let is_executable = file.is_executable;
            changed.insert(place, Some(WorkspaceFile { bytes: text.into_bytes(), is_executable }));
        }
    }
    // Sources of declared modules are the task's own, with all that is in them.
    changed.extend(declared);
    changed
}

fn is_rust(path: &str) -> bool {
    path.ends_with(".rs")
}

fn text_of(file: Option<&WorkspaceFile>) -> Option<&str> {
    std::str::from_utf8(&file?.bytes).ok()
}

/// Returns the answer's source with the task's test modules, or `None` if it has them. A module that its source doesn't name
/// any more is left out if `is_moved`.
fn with_tests(
    task: &str,
    wanted: &[Module],
    answer: &str,
    is_moved: impl Fn(&Module) -> bool,
) -> Option<String> {
    let source = Source::new(answer);
    let given = source.modules();
    let same = |one: &Module, other: &Module| {
        one.name == other.name && task[one.range.clone()] == answer[other.range.clone()]
    };
    let is_kept =
        |module: &&Module| !(module.has_body && !source.names_module(&module.name) && is_moved(module));
    let wanted: Vec<&Module> = wanted.iter().filter(is_kept).collect();
    if wanted.iter().all(|one| given.iter().any(|other| same(one, other))) {
        return None;
    }
    let (mut text, mut end) = (String::with_capacity(answer.len() + task.len()), 0);
    for module in given.iter().filter(|module| wanted.iter().any(|one| one.name == module.name)) {
        text.push_str(&answer[end..module.range.start]);
        end = module.range.end;
    }
    text.push_str(&answer[end..]);
    text.push_str(SEPARATOR);
    for module in &wanted {
        text.push_str(&task[module.range.clone()]);
        text.push('\n');
    }
    Some(text)
}

/// Returns true if a test module of the task is in a source of the answer that doesn't have it in the task.
fn is_elsewhere(task: &Workspace, answer: &Workspace, module: &str) -> bool {
    answer.files().iter().filter(|(path, _)| is_rust(path)).any(|(path, file)| {
        let has = |file| {
            text_of(file).is_some_and(|text| {
                text.contains(module)
                    && Source::new(text).modules().iter().any(|other| &text[other.range.clone()] == module)
            })
        };
        has(Some(file)) && !has(task.get(path))
    })
}

/// Returns the files that a declaration without a body in a source may be about.
fn declared_paths(source: &str, module: &Module) -> Vec<String> {
    let (folder, file) = source.rsplit_once('/').unwrap_or(("", source));
    if let Some(path) = &module.path {
        return vec![joined(folder, path)];
    }
    let stem = file.strip_suffix(".rs").unwrap_or(file);
    let folder =
        if matches!(stem, "lib" | "main" | "mod") { folder.to_owned() } else { joined(folder, stem) };
    let name = &module.name;
    vec![joined(&folder, &format!("{name}.rs")), joined(&folder, &format!("{name}/mod.rs"))]
}

/// Returns the path of a file that a folder names.
fn joined(folder: &str, path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in folder.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// Returns the other place of a module's source: `a/mod.rs` for `a.rs`, and the reverse.
fn other_place(path: &str) -> Option<String> {
    match path.strip_suffix("/mod.rs") {
        Some(folder) => Some(format!("{folder}.rs")),
        None => path.strip_suffix(".rs").map(|stem| format!("{stem}/mod.rs")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TASK: &str = "pub fn add() -> char {\n    '}'\n}\n\n#[cfg(test)]\nmod tests {\n    #[test]\n    fn adds() {\n        assert_eq!(add(), '{');\n    }\n}\n";

    fn own() -> &'static str {
        &TASK[TASK.find("#[cfg").unwrap()..TASK.trim_end().len()]
    }

    /// Returns the sources that are restored, and those that are removed as `-`.
    fn sources<const N: usize, const M: usize>(
        task: [(&str, &str); N],
        answer: [(&str, &str); M],
    ) -> BTreeMap<String, String> {
        let restored = restored(&Workspace::from(task), &Workspace::from(answer));
        let text = |file: Option<WorkspaceFile>| {
            file.map_or("-".to_owned(), |file| String::from_utf8(file.bytes).unwrap())
        };
        restored.into_iter().map(|(path, file)| (path, text(file))).collect()
    }

    #[test]
    fn changed_and_removed_test_modules_are_those_of_the_task() {
        let restored =
            |answer: &str| sources([("src/lib.rs", TASK)], [("src/lib.rs", answer)]).remove("src/lib.rs");
        let right = TASK.replace("'}'\n", "'{'\n");
        assert_eq!(restored(&right), None);
        assert_eq!(restored(&format!("use std::fmt;\n{right}\n#[cfg(test)]\nmod more {{}}\n")), None);
        for answer in [
            "pub fn add() -> char { '}' }\n",
            "pub fn add() -> char { '}' }\n#[cfg(any())]\n#[cfg(test)]\nmod tests {\n    #[test]\n    fn adds() {}\n}\n",
            "/* /* */ */ #[cfg(all(test, unix))] pub(crate) mod tests { }\npub fn add() -> char { '}' }\n",
            "#[path = \"x.rs\"] #[cfg(test)] mod tests { }\npub fn add() -> char { '}' }\n#[cfg(test)] mod tests;",
        ] {
            let text = restored(answer).unwrap();
            assert!(text.ends_with(&format!("{SEPARATOR}{}\n", own())), "{text}");
            assert_eq!(Source::new(&text).modules().len(), 1, "{text}");
            for gone in ["fn adds() {}", "any()", "#[path"] {
                assert!(!text.contains(gone), "{text}");
            }
        }
        let imp = "#[cfg(any(test, feature = \"std\"))] mod imp { fn a() {} }\n";
        assert_eq!(sources([("src/lib.rs", imp)], [("src/lib.rs", "mod imp { fn b() {} }")]).len(), 0);
    }

    #[test]
    fn tests_of_moved_and_removed_sources_stay_where_the_answer_has_them() {
        let moved = sources([("src/lib.rs", TASK)], [("src/lib.rs", "mod calc;\n"), ("src/calc.rs", TASK)]);
        assert_eq!(moved.len(), 0, "{moved:?}");
        let renamed = sources(
            [("src/a.rs", TASK), ("src/lib.rs", "mod a;\n")],
            [("src/b.rs", TASK), ("src/lib.rs", "mod b;\n")],
        );
        assert_eq!(renamed.len(), 0, "{renamed:?}");
        let main = [("src/main.rs", "#[cfg(test)]\nmod tests;\n"), ("src/tests.rs", "// tests")];
        assert_eq!(sources(main, [("src/lib.rs", "")]).len(), 0);
        let rooted = sources([("src/a.rs", TASK)], [("src/a/mod.rs", "pub fn x() {}\n")]);
        assert!(
            rooted["src/a/mod.rs"].starts_with("pub fn x")
                && rooted["src/a/mod.rs"].ends_with(&format!("{}\n", own()))
        );
        // A copy elsewhere doesn't excuse another module of the name.
        let copied =
            sources([("src/lib.rs", TASK)], [("src/lib.rs", "mod tests { }\n"), ("src/copy.rs", TASK)]);
        assert!(copied["src/lib.rs"].contains("assert_eq"), "{copied:?}");
    }

    #[test]
    fn sources_of_declared_test_modules_are_those_of_the_task() {
        const INNER: &str = "#[test]\nfn one() { panic!() }\n#[cfg(test)]\nmod deep { fn x() {} }\n";
        let task = [("src/lib.rs", "#[cfg(test)]\nmod tests;\n"), ("src/tests.rs", INNER)];
        let restored = sources(task, [("src/lib.rs", ""), ("src/tests.rs", "#[test]\nfn one() {}\n")]);
        assert!(restored["src/lib.rs"].ends_with("#[cfg(test)]\nmod tests;\n"));
        assert_eq!((restored["src/tests.rs"].as_str(), restored.len()), (INNER, 2));
        // Two places of a module's source are an error of the compiler.
        let moved = sources(task, [task[0], ("src/tests/mod.rs", "#[test]\nfn one() {}\n")]);
        assert_eq!(
            (moved["src/tests.rs"].as_str(), moved["src/tests/mod.rs"].as_str(), moved.len()),
            (INNER, "-", 2)
        );
        let named = [
            ("src/a.rs", "#[path = \"../checks/./a.rs\"]\n#[cfg(test)]\nmod tests;\n"),
            ("checks/a.rs", INNER),
        ];
        let restored = sources(named, [named[0], ("checks/a.rs", "")]);
        assert_eq!((restored["checks/a.rs"].as_str(), restored.len()), (INNER, 1));
        assert!(sources(task, task).is_empty());
    }
}
