//! `bench serve`.

use std::env;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use bench_api::SignInSettings;
use bench_http_server::{Limits, raise_open_files_limit};
use bench_inference::{InferenceConfig, ModelSource, PROVIDERS};
use bench_page::Page;
use bench_state::Scope;
use clap::Args;
use tokio::net::{TcpListener, lookup_host};

use crate::browser;
use crate::commands::interrupted;
use crate::commands::run::interrupt::Interrupt;
use crate::data_dir::{DataArgs, DurabilityArg, open_when_free};
use crate::exit::{ExitStatus, Problem};
use crate::judge_name::{MODEL_VARIABLE, check_variable};
use crate::output;
use crate::progress::DatasetProgress;
use bench_stack::{CONCURRENCY_DEFAULT, CONCURRENCY_MAX, StackOptions};

pub(crate) const EXAMPLES: &str = "\
Examples:
  bench serve                  at http://127.0.0.1:3000, for this machine only
  bench serve --open           open the page in the browser, too
  bench serve --port 8080 --concurrency 64
  bench serve --host 0.0.0.0   for other machines; docs/access.md says who may
                               order runs then

Browsers get the page at this address, programs the API; the page's API view
describes it. `bench view RUN` opens the page at a run, also without a server.

The server continues open runs that were ordered at a server or by a schedule.
It lists interrupted runs of `bench run`; `bench run --resume RUN --server URL`
continues one at this server. Ctrl-C stops it; finished samples are kept.";

/// Time for requests and calls in progress to end after Ctrl-C.
const GRACE: Duration = Duration::from_secs(10);
/// Maximum value of `--max-connections`.
const CONNECTIONS_MAX: u64 = 30_000;

#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// Address to listen on
    #[arg(long, env = "BENCH_HOST", value_name = "ADDRESS", default_value = "127.0.0.1")]
    host: String,
    /// Port to listen on; 0 chooses a free one
    #[arg(long, env = "BENCH_PORT", default_value_t = 3000)]
    port: u16,
    /// Maximum number of samples in progress at the same time
    #[arg(short, long, env = "BENCH_CONCURRENCY", value_name = "N", default_value_t = CONCURRENCY_DEFAULT as u64,
        value_parser = clap::value_parser!(u64).range(1..=CONCURRENCY_MAX as u64))]
    concurrency: u64,
    #[command(flatten)]
    connections: ConnectionsArgs,
    /// Open the page in the browser
    #[arg(long)]
    open: bool,
    /// Serve the page from a folder instead of the built-in one, for work on it: open pages are loaded again when a file
    /// changes
    #[arg(long, value_name = "DIR")]
    page: Option<PathBuf>,
    /// Durability of stored answers
    #[arg(long, env = "BENCH_DURABILITY", value_enum, default_value_t = DurabilityArg::Full)]
    durability: DurabilityArg,
    #[command(flatten)]
    data: DataArgs,
}

/// Limit on connections.
#[derive(Debug, Args)]
pub(crate) struct ConnectionsArgs {
    /// Maximum number of open connections; one remote address gets at most an eighth of them, this machine three quarters
    /// [default: 1024, or fewer if the limit on open files is low]
    #[arg(long, help_heading = None, env = "BENCH_MAX_CONNECTIONS", value_name = "N",
        value_parser = clap::value_parser!(u64).range(1..=CONNECTIONS_MAX))]
    max_connections: Option<u64>,
}

impl ConnectionsArgs {
    /// Returns the limits of a server that has up to `others` other files open at once.
    pub(crate) fn limits(&self, others: usize) -> Limits {
        let asked = self.max_connections.and_then(|asked| usize::try_from(asked).ok());
        let limits = Limits::for_open_files(asked, raise_open_files_limit(), others);
        if let Some(asked) = asked.filter(|asked| limits.connections_max < *asked) {
            output::warn(&format!(
                "--max-connections: {} instead of {asked}, because of the limit on open files (`ulimit -n`)",
                limits.connections_max
            ));
        }
        limits
    }
}

pub(crate) async fn run(args: ServeArgs) -> anyhow::Result<ExitStatus> {
    // Users who order runs at a server rely on the judge that is configured there.
    check_variable(env::var(MODEL_VARIABLE).ok().as_deref())?;
    let page = page(args.page.as_deref())?;
    let addresses = addresses("--host", &args.host, args.port).await?;
    // Clients of a loopback address are on this machine.
    let local = addresses.iter().all(|address| address.ip().is_loopback());
    // Reports a port in use before anything is made. While the server waits for the data directory, callers get no
    // connection instead of no answer.
    drop(bind("--host", &addresses, args.port).await?);
    let concurrency = usize::try_from(args.concurrency).unwrap_or(CONCURRENCY_MAX);
    let options = || {
        anyhow::Ok(StackOptions {
            durability: args.durability.into(),
            concurrency,
            progress: Arc::new(DatasetProgress::default()),
            local,
            scope: Scope::Server,
            works: true,
            // The listener uses loopback, so clients on other machines couldn't reach it.
            s3_listener: local,
            ..args.data.options()?
        })
    };
    let StackOptions { data_dir, vars, .. } = options()?;
    // Each call in progress has a connection to a provider, and may have one to a sandbox.
    let limits = args.connections.limits(2 * concurrency);
    let providers = providers(|name| vars.get(name).cloned(), local)?;
    let interrupt = Interrupt::listen();
    // A server must own the data directory, since it also works on runs that no command watches.
    let mut stack = tokio::select! {
        stack = open_when_free(options, |_| false) => stack?,
        () = interrupt.wait() => return Ok(ExitStatus::Interrupted),
    };
    let listener = match bind("--host", &addresses, args.port).await {
        Ok(listener) => listener,
        Err(error) => {
            stack.stop(Duration::ZERO).await;
            return Err(error);
        }
    };
    let address = listener.local_addr().context("could not read the server's own address")?;
    let router = stack.router_with(|router| page.around(router));
    stack.start().await?;
    stack.serve_schedules();
    let page_address = format!("http://{}", from_this_machine(address));
    // Browsers come back to it from a sign-in.
    stack.api.set_own_address(&page_address);
    if local {
        // Elsewhere, callers without a key have fewer rights than the user of this machine.
        stack.announce(&page_address);
    }
    output::print(&format!("Serving http://{address}"))?;
    if let Some(folder) = &args.page {
        output::note(&format!("Page: {}, loaded again when a file changes", folder.display()));
    }
    output::note(&format!("Data directory: {}", data_dir.display()));
    if let Some(address) = stack.s3_address {
        let keys = data_dir.join("credentials.json");
        output::note(&format!("S3 of bodies and exports: http://{address} (keys in {})", keys.display()));
    }
    output::note(&format!("Models: {providers}"));
    output::note(&format!("Sign-in: {}", sign_in(stack.api.config.sign_in.as_ref(), &page_address)));
    interrupted::list(&stack, &[], Some(&format!("http://{address}"))).await;
    if local && env::var("BENCH_ACCESS").is_ok_and(|rows| !rows.trim().is_empty()) {
        output::warn(
            "BENCH_ACCESS has no effect: this server listens on loopback only, and treats all callers, including those of \
             a reverse proxy, as the user of this machine; docs/access.md says how to run it behind a proxy",
        );
    }
    if !local {
        output::warn(&format!(
            "other machines can reach this address; the access policy for orders is: {}",
            stack.api.config.runs.policy
        ));
        let config = &stack.api.config;
        if config.admin_secret.is_none() && config.runs.policy.admin_subjects.is_empty() {
            output::warn(&format!(
                "there is no admin, since neither ADMIN_SECRET nor ADMIN_SUBJECTS is set: only `bench access --data-dir {}` on this \
                 machine gives callers access",
                data_dir.display()
            ));
        }
    }
    let stopping = interrupt.clone();
    let server = bench_http_server::serve(listener, router, limits, async move {
        stopping.wait().await;
        page.stop();
    });
    // Not awaited: the server answers the browser meanwhile.
    let opening = args.open.then(|| tokio::spawn(async move { browser::open(&page_address).await }));
    let deadline = async {
        interrupt.wait().await;
        output::note("Stopping; finished samples are kept. Press Ctrl-C again to stop now.");
        // Event streams stay open until their runs end.
        tokio::time::sleep(GRACE).await;
    };
    tokio::select! {
        () = server => {}
        () = deadline => {}
    }
    drop(opening);
    stack.stop(GRACE).await;
    Ok(ExitStatus::Success)
}

/// Returns the page of a folder, or the built-in one.
fn page(folder: Option<&Path>) -> anyhow::Result<Page> {
    let Some(folder) = folder else { return Ok(Page::compiled()) };
    if !folder.join("index.html").is_file() {
        return Err(Problem::usage(format!(
            "--page: there is no file `index.html` in `{}`",
            folder.display()
        ))
        .hint("give the folder of the page's files, such as frontend-static")
        .into());
    }
    Ok(Page::in_folder(folder.to_owned()))
}

/// Returns the address at which programs on this machine reach a listener, which may listen on all addresses.
fn from_this_machine(address: SocketAddr) -> SocketAddr {
    match address {
        SocketAddr::V4(any) if any.ip().is_unspecified() => (Ipv4Addr::LOCALHOST, any.port()).into(),
        SocketAddr::V6(any) if any.ip().is_unspecified() => (Ipv6Addr::LOCALHOST, any.port()).into(),
        other => other,
    }
}

/// Resolves a host that an option gives.
pub(crate) async fn addresses(option: &str, host: &str, port: u16) -> anyhow::Result<Vec<SocketAddr>> {
    let bare = host.trim().trim_start_matches('[').trim_end_matches(']');
    let found = lookup_host((bare, port)).await.map(Iterator::collect::<Vec<_>>).unwrap_or_default();
    if found.is_empty() {
        return Err(Problem::usage(format!("{option}: `{host}` is not an address of this machine")).into());
    }
    Ok(found)
}

/// Listens on one of the addresses.
pub(crate) async fn bind(option: &str, addresses: &[SocketAddr], port: u16) -> anyhow::Result<TcpListener> {
    TcpListener::bind(addresses).await.map_err(|error| {
        let problem = match error.kind() {
            ErrorKind::AddrInUse => Problem::failure(format!("port {port} is in use"))
                .hint("give another port with --port; 0 chooses a free one"),
            ErrorKind::PermissionDenied => {
                Problem::failure(format!("port {port} needs more permissions than this user has"))
                    .hint("use a port from 1024 on")
            }
            ErrorKind::AddrNotAvailable => {
                let shown: Vec<String> =
                    addresses.iter().map(|address| format!("`{}`", address.ip())).collect();
                Problem::usage(format!("{option}: {} is not an address of this machine", shown.join(", ")))
            }
            _ => Problem::failure(format!("could not listen on port {port}: {error}")),
        };
        problem.into()
    })
}

/// Lists the providers that have a key, and what the others lack. An exposed server leaves out providers at their
/// default address on this machine, since it refuses orders for them.
fn providers(var: impl Fn(&str) -> Option<String>, local: bool) -> anyhow::Result<String> {
    let inference = InferenceConfig::from_vars(var).map_err(|error| Problem::usage(error.to_string()))?;
    let (mut ready, mut missing) = (Vec::new(), Vec::new());
    for provider in
        PROVIDERS.iter().copied().filter(|provider| local || !inference.is_local_by_default(provider))
    {
        match inference.endpoint(provider) {
            Ok(_) => ready.push(provider.name),
            Err(error) => missing.push(error.to_string()),
        }
    }
    ready.push(ModelSource::Oracle.as_str());
    let missing = if missing.is_empty() { String::new() } else { format!(" ({})", missing.join("; ")) };
    Ok(format!("{}{missing}", ready.join(", ")))
}

/// Describes the sign-in: the provider, and the address that it has to know. The page is at `own_address`, unless it is set.
fn sign_in(settings: Option<&SignInSettings>, own_address: &str) -> String {
    let Some(SignInSettings { provider, page_url }) = settings else {
        return "none (CHUTES_CLIENT_ID is not set)".to_owned();
    };
    let page = page_url.as_deref().unwrap_or(own_address);
    format!(
        "{} as client `{}`, which must have the redirect address {page}/api/auth/callback",
        provider.base_url, provider.client_id
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_browser_gets_an_address_of_this_machine() {
        for (listening, opened) in [
            ("127.0.0.1:3000", "127.0.0.1:3000"),
            ("10.0.0.7:80", "10.0.0.7:80"),
            ("0.0.0.0:3000", "127.0.0.1:3000"),
            ("[::]:3000", "[::1]:3000"),
        ] {
            assert_eq!(from_this_machine(listening.parse().unwrap()).to_string(), opened);
        }
    }

    #[test]
    fn providers_without_a_key_are_named_with_what_they_lack() {
        let text = providers(|_| None, true).unwrap();
        assert!(text.starts_with("lmstudio, oracle (") && text.contains("CHUTES_API_KEY"), "{text}");
        let text = providers(|_| None, false).unwrap();
        assert!(text.starts_with("oracle (") && !text.contains("lmstudio"), "{text}");
        let text =
            providers(|name| (name == "CHUTES_API_KEY").then(|| "cpk_secret".to_owned()), true).unwrap();
        assert!(text.starts_with("chutes, lmstudio") && !text.contains("secret"), "{text}");
        assert!(providers(|name| (name == "CHUTES_API_BASE_URL").then(|| "x".to_owned()), true).is_err());
    }
}
