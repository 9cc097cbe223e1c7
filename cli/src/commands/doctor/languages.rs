//! Check of the languages of programming tasks: compiles and runs a small program of each in a sandbox.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use bench_code_tasks::Language;
use bench_sandbox::isolation::{Isolation, Limits};
use bench_stack::sandboxes::toolchains::probe;
use futures_util::future::join_all;

use super::finding::{Check, Finding, with_timeout};
use super::python::run;
use crate::again::shell_word;
use crate::commands::sandy::setup;

/// Maximum time to compile and run a program.
const LIMIT: Duration = Duration::from_secs(60);
/// Extra time to create and remove the sandbox, and to wait for the other languages' programs.
const SPARE: Duration = Duration::from_secs(30);

fn languages_check() -> Check {
    Check::new("languages", "languages of code_lab")
}

/// Reports that the languages of a sandbox service aren't known.
pub(super) fn in_service() -> Finding {
    languages_check().skipped("the sandbox service has its own")
}

/// Reports that no language was tried, because no sandbox could be created.
pub(super) fn not_tried() -> Finding {
    languages_check().skipped("there is no sandbox to try them in")
}

/// Tries all languages. `data_dir` is where toolchains were looked for.
pub(super) async fn check(isolation: &dyn Isolation, limits: &Limits, data_dir: &Path) -> Finding {
    let tried = join_all(Language::ALL.into_iter().map(|language| async move {
        let program = setup::in_sandbox(probe(language).to_owned(), LIMIT);
        let output = with_timeout(LIMIT + SPARE, run(isolation, limits, program)).await;
        let works = output.and_then(Result::ok).is_some_and(|output| {
            output.exit_code == Some(0) && String::from_utf8_lossy(&output.stdout).trim() == "ok"
        });
        (language, works)
    }));
    let (works, missing): (Vec<_>, Vec<_>) = tried.await.into_iter().partition(|(_, works)| *works);
    let names = |languages: &[(Language, bool)]| {
        languages.iter().map(|(language, _)| language.to_string()).collect::<Vec<_>>().join(", ")
    };
    if missing.is_empty() {
        return languages_check().ok(names(&works));
    }
    let fact = format!("no {}; their programming tasks can't be run here", names(&missing));
    languages_check().not_set_up(fact, fixes(missing.iter().map(|(language, _)| *language), data_dir))
}

/// Explains how to get languages into sandboxes.
fn fixes(missing: impl Iterator<Item = Language>, data_dir: &Path) -> String {
    // Without the folder, the command would install them in the usual one.
    let folder = match data_dir.as_os_str().is_empty() {
        true => String::new(),
        false => format!(" --data-dir {}", shell_word(&data_dir.display().to_string())),
    };
    let setup = format!("run `bench sandy setup --toolchains{folder}`");
    let fixes: BTreeSet<String> = missing.map(|language| fix(language, &setup)).collect();
    fixes.into_iter().collect::<Vec<_>>().join("; ")
}

/// Explains how to get a language into sandboxes. `setup` installs toolchains.
fn fix(language: Language, setup: &str) -> String {
    match language {
        Language::Python => "install Python 3.10 or later".to_owned(),
        Language::JavaScript | Language::Html => {
            "install Node.js 18 or later (Debian: apt install nodejs)".to_owned()
        }
        Language::Cpp => "install g++ (Debian: apt install g++)".to_owned(),
        Language::Go => setup.to_owned(),
        Language::Rust => format!("install Rust, then {setup}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fix_names_the_folder_that_was_looked_at() {
        let fix = |path: &str, missing: &[Language]| fixes(missing.iter().copied(), Path::new(path));
        let setup = "run `bench sandy setup --toolchains --data-dir /x/data`";
        assert_eq!(fix("/x/data", &[Language::Go]), setup);
        assert_eq!(
            fix("/x/data", &[Language::Rust, Language::Go]),
            format!("install Rust, then {setup}; {setup}")
        );
        assert!(fix("/my data", &[Language::Go]).ends_with("--data-dir '/my data'`"));
        assert_eq!(
            fix("/x", &[Language::JavaScript, Language::Html]),
            "install Node.js 18 or later (Debian: apt install nodejs)"
        );
    }
}
