//! Episodes of an agent that asks a model, with a scripted model and the scripted host: on terminal tasks, and on repositories,
//! whose changes are verified.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use bench_tests::model_server::{ModelRequest, ModelServer, Reply};
use bench_tests::scripted_host::{ScriptedHost, task};
use serde_json::json;

use crate::load::RUN_MAX;
use crate::server::Server;

const EPISODES: usize = 20;
/// Repositories of the demo data, and episodes of each.
const REPOSITORIES: usize = 3;
const REPOSITORY_SAMPLES: usize = 7;
/// Commands of a short, a middling and a long episode, with as many more each time. The last reply says that the task is
/// done.
const FEW: usize = 1;
const HALF: usize = 20;
const MANY: usize = 39;
/// Maximum cost of a turn, in milliseconds of CPU time.
const TURN_AIM_MS: f64 = 5.0;

/// What episodes with the same number of commands took.
struct Measured {
    cpu_ms: f64,
    stored_bytes: f64,
    /// Times from a reply to the next request about the same task, in ascending order.
    gaps: Vec<Duration>,
}

/// Material of an agent.
#[derive(Clone, Copy)]
enum Work {
    /// This number of terminal tasks, one episode each.
    Tasks(usize),
    /// The repositories of the demo data, this number of episodes each.
    Repositories(usize),
}

impl Work {
    const fn episodes(self) -> usize {
        match self {
            Self::Tasks(tasks) => tasks,
            Self::Repositories(samples) => REPOSITORIES * samples,
        }
    }
}

/// Measures turns of the agent `bash`, and prints the result.
pub(crate) async fn measure(bench: &Path) -> anyhow::Result<()> {
    turns(bench, "", Work::Tasks(EPISODES)).await?;
    let alone = episodes(bench, Work::Tasks(1), MANY).await?;
    let at = |share: f64| {
        let place = (alone.gaps.len() as f64 * share) as usize;
        alone.gaps.get(place).map(|gap| gap.as_secs_f64() * 1_000.0).context("no turn followed another")
    };
    println!(
        "from a reply to the next request: {:.0} ms (median), {:.0} ms (95% of them) in an episode alone, whose commands \
         take no time",
        at(0.5)?,
        at(0.95)?,
    );
    turns(bench, " on repositories", Work::Repositories(REPOSITORY_SAMPLES)).await
}

/// Measures an additional turn, and prints its cost. `place` is added to the name of the agent.
async fn turns(bench: &Path, place: &str, work: Work) -> anyhow::Result<()> {
    let short = episodes(bench, work, FEW).await?;
    let middle = episodes(bench, work, HALF).await?;
    let long = episodes(bench, work, MANY).await?;
    let more = (work.episodes() * (MANY - FEW)) as f64;
    let turn_ms = (long.cpu_ms - short.cpu_ms) / more;
    let bytes = (long.stored_bytes - short.stored_bytes) / more;
    let growth = (long.stored_bytes - middle.stored_bytes) / (middle.stored_bytes - short.stored_bytes);
    println!(
        "\na turn of the agent `bash`{place}, a model call and its command, costs {turn_ms:.2} ms of CPU time ({:.2} of the \
         {TURN_AIM_MS} ms aimed at) and {bytes:.0} stored bytes, over {more} turns; the second half of the turns takes \
         {growth:.2} times the bytes of the first",
        turn_ms / TURN_AIM_MS,
    );
    Ok(())
}

/// Orders episodes at a new server, and waits until all of them are graded.
async fn episodes(bench: &Path, work: Work, commands: usize) -> anyhow::Result<Measured> {
    let seen = Arc::<Mutex<Seen>>::default();
    let model = {
        let seen = Arc::clone(&seen);
        let rule = move |request: &ModelRequest| {
            seen.lock().unwrap_or_else(PoisonError::into_inner).add(&request.item);
            reply(request, commands)
        };
        ModelServer::start(Duration::ZERO, Arc::new(rule)).await?
    };
    let host = ScriptedHost::start(0).await?;
    let server = Server::start(bench, Some(host.base_url()), &model.base_url(), EPISODES).await?;
    let (benchmark, order) = match work {
        Work::Tasks(tasks) => {
            let mut ids = Vec::with_capacity(tasks);
            for number in 0..tasks {
                ids.push(server.upload(&format!("task-{number}"), task::archive(number)?).await?);
            }
            ("terminal_tasks", json!({ "tasks": ids, "samples": 1, "agent": "bash" }))
        }
        Work::Repositories(samples) => {
            let name = "swe_bench_pro";
            (name, json!({ "selected_benchmarks": [name], "demo": true, "samples": samples }))
        }
    };
    let mut order = order;
    (order["provider"], order["model_id"]) = ("openai-compatible".into(), "scripted".into());
    let (cpu_ms, stored_bytes) = (server.usage()?.cpu_ms, server.stored_bytes()?);
    let (run, _) = server.order(&order).await?;
    let ended = server.wait(&run, RUN_MAX).await;
    if let Some(problem) = host.problem() {
        bail!("{problem}");
    }
    ended?;
    let (cpu_ms, stored_bytes) = (server.usage()?.cpu_ms - cpu_ms, server.stored_bytes()? - stored_bytes);
    let samples = server.samples(&run, benchmark).await?;
    // The scripted host reports the results of other tests than those of the demo repositories.
    let outcome = if matches!(work, Work::Tasks(_)) { "correct" } else { "incorrect" };
    let episodes = work.episodes();
    let graded = samples.iter().filter(|sample| sample["outcome"] == outcome).count();
    ensure!(graded == episodes, "{graded} of {episodes} episodes are {outcome}: {:?}", samples.first());
    let asked = model.total();
    ensure!(asked == (episodes * (commands + 1)) as u64, "the model was asked {asked} times");
    let mut gaps = std::mem::take(&mut seen.lock().unwrap_or_else(PoisonError::into_inner).gaps);
    gaps.sort_unstable();
    Ok(Measured { cpu_ms, stored_bytes, gaps })
}

/// Runs a command in each turn, with a text around it as models write it, and says at the end that the task is done.
fn reply(request: &ModelRequest, commands: usize) -> Reply {
    let messages = request.body["messages"].as_array();
    let turn = messages.into_iter().flatten().filter(|message| message["role"] == "assistant").count();
    Reply::Text(match turn < commands {
        true => format!("I look at the files before I change any of them.\n```bash\nls -la # {turn}\n```\n"),
        false => "```done\n```\n".to_owned(),
    })
}

/// Requests about each task.
#[derive(Default)]
struct Seen {
    /// Time of the latest request, which is answered at once.
    latest: HashMap<String, Instant>,
    gaps: Vec<Duration>,
}

impl Seen {
    fn add(&mut self, task: &str) {
        if let Some(before) = self.latest.insert(task.to_owned(), Instant::now()) {
            self.gaps.push(before.elapsed());
        }
    }
}
