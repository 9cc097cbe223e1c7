//! Episodes of a benchmark, by task: what pages of the API have shown of them.
//!
//! Pages are read one by one, at most one per interval. Episodes that are over aren't read again, so a run of 750
//! episodes costs no more requests than one of 75.

mod mark;
mod table;

use std::collections::HashMap;

use bench_domain::statistics::percentile;
use serde::Deserialize;
use serde_json::Value;

use self::mark::Mark;
use crate::encoding::encode;
use crate::views::Benchmark;

pub(super) use self::table::{Size, render};

/// Number of episodes per request.
const PAGE_EPISODES: usize = 200;
/// Number of characters of a content hash behind the name of a task.
const HASH_CHARS: usize = 12;

/// A page of episodes to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EpisodePage {
    /// Id of the run.
    pub(super) run: String,
    /// Name of the benchmark.
    pub(super) benchmark: String,
    offset: usize,
}

/// Answer to the request for a page.
#[derive(Debug, Deserialize)]
pub(crate) struct EpisodePageView {
    items: ItemsView,
}

#[derive(Debug, Deserialize)]
struct ItemsView {
    items: Vec<EpisodeView>,
}

#[derive(Debug, Deserialize)]
struct EpisodeView {
    item_id: String,
    #[serde(default)]
    source_id: Option<String>,
    position: usize,
    sample: usize,
    #[serde(default)]
    outcome: Option<String>,
    #[serde(default)]
    latency_ms: Option<u64>,
    #[serde(default)]
    item_metadata: Value,
}

/// Episodes of a benchmark in the order of its plan: by task, then by episode.
#[derive(Debug, Default)]
pub(super) struct Episodes {
    /// `None` for those that weren't read yet.
    seen: Vec<Option<Seen>>,
    /// Names of the tasks, as far as they are known, by position.
    names: HashMap<usize, String>,
    per_task: usize,
    /// Number of episodes that were over when the benchmark was seen last.
    completed: u64,
    /// Index at which the search for the next page begins.
    next: usize,
}

/// An episode that was read.
#[derive(Debug, Clone, Copy)]
struct Seen {
    mark: Mark,
    /// Duration, once it's over.
    ms: Option<u64>,
}

/// Episodes of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TaskEpisodes {
    name: String,
    marks: Vec<Mark>,
    /// Median duration of the episodes that are over.
    median_ms: Option<u64>,
}

impl EpisodePage {
    /// Returns the path of the request.
    pub(crate) fn path(&self) -> String {
        format!(
            "/api/runs/{}/benchmarks/{}?texts=false&limit={PAGE_EPISODES}&offset={}",
            encode(&self.run),
            encode(&self.benchmark),
            self.offset
        )
    }
}

impl EpisodeView {
    fn mark(&self) -> Mark {
        match self.outcome.as_deref() {
            Some(outcome) => Mark::of(outcome),
            None if self.has_started() => Mark::Running,
            None => Mark::Waiting,
        }
    }

    /// Returns true if the episode has a sandbox. Older servers only say whether an attempt has begun.
    fn has_started(&self) -> bool {
        let metadata = &self.item_metadata;
        let has_begun = || metadata["episode_attempts"].as_u64().is_some_and(|attempts| attempts > 0);
        metadata["episode_started"].as_bool().unwrap_or_else(has_begun)
    }
}

impl Episodes {
    /// Takes the benchmark's size. Forgets what was read if its plan has changed or episodes are repeated.
    pub(super) fn observe(&mut self, benchmark: &Benchmark) {
        let planned = usize::try_from(benchmark.planned_samples).unwrap_or(usize::MAX);
        let per_task = usize::try_from(benchmark.samples_per_item.unwrap_or(1)).unwrap_or(1).max(1);
        let is_repeated = benchmark.completed_samples < self.completed;
        if self.seen.len() != planned || self.per_task != per_task || is_repeated {
            *self = Self { seen: vec![None; planned], per_task, ..Self::default() };
        }
        self.completed = benchmark.completed_samples;
    }

    /// Returns the next page that has episodes which weren't over when they were read last, and moves on behind it.
    pub(super) fn next_page(&mut self, run: &str, benchmark: &str) -> Option<EpisodePage> {
        let is_open =
            |at: &usize| self.seen.get(*at).is_some_and(|seen| seen.is_none_or(|seen| !seen.mark.is_over()));
        let offset = (self.next..self.seen.len()).chain(0..self.next).find(is_open)?;
        self.next = match offset + PAGE_EPISODES {
            next if next < self.seen.len() => next,
            _ => 0,
        };
        Some(EpisodePage { run: run.to_owned(), benchmark: benchmark.to_owned(), offset })
    }

    /// Returns true if any episode was read.
    pub(super) fn is_known(&self) -> bool {
        !self.names.is_empty()
    }

    /// Returns true if every episode was over when it was read.
    pub(super) fn are_over(&self) -> bool {
        self.seen.iter().all(|seen| seen.is_some_and(|seen| seen.mark.is_over()))
    }

    /// Takes a page.
    pub(super) fn add(&mut self, page: EpisodePageView) {
        for episode in page.items.items {
            let at = episode.position.saturating_mul(self.per_task).saturating_add(episode.sample);
            let Some(seen) = self.seen.get_mut(at).filter(|_| episode.sample < self.per_task) else {
                continue;
            };
            let mark = episode.mark();
            *seen = Some(Seen { mark, ms: episode.latency_ms.filter(|_| mark.is_over()) });
            let name = episode.source_id.unwrap_or_else(|| format!("#{}", episode.item_id));
            self.names.entry(episode.position).or_insert(name);
        }
    }

    /// Returns the tasks in the order of the plan. Those that weren't read yet wait.
    pub(super) fn tasks(&self) -> Vec<TaskEpisodes> {
        let mut uses: HashMap<&str, usize> = HashMap::new();
        for name in self.names.values() {
            *uses.entry(without_hash(name)).or_default() += 1;
        }
        let task = |(position, seen): (usize, &[Option<Seen>])| {
            let name = self.names.get(&position).map_or("…", String::as_str);
            let short = without_hash(name);
            let name = if uses.get(short).is_some_and(|uses| *uses > 1) { name } else { short };
            let mut durations: Vec<u64> = seen.iter().flatten().filter_map(|seen| seen.ms).collect();
            TaskEpisodes {
                name: name.to_owned(),
                marks: seen.iter().map(|seen| seen.map_or(Mark::Waiting, |seen| seen.mark)).collect(),
                median_ms: percentile(&mut durations, 50),
            }
        };
        self.seen.chunks(self.per_task.max(1)).enumerate().map(task).collect()
    }

    /// Shows episodes that aren't over as waiting, since their run is over.
    pub(super) fn close(&mut self) {
        for seen in self.seen.iter_mut().flatten().filter(|seen| seen.mark == Mark::Running) {
            seen.mark = Mark::Waiting;
        }
    }
}

/// Returns the name of a task without its content hash: `fix-csv` of `fix-csv@0123456789ab`.
pub(crate) fn without_hash(name: &str) -> &str {
    let is_hash = |hash: &str| hash.len() == HASH_CHARS && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
    name.rsplit_once('@')
        .filter(|(short, hash)| !short.is_empty() && is_hash(hash))
        .map_or(name, |(short, _)| short)
}

#[cfg(test)]
mod tests;
