//! `bench view`.

mod archive;
mod router_slot;

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use bench_domain::Code;
use bench_http_server::Limits;
use bench_page::Page;
use bench_stack::{HoldEvent, Stack, StackOptions};
use clap::Args;
use serde::de::IgnoredAny;
use tokio::net::TcpListener;

use self::archive::ServedArchive;
use self::router_slot::RouterSlot;
use crate::browser;
use crate::client::{Client, ServerArgs};
use crate::commands::run::interrupt::Interrupt;
use crate::data_dir::DataArgs;
use crate::exit::ExitStatus;
use crate::output;
use crate::progress::DatasetProgress;
use crate::refusal::Refusal;
use crate::run_ref::RunRef;

pub(crate) const EXAMPLES: &str = "\
Examples:
  bench view                   open the page in the browser: all runs
  bench view latest            the newest run
  bench view 3f2b8c1e          a run, by the first digits of its id
  bench view results.zip       check a signed archive in the browser, and look
                               at its run; nothing is uploaded
  bench view RUN --server https://bench.example

If `bench serve` uses the data directory, its page is opened. Otherwise this
command serves the page on a free port, for this machine only, until Ctrl-C; it
also works on the runs that you start in the page meanwhile. It prints the
address, and opens it in the browser that BROWSER names, or the desktop's.";

/// Time for requests and answers in progress to end after Ctrl-C.
const GRACE: Duration = Duration::from_secs(10);
/// Time for open connections of browsers to end after Ctrl-C.
const CONNECTIONS_GRACE: Duration = Duration::from_secs(1);
/// Maximum number of connections, which all come from this machine.
const CONNECTIONS_MAX: usize = 128;

#[derive(Debug, Args)]
pub(crate) struct ViewArgs {
    /// Run to show: its id, the first digits of its id, or `latest`; or the file of a signed archive [default: all runs]
    #[arg(value_name = "RUN|ARCHIVE.zip")]
    subject: Option<Subject>,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    data: DataArgs,
}

/// Object to show.
#[derive(Debug, Clone)]
enum Subject {
    Run(RunRef),
    Archive(PathBuf),
}

impl FromStr for Subject {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(run) = text.parse() {
            return Ok(Self::Run(run));
        }
        let path = Path::new(text);
        if path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("zip")) || path.exists() {
            return Ok(Self::Archive(path.to_owned()));
        }
        Err("it must be a run's id, at least the first 4 digits of it, `latest`, or the file of an archive; \
             `bench runs` lists the runs"
            .to_owned())
    }
}

pub(crate) async fn run(args: ViewArgs) -> anyhow::Result<ExitStatus> {
    let run = match args.subject {
        None => None,
        Some(Subject::Run(run)) => Some(run),
        Some(Subject::Archive(file)) => {
            return serve(&args.data, Shown::Archive(ServedArchive::new(&file)?)).await;
        }
    };
    if let Some(client) = args.server.client()? {
        let path = path_of(run.as_ref(), &client).await?;
        let address = client.address().unwrap_or_default().trim_end_matches('/').to_owned();
        return show_elsewhere(&format!("{address}{path}")).await;
    }
    if run.is_some() && !args.data.path()?.is_dir() {
        return Err(args.data.missing()?.into());
    }
    serve(&args.data, Shown::Run(run)).await
}

/// Object to show on a page of this machine.
enum Shown {
    /// A run, or all of them.
    Run(Option<RunRef>),
    Archive(ServedArchive),
}

/// Opens the page of the server that uses the data directory, or serves it until Ctrl-C.
async fn serve(data: &DataArgs, shown: Shown) -> anyhow::Result<ExitStatus> {
    let interrupt = Interrupt::listen();
    let mut stack = open(data).await?;
    let opened = async {
        let client = Client::in_process(stack.router(), stack.embedded.data_dir().to_owned());
        let path = match &shown {
            Shown::Run(run) => path_of(run.as_ref(), &client).await?,
            Shown::Archive(archive) => archive.page_path(),
        };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.context("no port is free")?;
        let address = listener.local_addr().context("could not read the page's own address")?;
        anyhow::Ok((path, listener, address))
    };
    let (path, listener, address) = match opened.await {
        Ok(opened) => opened,
        Err(error) => {
            stack.stop(Duration::ZERO).await;
            return Err(error);
        }
    };
    let server = stack.owner().and_then(|owner| owner.address.clone());
    if let (Some(server), Shown::Run(_)) = (server, &shown) {
        stack.stop(Duration::ZERO).await;
        return show_elsewhere(&format!("{server}{path}")).await;
    }
    let routers = RouterSlot::default();
    let stopping = interrupt.clone();
    let serving = bench_http_server::serve(
        listener,
        routers.router(),
        Limits::within_this_machine(CONNECTIONS_MAX),
        async move { stopping.wait().await },
    );
    let mut serving = tokio::spawn(serving);
    let mut opening = None;
    let ended = loop {
        // If another process owns the data directory, that one works on runs.
        if stack.owner().is_none()
            && let Err(error) = stack.start().await
        {
            break Err(error);
        }
        routers.set(stack.router_with(|router| {
            let router = Page::compiled().around(router);
            match &shown {
                Shown::Archive(archive) => archive.add_to(router),
                Shown::Run(_) => router,
            }
        }));
        if opening.is_none() {
            let address = format!("http://{address}{path}");
            output::print(&address)?;
            output::note("The page is open until Ctrl-C.");
            opening = Some(tokio::spawn(async move { browser::open(&address).await }));
        }
        let mut hold = stack.hold(&[], 0).await;
        let owner_ended = async {
            match &mut hold {
                Some(hold) => while hold.event().await != HoldEvent::Ended {},
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = interrupt.wait() => break Ok(()),
            () = owner_ended => {}
        }
        drop(hold);
        stack.stop(Duration::ZERO).await;
        stack = tokio::select! {
            stack = open(data) => stack?,
            () = interrupt.wait() => return Ok(ExitStatus::Success),
        };
    };
    if tokio::time::timeout(CONNECTIONS_GRACE, &mut serving).await.is_err() {
        serving.abort();
    }
    stack.stop(GRACE).await;
    ended.map(|()| ExitStatus::Success)
}

/// Opens the stack in the data directory, or the one of the process that owns it.
async fn open(data: &DataArgs) -> anyhow::Result<Stack> {
    Stack::open(StackOptions {
        progress: Arc::new(DatasetProgress::default()),
        // Other commands and the page itself may order runs from it.
        works: true,
        s3_listener: true,
        ..data.options()?
    })
    .await
}

/// Returns the page's path of a run, which must exist, or of the list of all runs.
async fn path_of(run: Option<&RunRef>, client: &Client) -> anyhow::Result<String> {
    let Some(run) = run else { return Ok("/".to_owned()) };
    let id = run.resolve(client).await?;
    let found: anyhow::Result<IgnoredAny> = client.get(&format!("/api/runs/{id}")).await;
    match found {
        Ok(_) => Ok(format!("/runs/{id}")),
        Err(error) => Err(match error.downcast_ref::<Refusal>() {
            Some(refused) if refused.code() == Some(Code::RunNotFound) => run.missing().into(),
            _ => error,
        }),
    }
}

/// Opens a page that another process serves.
async fn show_elsewhere(address: &str) -> anyhow::Result<ExitStatus> {
    output::print(address)?;
    browser::open(address).await;
    Ok(ExitStatus::Success)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_and_an_archive_are_told_apart() {
        let kind = |text: &str| match text.parse::<Subject>() {
            Ok(Subject::Run(run)) => format!("run {run}"),
            Ok(Subject::Archive(file)) => format!("archive {}", file.display()),
            Err(error) => error,
        };
        assert_eq!(kind("latest"), "run latest");
        assert_eq!(kind("3F2B8C1E"), "run 3f2b8c1e");
        assert_eq!(kind("deadbeef.zip"), "archive deadbeef.zip");
        assert_eq!(kind("results/x.ZIP"), "archive results/x.ZIP");
        // An existing file may have any name.
        assert_eq!(kind(env!("CARGO_MANIFEST_DIR")), format!("archive {}", env!("CARGO_MANIFEST_DIR")));
        assert!(kind("newest").contains("`latest`, or the file of an archive"));
    }
}
