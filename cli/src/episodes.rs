//! Episodes of a run, and the files that are kept of them.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use anyhow::Context;
use bench_domain::{RunId, Timestamp};
use futures_util::{StreamExt, TryStreamExt, stream};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Deserialize;
use serde_json::Value;

use crate::bars::{bars, can_draw};
use crate::client::{Client, encode};
use crate::exit::Problem;
use crate::output;

/// Benchmark of programming tasks.
pub(crate) const CODE_LAB: &str = "code_lab";

/// Number of episodes per request.
const PAGE_EPISODES: usize = 50;
/// Size of a page of a kept file in bytes, the largest that servers return.
const PAGE_BYTES: u64 = 1 << 20;
/// Number of episodes whose files are read at once.
const EPISODES_AT_ONCE: usize = 4;
/// Maximum length of a part of a path, in bytes. File systems allow 255; some room is left for the ends of temporary names.
const PART_BYTES_MAX: usize = 200;

/// Maximum length of a log's last line, in characters.
const LINE_CHARS_MAX: usize = 200;
/// Ends of the names of logs with the output of a solution or of tests.
const OUTPUTS: [&str; 2] = ["agent/oracle.txt", "test-stdout.txt"];

/// An episode of a run.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Episode {
    /// Id of the sample.
    pub(crate) id: String,
    /// Name of its benchmark.
    #[serde(skip)]
    pub(crate) benchmark: String,
    /// Id of the task.
    #[serde(default)]
    source_id: Option<String>,
    item_id: String,
    /// Index of the task in the run's plan, from 0.
    pub(crate) position: u32,
    /// Index of the episode among those of its task, from 0.
    pub(crate) sample: u32,
    /// Outcome; `None` before the episode is over.
    #[serde(default)]
    pub(crate) outcome: Option<String>,
    /// Reward; `None` without a grade.
    #[serde(default)]
    pub(crate) score: Option<f64>,
    /// Reason for its outcome.
    #[serde(default)]
    pub(crate) reason: Option<String>,
    /// Reason why it has no grade.
    #[serde(default)]
    pub(crate) error: Option<String>,
    /// Verdict on the episode or attempt.
    #[serde(default)]
    pub(crate) detail: Value,
    /// The API's view of the episode's report.
    #[serde(default, rename = "judge_output")]
    pub(crate) report: Value,
    #[serde(default)]
    pub(crate) latency_ms: Option<u64>,
    #[serde(default)]
    pub(crate) input_tokens: Option<u64>,
    #[serde(default)]
    pub(crate) output_tokens: Option<u64>,
    /// Time at which the episode ended.
    #[serde(default)]
    pub(crate) created_at: Option<Timestamp>,
}

/// Options that select episodes of a run.
#[derive(Debug, clap::Args)]
pub(crate) struct Selection {
    /// Task whose episodes are meant: its whole id, or a part of it
    #[arg(long, value_name = "TEXT")]
    task: Option<String>,
    /// Number of the episode among those of its task, from 1
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    sample: Option<u32>,
}

impl Selection {
    /// Returns the selected episodes.
    ///
    /// # Errors
    /// If there is none.
    pub(crate) fn among(&self, run: RunId, mut episodes: Vec<Episode>) -> anyhow::Result<Vec<Episode>> {
        episodes.retain(|episode| {
            self.task.as_ref().is_none_or(|task| episode.task().contains(task.as_str()))
                && self.sample.is_none_or(|number| number == episode.number())
        });
        if episodes.is_empty() {
            return Err(Problem::usage("no episode of the run is meant by --task and --sample")
                .hint(format!("`bench runs {run} --items` lists the episodes"))
                .into());
        }
        Ok(episodes)
    }
}

/// A file that is kept of an episode.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct KeptFile {
    /// Path within the episode, such as `agent/trajectory.json`.
    pub(crate) name: String,
    /// Size of the kept text in bytes.
    pub(crate) bytes: u64,
    /// Number of bytes that were left out in the middle.
    pub(crate) omitted: u64,
}

#[derive(Debug, Deserialize)]
struct LogPage {
    log_files: Vec<KeptFile>,
    text: String,
    next_offset: Option<u64>,
}

impl Episode {
    /// Returns the id of the task.
    pub(crate) fn task(&self) -> &str {
        self.source_id.as_deref().unwrap_or(&self.item_id)
    }

    /// Returns true if this is the id of its item, or the dataset's own id of it.
    pub(crate) fn is_of_item(&self, id: &str) -> bool {
        self.item_id == id || self.source_id.as_deref() == Some(id)
    }

    /// Returns the folder of the episode within that of its run.
    pub(crate) fn folder(&self) -> PathBuf {
        safe_path(self.task()).join(self.number().to_string())
    }

    /// Returns the number of the episode among those of its task, from 1, as people read it.
    pub(crate) const fn number(&self) -> u32 {
        self.sample.saturating_add(1)
    }

    /// Returns true for an attempt at a programming task.
    pub(crate) fn is_of_code_lab(&self) -> bool {
        self.benchmark == CODE_LAB
    }

    /// Returns true if it ended with a report.
    pub(crate) fn has_report(&self) -> bool {
        self.report["episode_steps"].is_array()
    }

    /// Returns what went wrong before the first step, or in the last step that has a problem.
    pub(crate) fn exception(&self) -> Option<&str> {
        let steps = self.report["episode_steps"].as_array()?;
        let of_steps = steps.iter().rev().find_map(|step| step["exception"]["message"].as_str());
        self.report["exception"]["message"].as_str().or(of_steps)
    }

    /// Returns the last lines of the outputs of agent and tests, each with the name of its log.
    pub(crate) fn log_ends(&self) -> impl Iterator<Item = (&str, String)> {
        let logs = self.report["logs"].as_array().map(Vec::as_slice).unwrap_or_default();
        logs.iter().filter_map(|log| {
            let name =
                log["name"].as_str().filter(|name| OUTPUTS.iter().any(|known| name.ends_with(known)))?;
            let line = log["end"].as_str()?.lines().rev().map(str::trim).find(|line| !line.is_empty())?;
            Some((name, line.chars().filter(|c| !c.is_control()).take(LINE_CHARS_MAX).collect()))
        })
    }

    fn path(&self, run: RunId) -> String {
        format!(
            "/api/runs/{run}/items/log?benchmark={}&position={}&sample={}",
            encode(&self.benchmark),
            self.position,
            self.sample
        )
    }

    /// Lists the files that are kept.
    pub(crate) async fn files(&self, client: &Client, run: RunId) -> anyhow::Result<Vec<KeptFile>> {
        let page: LogPage = client.get(&self.path(run)).await?;
        Ok(page.log_files)
    }

    /// Returns a kept file.
    pub(crate) async fn text(&self, client: &Client, run: RunId, name: &str) -> anyhow::Result<String> {
        let (mut text, mut offset) = (String::new(), 0);
        loop {
            let path = format!("{}&log={}&limit={PAGE_BYTES}&offset={offset}", self.path(run), encode(name));
            let page: LogPage = client.get(&path).await?;
            text.push_str(&page.text);
            match page.next_offset.filter(|next| *next > offset) {
                Some(next) => offset = next,
                None => return Ok(text),
            }
        }
    }

    /// Writes all kept files into a folder, which is created. Returns their number.
    pub(crate) async fn write(&self, client: &Client, run: RunId, folder: &Path) -> anyhow::Result<u64> {
        let files = self.files(client, run).await?;
        let paths = unique_paths(files.iter().map(|file| file.name.as_str()));
        for (file, path) in files.iter().zip(paths) {
            let path = folder.join(path);
            let text = self.text(client, run, &file.name).await?;
            let written = path.parent().map_or(Ok(()), std::fs::create_dir_all);
            written
                .and_then(|()| std::fs::write(&path, text))
                .with_context(|| format!("could not write `{}`", path.display()))?;
        }
        Ok(files.len() as u64)
    }
}

/// Lists the samples of a run that leave files, in the order of its plan: its episodes, and its attempts at programming
/// tasks.
///
/// # Errors
/// If the run has none.
pub(crate) async fn with_artifacts(client: &Client, run: RunId) -> anyhow::Result<Vec<Episode>> {
    let found = samples_of_run(client, run, |_, _| true).await?;
    if found.iter().any(Episode::is_of_code_lab) {
        let is_kept = |sample: &Episode| sample.is_of_code_lab() || sample.has_report();
        return Ok(found.into_iter().filter(is_kept).collect());
    }
    reported(found, run, "terminal tasks and the programming tasks of code_lab")
}

/// Lists the episodes of a run, in the order of its plan.
///
/// # Errors
/// If the run has no episodes.
pub(crate) async fn episodes(client: &Client, run: RunId) -> anyhow::Result<Vec<Episode>> {
    reported(samples_of_run(client, run, |_, _| true).await?, run, "agents on terminal tasks")
}

/// Keeps the episodes with a report. An error says who leaves some.
fn reported(mut found: Vec<Episode>, run: RunId, who: &str) -> anyhow::Result<Vec<Episode>> {
    let has_episodes = found.iter().any(|sample| has_agent(&sample.benchmark, None));
    found.retain(Episode::has_report);
    if found.is_empty() {
        let hint = match has_episodes {
            true => format!(
                "`bench runs {run}` shows the state of the run, and `bench turns {run}` what an agent does"
            ),
            false => format!("only {who} leave artifacts; `bench export` writes the answers of other runs"),
        };
        return Err(Problem::failure(format!("run {run} has no episodes that are over")).hint(hint).into());
    }
    Ok(found)
}

/// Returns true for a benchmark whose samples are episodes under this protocol, by default its usual one.
fn has_agent(benchmark: &str, protocol: Option<&str>) -> bool {
    benchmark.parse().is_ok_and(|name| bench_benchmarks::default_agent(&name, protocol).is_some())
}

/// Lists the episodes of a run, those that aren't over included, in the order of its plan.
///
/// # Errors
/// If no agent works in the run.
pub(crate) async fn agent_episodes(client: &Client, run: RunId) -> anyhow::Result<Vec<Episode>> {
    let found = samples_of_run(client, run, has_agent).await?;
    if found.is_empty() {
        return Err(Problem::failure(format!("run {run} has no episodes"))
            .hint(
                "only agents on terminal tasks, and on code_lab under its protocol `agent`, work in turns; `bench runs RUN --item ID` shows other samples",
            )
            .into());
    }
    Ok(found)
}

/// Lists the samples of the benchmarks of a run whose names and protocols `is_meant` accepts.
async fn samples_of_run(
    client: &Client,
    run: RunId,
    is_meant: impl Fn(&str, Option<&str>) -> bool,
) -> anyhow::Result<Vec<Episode>> {
    let view: Value = client.get(&format!("/api/runs/{run}")).await?;
    let benchmarks = view["benchmarks"].as_array().map(Vec::as_slice).unwrap_or_default();
    let names = benchmarks.iter().filter_map(|benchmark| {
        let name = benchmark["benchmark_name"].as_str()?;
        is_meant(name, benchmark["protocol_name"].as_str()).then_some(name)
    });
    let mut found = Vec::new();
    for benchmark in names {
        found.extend(samples(client, run, benchmark).await?);
    }
    Ok(found)
}

/// Lists the samples of a benchmark, those without a report included.
pub(crate) async fn samples(client: &Client, run: RunId, benchmark: &str) -> anyhow::Result<Vec<Episode>> {
    let mut found = Vec::new();
    loop {
        let path = format!(
            "/api/runs/{run}/benchmarks/{}?limit={PAGE_EPISODES}&offset={}",
            encode(benchmark),
            found.len()
        );
        let mut page: Value = client.get(&path).await?;
        let items: Vec<Episode> =
            serde_json::from_value(page.pointer_mut("/items/items").map(Value::take).unwrap_or_default())
                .with_context(|| format!("unexpected answer of the server to `{path}`"))?;
        if items.is_empty() {
            return Ok(found);
        }
        found.extend(items.into_iter().map(|episode| Episode { benchmark: benchmark.to_owned(), ..episode }));
    }
}

/// Does something with each episode, several at once, and shows how many are done. Results are in the order of the
/// episodes.
pub(crate) async fn for_each<T, F>(
    episodes: &[Episode],
    what: &str,
    act: impl Fn(usize) -> F,
) -> anyhow::Result<Vec<T>>
where
    F: Future<Output = anyhow::Result<T>>,
{
    let bar = can_draw().then(|| {
        let bar = bars().add(ProgressBar::new(episodes.len() as u64).with_prefix(what.to_owned()));
        let style =
            ProgressStyle::with_template("{prefix} {bar:24.cyan/dim} {pos}/{len} episodes  eta {eta}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar
    });
    if bar.is_none() && episodes.len() > PAGE_EPISODES {
        output::note(&format!("{what}: {} episodes", episodes.len()));
    }
    let work: Vec<_> = (0..episodes.len()).map(act).collect();
    let done = stream::iter(work).buffered(EPISODES_AT_ONCE).inspect(|_| {
        if let Some(bar) = &bar {
            bar.inc(1);
        }
    });
    let results = done.try_collect().await;
    if let Some(bar) = bar {
        bar.finish_and_clear();
    }
    results
}

/// Returns a relative path for a name that a task or container has chosen. Parts that lead elsewhere, and characters that
/// file systems or terminals treat specially, are replaced.
pub(crate) fn safe_path(name: &str) -> PathBuf {
    let part = |part: &str| {
        let mut kept: String =
            part.chars().map(|c| if c.is_control() || r#"\:*?"<>|"#.contains(c) { '_' } else { c }).collect();
        kept.truncate(kept.floor_char_boundary(PART_BYTES_MAX));
        if kept.trim_matches('.').is_empty() { "_".to_owned() } else { kept }
    };
    name.split('/').filter(|name| !name.is_empty()).map(part).collect()
}

/// Returns a different [`safe_path`] for each name. A part that another file has already gets a number. Upper and lower case
/// count as equal, as in some file systems.
fn unique_paths<'a>(names: impl Iterator<Item = &'a str>) -> Vec<PathBuf> {
    let (mut files, mut folders) = (HashSet::new(), HashSet::new());
    let of_file = |name: &str| {
        let parts: Vec<String> =
            safe_path(name).iter().map(|part| part.to_string_lossy().into_owned()).collect();
        let mut path = String::new();
        for (at, part) in parts.iter().enumerate() {
            let is_last = at + 1 == parts.len();
            let numbered = (2..).map(|number| format!("{part}~{number}"));
            let place = std::iter::once(part.clone()).chain(numbered).map(|part| format!("{path}/{part}"));
            let is_free = |place: &String| {
                let key = place.to_lowercase();
                !(files.contains(&key) || is_last && folders.contains(&key))
            };
            path = place.into_iter().find(is_free).unwrap_or_default();
            let taken = if is_last { &mut files } else { &mut folders };
            taken.insert(path.to_lowercase());
        }
        PathBuf::from(path.trim_start_matches('/'))
    };
    names.map(of_file).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_have_paths_of_their_own() {
        let names = ["a\\b", "a:b", "A_B", "agent/x", "agent/x/y", "agent/x/z", "b/c/d", "b/c", "", "/"];
        let paths = unique_paths(names.into_iter());
        let paths: Vec<&str> = paths.iter().filter_map(|path| path.to_str()).collect();
        let expected =
            ["a_b", "a_b~2", "A_B~3", "agent/x", "agent/x~2/y", "agent/x~2/z", "b/c/d", "b/c~2", "", ""];
        assert_eq!(paths, expected);
        let long = ["é".repeat(150), format!("{}x", "é".repeat(150))];
        let paths = unique_paths(long.iter().map(String::as_str));
        assert!(paths[0] != paths[1] && paths[1].as_os_str().len() <= PART_BYTES_MAX + 2);
    }

    #[test]
    fn paths_stay_inside() {
        for (name, path) in [
            ("agent/trajectory.json", "agent/trajectory.json"),
            ("/etc/passwd", "etc/passwd"),
            ("../../x", "_/_/x"),
            ("a//./b", "a/_/b"),
            ("C:\\x", "C__x"),
            ("a\u{1b}[0m", "a_[0m"),
        ] {
            assert_eq!(safe_path(name), Path::new(path), "{name}");
        }
        assert_eq!(safe_path(&"x".repeat(500)).as_os_str().len(), PART_BYTES_MAX);
    }
}
