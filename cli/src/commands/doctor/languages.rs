//! Check of the languages of programming tasks: compiles and runs a small program of each in a sandbox.

use std::time::Duration;

use bench_code_tasks::Language;
use bench_sandbox::isolation::{Isolation, Limits};
use bench_stack::sandboxes::toolchains::probe;
use futures_util::future::join_all;

use super::finding::{Check, Finding, with_timeout};
use super::python::run;
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

pub(super) async fn check(isolation: &dyn Isolation, limits: &Limits) -> Finding {
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
    let fixes = missing.iter().map(|(language, _)| fix(*language)).collect::<std::collections::BTreeSet<_>>();
    let fact = format!("no {}; their programming tasks can't be run here", names(&missing));
    languages_check().not_set_up(fact, fixes.into_iter().collect::<Vec<_>>().join("; "))
}

/// Explains how to get a language into sandboxes.
const fn fix(language: Language) -> &'static str {
    match language {
        Language::Python => "install Python 3.10 or later",
        Language::JavaScript | Language::Html => "install Node.js 18 or later (Debian: apt install nodejs)",
        Language::Cpp => "install g++ (Debian: apt install g++)",
        Language::Go => "run `bench sandy setup --toolchains`",
        Language::Rust => "install Rust, then run `bench sandy setup --toolchains`",
    }
}
