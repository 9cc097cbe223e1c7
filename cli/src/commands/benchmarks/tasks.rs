//! Programming tasks of a benchmark, for people.

use std::collections::BTreeSet;

use bench_api::{CodeTaskDetailsView, CodeTaskView, CodeTasksView, code_task, code_tasks};
use clap::Args;
use serde_json::Value;

use super::other_version;
use crate::client::{ServerArgs, encode};
use crate::commands::find_benchmark;
use crate::exit::Problem;
use crate::page::Page;
use crate::table::{Column, Table};
use crate::{format, output};

/// Number of columns for the names of fields.
const NAME_WIDTH: usize = 14;

/// Choice of programming tasks.
#[derive(Debug, Args)]
pub(super) struct TaskFilter {
    /// List the benchmark's programming tasks that come with this program, with the proof that each is admitted
    #[arg(long, requires = "name", conflicts_with = "protocol")]
    pub(super) tasks: bool,
    /// Show this programming task of the benchmark: instructions, files, and how its wrong solutions fail
    #[arg(long, value_name = "TASK", requires = "name", conflicts_with_all = ["tasks", "protocol"])]
    pub(super) task: Option<String>,
    /// List only tasks in this language, such as go
    #[arg(long, value_name = "LANGUAGE", requires = "tasks")]
    language: Option<String>,
    /// List only tasks of this type, such as bug_fix
    #[arg(long = "type", value_name = "TYPE", requires = "tasks")]
    kind: Option<String>,
    /// List only tasks of this difficulty, such as expert
    #[arg(long, value_name = "DIFFICULTY", requires = "tasks")]
    difficulty: Option<String>,
    /// List only tasks with this text in their name or a tag
    #[arg(long, value_name = "TEXT", requires = "tasks")]
    search: Option<String>,
}

impl TaskFilter {
    /// Refuses values that no task has, which are probably misspelled.
    fn check(&self, view: &CodeTasksView) -> Result<(), Problem> {
        let languages: &[fn(&CodeTaskView) -> &str] = &[|task| &task.language, |task| &task.language_name];
        for (name, wanted, values) in [
            ("language", &self.language, languages),
            ("type", &self.kind, &[|task| &task.kind]),
            ("difficulty", &self.difficulty, &[|task| &task.difficulty]),
        ] {
            let Some(wanted) = wanted.as_deref().map(str::trim) else { continue };
            let is_wanted =
                |task: &CodeTaskView| values.iter().any(|value| wanted.eq_ignore_ascii_case(value(task)));
            if view.tasks.iter().any(is_wanted) {
                continue;
            }
            let known: BTreeSet<&str> =
                view.tasks.iter().filter_map(|task| values.first().map(|value| value(task))).collect();
            let known: Vec<&str> = known.into_iter().filter(|value| !value.is_empty()).collect();
            let shown: String = wanted.chars().take(64).collect();
            let hint = match known.is_empty() {
                true => format!("its tasks name no {name}"),
                false => format!("--{name} is one of {}", known.join(", ")),
            };
            return Err(
                Problem::usage(format!("`{}` has no task of {name} `{shown}`", view.benchmark)).hint(hint)
            );
        }
        Ok(())
    }

    fn selects(&self, task: &CodeTaskView) -> bool {
        let is = |wanted: &Option<String>, value: &str| {
            wanted.as_ref().is_none_or(|wanted| wanted.trim().eq_ignore_ascii_case(value))
        };
        let contains = |text: &str| {
            let text = text.trim().to_lowercase();
            task.task_id.to_lowercase().contains(&text)
                || task.tags.iter().any(|tag| tag.to_lowercase().contains(&text))
        };
        (is(&self.language, &task.language) || is(&self.language, &task.language_name))
            && is(&self.kind, &task.kind)
            && is(&self.difficulty, &task.difficulty)
            && self.search.as_deref().is_none_or(contains)
    }
}

/// Lists the programming tasks of a benchmark that the filter selects.
pub(super) async fn list(
    filter: &TaskFilter,
    server: &ServerArgs,
    name: &str,
    json: bool,
) -> anyhow::Result<()> {
    let mut view: CodeTasksView = match server.client()? {
        Some(client) => {
            let answer: Value = client.get(&format!("/api/benchmarks/{}/tasks", encode(name))).await?;
            serde_json::from_value(answer).map_err(|error| other_version(&error))?
        }
        None => code_tasks(find_benchmark(name)?),
    };
    if view.tasks.is_empty() {
        return Err(Problem::usage(format!("`{}` has no programming tasks", view.benchmark))
            .hint("`code_lab` has some; `bench tasks` lists stored terminal tasks")
            .into());
    }
    filter.check(&view)?;
    view.tasks.retain(|task| filter.selects(task));
    if json {
        return output::json(&view);
    }
    if view.tasks.is_empty() {
        output::note("No task matches; without filters, all are listed");
        return Ok(());
    }
    output::print_table(&table(&view.tasks))?;
    let benchmark = &view.benchmark;
    output::note(&format!(
        "`bench benchmarks {benchmark} --task TASK` shows a task, `bench run --benchmark {benchmark} --item TASK` runs it."
    ));
    Ok(())
}

/// Shows a programming task of a benchmark.
pub(super) async fn one(server: &ServerArgs, name: &str, id: &str, json: bool) -> anyhow::Result<()> {
    let task: CodeTaskDetailsView = match server.client()? {
        Some(client) => {
            let path = format!("/api/benchmarks/{}/tasks/{}", encode(name), encode(id));
            serde_json::from_value(client.get(&path).await?).map_err(|error| other_version(&error))?
        }
        None => {
            let benchmark = find_benchmark(name)?;
            code_task(benchmark, id).ok_or_else(|| {
                let shown: String = id.chars().take(64).collect();
                let name = benchmark.name();
                Problem::usage(format!("`{name}` has no programming task `{shown}`"))
                    .hint(format!("`bench benchmarks {name} --tasks` lists them"))
            })?
        }
    };
    if json { output::json(&task) } else { output::print_page(&detail(&task)) }
}

/// Builds the list of tasks.
fn table(tasks: &[CodeTaskView]) -> Table {
    let mut table = Table::new([
        Column::text("task"),
        Column::text("language"),
        Column::text("type").drop_as(3),
        Column::text("difficulty").drop_as(2),
        Column::number("tests"),
        Column::number("files").drop_as(5),
        Column::number("lines").drop_as(4),
        Column::words("proof"),
        Column::words("tags").drop_as(6),
    ]);
    for task in tasks {
        table.row([
            task.task_id.clone(),
            task.language_name.clone(),
            dash(task.kind.replace('_', " ")),
            dash(task.difficulty.clone()),
            task.tests.map_or_else(|| "-".to_owned(), format::count),
            format::count(task.files),
            format::count(task.lines),
            proof(task),
            dash(task.tags.join(", ")),
        ]);
    }
    table
}

fn dash(text: String) -> String {
    if text.is_empty() { "-".to_owned() } else { text }
}

/// Describes a task's proof in a few words: how often the reference passed, and how many wrong solutions fail.
fn proof(task: &CodeTaskView) -> String {
    task.proof.as_ref().map_or_else(
        || "none".to_owned(),
        |proof| format!("{}×, {} wrong", proof.repeats, format::count(proof.wrong.len() as u64)),
    )
}

/// Describes a task.
fn detail(details: &CodeTaskDetailsView) -> Page {
    let task = &details.task;
    let mut page = Page::new(2, NAME_WIDTH);
    page.heading(&task.task_id);
    page.field("language", &task.language_name);
    page.field("type", dash(task.kind.replace('_', " ")));
    page.field("difficulty", dash(task.difficulty.clone()));
    page.field("tags", dash(task.tags.join(", ")));
    let place =
        if task.tests_are_outside { "in a process of their own" } else { "in the answer's own process" };
    let tests = match task.tests {
        Some(tests) => format!("{}, {place}", format::plural(tests, "recorded test")),
        None => format!("not recorded, {place}"),
    };
    page.field("tests", tests);
    for command in &details.build {
        page.field("build", command.join(" "));
    }
    #[expect(clippy::cast_precision_loss, reason = "seconds of a time limit")]
    page.field("time limit", format!("{} for build and tests", format::seconds(task.timeout_seconds as f64)));
    page.field("digest", &task.digest);

    page.blank();
    page.heading("Proof");
    match &task.proof {
        None => page.text("", "None. `bench tasks check --record` proves tasks."),
        Some(proof) => {
            let times = format::plural(proof.repeats.into(), "time");
            page.text(
                "",
                format!("The untouched project fails. The reference passed all tests {times} in a row."),
            );
            for wrong in &proof.wrong {
                let why = if wrong.why.is_empty() { String::new() } else { format!(" {}.", wrong.why) };
                let tests = format::plural(wrong.fails.len() as u64, "test");
                page.text("- ", format!("{}:{why} Fails {tests}: {}", wrong.name, wrong.fails.join(", ")));
            }
        }
    }

    page.blank();
    page.heading(format!(
        "Project: {}, {}, {}",
        format::plural(task.files, "file"),
        format::plural(task.lines, "line"),
        format::bytes(task.bytes)
    ));
    for file in &details.project {
        page.text("- ", format!("{} ({})", file.path, format::bytes(file.bytes)));
    }
    page.blank();
    page.heading("Instructions");
    page.verbatim(&details.instructions);
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tasks() -> Vec<CodeTaskView> {
        code_tasks(find_benchmark("code_lab").unwrap()).tasks
    }

    fn filter(wanted: [Option<&str>; 4]) -> TaskFilter {
        let [language, kind, difficulty, search] = wanted.map(|text| text.map(str::to_owned));
        TaskFilter { tasks: true, task: None, language, kind, difficulty, search }
    }

    #[test]
    fn tasks_are_found_by_language_type_difficulty_and_text() {
        let all = tasks();
        let found = |wanted| all.iter().filter(|task| filter(wanted).selects(task)).collect::<Vec<_>>();
        assert_eq!(found([None; 4]).len(), all.len());
        for language in ["cpp", "C++", " CPP "] {
            let found = found([Some(language), None, None, None]);
            assert!(!found.is_empty() && found.iter().all(|task| task.language == "cpp"), "{language}");
        }
        let bugs = found([None, Some("bug_fix"), None, None]);
        assert!(!bugs.is_empty() && bugs.iter().all(|task| task.kind == "bug_fix"));
        let expert = found([Some("go"), None, Some("Expert"), None]);
        assert!(
            !expert.is_empty()
                && expert.iter().all(|task| task.language == "go" && task.difficulty == "expert")
        );
        let one = &all[0];
        let id = one.task_id.to_uppercase();
        let named = found([None, None, None, Some(&id)]);
        assert!(named.iter().any(|task| task.task_id == one.task_id));
        assert!(found([None, None, None, Some("no such text")]).is_empty());
    }

    #[test]
    fn values_that_no_task_has_are_refused() {
        let view = code_tasks(find_benchmark("code_lab").unwrap());
        let check = |wanted| {
            filter(wanted)
                .check(&view)
                .map_err(|problem| (problem.to_string(), problem.advice().map(str::to_owned)))
        };
        assert_eq!(check([Some("C++"), Some("Bug_Fix"), Some(" expert "), Some("no such text")]), Ok(()));
        let (what, hint) = check([Some("cobol"), None, None, None]).unwrap_err();
        assert_eq!(what, "`code_lab` has no task of language `cobol`");
        assert_eq!(hint.as_deref(), Some("--language is one of cpp, go, html, javascript, python, rust"));
        for (wanted, part) in [
            ([None, Some("chore"), None, None], "--type is one of "),
            ([None, None, Some("hard"), None], "--difficulty is one of "),
        ] {
            assert!(check(wanted).unwrap_err().1.unwrap().starts_with(part), "{part}");
        }
    }

    /// Returns a task that doesn't change with those of the program.
    fn task() -> CodeTaskView {
        serde_json::from_value(serde_json::json!({
            "task_id": "go_text_merge", "language": "go", "language_name": "Go", "type": "algorithm", "difficulty": "expert",
            "tags": ["go", "diff"], "tests": 23, "tests_are_outside": true, "files": 7, "lines": 512, "bytes": 14_336,
            "timeout_seconds": 120, "digest": "e220c14963afcf107392aefba6d6cc7d7971e8c72cc3373e7b3b445dcf1b2d90",
            "proof": { "repeats": 5, "wrong": [
                { "name": "quadratic", "why": "its time grows with the square of the length", "fails": ["test_merge.Match.test_long_files"] },
                { "name": "first-match", "why": "", "fails": ["test_merge.Match.test_order", "test_merge.Match.test_twice"] },
            ] },
        }))
        .unwrap()
    }

    #[test]
    fn screen_of_code_tasks() {
        let unproven = CodeTaskView {
            task_id: "own_task".into(),
            kind: String::new(),
            tags: Vec::new(),
            tests: None,
            proof: None,
            ..task()
        };
        crate::screen_tests::check("code_tasks", |layout| table(&[task(), unproven.clone()]).render(layout));
    }

    #[test]
    fn screen_of_a_code_task() {
        let details = CodeTaskDetailsView {
            task: task(),
            instructions:
                "# Three-way merge\n\nLines that both sides change in the same way are no conflict.".into(),
            build: vec!["go build -o {bin}/ ./...".split(' ').map(str::to_owned).collect()],
            project: ["cmd/merge3/main.go", "internal/diff/diff.go"]
                .map(|path| bench_api::ProjectFileView { path: path.into(), bytes: 2_048, text: None })
                .into(),
        };
        crate::screen_tests::check("code_task", |layout| detail(&details).render(layout));
    }
}
