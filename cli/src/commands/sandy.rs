//! `bench sandy`: a standalone sandbox host.

pub(super) mod setup;

use std::env;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use bench_sandbox::host::{ApiKey, SandboxHost, router};
use bench_sandbox::isolation::Isolation;
use bench_web::ServerConfig;
use clap::{Args, Subcommand};

use crate::commands::run::interrupt::Interrupt;
use crate::commands::serve::{ConnectionsArgs, addresses, bind};
use crate::data_dir::DataArgs;
use crate::exit::{ExitStatus, Problem};
use crate::output;
use bench_stack::sandboxes::tau2::InstalledTau2;
use bench_stack::sandboxes::{
    EngineSettings, MEMORY_MIB_MIN, MIB_MAX, SLOTS_MAX, SandboxSettings, SandboxesError,
};

pub(crate) const EXAMPLES: &str = "\
Examples:
  bench sandy setup
      once: installs the Python packages that code benchmarks need
  SANDY_API_KEY=KEY bench sandy
      serves sandboxes at http://127.0.0.1:3010
  bench sandy --no-key
      the same without a key, for this machine only
  SANDY_API_KEY=KEY bench sandy --bind 0.0.0.0 --slots 4 --memory-mib 4096
      for other machines, whose `bench` finds it by these variables:
  SANDY_BASE_URL=http://HOST:3010 SANDY_API_KEY=KEY \\
      bench run --model MODEL --benchmark livecodebench

`bench run` and `bench serve` start sandboxes of their own: use this command to
run them on another machine. Ctrl-C ends all sandboxes.";

/// Variable with the API key that callers must send.
const KEY_VARIABLE: &str = "SANDY_API_KEY";
/// Advice for a machine that allows no safe kind of sandbox.
pub(super) const UNSAFE_MACHINE_HINT: &str =
    "run on a Linux machine, or in a container, that allows user namespaces or Landlock";
/// Time for responses in progress to end after Ctrl-C.
const GRACE: Duration = Duration::from_secs(5);

#[derive(Debug, Args)]
pub(crate) struct SandyArgs {
    #[command(subcommand)]
    command: Option<SandyCommand>,
    /// Address to listen on. Callers need the key in SANDY_API_KEY
    #[arg(long, default_value = "127.0.0.1", value_name = "ADDRESS")]
    bind: String,
    /// Port to listen on; 0 chooses a free one
    #[arg(long, default_value_t = 3010)]
    port: u16,
    /// Accept requests without a key; only for a loopback address
    #[arg(long)]
    no_key: bool,
    /// Number of sandboxes that run programs at the same time [default: number of processors, since tests measure time]
    #[arg(long, env = "BENCH_SANDBOX_SLOTS", value_name = "N",
        value_parser = clap::value_parser!(u64).range(1..=SLOTS_MAX))]
    slots: Option<u64>,
    /// Maximum memory of a sandbox, in MiB [default: 4096, which SciCode needs]
    #[arg(long, env = "BENCH_SANDBOX_MEMORY_MIB", value_name = "MIB",
        value_parser = clap::value_parser!(u64).range(MEMORY_MIB_MIN..=MIB_MAX))]
    memory_mib: Option<u64>,
    /// Maximum size of the working folder of a sandbox, in MiB [default: 1024]
    #[arg(long, env = "BENCH_SANDBOX_DISK_MIB", value_name = "MIB",
        value_parser = clap::value_parser!(u64).range(1..=MIB_MAX))]
    disk_mib: Option<u64>,
    /// Allow programs in sandboxes to use the network, including servers on this machine
    #[arg(long)]
    allow_network: bool,
    /// Python environment (venv) for programs [default: that of `bench sandy setup`, else the Python of this machine]
    #[arg(long, env = "BENCH_SANDBOX_PYTHON", value_name = "VENV")]
    python: Option<PathBuf>,
    #[command(flatten)]
    connections: ConnectionsArgs,
    #[command(flatten)]
    data: DataArgs,
}

#[derive(Debug, Subcommand)]
enum SandyCommand {
    /// Create the Python environment of code benchmarks: numpy, scipy, sympy, h5py, matplotlib
    #[command(after_help = setup::EXAMPLES)]
    Setup(setup::SetupArgs),
}

pub(crate) async fn run(args: SandyArgs) -> anyhow::Result<ExitStatus> {
    let settings = SandboxSettings {
        data_dir: args.data.path()?,
        helper: SandboxSettings::own_helper()?,
        slots: args.slots,
        memory_mib: args.memory_mib,
        disk_mib: args.disk_mib,
        python: args.python.clone(),
        allow_network: args.allow_network,
        engine: EngineSettings::from_vars(|name| env::var(name).ok())?,
    };
    match &args.command {
        Some(SandyCommand::Setup(asked)) => setup::run(asked, &settings).await,
        None => serve(&args, settings).await,
    }
}

async fn serve(args: &SandyArgs, settings: SandboxSettings) -> anyhow::Result<ExitStatus> {
    let addresses = addresses("--bind", &args.bind, args.port).await?;
    let local = addresses.iter().all(|address| address.ip().is_loopback());
    let key = key(args.no_key, local, env::var(KEY_VARIABLE).ok().as_deref())?;
    let listener = bind("--bind", &addresses, args.port).await?;
    let address = listener.local_addr().context("could not read the server's own address")?;
    // Each sandbox opens some pipes and files of its own.
    let limits = args.connections.limits(0);
    let interrupt = Interrupt::listen();
    let (isolation, settings) = tokio::task::spawn_blocking(move || (settings.isolation(), settings)).await?;
    let isolation = isolation.map_err(unsafe_machine)?;
    let config = settings.config(key);
    print_settings(address, isolation.as_ref(), &settings, config.slots)?;
    if !local {
        output::warn(
            "other machines can reach this address: all holders of the key can run programs here, and the key is sent unencrypted unless a TLS proxy is in front",
        );
    }
    if args.allow_network {
        output::warn("programs in sandboxes can reach the network and servers on this machine");
    }
    let needs = config.limits.memory_bytes.saturating_mul(config.slots as u64);
    let host = SandboxHost::new(isolation, config);
    if host.resources().memory_total_bytes.is_some_and(|there_is| there_is < needs) {
        output::warn(
            "all slots together may use more memory than this machine has; lower --memory-mib or --slots",
        );
    }
    // Web pages of other sites can't use a host that listens on loopback, with or without a key.
    let routes =
        bench_web::finish(router(Arc::clone(&host)), ServerConfig { local, allowed_origins: Vec::new() });
    let stopping = interrupt.clone();
    let ending = Arc::clone(&host);
    let server = bench_http_server::serve(listener, routes, limits, async move {
        stopping.wait().await;
        output::note("Stopping; all sandboxes end. Press Ctrl-C again to stop now.");
        // Tells callers that wait for a command that its sandbox is gone.
        ending.shut_down().await;
    });
    let deadline = async {
        interrupt.wait().await;
        host.shut_down().await;
        tokio::time::sleep(GRACE).await;
    };
    tokio::select! {
        () = server => {}
        () = deadline => {}
    }
    host.shut_down().await;
    Ok(ExitStatus::Success)
}

/// Returns the key that callers must send, or `None` if the host is allowed to work without.
fn key(no_key: bool, local: bool, variable: Option<&str>) -> anyhow::Result<Option<ApiKey>> {
    let key = variable.and_then(ApiKey::new);
    match (key, no_key) {
        (Some(_), true) => Err(Problem::usage(format!("--no-key is given, but {KEY_VARIABLE} is set"))
            .hint(format!("leave --no-key out, or unset {KEY_VARIABLE}"))
            .into()),
        (Some(key), false) => Ok(Some(key)),
        (None, true) if local => Ok(None),
        (None, true) => Err(Problem::usage(
            "--no-key needs a loopback address; otherwise other machines could run programs here",
        )
        .hint(format!("set {KEY_VARIABLE} to a long random text"))
        .into()),
        (None, false) => Err(Problem::usage(format!("{KEY_VARIABLE} is not set"))
            .hint(format!(
                "set {KEY_VARIABLE} to a long random text, or give --no-key to serve this machine only"
            ))
            .into()),
    }
}

/// Explains in one sentence that the machine allows no safe kind of sandbox.
fn unsafe_machine(error: SandboxesError) -> anyhow::Error {
    match error {
        SandboxesError::Isolation(reason) => {
            Problem::failure(reason.to_string()).hint(UNSAFE_MACHINE_HINT).into()
        }
        error => error.into(),
    }
}

/// Prints the settings of the host in plain words.
fn print_settings(
    address: SocketAddr,
    isolation: &dyn Isolation,
    settings: &SandboxSettings,
    slots: usize,
) -> anyhow::Result<()> {
    output::print(&format!("Serving http://{address}"))?;
    let form = isolation.form();
    output::note(&format!("Isolation: {}, with {}", form.name, form.holds.join(", ")));
    for lack in &form.lacks {
        output::note(&format!("  missing: {lack}"));
    }
    match settings.python()? {
        Some(python) => output::note(&format!("Python: {}", python.folder.display())),
        None => output::note(
            "Python: the Python of this machine; `bench sandy setup` installs the packages that SciCode needs",
        ),
    }
    match InstalledTau2::current(&settings.data_dir) {
        Some(tau2) => output::note(&format!("tau2: {} with Python {}", tau2.version, tau2.python)),
        None => output::note("tau2: none; `bench sandy setup tau2` installs it for tau_bench_telecom"),
    }
    output::note(&format!(
        "Slots: {slots}; {} MiB of memory each",
        settings.config(None).limits.memory_bytes >> 20
    ));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_without_a_key_is_for_this_machine_only() {
        assert!(key(false, true, Some("k")).unwrap().is_some());
        assert!(key(false, false, Some("k")).unwrap().is_some());
        assert!(key(true, true, None).unwrap().is_none());
        assert!(key(true, true, Some(" ")).unwrap().is_none());
        for (no_key, local, variable) in [
            (false, true, None),
            (false, false, None),
            (true, false, None),
            (false, true, Some("")),
            (true, true, Some("k")),
        ] {
            assert!(key(no_key, local, variable).is_err(), "{no_key} {local} {variable:?}");
        }
    }
}
