//! `bench run`.

pub(crate) mod budget;
pub(crate) mod checks;
mod dry;
pub(crate) mod failure;
pub(crate) mod interrupt;
mod models;
mod order;
mod place;
mod responses;
pub(crate) mod results;
mod watch;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bench_domain::{RunId, RunStatus};
use bench_inference::{ModelName, PROVIDERS};
use bench_runs::Orders;
use bench_state::Scope;
use clap::Args;
use serde_json::Value;

use self::budget::BudgetArgs;
use self::interrupt::Interrupt;
use self::order::{OrderArgs, Plan, Resolved};
pub(crate) use self::place::preselected;
use self::watch::Watched;
use super::interrupted;
use super::judge::judge_key;
use crate::client::{Client, ServerArgs};
use crate::data_dir::{DataArgs, DurabilityArg};
use crate::exit::{ExitStatus, Problem};
use crate::progress::DatasetProgress;
use crate::views::Run;
use crate::{format, output};
use bench_stack::{CONCURRENCY_DEFAULT, CONCURRENCY_MAX, Stack, StackOptions};

const EXAMPLES: &str = "\
Examples:
  bench run --model oracle --demo
      no account and no network: the whole way, on items that come with the program
  bench run --model chutes/deepseek-ai/DeepSeek-V3 --benchmark mmlu_pro --subset-count 200 --seed demo
      200 items, the same ones for every model with this seed (needs CHUTES_API_KEY)
  bench run --model openai-compatible/qwen3 --base-url http://127.0.0.1:8000/v1 --concurrency 64
  bench run --model lmstudio/qwen3-4b --model oracle --benchmark aime_2025 --samples 1
      two runs side by side
  bench run --model replay:answers.jsonl --benchmark mmlu_pro --dataset mmlu_pro=items.jsonl
      stored responses instead of a model, items from a file
  bench run --model openrouter/MODEL --benchmark gpqa_diamond --protocol authors
      another protocol than the default one; `bench benchmarks NAME` lists them
  bench run --model openrouter/MODEL --benchmark hle --judge-model openrouter/JUDGE --judge-temperature 0
      answers that a model has to judge; `bench rejudge RUN` judges them again without asking anew
  bench run --model openrouter/MODEL --benchmark livecodebench --option release=v6 --option start_date=2025-02-01
      settings that a benchmark has of its own; `bench benchmarks NAME` lists them
  bench sandy setup && bench run --model openrouter/MODEL --benchmark scicode --dataset scicode=problems.jsonl
      code that needs Python packages; the right values are the .h5 file beside problems.jsonl, or the one that a
      row's column h5_file names, or without either that of the hub (a folder with both can be given, too)
  bench run --model openrouter/MODEL --budget-usd 2.50
      stops when its answers have cost that much, and keeps what was answered
  bench run --benchmark scicode --subset-count 3 --seed demo --dry-run
      what would be asked, without asking: no model, no key, no run; with --json an object a line
  bench run --resume RUN
      go on where Ctrl-C, a crash or a failure ended it; a run that succeeded asks its infrastructure-errors again

Stored responses (replay:FILE) are JSONL: `response` (null for a model that did not answer) and `item_id`, and if wanted
`sample` (from 0; without it for every sample) and `benchmark`. `item_id` is the dataset's own id, such as question_id,
or the index of the row, from 0, as \"#12\"; responses that match no item are refused before anything is graded. Where an
item takes several questions, a line has the step's name as a text,
{\"item_id\": \"76\", \"step\": \"76.1\", \"response\": \"…\"}, or the answers to all steps that are asked, in
order, as `responses`: null for one that the dataset gives.";

/// Returns the help text below the options.
pub(crate) fn help() -> String {
    let providers = PROVIDERS.iter().filter(|provider| provider.needs_key);
    let keys: Vec<_> = providers.map(|provider| provider.key_variable).collect();
    format!(
        "{EXAMPLES}

Models: {}.
Keys come from variables ({}, …) or from the one that --api-key-env names.
A key for the judge alone comes from BENCH_JUDGE_API_KEY.
Exit code 0 when every run succeeded, 1 when one failed, 2 for wrong usage, 130 after Ctrl-C.",
        ModelName::forms(),
        keys.join(", "),
    )
}

/// Time for calls in progress to end after Ctrl-C.
const INTERRUPT_GRACE: Duration = Duration::from_secs(10);
/// Time for the stack to close after all work is done.
const CLOSE_GRACE: Duration = Duration::from_secs(5);
/// Minimum wait for calls in progress at which users see a message.
const SETTLES_UNNOTICED: Duration = Duration::from_secs(1);

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) order: OrderArgs,
    #[command(flatten)]
    pub(crate) budget: BudgetArgs,
    /// Go on with this run instead of making one
    #[arg(long, value_name = "RUN", value_parser = super::parse_run)]
    pub(crate) resume: Option<RunId>,
    /// Print the prompts that would be asked, and ask nobody: it needs no model and makes no run. Later questions of an
    /// item have the dataset's own answers to the earlier ones, where it has some
    #[arg(long, conflicts_with = "resume")]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) work: WorkArgs,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// Print JSON: an array with an object for each run; with --dry-run an object for each prompt, one a line
    #[arg(long)]
    pub(crate) json: bool,
    /// Ids of the arguments that stand on the command line itself, not in a variable.
    #[arg(skip)]
    pub(crate) given: Vec<String>,
}

/// How the work is done and where the results go.
#[derive(Debug, Args)]
pub(crate) struct WorkArgs {
    /// Samples worked on at once
    #[arg(long, short, env = "BENCH_CONCURRENCY", value_name = "N", default_value_t = CONCURRENCY_DEFAULT as u64,
        value_parser = clap::value_parser!(u64).range(1..=CONCURRENCY_MAX as u64))]
    pub(crate) concurrency: u64,
    /// What an acknowledged write survives
    #[arg(long, env = "BENCH_DURABILITY", value_enum, default_value_t = DurabilityArg::Full)]
    pub(crate) durability: DurabilityArg,
    /// Folder for the signed archive and the table
    #[arg(long, short, env = "BENCH_OUT", value_name = "DIR", default_value = "bench-results")]
    pub(crate) out: PathBuf,
}

pub(crate) async fn run(args: RunArgs) -> anyhow::Result<ExitStatus> {
    if let Some(run) = args.resume {
        order::refuse_changes(run, &args.given)?;
        return resume(run, args.budget, false, &args.work, &args.server, &args.data, args.json).await;
    }
    if args.dry_run {
        return dry::run(&args).await;
    }
    let Resolved { plan, key, judge_key } = order::resolve(&args)?;
    results::check_folder(&args.work.out)?;
    if args.server.server().is_none() {
        checks::check_packages(&plan, &args.data.options()?).await?;
    }
    let session = Session::open(&args.work, &args.server, &args.data).await?;
    let ordered = match &session.stack {
        Some(stack) => plan.order_here(stack, key, judge_key, session.datasets.as_ref()).await,
        None => plan.order_at(&session.client, key.is_some()).await,
    };
    session.datasets.clear();
    match ordered {
        Ok(runs) => session.work(&runs, Some(&plan), &args.work, args.json).await,
        Err(error) => {
            session.close(Duration::ZERO).await;
            Err(error)
        }
    }
}

/// Returns the API path that requeues a run.
pub(crate) fn requeue_path(run: RunId) -> String {
    format!("/api/admin/runs/{run}/requeue")
}

/// Builds the body of a requeue request, or returns `None` if it would be empty.
pub(crate) fn requeue_body(budget: BudgetArgs, errors: bool) -> Option<Value> {
    let mut body = budget.body().and_then(|body| body.as_object().cloned()).unwrap_or_default();
    if errors {
        body.insert("errors".to_owned(), true.into());
    }
    (!body.is_empty()).then_some(Value::Object(body))
}

/// Resumes a run: an open one from where it stopped, a failed or canceled one with its missing samples, and a
/// successful one with its infrastructure-errors. If `errors` is true, repeats only infrastructure-errors.
pub(crate) async fn resume(
    run: RunId,
    budget: BudgetArgs,
    errors: bool,
    work: &WorkArgs,
    server: &ServerArgs,
    data: &DataArgs,
    json: bool,
) -> anyhow::Result<ExitStatus> {
    // Checks the key before opening anything.
    server.named_key()?;
    results::check_folder(&work.out)?;
    let session = Session::open(work, server, data).await?;
    match take_up(&session.client, run, budget, errors).await {
        Ok(()) => session.work(&[run], None, work, json).await,
        Err(error) => {
            session.close(Duration::ZERO).await;
            Err(error)
        }
    }
}

async fn take_up(client: &Client, run: RunId, budget: BudgetArgs, errors: bool) -> anyhow::Result<()> {
    let found: Run = client.get(&format!("/api/runs/{run}")).await?;
    match found.status {
        RunStatus::Queued | RunStatus::Running if budget.budget().is_set() => {
            let message = format!("run {run} is {}: its budget cannot be changed", found.status);
            return Err(Problem::failure(message).hint("leave the budget out to go on with it").into());
        }
        RunStatus::Queued | RunStatus::Running => {
            if found.interrupted {
                client.post::<Value>(&requeue_path(run), None).await?;
            }
            output::note(&format!("Going on with run {run}"));
        }
        RunStatus::Succeeded if found.infrastructure_errors() == 0 => {
            output::note(&format!("Run {run} is complete"));
        }
        RunStatus::Succeeded => {
            client.post::<Value>(&requeue_path(run), requeue_body(budget, true).as_ref()).await?;
            let errors = format::plural(found.infrastructure_errors(), "infrastructure-error");
            output::note(&format!("Run {run} had succeeded with {errors}, which are asked again"));
        }
        RunStatus::Failed | RunStatus::Canceled => {
            client.post::<Value>(&requeue_path(run), requeue_body(budget, errors).as_ref()).await?;
            let had = match found.status {
                RunStatus::Failed => "failed",
                _ => "been canceled",
            };
            let what = if errors { "its infrastructure-errors are" } else { "what is missing is" };
            output::note(&format!("Run {run} had {had}; {what} asked again"));
        }
    }
    Ok(())
}

/// Place where the work on runs is done: the stack in this process, or a server.
pub(crate) struct Session {
    pub(crate) client: Client,
    stack: Option<Stack>,
    datasets: Arc<DatasetProgress>,
}

impl Session {
    pub(crate) async fn open(work: &WorkArgs, server: &ServerArgs, data: &DataArgs) -> anyhow::Result<Self> {
        Self::open_in(Scope::Foreground, work, server, data).await
    }

    /// Opens a session for a process that also works on runs of other processes, or that leaves its runs to them.
    pub(crate) async fn open_in(
        scope: Scope,
        work: &WorkArgs,
        server: &ServerArgs,
        data: &DataArgs,
    ) -> anyhow::Result<Self> {
        let datasets = Arc::new(DatasetProgress::default());
        if let Some(client) = server.client()? {
            return Ok(Self { client: client.with_judge_key(judge_key()), stack: None, datasets });
        }
        let key = server.named_key()?;
        let options = StackOptions {
            durability: work.durability.into(),
            concurrency: usize::try_from(work.concurrency).unwrap_or(CONCURRENCY_MAX),
            progress: Arc::clone(&datasets) as _,
            scope,
            ..data.options()?
        };
        let stack = Stack::open(options).await?;
        let client = Client::inside(stack.router()).with_key(key).with_judge_key(judge_key());
        Ok(Self { client, stack: Some(stack), datasets })
    }

    /// Returns the order service of this process, or `None` if a server makes the runs.
    pub(crate) fn orders(&self) -> Option<&Orders> {
        self.stack.as_ref().map(|stack| stack.orders.as_ref())
    }

    pub(crate) async fn close(self, grace: Duration) {
        if let Some(stack) = self.stack {
            stack.stop(grace).await;
        }
    }

    /// Works until the runs are over, and shows their results.
    async fn work(
        self,
        runs: &[RunId],
        plan: Option<&Plan>,
        work: &WorkArgs,
        json: bool,
    ) -> anyhow::Result<ExitStatus> {
        let demo_wanted = plan.is_none_or(|plan| plan.demo);
        self.work_and(runs, demo_wanted, work, json, async |_| Ok(())).await
    }

    /// Does the same as [`Session::work`], then calls `then` while the API is still available.
    pub(crate) async fn work_and(
        mut self,
        runs: &[RunId],
        demo_wanted: bool,
        work: &WorkArgs,
        json: bool,
        then: impl AsyncFnOnce(&Client) -> anyhow::Result<()>,
    ) -> anyhow::Result<ExitStatus> {
        let interrupt = Interrupt::listen();
        let mut worked = self.watch_and_show(runs, demo_wanted, work, json, &interrupt).await;
        if matches!(worked, Ok(ExitStatus::Success | ExitStatus::Failure))
            && let Err(error) = then(&self.client).await
        {
            worked = Err(error);
        }
        let interrupted = matches!(worked, Ok(ExitStatus::Interrupted));
        let here = self.stack.is_some();
        if interrupted && here {
            let seconds = INTERRUPT_GRACE.as_secs();
            output::note(&format!(
                "Stopping; answers on their way have {seconds} s, what is done stays. Ctrl-C again ends at once."
            ));
        }
        let address = self.client.address().map(str::to_owned);
        self.close(if interrupted { INTERRUPT_GRACE } else { CLOSE_GRACE }).await;
        if interrupted {
            for run in runs {
                match &address {
                    None => output::note(&format!("Go on with: bench run --resume {run}")),
                    Some(address) => output::note(&format!(
                        "The run goes on at the server; watch it with: bench run --resume {run} --server {address}"
                    )),
                }
            }
        }
        worked
    }

    async fn watch_and_show(
        &mut self,
        runs: &[RunId],
        demo_wanted: bool,
        work: &WorkArgs,
        json: bool,
        interrupt: &Interrupt,
    ) -> anyhow::Result<ExitStatus> {
        if let Some(stack) = &mut self.stack {
            stack.start().await?;
            interrupted::list(stack, runs, None).await;
        }
        let data_dir = self.stack.as_ref().map(|stack| stack.embedded.data_dir().to_owned());
        let watch =
            watch::watch(&self.client, runs, &self.datasets, demo_wanted, interrupt, data_dir.as_deref());
        let watched = watch.await?;
        let Watched::Over(mut over) = watched else { return Ok(ExitStatus::Interrupted) };
        if let Some(stack) = &mut self.stack
            && over.iter().any(|run| run.status != RunStatus::Succeeded)
        {
            // Calls in progress cost money, so their answers go into the results. Arriving later, they would make the
            // results differ from the archive.
            tokio::select! {
                () = settle(stack) => {}
                () = interrupt.wait() => {}
            }
            // The results must not change any more after they are shown.
            stack.abort().await;
            over = watch::look(&self.client, runs).await?;
        }
        results::show(&self.client, self.stack.as_ref(), &over, &work.out, json).await
    }
}

/// Waits a limited time for samples in progress to end, with a message if it takes long.
async fn settle(stack: &mut Stack) {
    if !stack.drain(SETTLES_UNNOTICED).await {
        let seconds = INTERRUPT_GRACE.as_secs();
        output::note(&format!("Answers on their way have {seconds} s. Ctrl-C shows the results at once."));
        stack.drain(INTERRUPT_GRACE).await;
    }
}
