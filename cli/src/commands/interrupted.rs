//! Open runs that no process works on.

use bench_api::list_runs;
use bench_domain::{RunId, RunStatus};
use bench_state::RunFilter;

use crate::again;
use crate::views::Run;
use crate::{format, output, show};
use bench_stack::Stack;

/// Maximum number of runs to read.
const RUNS_MAX: u64 = 1_000;
/// Maximum number of runs to list. More are only counted.
const LISTED_MAX: usize = 3;

/// Lists the interrupted runs of a stack's data directory except `but`, each with the command that resumes it. `server`
/// is the address of the server that uses the stack, if this process is one.
pub(crate) async fn list(stack: &Stack, but: &[RunId], server: Option<&str>) {
    match find(stack).await {
        Ok(found) => {
            let others = found.into_iter().filter(|run| but.iter().all(|known| known.to_string() != run.id));
            print(&others.collect::<Vec<_>>(), server);
        }
        // The list is only for information, so a failure doesn't affect orders.
        Err(error) => tracing::warn!(%error, "Interrupted runs were not listed: {error}"),
    }
}

async fn find(stack: &Stack) -> anyhow::Result<Vec<Run>> {
    let mut found = Vec::new();
    for status in [RunStatus::Running, RunStatus::Queued] {
        let filter = RunFilter { status: Some(status), ..RunFilter::default() };
        let (views, _) = list_runs(&stack.api, &filter, 0, RUNS_MAX)
            .await
            .map_err(|error| anyhow::anyhow!("{}", error.message()))?;
        for view in views.iter().filter(|view| view.interrupted) {
            found.push(serde_json::from_value(serde_json::to_value(view)?)?);
        }
    }
    Ok(found)
}

/// Prints the interrupted runs among these, each with the command that resumes it.
pub(crate) fn print(runs: &[Run], server: Option<&str>) {
    lines(runs, server).iter().for_each(|line| output::note(line));
}

fn lines(runs: &[Run], server: Option<&str>) -> Vec<String> {
    let interrupted: Vec<&Run> = runs.iter().filter(|run| run.interrupted).collect();
    if interrupted.is_empty() {
        return Vec::new();
    }
    let count = format::plural(interrupted.len() as u64, "interrupted run");
    if interrupted.len() > LISTED_MAX {
        return vec![format!(
            "{count}: `bench runs` lists all runs, `bench run --resume RUN` continues one, `bench cancel RUN` ends it"
        )];
    }
    let mut lines = vec![format!("{count}; each continues with its command:")];
    for run in &interrupted {
        let resume = match server {
            Some(server) => format!("bench run --resume {} --server {server}", run.id),
            None => again::resume(&run.id),
        };
        lines.push(format!("  {resume}   {}, {}", run.leveled_model(), show::status(run)));
    }
    lines
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn run(interrupted: bool) -> Run {
        serde_json::from_value(json!({
            "id": "3f2b8c1e-7d4a-4f60-9b1e-0a5c6d7e8f90", "status": "running", "model_slug": "m", "provider": "chutes",
            "created_at": "2026-01-02T03:04:05Z", "interrupted": interrupted,
            "benchmarks": [{ "benchmark_name": "hle", "status": "running", "planned_samples": 9, "completed_samples": 2 }],
        }))
        .unwrap()
    }

    #[test]
    fn interrupted_runs_are_listed_with_the_command_that_resumes_them() {
        assert!(lines(&[run(false)], None).is_empty());
        let printed = lines(&[run(true), run(false)], None);
        assert_eq!(printed.len(), 2, "{printed:?}");
        assert!(printed[0].starts_with("1 interrupted run"), "{printed:?}");
        assert!(
            printed[1].contains("bench run --resume 3f2b8c1e-7d4a-4f60-9b1e-0a5c6d7e8f90"),
            "{printed:?}"
        );
        assert!(printed[1].contains("interrupted 2/9"), "{printed:?}");
        let printed = lines(&[run(true)], Some("http://127.0.0.1:3000"));
        assert!(printed[1].contains(" --server http://127.0.0.1:3000 "), "{printed:?}");
    }

    #[test]
    fn many_interrupted_runs_are_one_line() {
        let many: Vec<Run> = (0..40).map(|_| run(true)).collect();
        let printed = lines(&many, None);
        assert_eq!(printed.len(), 1, "{printed:?}");
        assert!(printed[0].starts_with("40 interrupted runs: `bench runs`"), "{printed:?}");
    }
}
