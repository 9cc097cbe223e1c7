//! `bench doctor`: checks what works on this machine and how to fix what doesn't.
//!
//! Every check has a time limit, runs concurrently with the others, and changes nothing: sandboxes are tried in a
//! temporary folder, no model is called, and keys are sent to their own provider only.

mod clock;
mod containers;
mod data_dir;
mod finding;
mod hub;
mod languages;
mod limits;
mod providers;
mod python;
mod sandboxes;
mod show;
mod tau2;

use std::collections::BTreeMap;
use std::sync::Arc;

use bench_inference::{ConfigError, InferenceConfig};
use clap::Args;
use futures_util::future::{BoxFuture, FutureExt, join_all};

use self::finding::{Finding, Status};
use crate::commands::run::interrupt::Interrupt;
use crate::data_dir::DataArgs;
use crate::exit::ExitStatus;
use crate::output;

pub(crate) const EXAMPLES: &str = "\
Examples:
  bench doctor                         run all checks
  bench doctor --offline               run the checks that need no network
  bench doctor --json | jq '.checks[] | select(.status != \"ok\")'
  bench doctor --data-dir /srv/bench   check another data directory

Statuses:
  ok            it works
  warning       it works, with a limit
  problem       it doesn't work
  not set up    optional, and missing
  skipped       not checked

Each check that isn't ok has a line with advice below the table. The checks
change nothing, ask no model, and never show a key.
Exit code 1 if there is a problem, else 0.";

#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Skip the checks that use the network
    #[arg(long)]
    offline: bool,
    #[command(flatten)]
    data: DataArgs,
    /// Print JSON
    #[arg(long, help_heading = None)]
    json: bool,
}

/// Settings that the checks share.
struct Settings {
    /// Variables of this process that are text and not empty.
    vars: BTreeMap<String, String>,
    inference: Result<InferenceConfig, ConfigError>,
    offline: bool,
}

impl Settings {
    fn from_process(offline: bool) -> Self {
        let vars = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
        Self::new(vars.collect(), offline)
    }

    fn new(mut vars: BTreeMap<String, String>, offline: bool) -> Self {
        vars.retain(|_, value| !value.trim().is_empty());
        let inference = InferenceConfig::from_vars(|name| vars.get(name).cloned());
        Self { vars, inference, offline }
    }

    fn var(&self, name: &str) -> Option<String> {
        self.vars.get(name).cloned()
    }
}

pub(crate) async fn run(args: DoctorArgs) -> anyhow::Result<ExitStatus> {
    let settings = Arc::new(Settings::from_process(args.offline));
    if output::has_colors() {
        output::note("Checking this machine; this takes a few seconds, at most 90");
    }
    let data_dir = args.data.path();
    // A task of its own, so that Ctrl-C doesn't keep it from stopping what it started.
    let mut engine = tokio::spawn(containers::check(Arc::clone(&settings)));
    let checks: Vec<BoxFuture<'_, Vec<Finding>>> = vec![
        data_dir::check(&data_dir).boxed(),
        sandboxes::check(&settings, data_dir.as_deref().ok()).boxed(),
        async { vec![limits::open_files()] }.boxed(),
        (&mut engine).map(|finding| finding.into_iter().collect()).boxed(),
        hub::check(&settings).boxed(),
        providers::check(&settings).boxed(),
        clock::check(&settings).boxed(),
    ];
    let interrupt = Interrupt::listen();
    let findings = tokio::select! {
        findings = join_all(checks) => Some(findings),
        // This ends the sandboxes and removes their temporary folder.
        () = interrupt.wait() => None,
    };
    let Some(findings) = findings else {
        let _ = engine.await;
        return Ok(ExitStatus::Interrupted);
    };
    let findings: Vec<Finding> = findings.into_iter().flatten().collect();
    if args.json {
        output::json(&show::Report::new(&findings))?;
    } else {
        show::print(&findings)?;
    }
    let has_problem = findings.iter().any(|finding| finding.status == Status::Problem);
    Ok(if has_problem { ExitStatus::Failure } else { ExitStatus::Success })
}
