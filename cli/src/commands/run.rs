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
use self::watch::WatchResult;
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
      answers from the datasets' own solutions, on bundled demo items: tries the
      whole program without an account or a network
  bench run --model chutes/deepseek-ai/DeepSeek-V3 --benchmark mmlu_pro \\
      --subset-count 200 --seed demo
      200 items; each model with this seed gets the same ones
  bench run --model openai-compatible/qwen3 --base-url http://127.0.0.1:8000/v1
      a model of your own server, such as vLLM
  bench run --model lmstudio/qwen3-4b --model oracle --benchmark aime_2025
      two runs side by side
  bench run --model openrouter/MODEL --benchmark gpqa_diamond --protocol authors
      another protocol than the default; `bench benchmarks NAME` lists them
  bench run --model openrouter/MODEL --benchmark livecodebench \\
      --option release=v6 --option start_date=2025-02-01
      settings of this benchmark; `bench benchmarks NAME` lists them
  bench run --model openrouter/MODEL --benchmark hle \\
      --judge-model openrouter/JUDGE --judge-temperature 0
      answers that another model grades; `bench rejudge RUN` grades them again
  bench run --model openrouter/MODEL --benchmark scicode \\
      --dataset scicode=problems.jsonl
      items from a file; code that needs Python packages (`bench sandy setup`)
  bench run --model openrouter/MODEL --budget-usd 2.50
      stops when the answers have cost $2.50, and keeps what was answered
  bench run --benchmark scicode --subset-count 3 --seed demo --dry-run
      prints the prompts; needs no model and no key
  bench run --resume RUN
      continues after Ctrl-C, a crash or a failure; a run that succeeded repeats
      its infrastructure-errors
  bench run --model replay:answers.jsonl --benchmark mmlu_pro
      grades stored responses

Stored responses: a JSONL file with one object per line.
  item_id    the item: the dataset's own id, such as its question_id, or the
             index of its row, from 0, as \"#12\"
  response   the model's text, or null for no answer
  sample     number of the sample, from 0 (optional; default: every sample)
  benchmark  name of the benchmark (optional; default: each that has the item)
  step       name of the step, for items of several steps
  responses  the answers to all steps, in order, instead of `response` and
             `step`; null for a step whose answer the dataset has
A response that matches no item is refused before anything is graded.

SciCode needs right values (an .h5 file): it takes the file in the row's column
`h5_file`, else the .h5 file beside the dataset file, else the one at the hub.
--dataset also takes a folder with both.";

/// Returns the help text below the options.
pub(crate) fn help() -> String {
    let providers = PROVIDERS.iter().filter(|provider| provider.needs_key);
    let keys: Vec<_> = providers.map(|provider| provider.key_variable).collect();
    format!(
        "{EXAMPLES}

Models: {}
Keys of providers: {}
    or the variable that --api-key-env names. BENCH_JUDGE_API_KEY is a key for
    the judge alone.
Exit codes: 0 if every run succeeded, 1 if one failed, 2 for wrong usage, 130
    after Ctrl-C.",
        ModelName::forms().replace("openai-compatible", "\n    openai-compatible"),
        keys.join(", "),
    )
}

/// Time for calls in progress to end after Ctrl-C.
const INTERRUPT_GRACE: Duration = Duration::from_secs(10);
/// Time for the stack to close after all work is done.
const CLOSE_GRACE: Duration = Duration::from_secs(5);
/// Minimum wait for calls in progress at which users see a message.
const SILENT_SETTLE_MAX: Duration = Duration::from_secs(1);

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) order: OrderArgs,
    #[command(flatten)]
    pub(crate) budget: BudgetArgs,
    /// Continue this run instead of starting a new one
    #[arg(long, value_name = "RUN", value_parser = super::parse_run, help_heading = None)]
    pub(crate) resume: Option<RunId>,
    /// Print the prompts without asking a model or starting a run. Where an item has several steps, later prompts contain
    /// the dataset's own answers to the earlier steps, if it has them
    #[arg(long, conflicts_with = "resume", help_heading = None)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) work: WorkArgs,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// Print JSON: an array with one object per run; with --dry-run, one object per prompt, each on a line
    #[arg(long, help_heading = None)]
    pub(crate) json: bool,
    /// Ids of the arguments that are on the command line itself, not in a variable.
    #[arg(skip)]
    pub(crate) given: Vec<String>,
}

/// Settings of the work, and the folder for its results.
#[derive(Debug, Args)]
#[command(next_help_heading = "Execution and results")]
pub(crate) struct WorkArgs {
    /// Maximum number of samples in progress at the same time
    #[arg(long, short, env = "BENCH_CONCURRENCY", value_name = "N", default_value_t = CONCURRENCY_DEFAULT as u64,
        value_parser = clap::value_parser!(u64).range(1..=CONCURRENCY_MAX as u64))]
    pub(crate) concurrency: u64,
    /// Durability of stored answers
    #[arg(long, env = "BENCH_DURABILITY", value_enum, default_value_t = DurabilityArg::Full)]
    pub(crate) durability: DurabilityArg,
    /// Folder for the signed archive and the CSV table; created if it is missing
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
        Some(stack) => plan.order_in_process(stack, key, judge_key, session.datasets.as_ref()).await,
        None => plan.order_at_server(&session.client, key.is_some()).await,
    };
    session.datasets.clear();
    match ordered {
        Ok(runs) => session.finish_runs(&runs, Some(&plan), &args.work, args.json).await,
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
    match prepare_resume(&session.client, run, budget, errors).await {
        Ok(()) => session.finish_runs(&[run], None, work, json).await,
        Err(error) => {
            session.close(Duration::ZERO).await;
            Err(error)
        }
    }
}

async fn prepare_resume(client: &Client, run: RunId, budget: BudgetArgs, errors: bool) -> anyhow::Result<()> {
    let found: Run = client.get(&format!("/api/runs/{run}")).await?;
    match found.status {
        RunStatus::Queued | RunStatus::Running if budget.budget().is_set() => {
            let message = format!("run {run} is {}: its budget can't be changed", found.status);
            return Err(Problem::failure(message).hint("leave the budget out to continue the run").into());
        }
        RunStatus::Queued | RunStatus::Running => {
            if found.interrupted {
                client.post::<Value>(&requeue_path(run), None).await?;
            }
            output::note(&format!("Continuing run {run}"));
        }
        RunStatus::Succeeded if found.infrastructure_errors() == 0 => {
            output::note(&format!("Run {run} is complete; there is nothing to repeat"));
        }
        RunStatus::Succeeded => {
            client.post::<Value>(&requeue_path(run), requeue_body(budget, true).as_ref()).await?;
            let errors = format::plural(found.infrastructure_errors(), "infrastructure-error");
            output::note(&format!("Repeating {errors} of run {run}, which had succeeded"));
        }
        RunStatus::Failed | RunStatus::Canceled => {
            client.post::<Value>(&requeue_path(run), requeue_body(budget, errors).as_ref()).await?;
            let what = if errors { "the infrastructure-errors" } else { "the missing samples" };
            let had = if found.status == RunStatus::Failed { "failed" } else { "been canceled" };
            output::note(&format!("Repeating {what} of run {run}, which had {had}"));
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
        let client = Client::in_process(stack.router()).with_key(key).with_judge_key(judge_key());
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
    async fn finish_runs(
        self,
        runs: &[RunId],
        plan: Option<&Plan>,
        work: &WorkArgs,
        json: bool,
    ) -> anyhow::Result<ExitStatus> {
        let demo_wanted = plan.is_none_or(|plan| plan.demo);
        self.finish_runs_then(runs, demo_wanted, work, json, async |_| Ok(())).await
    }

    /// Does the same as [`Session::finish_runs`], then calls `then` while the API is still available.
    pub(crate) async fn finish_runs_then(
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
                "Stopping. Answers in progress have {seconds} s to arrive; finished samples are kept. Press Ctrl-C again to stop now."
            ));
        }
        let address = self.client.address().map(str::to_owned);
        self.close(if interrupted { INTERRUPT_GRACE } else { CLOSE_GRACE }).await;
        if interrupted {
            for run in runs {
                match &address {
                    None => output::note(&format!("Continue with: bench run --resume {run}")),
                    Some(address) => output::note(&format!(
                        "The run continues at the server. Watch it with: bench run --resume {run} --server {address}"
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
        let WatchResult::Over(mut over) = watched else { return Ok(ExitStatus::Interrupted) };
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
            over = watch::fetch_runs(&self.client, runs).await?;
        }
        results::show(&self.client, self.stack.as_ref(), &over, &work.out, json).await
    }
}

/// Waits a limited time for samples in progress to end, with a message if it takes long.
async fn settle(stack: &mut Stack) {
    if !stack.drain(SILENT_SETTLE_MAX).await {
        let seconds = INTERRUPT_GRACE.as_secs();
        output::note(&format!(
            "Waiting up to {seconds} s for answers in progress. Press Ctrl-C to see the results now."
        ));
        stack.drain(INTERRUPT_GRACE).await;
    }
}
