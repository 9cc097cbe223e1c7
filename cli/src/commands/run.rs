//! `bench run`.

pub(crate) mod budget;
pub(crate) mod checks;
mod dry;
pub(crate) mod failure;
pub(crate) mod interrupt;
mod lmstudio;
mod models;
mod order;
pub(crate) mod place;
pub(crate) mod preview;
mod repeat;
pub(crate) mod repeated;
mod responses;
pub(crate) mod results;
pub(crate) mod session;
pub(crate) mod tasks;
mod watch;

use std::path::PathBuf;

use bench_domain::{RunId, RunStatus};
use bench_inference::{ModelName, PROVIDERS};
use clap::Args;

use self::budget::BudgetArgs;
use self::lmstudio::LoadedModels;
use self::order::{OrderArgs, Resolved};
pub(crate) use self::place::preselected;
use self::preview::{ConfirmArgs, Repeat};
use self::repeat::repeat;
use self::repeated::{Repeated, RepeatedArgs};
use self::session::Session;
use super::Api;
use crate::client::ServerArgs;
use crate::data_dir::{DataArgs, DurabilityArg};
use crate::exit::{ExitStatus, Problem};
use crate::run_ref::{RunRef, ShortIds};
use crate::views::Run;
use crate::{format, output};
use bench_stack::{CONCURRENCY_DEFAULT, CONCURRENCY_MAX};

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
  bench run --model openrouter/MODEL --temperature 0.6 --top-p 0.95 \\
      --reasoning-effort high --requests-per-minute 60
      other generation settings than the benchmark's own: the score says so
  bench run --model openai-compatible/o4-mini --omit temperature \\
      --base-url https://api.openai.com/v1
      a model that refuses a setting of the benchmark
  bench run --config run.toml --limit 20
      options from a TOML file; those of the command line win
  bench run --model openrouter/MODEL --budget-usd 2.50
      stops when the answers have cost $2.50, and keeps what was answered
  bench run --benchmark scicode --subset-count 3 --seed demo --dry-run
      prints the prompts; needs no model and no key
  bench run --resume RUN
      continues after Ctrl-C, a crash or a failure; a run that succeeded repeats
      its infrastructure-errors
  bench run --task ./my-task --agent oracle --samples 10
      ten episodes of a terminal task, in containers on this machine
  bench run --task ./my-task --agent custom --agent-folder ./my-agent
      an agent of your own: agent.toml with `name` and `run`, an install script
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
A response that matches no item or no sample of the run is refused before
anything is graded.

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
    the judge alone, BENCH_USER_API_KEY one for the user model alone.
Exit codes: 0 if every run succeeded, 1 if one failed, 2 for wrong usage, 130
    after Ctrl-C.",
        ModelName::forms().replace("openai-compatible", "\n    openai-compatible"),
        keys.join(", "),
    )
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) order: OrderArgs,
    #[command(flatten)]
    pub(crate) budget: BudgetArgs,
    /// Read options from this TOML file: its keys are the names of options, such as `top-p` or `top_p`, and lists repeat an
    /// option. The command line wins over the file, the file over variables. Paths in it start in the current folder
    #[arg(long, value_name = "FILE", conflicts_with = "resume", help_heading = None)]
    pub(crate) config: Option<PathBuf>,
    /// Continue this run instead of starting a new one
    #[arg(long, value_name = "RUN", help_heading = None)]
    pub(crate) resume: Option<RunRef>,
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
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Execution and results")]
pub(crate) struct WorkArgs {
    /// Maximum number of samples in progress at the same time; a run that continues keeps its own unless the command line
    /// gives another
    #[arg(long, short, env = "BENCH_CONCURRENCY", value_name = "N", default_value_t = CONCURRENCY_DEFAULT as u64,
        value_parser = clap::value_parser!(u64).range(1..=CONCURRENCY_MAX as u64))]
    pub(crate) concurrency: u64,
    /// Durability of stored answers
    #[arg(long, env = "BENCH_DURABILITY", value_enum, default_value_t = DurabilityArg::Full)]
    pub(crate) durability: DurabilityArg,
    /// Folder for the signed archive and the CSV table; created if it is missing
    #[arg(long, short, env = "BENCH_OUT", value_name = "DIR", default_value = crate::again::OUT_DEFAULT)]
    pub(crate) out: PathBuf,
    #[command(flatten)]
    pub(crate) confirm: ConfirmArgs,
    /// True if the command line itself, not a variable, gives the concurrency.
    #[arg(skip)]
    pub(crate) is_concurrency_given: bool,
}

pub(crate) async fn run(args: RunArgs) -> anyhow::Result<ExitStatus> {
    if let Some(run) = &args.resume {
        order::refuse_changes(run, &args.given)?;
        let all = RepeatedArgs::default();
        return resume(run, args.budget, &all, &args.work, &args.server, &args.data, args.json).await;
    }
    if args.dry_run {
        return dry::run(&args).await;
    }
    let Resolved { plan, key, helper_keys } = order::resolve(&args)?;
    results::check_folder(&args.work.out)?;
    if args.server.server().is_none() {
        let options = args.data.options()?;
        checks::check_engine(&plan, &options)?;
        checks::check_packages(&plan, &options).await?;
    }
    let mut session = Session::open(&args.work, &args.server, &args.data).await?;
    let mut loaded = None;
    let ordered = async {
        let (client, stack, datasets) = (&session.client, session.stack(), session.datasets());
        preview::confirm_order(&plan, client, stack, datasets, &args.work, key.is_some()).await?;
        match stack {
            Some(stack) => {
                loaded = LoadedModels::load(&plan).await?;
                plan.order_in_process(client, stack, key, helper_keys, datasets).await
            }
            None => plan.order_at_server(client, key.is_some()).await.map(|runs| (runs, Vec::new())),
        }
    };
    let ordered = ordered.await;
    session.datasets().clear();
    let done = match ordered {
        Ok((runs, holds)) => {
            session.keep_until_watched(holds);
            session
                .finish_runs(&runs, plan.demo, &args.work, results::ResultsForm::of(args.json), async |_| {
                    Ok(())
                })
                .await
        }
        Err(error) => {
            session.give_up().await;
            Err(error)
        }
    };
    if let Some(loaded) = loaded {
        loaded.unload().await;
    }
    done
}

/// Returns the API path that requeues a run.
pub(crate) fn requeue_path(run: RunId) -> String {
    format!("/api/admin/runs/{run}/requeue")
}

/// Resumes a run: an open one from where it stopped, a failed or canceled one with its missing samples, and a
/// successful one with its infrastructure-errors, unless `repeated` names other samples.
pub(crate) async fn resume(
    run: &RunRef,
    budget: BudgetArgs,
    repeated: &RepeatedArgs,
    work: &WorkArgs,
    server: &ServerArgs,
    data: &DataArgs,
    json: bool,
) -> anyhow::Result<ExitStatus> {
    // Checks the key before opening anything.
    server.named_key()?;
    results::check_folder(&work.out)?;
    let work = &with_stored_concurrency(run, work, server, data).await?;
    let session = Session::open(work, server, data).await?;
    match prepare_resume(&session, run, budget, repeated, work).await {
        Ok(run) => {
            session.finish_runs(&[run], true, work, results::ResultsForm::of(json), async |_| Ok(())).await
        }
        Err(error) => {
            session.give_up().await;
            Err(error)
        }
    }
}

/// Returns the settings to continue a run with: its own concurrency, unless the command line gives another one.
async fn with_stored_concurrency(
    run: &RunRef,
    work: &WorkArgs,
    server: &ServerArgs,
    data: &DataArgs,
) -> anyhow::Result<WorkArgs> {
    let mut work = work.clone();
    if work.is_concurrency_given || server.server().is_some() || !data.path()?.exists() {
        return Ok(work);
    }
    // It must be known when the stack is opened for the work.
    let api = Api::open(server, data).await?;
    let found = async {
        let run = run.resolve(&api.client).await?;
        api.client.get::<Run>(&format!("/api/runs/{run}")).await
    };
    let found = found.await;
    api.close().await;
    let found = found?;
    let stored = found.concurrency.map(|stored| u64::from(stored).clamp(1, CONCURRENCY_MAX as u64));
    if let Some(stored) = stored.filter(|stored| *stored != work.concurrency) {
        let id = ShortIds::new([found.id.as_str()]).get(&found.id);
        output::note(&format!("Run {id} continues with `--concurrency {stored}`, as before"));
        work.concurrency = stored;
    }
    Ok(work)
}

/// Puts a run back to work where needed, and returns its id.
async fn prepare_resume(
    session: &Session,
    run: &RunRef,
    budget: BudgetArgs,
    repeated: &RepeatedArgs,
    work: &WorkArgs,
) -> anyhow::Result<RunId> {
    let client = &session.client;
    let run = run.resolve(client).await?;
    session.check_endpoints(run).await?;
    let found: Run = client.get(&format!("/api/runs/{run}")).await?;
    let repeated = repeated.find(client, &found, run).await?;
    if found.interrupted || !found.status.is_open() {
        if let Some(stack) = session.stack() {
            preview::note_stored(stack, run).await;
        }
        let concurrency = session.stack().map(|_| work.concurrency);
        let repeat =
            Repeat { client, run: &found, repeated: &repeated, budget_usd: budget.budget_usd, concurrency };
        preview::confirm_repeat(&repeat, &work.confirm).await?;
    }
    match found.status {
        RunStatus::Queued | RunStatus::Running if budget.budget().is_set() => {
            let message = format!("run {run} is {}: its budget can't be changed", found.status);
            return Err(Problem::failure(message).hint("leave the budget out to continue the run").into());
        }
        RunStatus::Queued | RunStatus::Running => {
            if found.interrupted {
                repeat(client, run, &found, None).await?;
            }
            output::note(&format!("Continuing run {run}"));
        }
        RunStatus::Succeeded if repeated.only.is_some() => {
            repeat(client, run, &found, repeated.body(budget).as_ref()).await?;
            output::note(&format!("Repeating {} of run {run}, which had succeeded", repeated.shown()));
        }
        RunStatus::Succeeded if found.infrastructure_errors() == 0 => {
            output::note(&format!("Run {run} is complete; there is nothing to repeat"));
        }
        RunStatus::Succeeded => {
            let errors = Repeated { errors: true, only: None };
            repeat(client, run, &found, errors.body(budget).as_ref()).await?;
            let errors = format::plural(found.infrastructure_errors(), "infrastructure-error");
            output::note(&format!("Repeating {errors} of run {run}, which had succeeded"));
        }
        RunStatus::Failed | RunStatus::Canceled => {
            repeat(client, run, &found, repeated.body(budget).as_ref()).await?;
            let what = repeated.shown();
            let had = if found.status == RunStatus::Failed { "failed" } else { "been canceled" };
            output::note(&format!("Repeating {what} of run {run}, which had {had}"));
        }
    }
    Ok(run)
}
