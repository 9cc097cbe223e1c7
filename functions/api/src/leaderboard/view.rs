//! Views of the leaderboard.

use std::collections::BTreeMap;

use bench_domain::{RunId, Timestamp};
use bench_web::views::{DatasetView, IntervalView};
use serde::Serialize;
use utoipa::ToSchema;

use super::candidate::Exclusion;

/// Explanation of rank ranges for people.
pub(crate) const TIE_METHOD: &str = "Two models share ranks unless the 95% interval of the difference of their scores, \
                                     combined from the intervals of both, excludes 0.";

/// Models ranked within one benchmark.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LeaderboardView {
    /// Name of the benchmark; null if none was named.
    pub(crate) benchmark: Option<String>,
    /// Benchmarks that have runs.
    pub(crate) benchmarks: Vec<ListedBenchmark>,
    /// Boards of the benchmark, those with most models first. Results of different boards can't be compared.
    pub(crate) boards: Vec<BoardView>,
    /// Meaning of `rank_low` and `rank_high`, in one sentence.
    pub(crate) tie_method: &'static str,
    /// Runs of the benchmark that don't rank, by reason.
    pub(crate) excluded: ExcludedView,
    /// Number of runs of the benchmark that were read, the newest ones.
    pub(crate) runs_read: u64,
    /// Maximum number of runs that are read.
    pub(crate) runs_max: u64,
    /// False if there are older runs that weren't looked at.
    pub(crate) is_complete: bool,
    /// Time of the order of the oldest run that was read.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub(crate) oldest_read_at: Option<Timestamp>,
}

/// Benchmark with its number of runs.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ListedBenchmark {
    /// Name of the benchmark.
    pub(crate) benchmark_name: String,
    /// Number of runs of it that succeeded or failed.
    pub(crate) runs: u64,
}

/// Results that can be compared: one protocol, prompt template, dataset revision, set of items, judge and settings.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct BoardView {
    /// Full name of the protocol, with its pinned version.
    pub(crate) protocol: String,
    /// Short name of the protocol, as in orders; null in runs of older versions.
    pub(crate) protocol_name: Option<String>,
    /// Source of the prompt template: `official` or `own`.
    pub(crate) prompt_source: String,
    /// Digest of the prompt template.
    pub(crate) prompt_digest: String,
    /// Dataset of the items.
    pub(crate) dataset: DatasetView,
    /// True if items or few-shot examples are demo data, which say nothing about the real benchmark.
    pub(crate) demo: bool,
    /// Options of the benchmark that are in effect.
    pub(crate) options: BTreeMap<String, String>,
    /// Samples of each item.
    pub(crate) samples_per_item: u32,
    /// Judge of the answers, with its provider; null without one.
    pub(crate) judge: Option<String>,
    /// Model that simulated users, with its provider and host; null without one.
    pub(crate) user_model: Option<String>,
    /// Settings that differ from the benchmark's own and can change scores, as phrases.
    pub(crate) changed_settings: Vec<String>,
    /// Number of items of each run.
    pub(crate) items: u64,
    /// Number of items in the dataset.
    pub(crate) dataset_items: u64,
    /// Seed that selects the items; null for the whole dataset.
    pub(crate) subset_seed: Option<String>,
    /// Models, those with the highest score first.
    pub(crate) entries: Vec<EntryView>,
}

/// Model on a board.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct EntryView {
    /// Best rank that chance allows, from 1.
    pub(crate) rank_low: u64,
    /// Worst rank that chance allows.
    pub(crate) rank_high: u64,
    /// Name of the model with its provider.
    pub(crate) model: String,
    /// Effort or budget of the model's thinking, such as `high` or `8192 tokens`; null if the provider decides. A model has an
    /// entry for each level.
    pub(crate) thinking_level: Option<String>,
    /// Host of the provider's base URL.
    pub(crate) endpoint_host: Option<String>,
    /// True if the model was asked at another address than the provider's own.
    pub(crate) own_endpoint: bool,
    /// Latest run in which every sample was graded: it ranks.
    #[schema(value_type = String, format = "uuid")]
    pub(crate) run_id: RunId,
    /// Name that its owner gave the run.
    pub(crate) run_name: Option<String>,
    /// Time at which the benchmark was closed.
    #[schema(value_type = String, format = DateTime)]
    pub(crate) completed_at: Timestamp,
    /// Score of that run.
    pub(crate) score: f64,
    /// 95% confidence interval of the score; null if it can't be determined.
    pub(crate) interval: Option<IntervalView>,
    /// Best of the runs, chosen after the fact: it overstates the model.
    pub(crate) best: BestView,
    /// Number of runs with full coverage, from which the best was chosen.
    pub(crate) runs: u64,
    /// Number of runs of this model without full coverage, which never rank.
    pub(crate) partial_runs: u64,
    /// Cost of the ranking run in US dollars, judge included; null if the price isn't known.
    pub(crate) cost_usd: Option<f64>,
}

/// Best run of a model.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct BestView {
    /// Id of the run.
    #[schema(value_type = String, format = "uuid")]
    pub(crate) run_id: RunId,
    /// Its score.
    pub(crate) score: f64,
    /// 95% confidence interval of the score, without regard to the choice; null if it can't be determined.
    pub(crate) interval: Option<IntervalView>,
    /// Time at which the benchmark was closed.
    #[schema(value_type = String, format = DateTime)]
    pub(crate) completed_at: Timestamp,
}

/// Number of runs that don't rank, by reason.
#[derive(Debug, Default, Serialize, ToSchema)]
pub(crate) struct ExcludedView {
    /// The benchmark has no score.
    pub(crate) failed: u64,
    /// Answers of the oracle.
    pub(crate) oracle: u64,
    /// Stored responses.
    pub(crate) replay: u64,
    /// Another address than the provider's own.
    pub(crate) own_endpoint: u64,
    /// Demo data.
    pub(crate) demo: u64,
    /// Items that no other run has: named ones, subsets without a seed, files of users.
    pub(crate) own_items: u64,
    /// Runs in which not every sample was graded.
    pub(crate) partial: u64,
}

impl ExcludedView {
    /// Counts a run that doesn't rank.
    pub(crate) fn count(&mut self, reason: Exclusion) {
        let count = match reason {
            Exclusion::Failed => &mut self.failed,
            Exclusion::Oracle => &mut self.oracle,
            Exclusion::Replay => &mut self.replay,
            Exclusion::OwnEndpoint => &mut self.own_endpoint,
            Exclusion::Demo => &mut self.demo,
            Exclusion::OwnItems => &mut self.own_items,
        };
        *count += 1;
    }
}
