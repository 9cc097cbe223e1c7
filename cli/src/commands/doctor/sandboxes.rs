//! Checks of sandboxes: the kinds that this machine allows, or the service that is configured instead.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use bench_sandbox::host::{HostConfig, SandboxHost};
use bench_sandbox::isolation::{Form, Isolation};
use bench_sandy::{Sandy, SandyConfig, SandyError};
use bench_stack::sandboxes::python::PythonEnvironment;
use bench_stack::sandboxes::{SandboxSettings, SandboxesError};
use bench_stack::sandboxes::{tau2 as tau2_package, toolchains};
use tempfile::TempDir;

use super::finding::{Check, Finding, with_timeout};
use super::{Settings, hub, languages, limits, python, tau2};
use crate::commands::sandy::UNSAFE_MACHINE_HINT;
use crate::exit::sentence;

/// Maximum time to create one sandbox of each kind.
const PROBE_LIMIT: Duration = Duration::from_secs(20);
const SERVICE_LIMIT: Duration = Duration::from_secs(10);
/// Variable with the address of a sandbox service.
pub(super) const ADDRESS_VARIABLE: &str = "SANDY_BASE_URL";
const KEY_FIX: &str = "set SANDY_API_KEY to the key of the service";
const UNREACHABLE_FIX: &str = "check SANDY_BASE_URL and that the service runs; unset both SANDY_ variables to use sandboxes of this machine";
/// Mode of the temporary folder, which lets sandboxes that run as other users pass through.
const PASSABLE: u32 = 0o711;

pub(super) async fn check(settings: &Settings, data_dir: Option<&Path>) -> Vec<Finding> {
    let check = Check::new("sandboxes", "sandboxes");
    if settings.var(ADDRESS_VARIABLE).is_some() {
        let service = service(&check, settings).await;
        return vec![service, python::in_service(), languages::in_service(), tau2::in_service()];
    }
    let data_dir = data_dir.unwrap_or(Path::new(""));
    let settings = match SandboxSettings::from_vars(data_dir, None, |name| settings.var(name)) {
        Ok(settings) => settings,
        Err(error) => return vec![check.problem(error.to_string(), "correct the variable, or unset it")],
    };
    let tried = settings.clone();
    let probe = tokio::task::spawn_blocking(move || {
        let environment = tried.python();
        let isolation = probe(&tried, environment.as_ref().ok().and_then(Option::as_ref));
        (environment, isolation)
    });
    let (environment, isolation) = match with_timeout(PROBE_LIMIT, probe).await {
        Some(Ok(probed)) => probed,
        Some(Err(_)) | None => {
            let fact = format!("no sandbox could be created within {} s", PROBE_LIMIT.as_secs());
            let problem = check.problem(fact, "try again when the machine is less busy");
            return vec![problem, python::not_tried(), languages::not_tried(), tau2::not_tried()];
        }
    };
    let (_folder, isolation) = match isolation {
        Ok(made) => made,
        Err(error) => {
            let is_unsafe = matches!(error.downcast_ref(), Some(SandboxesError::Isolation(_)));
            let fix = if is_unsafe { UNSAFE_MACHINE_HINT } else { "correct TMPDIR, or make room there" };
            let problem = check.problem(sentence(&error), fix);
            return vec![problem, python::not_tried(), languages::not_tried(), tau2::not_tried()];
        }
    };
    let config = settings.config(None);
    let mut findings = vec![
        form(&check, isolation.form()),
        python::check(isolation.as_ref(), &config.limits, environment).await,
        languages::check(isolation.as_ref(), &config.limits, data_dir).await,
        tau2::check(isolation.as_ref(), &config.limits, data_dir).await,
    ];
    findings.extend(memory(isolation, config).await);
    findings
}

/// Tries the kinds of sandboxes in a temporary data directory, with the Python, the toolchains and the tau2 package of the real one. Creates
/// nothing in the real one. Blocks the thread.
fn probe(
    settings: &SandboxSettings,
    python: Option<&PythonEnvironment>,
) -> anyhow::Result<(TempDir, Arc<dyn Isolation>)> {
    use std::os::unix::fs::PermissionsExt;

    let mut builder = tempfile::Builder::new();
    let builder = builder.prefix("bench-doctor-").permissions(std::fs::Permissions::from_mode(PASSABLE));
    let folder = builder.tempdir().context("could not create a temporary folder")?;
    let python = python.map(|environment| environment.folder.clone());
    for shared in [toolchains::folder, tau2_package::folder] {
        if let Ok(real) = shared(&settings.data_dir).canonicalize() {
            std::os::unix::fs::symlink(real, shared(folder.path()))
                .context("could not write into a temporary folder")?;
        }
    }
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
    let fix = "allow user namespaces (`sysctl kernel.unprivileged_userns_clone=1`), or run outside of a container; \
               `bench sandy --no-key` lists what is missing";
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
async fn service(check: &Check, settings: &Settings) -> Finding {
    let config = match SandyConfig::from_vars(|name| settings.var(name)) {
        Ok(config) => config,
        Err(problem) => return check.problem(problem, "correct the variable, or unset it"),
    };
    let host = hub::host(&settings.var(ADDRESS_VARIABLE).unwrap_or_default());
    if settings.offline {
        return check.skipped(format!("{ADDRESS_VARIABLE} is set to {host}"));
    }
    if settings.var("SANDY_API_KEY").is_none() {
        let fact = format!("the service at {host} needs a key, and SANDY_API_KEY is not set");
        return check.problem(fact, KEY_FIX);
    }
    match with_timeout(SERVICE_LIMIT, Sandy::new(config).resources()).await {
        Some(Ok(resources)) if resources.can_create_sandbox => check.ok(format!("service at {host}")),
        Some(Ok(resources)) => {
            let why = resources.reject_reason.unwrap_or_else(|| "it gives no reason".to_owned());
            check.warning(
                format!("the service at {host} creates none now: {why}"),
                "wait, or give that machine more memory",
            )
        }
        Some(Err(error)) => check.problem(format!("the service at {host}: {error}"), service_fix(&error)),
        None => check.problem(format!("the service at {host} doesn't answer"), UNREACHABLE_FIX),
    }
}

/// Explains what to do about a sandbox service that could not be used.
fn service_fix(error: &SandyError) -> &'static str {
    match error {
        SandyError::Status(300..=399) | SandyError::Rejected { status: 300..=399, .. } => {
            "set SANDY_BASE_URL to the address that it redirects to"
        }
        SandyError::Status(401 | 403) | SandyError::Rejected { status: 401 | 403, .. } => KEY_FIX,
        SandyError::Status(500..) | SandyError::Rejected { status: 500.., .. } | SandyError::Full { .. } => {
            "try again later; the log of the service has the reason"
        }
        SandyError::Status(_) | SandyError::Rejected { .. } | SandyError::Shape(_) | SandyError::TooLong => {
            "check that SANDY_BASE_URL is the address of a sandbox service, such as `bench sandy` prints it"
        }
        _ => UNREACHABLE_FIX,
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
