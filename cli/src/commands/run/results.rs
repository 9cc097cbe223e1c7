//! Results of runs: the table, the exports, and the verification of the archive.

use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::Context;
use bench_domain::{Agent, RunStatus};
use bench_signing::{KeysDocument, Limits, verify};
use rustix::fs::Access;
use serde_json::{Value, json};

use super::failure;
use crate::client::Client;
use crate::data_dir::key_ring;
use crate::exit::{ExitStatus, Problem, sentence};
use crate::page::Page;
use crate::views::Run;
use crate::{output, show};
use bench_stack::Stack;

/// Files with a run's results.
struct Files {
    zip: PathBuf,
    csv: PathBuf,
    verified: bool,
}

/// Form in which results of runs are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ResultsForm {
    /// A table, and the paths of the files.
    Text,
    /// A list with an object for each run.
    Json,
    /// Nothing but errors other than those of samples: the command prints something else.
    Nothing,
}

impl ResultsForm {
    /// Returns the form of a command that has the option `--json`.
    pub(crate) fn of(json: bool) -> Self {
        if json { Self::Json } else { Self::Text }
    }
}

/// Shows the results of runs that are over, and writes them to `out`.
pub(super) async fn show(
    client: &Client,
    stack: Option<&Stack>,
    runs: &[Run],
    out: &Path,
    form: ResultsForm,
) -> anyhow::Result<ExitStatus> {
    if form == ResultsForm::Text {
        output::print_page(&page(runs))?;
    }
    let mut status = ExitStatus::Success;
    let mut values = Vec::with_capacity(runs.len());
    for run in runs {
        if run.status != RunStatus::Succeeded {
            status = ExitStatus::Failure;
        }
        // A command with output of its own explains samples that have ended.
        let is_explained = form == ResultsForm::Nothing && run.infrastructure_errors() > 0;
        match run.status {
            _ if is_explained => {}
            RunStatus::Succeeded => failure::print_errors(client, run).await,
            _ => {
                failure::explain(client, run).await;
                print_unjudged(client, run).await?;
            }
        }
        // A canceled run has no export.
        let files = match run.status {
            RunStatus::Succeeded | RunStatus::Failed => Some(export(client, stack, run, out).await?),
            _ => None,
        };
        if files.as_ref().is_some_and(|files| !files.verified) {
            status = ExitStatus::Failure;
        }
        if form == ResultsForm::Json {
            values.push(value(run, files.as_ref())?);
        } else if let Some(files) = files.filter(|_| form == ResultsForm::Text) {
            let verdict = if files.verified { "verified" } else { "NOT VALID" };
            output::print(&format!("Run {}", run.id))?;
            output::print(&format!("  signed archive: {} ({verdict})", files.zip.display()))?;
            output::print(&format!("  table:          {}", files.csv.display()))?;
            if let Some(commands) = commands_of_episodes(run) {
                output::print(&format!("  episodes:       {commands}"))?;
            }
        }
    }
    if form == ResultsForm::Json {
        output::json(&values)?;
    }
    Ok(status)
}

/// Names the commands that show the episodes of a run; `None` if none of them has left anything.
fn commands_of_episodes(run: &Run) -> Option<String> {
    let graded: u64 = run.benchmarks.iter().map(|benchmark| benchmark.graded_samples).sum();
    if !run.has_episodes() || graded == 0 {
        return None;
    }
    let (id, artifacts) = (&run.id, format!("`bench artifacts {}`", run.id));
    let samples: u64 = run.benchmarks.iter().map(|benchmark| benchmark.planned_samples).sum();
    Some(match (Agent::in_place_of_model(&run.model()), samples) {
        (Some(_), _) => artifacts,
        (None, 1) => format!("`bench turns {id}`, {artifacts}"),
        (None, _) => format!("`bench turns {id} --task TASK --sample N`, {artifacts}"),
    })
}

/// Describes the results of runs, and how they were made.
fn page(runs: &[Run]) -> Page {
    let mut page = Page::new(0, 0);
    if let Some(banner) = show::demo_banner(runs) {
        page.banner(banner);
    }
    page.table(show::results(runs));
    if let Some(note) = show::interval_note(runs) {
        page.text("(–) ", note);
    }
    for line in show::made_by(runs) {
        page.text("", line);
    }
    page
}

/// Prints the number of answers that still need a verdict in a run that ended early. If the run is resumed, only the
/// judge or a sandbox works on them.
async fn print_unjudged(client: &Client, run: &Run) -> anyhow::Result<()> {
    for benchmark in &run.benchmarks {
        let missing = match (&benchmark.judge, benchmark.known().and_then(|known| known.sandbox())) {
            (Some(_), _) => "judged",
            (None, Some(_)) => "graded",
            (None, None) => continue,
        };
        let name = &benchmark.benchmark_name;
        let details: Value = client.get(&format!("/api/runs/{}/benchmarks/{name}?limit=0", run.id)).await?;
        let unjudged = details.pointer("/summary/unjudged").and_then(Value::as_u64).unwrap_or(0);
        if unjudged > 0 {
            let name = benchmark.listed_name();
            output::note(&format!("  {name}: {unjudged} answered, but not {missing}; the answers are kept"));
        }
    }
    Ok(())
}

fn value(run: &Run, files: Option<&Files>) -> anyhow::Result<Value> {
    let mut value = serde_json::to_value(run.summary()).context("could not write the result as JSON")?;
    if let Value::Object(fields) = &mut value {
        let files =
            files.map(|files| json!({ "zip": files.zip, "csv": files.csv, "verified": files.verified }));
        fields.insert("files".to_owned(), files.unwrap_or_default());
    }
    Ok(value)
}

/// Checks that the folder for results can be created, before anything is ordered, so that users don't pay for a run
/// whose results have no place. Creates nothing, so that an order rejected later leaves no empty folder behind.
pub(crate) fn check_folder(out: &Path) -> anyhow::Result<()> {
    let mut paths =
        out.ancestors().map(|path| if path.as_os_str().is_empty() { Path::new(".") } else { path });
    // A dangling link also counts: no folder can be created in its place.
    let Some(existing) = paths.find(|path| path.symlink_metadata().is_ok()) else { return Ok(()) };
    if !existing.is_dir() {
        return Err(Problem::usage(format!("--out: `{}` is not a folder", existing.display()))
            .hint("choose another folder for the results")
            .into());
    }
    // Creating an entry in a folder needs both permissions.
    rustix::fs::access(existing, Access::WRITE_OK | Access::EXEC_OK).map_err(|error| {
        Problem::usage(format!("--out: could not write to the folder `{}`: {error}", existing.display()))
            .hint("choose another folder for the results, or allow writing with `chmod u+wx`")
            .into()
    })
}

async fn export(client: &Client, stack: Option<&Stack>, run: &Run, out: &Path) -> anyhow::Result<Files> {
    let failure = |problem: String| {
        let id = &run.id;
        let hint =
            format!("the results are kept: `bench export {id} --out FOLDER` writes them to another folder");
        Problem::failure(problem).hint(hint)
    };
    std::fs::create_dir_all(out).map_err(|error| {
        failure(format!("--out: could not create the folder `{}`: {error}", out.display()))
    })?;
    let failed = |error: anyhow::Error| match error.downcast_ref::<std::io::Error>() {
        Some(_) => failure(sentence(&error)).into(),
        None => error,
    };
    let path = |format: &str| format!("/api/runs/{}/export?format={format}", run.id);
    // Both files in one pass over the samples; the second request finds the table.
    let zip = client.download(&path("zip&also=csv"), out).await.map_err(failed)?;
    let csv = client.download(&path("csv"), out).await.map_err(failed)?;
    let trusted = match stack {
        Some(stack) => key_ring(|| Ok(stack.embedded.data_dir().to_owned()), false)?.trusted_keys(),
        None => {
            let document: KeysDocument = client.get("/.well-known/bench-runner-keys.json").await?;
            document.trusted_keys()
        }
    };
    let archive = File::open(&zip).with_context(|| format!("could not read `{}`", zip.display()))?;
    let verification = verify(archive, &trusted, &Limits::default(), jiff::Timestamp::now());
    for error in &verification.errors {
        output::error(&format!("{}: {error}", zip.display()));
    }
    Ok(Files { zip, csv, verified: verification.valid })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn a_folder_is_checked_and_nothing_is_made() {
        let place = tempfile::tempdir().unwrap();
        let path = |name: &str| place.path().join(name);
        fs::write(path("file"), "").unwrap();
        symlink(path("nowhere"), path("link")).unwrap();
        fs::create_dir(path("folder")).unwrap();
        for fine in ["folder", "folder/new", "new/deeper/still", "."] {
            check_folder(&path(fine)).unwrap();
        }
        for (taken, named) in [("file", "file"), ("file/new", "file"), ("link", "link"), ("link/new", "link")]
        {
            let error = check_folder(&path(taken)).unwrap_err().to_string();
            assert_eq!(error, format!("--out: `{}` is not a folder", path(named).display()), "{taken}");
        }
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 3, "nothing was made");
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_refused() {
        let place = tempfile::tempdir().unwrap();
        fs::set_permissions(place.path(), fs::Permissions::from_mode(0o500)).unwrap();
        // Users such as root may write here in spite of the mode. The check must agree with the actual result.
        let may_write = fs::create_dir(place.path().join("probe")).is_ok();
        for out in [place.path().to_owned(), place.path().join("new/deeper")] {
            match check_folder(&out) {
                Ok(()) => assert!(may_write, "{}", out.display()),
                Err(error) => {
                    assert!(!may_write && error.to_string().contains("could not write to"), "{error}")
                }
            }
        }
        fs::set_permissions(place.path(), fs::Permissions::from_mode(0o700)).unwrap();
    }
}
