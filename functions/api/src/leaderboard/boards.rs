//! Boards: models whose results can be compared, ranked.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use bench_domain::statistics::{Interval, RankedMean, rank_ranges};
use bench_web::views::DatasetView;

use super::candidate::{BoardKey, Candidate};
use super::view::{BestView, BoardView, EntryView};

/// Results by board, then by model, address and thinking level.
#[derive(Debug, Default)]
pub(crate) struct Boards(BTreeMap<BoardKey, Models>);

/// Results of models, by name, own address and thinking level.
type Models = BTreeMap<(String, Option<String>, Option<String>), Vec<Candidate>>;

impl Boards {
    /// Adds a result to its board.
    pub(crate) fn add(&mut self, candidate: Candidate) {
        // A model of the same name at another address is another one.
        let host = candidate.endpoint_host.clone().filter(|_| candidate.own_endpoint);
        let model = (candidate.model.clone(), host, candidate.thinking_level.clone());
        self.0.entry(candidate.key.clone()).or_default().entry(model).or_default().push(candidate);
    }

    /// Returns the boards with at least one entry, those with most models first, and the number of results without full
    /// coverage.
    pub(crate) fn finish(self) -> (Vec<BoardView>, u64) {
        let all = self.0.values().flat_map(BTreeMap::values).flatten();
        let partial = all.filter(|candidate| !candidate.is_full).count() as u64;
        let mut boards: Vec<BoardView> =
            self.0.into_iter().filter_map(|(key, models)| board(key, models)).collect();
        boards.sort_by_key(|board| {
            (
                Reverse(board.entries.len()),
                board.demo,
                board.items < board.dataset_items,
                Reverse(board.items),
            )
        });
        (boards, partial)
    }
}

fn board(key: BoardKey, models: Models) -> Option<BoardView> {
    let first = models.values().flatten().next()?.clone();
    let mut entries: Vec<EntryView> = models.into_values().filter_map(entry).collect();
    if entries.is_empty() {
        return None;
    }
    entries.sort_by(|a, b| {
        b.score
            .total_cmp(&a.score)
            .then_with(|| (&a.model, &a.thinking_level).cmp(&(&b.model, &b.thinking_level)))
    });
    let means: Vec<RankedMean> = entries
        .iter()
        .map(|entry| RankedMean {
            mean: entry.score,
            interval: entry.interval.map(|interval| Interval { low: interval.low, high: interval.high }),
        })
        .collect();
    for (entry, range) in entries.iter_mut().zip(rank_ranges(&means)) {
        (entry.rank_low, entry.rank_high) = (range.low as u64, range.high as u64);
    }
    Some(BoardView {
        protocol: key.protocol,
        protocol_name: Some(first.protocol_name).filter(|name| !name.is_empty()),
        prompt_source: first.prompt_source,
        prompt_digest: key.prompt_digest,
        demo: first.dataset.is_demo() || first.dataset.demo_support,
        dataset: DatasetView::from(&first.dataset),
        options: key.options,
        samples_per_item: key.samples_per_item,
        judge: key.judge,
        user_model: key.user_model,
        changed_settings: key.changed_settings,
        items: key.items,
        dataset_items: key.dataset_items,
        subset_seed: key.subset_seed,
        entries,
    })
}

/// Returns the entry of a model, whose latest run with full coverage ranks; `None` if it has none.
fn entry(results: Vec<Candidate>) -> Option<EntryView> {
    let (full, partial): (Vec<Candidate>, Vec<Candidate>) =
        results.into_iter().partition(|result| result.is_full);
    let best = full
        .iter()
        .max_by(|a, b| a.score.total_cmp(&b.score).then_with(|| a.completed_at.cmp(&b.completed_at)))?;
    let best = BestView {
        run_id: best.run_id,
        score: best.score,
        interval: best.interval,
        completed_at: best.completed_at,
    };
    let runs = full.len() as u64;
    let latest = full.into_iter().max_by_key(|result| result.completed_at)?;
    Some(EntryView {
        rank_low: 0,
        rank_high: 0,
        model: latest.model,
        thinking_level: latest.thinking_level,
        endpoint_host: latest.endpoint_host,
        own_endpoint: latest.own_endpoint,
        run_id: latest.run_id,
        run_name: latest.run_name,
        completed_at: latest.completed_at,
        score: latest.score,
        interval: latest.interval,
        best,
        runs,
        partial_runs: partial.len() as u64,
        cost_usd: latest.cost_usd,
    })
}
