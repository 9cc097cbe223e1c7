//! Check of the official tau2 package in sandboxes: takes a step there.

use std::path::Path;
use std::time::Duration;

use bench_sandbox::isolation::{Isolation, Limits};
use bench_stack::sandboxes::tau2::{InstalledTau2, environment};

use super::finding::{Check, Finding, with_timeout};
use super::python::run;
use crate::again::shell_word;
use crate::commands::sandy::setup::tau2::check::{problem, step};

/// Maximum time of a step.
const LIMIT: Duration = Duration::from_secs(30);
/// Extra time to create and remove the sandbox.
const SPARE: Duration = Duration::from_secs(10);

fn tau2_check() -> Check {
    Check::new("tau2", "tau2 package in sandboxes")
}

/// Reports that the package of a sandbox service isn't known.
pub(super) fn in_service() -> Finding {
    tau2_check().skipped("the sandbox service has its own")
}

/// Reports that the package was not tried, because no sandbox could be created.
pub(super) fn not_tried() -> Finding {
    tau2_check().skipped("there is no sandbox to try it in")
}

/// Takes a step in a sandbox. `data_dir` is where the package was looked for.
pub(super) async fn check(isolation: &dyn Isolation, limits: &Limits, data_dir: &Path) -> Finding {
    let check = tau2_check();
    // Without the folder, the command would install it in the usual one.
    let folder = match data_dir.as_os_str().is_empty() {
        true => String::new(),
        false => format!(" --data-dir {}", shell_word(&data_dir.display().to_string())),
    };
    let fix = |again: &str| format!("run `bench sandy setup tau2{again}{folder}`");
    let Some(installed) = InstalledTau2::current(data_dir) else {
        return check.not_set_up("no tau2 package; tau_bench_telecom can't be run here", fix(""));
    };
    if let Err(error) = environment(data_dir) {
        return check.problem(error.to_string(), fix(" --again"));
    }
    let fact = format!("tau2 {} with Python {}", installed.version, installed.python);
    match with_timeout(LIMIT + SPARE, run(isolation, limits, step(data_dir, LIMIT))).await {
        Some(Ok(output)) => match problem(&output) {
            None => check.ok(fact),
            Some(problem) => check.problem(format!("{fact}: {problem}"), fix(" --again")),
        },
        Some(Err(error)) => check.problem(error.to_string(), "try again when the machine is less busy"),
        None => {
            check.warning(format!("{fact}, which loads slowly"), "try again when the machine is less busy")
        }
    }
}
