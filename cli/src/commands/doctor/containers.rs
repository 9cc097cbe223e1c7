//! The container engine, found and tried as sandbox hosts do.

use std::path::Path;
use std::sync::Arc;

use bench_stack::sandboxes::{EngineReport, ProbeError, SandboxSettings};

use super::Settings;
use super::finding::{Check, Finding};
use super::sandboxes::ADDRESS_VARIABLE;

/// Reason why most runs work without an engine.
const NOT_NEEDED: &str = "only terminal tasks need one";
const INSTALL_FIX: &str = "install podman (Debian, Ubuntu: `apt-get install podman runc netavark aardvark-dns`; Fedora: `dnf install \
                           podman`) or docker";
const COMPOSE_FIX: &str = "install the plugin of the docker command, which podman needs, too (Debian: `apt-get install docker-cli \
                           docker-compose`; Ubuntu: `apt-get install docker.io docker-compose-v2`)";

/// Finds the engine and runs a container in it, with a temporary folder for its files. Await the result in any case: what
/// was started for the check is stopped at its end, which comes within 60 s.
pub(super) async fn check(settings: Arc<Settings>) -> Finding {
    let check = Check::new("container-engine", "container engine");
    if settings.var(ADDRESS_VARIABLE).is_some() {
        return check.skipped(format!("the service that {ADDRESS_VARIABLE} names has its own"));
    }
    let sandboxes = match SandboxSettings::from_vars(Path::new(""), None, |name| settings.var(name)) {
        Ok(sandboxes) => sandboxes,
        Err(error) => return check.skipped(error.to_string()),
    };
    let folder = match tempfile::Builder::new().prefix("bench-doctor-").tempdir() {
        Ok(folder) => folder,
        Err(error) => return check.skipped(format!("could not create a temporary folder: {error}")),
    };
    match sandboxes.engine.try_engine(folder.path()).await {
        None => check.not_set_up(
            "BENCH_SANDBOX_ENGINE is `none`",
            format!("unset the variable to use an engine; {NOT_NEEDED}"),
        ),
        Some(Ok(report)) => usable(&check, &report),
        Some(Err(error)) => unusable(&check, &error),
    }
}

fn usable(check: &Check, report: &EngineReport) -> Finding {
    let place = match report.is_started {
        true => "started when a task needs it".to_owned(),
        false => format!("at {}", report.socket.display()),
    };
    let fact = format!("{report}, {place}");
    match (&report.compose, &report.unfiltered) {
        (None, _) => check.not_set_up(format!("{fact}; `docker compose` is missing"), COMPOSE_FIX),
        (Some(_), Some(reason)) => {
            check.warning(format!("{fact}; containers have no network, since it can't be limited"), reason)
        }
        (Some(compose), None) => check.ok(format!("{fact}; compose {compose}")),
    }
}

fn unusable(check: &Check, error: &ProbeError) -> Finding {
    let configured = "start the engine, or correct DOCKER_HOST or BENCH_SANDBOX_ENGINE";
    match error {
        ProbeError::Missing => {
            check.not_set_up("neither podman nor docker was found", format!("{INSTALL_FIX}; {NOT_NEEDED}"))
        }
        ProbeError::Unusable { reasons } => {
            check.not_set_up(format!("none works: {reasons}"), format!("{INSTALL_FIX}; {NOT_NEEDED}"))
        }
        ProbeError::Configured { .. } | ProbeError::Address { .. } => {
            check.not_set_up(error.to_string(), format!("{configured}; {NOT_NEEDED}"))
        }
        ProbeError::TimedOut { .. } => {
            check.not_set_up(error.to_string(), "try again when the machine is less busy")
        }
        ProbeError::RunFolder { .. } => check.not_set_up(error.to_string(), "correct TMPDIR"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::doctor::finding::Status;

    async fn found(vars: &[(&str, &str)]) -> Finding {
        let vars = vars.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        check(Arc::new(Settings::new(vars.collect(), true))).await
    }

    #[tokio::test]
    async fn variables_decide_about_the_engine() {
        let off = found(&[("BENCH_SANDBOX_ENGINE", "none")]).await;
        assert_eq!((off.status, off.fact.as_str()), (Status::NotSetUp, "BENCH_SANDBOX_ENGINE is `none`"));
        let service = found(&[(ADDRESS_VARIABLE, "http://127.0.0.1:9")]).await;
        assert_eq!(service.status, Status::Skipped);
        let place = tempfile::tempdir().unwrap();
        let socket = place.path().join("none.sock");
        let address = format!("unix://{}", socket.display());
        for (name, value, part) in [
            ("DOCKER_HOST", address.as_str(), socket.to_str().unwrap()),
            ("BENCH_SANDBOX_ENGINE", address.as_str(), socket.to_str().unwrap()),
            ("DOCKER_HOST", "tcp://127.0.0.1:9", "tcp://127.0.0.1:9"),
        ] {
            // No other engine is tried instead of the one that is named.
            let finding = found(&[(name, value), ("PATH", "/usr/bin:/bin")]).await;
            assert_eq!(finding.status, Status::NotSetUp, "{finding:?}");
            assert!(
                finding.fact.contains(part) && finding.fix.unwrap().contains("DOCKER_HOST"),
                "{}",
                finding.fact
            );
        }
        let without_programs = found(&[("BENCH_SANDBOX_ENGINE", "podman")]).await;
        assert_eq!(without_programs.status, Status::Skipped);
        assert!(without_programs.fact.contains("BENCH_SANDBOX_ENGINE"), "{}", without_programs.fact);
    }
}
