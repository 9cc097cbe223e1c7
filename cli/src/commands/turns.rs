//! `bench turns`.

mod text;

use std::time::Duration;

use bench_domain::RunId;
use clap::Args;
use serde::Deserialize;
use serde_json::Value;

use self::text::Writer;
use crate::again;
use crate::causes::readable;
use crate::client::{Client, ServerArgs, encode};
use crate::data_dir::DataArgs;
use crate::episodes::{Episode, Selection, agent_episodes};
use crate::exit::{ExitStatus, Problem};
use crate::output;
use crate::run_ref::RunRef;

pub(crate) const EXAMPLES: &str = "\
Examples:
  bench turns RUN                      the only episode of a run
  bench turns latest --task fix-csv --sample 2
  bench turns latest --task fix-csv --sample 2 --turn 12
      one turn, with all of what the agent wrote and saw
  bench turns latest --follow          go on until the episode is over

Shows what an agent that asks a model wrote, did and saw, turn by turn, also
while it works. `--json` prints the steps of its trajectory (ATIF).";

/// Time between two requests of `--follow`.
const INTERVAL: Duration = Duration::from_secs(2);
/// Maximum number of episodes that an error names.
const NAMED_MAX: usize = 10;
/// End of the name of a trajectory.
const TRAJECTORY: &str = "agent/trajectory.json";

#[derive(Debug, Args)]
pub(crate) struct TurnsArgs {
    /// Run with terminal tasks: its id, the first digits of its id, or `latest`
    run: RunRef,
    #[command(flatten)]
    selection: Selection,
    /// Show only this turn, and all of it
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), conflicts_with = "follow")]
    turn: Option<u32>,
    /// Show turns as they are taken, until the episode is over
    #[arg(long)]
    follow: bool,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    data: DataArgs,
    /// Print the steps of the trajectory as JSON, one per line
    #[arg(long, help_heading = None, conflicts_with = "turn")]
    json: bool,
}

/// Turns of an episode that is running, as the API returns them.
#[derive(Debug, Deserialize)]
struct Running {
    phase: String,
    round: u32,
    task_step: Option<usize>,
    total: usize,
    steps: Vec<Value>,
}

impl Running {
    /// Returns which work of the agent the steps are of: its sandbox, and the step of the task.
    const fn work(&self) -> (u32, Option<usize>) {
        (self.round, self.task_step)
    }
}

pub(crate) async fn run(args: TurnsArgs) -> anyhow::Result<ExitStatus> {
    let api = super::Api::open(&args.server, &args.data).await?;
    let done = show(&api.client, &args).await;
    api.close().await;
    done.map(|()| ExitStatus::Success)
}

async fn show(client: &Client, args: &TurnsArgs) -> anyhow::Result<()> {
    let run = args.run.resolve(client).await?;
    let found = args.selection.among(run, agent_episodes(client, run).await?)?;
    let [episode] = found.as_slice() else {
        return Err(several(&found).into());
    };
    let mut printer = Printer { json: args.json, only: args.turn, writer: Writer::new(args.turn) };
    if args.follow && episode.outcome.is_none() {
        follow(client, run, episode, &mut printer).await?;
    } else if episode.outcome.is_none() {
        let view = running(client, run, episode, 0).await?;
        printer.print(&view.steps)?;
        let mut seen = view.steps.len();
        while seen < view.total {
            let more = running(client, run, episode, seen).await?;
            if more.steps.is_empty() || more.work() != view.work() {
                break;
            }
            printer.print(&more.steps)?;
            seen += more.steps.len();
        }
        output::note(&ending(&view, run));
    } else {
        for (name, steps) in trajectories(client, run, episode).await? {
            printer.begin(&name)?;
            printer.print(&steps)?;
        }
        if args.turn.is_none() {
            output::note(&over(episode));
        }
    }
    match args.turn {
        Some(turn) if turn > printer.writer.turns() => {
            Err(Problem::usage(format!("the episode has no turn {turn}"))
                .hint(format!("its last one is {}", printer.writer.turns()))
                .into())
        }
        _ => Ok(()),
    }
}

/// Reports that several episodes are meant, and names the first of them.
fn several(found: &[Episode]) -> Problem {
    let names: Vec<String> = found
        .iter()
        .take(NAMED_MAX)
        .map(|episode| {
            let outcome = episode.outcome.as_deref().unwrap_or("no result yet");
            format!("{} {} ({outcome})", episode.task(), episode.number())
        })
        .collect();
    let more = match found.len().saturating_sub(NAMED_MAX) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    Problem::usage(format!("{} episodes are meant, and one can be shown", found.len()))
        .hint(format!("name one with --task and --sample: {}{more}", names.join(", ")))
}

/// Prints steps.
struct Printer {
    json: bool,
    /// Turn that is wanted; `None` for all of them.
    only: Option<u32>,
    writer: Writer,
}

impl Printer {
    /// Begins the trajectory of another step of the task, which has a name unless it is the only one.
    fn begin(&mut self, name: &str) -> anyhow::Result<()> {
        self.writer = Writer::new(self.only);
        if !self.json && !name.is_empty() {
            output::print(&format!("=== {name}"))?;
        }
        Ok(())
    }

    fn print(&mut self, steps: &[Value]) -> anyhow::Result<()> {
        for step in steps {
            match (self.json, self.writer.page(step)) {
                (true, _) => output::print_data(&step.to_string())?,
                (false, Some(page)) => output::print_page(&page)?,
                (false, None) => {}
            }
        }
        Ok(())
    }
}

/// Prints the turns of a running episode until it is over.
async fn follow(client: &Client, run: RunId, episode: &Episode, printer: &mut Printer) -> anyhow::Result<()> {
    let (mut printed, mut work, mut said) = (0, None, "");
    loop {
        let view = running(client, run, episode, printed).await?;
        let has_no_result = view.phase == "interrupted" || (view.phase == "over" && view.total > 0);
        if has_no_result {
            // Its turns are in no log, since only a result has logs.
            printer.print(&view.steps)?;
            output::note(&ending(&view, run));
            return Ok(());
        }
        if view.phase == "over" {
            break;
        }
        if work.is_some_and(|work| work != view.work()) && view.total > 0 {
            // Another sandbox, or the next step of the task.
            if printed > 0 {
                match (work.and_then(|(_, step)| step), view.task_step) {
                    (Some(before), Some(step)) if step > before => output::note(&format!(
                        "The agent works on step {} of the task; when the episode is over, `bench turns {run}` shows all turns",
                        step + 1
                    )),
                    _ => output::note("The sandbox was lost, and the agent begins anew"),
                }
                printer.begin("")?;
            }
            (printed, work) = (0, Some(view.work()));
            continue;
        }
        if view.total > 0 {
            work = Some(view.work());
        }
        // The last step of an agent at work gets its observation later.
        let is_open = |at: usize| {
            view.phase == "agent" && printed + at + 1 == view.total && view.steps[at]["observation"].is_null()
        };
        let ready = (0..view.steps.len()).take_while(|at| !is_open(*at)).count();
        printer.print(&view.steps[..ready])?;
        printed += ready;
        if output::is_closed() {
            return Ok(());
        }
        if says(&view) != said {
            said = says(&view);
            output::note(said);
        }
        if printed + 1 >= view.total {
            tokio::time::sleep(INTERVAL).await;
        }
    }
    let step = work.and_then(|(_, step)| step).unwrap_or(0);
    let all = trajectories_of_ended(client, run, episode).await?;
    for (at, (name, steps)) in all.iter().enumerate().skip(step) {
        if at > step {
            printer.begin(name)?;
        }
        let from = if at > step { 0 } else { printed };
        printer.print(steps.get(from..).unwrap_or_default())?;
    }
    let ended = agent_episodes(client, run).await?.into_iter().find(|other| other.id == episode.id);
    match ended.filter(|ended| ended.outcome.is_some()) {
        Some(ended) => output::note(&over(&ended)),
        None => output::note("The run ended before the episode was over"),
    }
    Ok(())
}

/// Returns the outcome of an episode that is over, with its reason.
fn over(episode: &Episode) -> String {
    let outcome = episode.outcome.as_deref().unwrap_or_default();
    let why = episode.reason.as_deref().filter(|reason| !reason.is_empty()).or(episode.error.as_deref());
    let why = why.or(episode.exception()).map_or_else(String::new, |why| format!(", {}", readable(why)));
    format!("The episode is over: {outcome}{why}")
}

/// Returns what happens in an episode without a result, and what can be done.
fn ending(view: &Running, run: RunId) -> String {
    match view.phase.as_str() {
        "interrupted" => format!("The run is interrupted: `{}` continues it", again::resume(run)),
        _ => says(view).to_owned(),
    }
}

/// Returns what happens in a running episode.
fn says(view: &Running) -> &'static str {
    match view.phase.as_str() {
        "waiting" => "The episode waits for a sandbox",
        "setup" => "Its environment is being set up",
        "agent" => "The agent is at work",
        "verifier" => "The agent has ended, and the tests verify its work",
        "over" => "The run ended before the episode was over",
        _ => "The episode is running; its agent asks no model",
    }
}

async fn running(client: &Client, run: RunId, episode: &Episode, from: usize) -> anyhow::Result<Running> {
    let benchmark = encode(&episode.benchmark);
    let (position, sample) = (episode.position, episode.sample);
    let path = format!(
        "/api/runs/{run}/items/turns?benchmark={benchmark}&position={position}&sample={sample}&from={from}"
    );
    client.get(&path).await
}

/// Returns the trajectories of an episode that is over, with the names of the task's steps.
///
/// # Errors
/// If there is none.
async fn trajectories(
    client: &Client,
    run: RunId,
    episode: &Episode,
) -> anyhow::Result<Vec<(String, Vec<Value>)>> {
    let found = trajectories_of_ended(client, run, episode).await?;
    if found.is_empty() {
        let why = episode.exception().map_or_else(String::new, |why| format!(": {why}"));
        let hint = match why.is_empty() {
            true => format!(
                "agents that ask no model, such as `oracle`, have none; `bench artifacts {run}` lists what they left"
            ),
            false => format!("`bench artifacts {run}` lists what the episode left"),
        };
        return Err(Problem::failure(format!("the episode has no turns{why}")).hint(hint).into());
    }
    Ok(found)
}

async fn trajectories_of_ended(
    client: &Client,
    run: RunId,
    episode: &Episode,
) -> anyhow::Result<Vec<(String, Vec<Value>)>> {
    let mut found = Vec::new();
    for file in episode.files(client, run).await? {
        let Some(folder) = file.name.strip_suffix(TRAJECTORY) else { continue };
        // Other files of this name are the agent's own.
        let name = match folder {
            "" => "",
            folder => match folder.strip_prefix("steps/").and_then(|step| step.strip_suffix('/')) {
                Some(step) if !step.contains('/') => step,
                _ => continue,
            },
        };
        let text = episode.text(client, run, &file.name).await?;
        let steps = serde_json::from_str(&text).ok().and_then(|mut trajectory: Value| {
            serde_json::from_value(trajectory.get_mut("steps")?.take()).ok()
        });
        match steps {
            Some(steps) => found.push((name.to_owned(), steps)),
            None => output::warn(&format!(
                "`{}` of the episode is not a trajectory in the format ATIF",
                file.name
            )),
        }
    }
    Ok(found)
}
