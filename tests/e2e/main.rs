//! End-to-end suite for both the embedded and the deployed stack.
//!
//! A scenario knows an address and the facts that a client may know, but nothing about the implementation. Without
//! variables, the suite starts the embedded stack on a local port. With `BENCH_E2E_URL`, it runs against the stack
//! deployed there ([`target`] lists the variables); `make test-stack` does that.
//!
//! All scenarios run concurrently on one stack. Arguments select scenarios by a part of their name, as with
//! `cargo test`; `--skip NAME` excludes some, `--list` lists them.
//!
//! On the embedded stack, a recorder collects the permissions that each function needs. At the end they are compared
//! with the roles of `template.yaml` ([`rights`]).

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "what fails here fails the test")]

mod call;
mod embedded;
mod log;
mod rights;
mod scenarios;
mod target;

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;

use crate::embedded::Embedded;
use crate::scenarios::Scenario;
use crate::target::Target;

/// Time limit of a scenario: a safety limit, not a performance goal.
const TIMEOUT: Duration = Duration::from_secs(900);

fn main() -> std::process::ExitCode {
    // The stack's sandboxes are processes of this program.
    if let Some(code) = bench_sandbox::isolation::stage_main() {
        return code;
    }
    run_selection();
    std::process::ExitCode::SUCCESS
}

fn run_selection() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let Some(selection) = Selection::from_args(args.iter().cloned()) else { return };
    let _ = rustls::crypto::ring::default_provider().install_default();
    log::capture();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.expect("the async runtime starts");
    if let [option, port] = args.as_slice()
        && option == "--serve-model"
    {
        return runtime.block_on(target::serve_model(port.parse().expect("a port")));
    }
    let failed = runtime.block_on(run(&selection));
    if !failed.is_empty() {
        eprintln!("\nfailed: {}", failed.join(", "));
        std::process::exit(1);
    }
}

/// Selection of scenarios.
struct Selection {
    only: Vec<String>,
    skip: Vec<String>,
}

impl Selection {
    /// Parses the arguments. Returns `None` if there is nothing to run. Options of the usual test harness are
    /// accepted and ignored.
    fn from_args(args: impl Iterator<Item = String>) -> Option<Self> {
        let (mut only, mut skip, mut args) = (Vec::new(), Vec::new(), args);
        while let Some(arg) = args.next() {
            match arg.as_str() {
                "--list" => {
                    scenarios::all().iter().for_each(|scenario| println!("{}: test", scenario.name));
                    println!("{}: test", rights::NAME);
                    return None;
                }
                "--skip" => skip.extend(args.next()),
                // Options that take a value.
                "--test-threads" | "--format" | "--color" | "--logfile" | "-Z" => drop(args.next()),
                option if option.starts_with('-') => {}
                name => only.push(name.to_owned()),
            }
        }
        Some(Self { only, skip })
    }

    fn has(&self, name: &str) -> bool {
        let named = |part: &String| name.contains(part.as_str());
        (self.only.is_empty() || self.only.iter().any(named)) && !self.skip.iter().any(named)
    }

    fn is_all(&self) -> bool {
        self.only.is_empty() && self.skip.is_empty()
    }
}

async fn run(selection: &Selection) -> Vec<&'static str> {
    let start = Instant::now();
    let mut failed = Vec::new();
    let (target, embedded) = match Target::from_vars().await {
        Some(target) => (target, None),
        None => {
            let (target, embedded) = Embedded::start().await;
            (target, Some(embedded))
        }
    };
    let target = Arc::new(target);
    let scenarios: Vec<Scenario> = scenarios::all()
        .into_iter()
        .filter(|scenario| {
            selection.has(scenario.name) && target.is_in_maintenance == scenario.in_maintenance
        })
        .collect();
    println!("{} end-to-end scenarios against {}", scenarios.len(), target.base_url);
    let mut running: FuturesUnordered<_> = scenarios
        .into_iter()
        .map(|scenario| {
            let task = tokio::spawn((scenario.run)(Arc::clone(&target)));
            async move { (scenario.name, tokio::time::timeout(TIMEOUT, task).await) }
        })
        .collect();
    while let Some((name, ended)) = running.next().await {
        let problem = match ended {
            Ok(Ok(())) => None,
            Ok(Err(error)) if error.is_panic() => Some("failed".to_owned()),
            Ok(Err(error)) => Some(error.to_string()),
            Err(_) => Some(format!("took longer than {} s", TIMEOUT.as_secs())),
        };
        let seconds = start.elapsed().as_secs_f64();
        match problem {
            None => println!("  {name} ... ok ({seconds:.1} s)"),
            Some(problem) => {
                println!("  {name} ... {problem} ({seconds:.1} s)");
                failed.push(name);
            }
        }
    }
    drop(running);
    if let Some(embedded) = embedded {
        let whole = selection.is_all() && failed.is_empty();
        let recorded = embedded.finish().await;
        if whole || selection.only.iter().any(|name| name == rights::NAME) {
            match tokio::task::spawn_blocking(move || rights::check(&recorded)).await {
                Ok(()) => println!("  {} ... ok", rights::NAME),
                Err(_) => failed.push(rights::NAME),
            }
        }
    }
    failed
}
