//! Checks of sandboxes: the kinds that this machine allows, or the service that is configured instead.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use bench_sandbox::host::{HostConfig, SandboxHost};
use bench_sandbox::isolation::{Form, Isolation};
use bench_sandy::{Sandy, SandyConfig};
use bench_stack::sandboxes::python::PythonEnvironment;
use bench_stack::sandboxes::{SandboxSettings, SandboxesError};
use tempfile::TempDir;

use super::finding::{Check, Finding, within};
use super::{Machine, limits, python};
use crate::commands::sandy::UNSAFE_MACHINE_HINT;
use crate::exit::sentence;

/// Maximum time to create one sandbox of each kind.
const PROBE_LIMIT: Duration = Duration::from_secs(20);
const SERVICE_LIMIT: Duration = Duration::from_secs(10);
/// Mode of the temporary folder, which lets sandboxes that run as other users pass through.
const PASSABLE: u32 = 0o711;

pub(super) async fn check(machine: &Machine, data_dir: Option<&Path>) -> Vec<Finding> {
    let check = Check::new("sandboxes", "sandboxes");
    if machine.var("SANDY_BASE_URL").is_some() {
        return vec![service(&check, machine).await, python::elsewhere()];
    }
    let data_dir = data_dir.unwrap_or(Path::new(""));
    let settings = match SandboxSettings::from_vars(data_dir, None, |name| machine.var(name)) {
        Ok(settings) => settings,
        Err(error) => return vec![check.problem(error.to_string(), "correct the variable, or unset it")],
    };
    let tried = settings.clone();
    let probe = tokio::task::spawn_blocking(move || {
        let environment = tried.python();
        let isolation = probe(&tried, environment.as_ref().ok().and_then(Option::as_ref));
        (environment, isolation)
    });
    let (environment, isolation) = match within(PROBE_LIMIT, probe).await {
        Some(Ok(probed)) => probed,
        Some(Err(_)) | None => {
            let fact = format!("not one could be made within {} s", PROBE_LIMIT.as_secs());
            return vec![check.problem(fact, "try again when the machine is less busy"), python::untried()];
        }
    };
    let (_folder, isolation) = match isolation {
        Ok(made) => made,
        Err(error) => {
            let is_unsafe = matches!(error.downcast_ref(), Some(SandboxesError::Isolation(_)));
            let fix = if is_unsafe { UNSAFE_MACHINE_HINT } else { "correct TMPDIR, or make room there" };
            return vec![check.problem(sentence(&error), fix), python::untried()];
        }
    };
    let config = settings.config(None);
    let mut findings = vec![
        form(&check, isolation.form()),
        python::check(isolation.as_ref(), &config.limits, environment).await,
    ];
    findings.extend(memory(isolation, config).await);
    findings
}

/// Tries the kinds of sandboxes in a temporary data directory, with the Python of the real one. Creates nothing in the
/// real one. Blocks the thread.
fn probe(
    settings: &SandboxSettings,
    python: Option<&PythonEnvironment>,
) -> anyhow::Result<(TempDir, Arc<dyn Isolation>)> {
    use std::os::unix::fs::PermissionsExt;

    let mut builder = tempfile::Builder::new();
    let builder = builder.prefix("bench-doctor-").permissions(std::fs::Permissions::from_mode(PASSABLE));
    let folder = builder.tempdir().context("could not create a temporary folder")?;
    let python = python.map(|environment| environment.folder.clone());
    let tried = SandboxSettings { data_dir: folder.path().to_owned(), python, ..settings.clone() };
    Ok((folder, tried.isolation()?))
}

fn form(check: &Check, form: &Form) -> Finding {
    let is_strongest = form.name == "namespaces";
    // `bench sandy` lists the rest.
    let is_shown =
        |held: &&String| *held == "seccomp" || held.starts_with("landlock") || held.ends_with(" cgroup");
    let held = form.holds.iter().filter(is_shown).map(String::as_str);
    let fact = [form.name].into_iter().chain(held).collect::<Vec<_>>().join(", ");
    if is_strongest {
        return check.ok(fact);
    }
    let fix = "allow user namespaces (`sysctl kernel.unprivileged_userns_clone=1`), or run it outside of a container; \
               `bench sandy --no-key` lists what is lacking";
    check.warning(fact, fix)
}

async fn memory(isolation: Arc<dyn Isolation>, config: HostConfig) -> Option<Finding> {
    let (slots, bytes) = (config.slots as u64, config.limits.memory_bytes);
    let host = SandboxHost::new(isolation, config);
    let total = host.resources().memory_total_bytes;
    host.shut_down().await;
    total.map(|total| limits::memory(total, slots, bytes))
}

/// Checks the sandbox service that `SANDY_BASE_URL` names.
async fn service(check: &Check, machine: &Machine) -> Finding {
    let config = match SandyConfig::from_vars(|name| machine.var(name)) {
        Ok(config) => config,
        Err(problem) => return check.problem(problem, "correct the variable, or unset it"),
    };
    let host = config.host().unwrap_or_default();
    if machine.offline {
        return check.skipped(format!("SANDY_BASE_URL names {host}"));
    }
    let fix = "check SANDY_BASE_URL and SANDY_API_KEY; without them the sandboxes are this machine's own";
    match within(SERVICE_LIMIT, Sandy::new(config).resources()).await {
        Some(Ok(resources)) if resources.can_create_sandbox => check.ok(format!("by the service at {host}")),
        Some(Ok(resources)) => {
            let why = resources.reject_reason.unwrap_or_else(|| "it gives no reason".to_owned());
            check.warning(
                format!("the service at {host} makes none now: {why}"),
                "wait, or give that machine more room",
            )
        }
        Some(Err(error)) => check.problem(format!("the service at {host}: {error}"), fix),
        None => check.problem(format!("the service at {host} doesn't answer"), fix),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::doctor::finding::Status;

    #[test]
    fn a_weaker_form_is_a_warning() {
        let check = Check::new("sandboxes", "sandboxes");
        let held = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let strong = Form {
            name: "namespaces",
            holds: held(&["pid namespace", "seccomp", "uid per sandbox", "memory cgroup"]),
            lacks: Vec::new(),
        };
        let weak = Form { name: "confined", holds: held(&["landlock 7", "seccomp"]), lacks: Vec::new() };
        let (strong, weak) = (form(&check, &strong), form(&check, &weak));
        assert_eq!((strong.status, strong.fact.as_str()), (Status::Ok, "namespaces, seccomp, memory cgroup"));
        assert_eq!((weak.status, weak.fact.as_str()), (Status::Warning, "confined, landlock 7, seccomp"));
    }
}
