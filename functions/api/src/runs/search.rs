//! Searches in the list of runs that its indexes can't answer.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use bench_domain::{BenchmarkName, RunId};
use bench_state::{RunFacts, SearchedLabels};
use bench_web::{ApiError, Caller};

use crate::Api;
use crate::cache::run_facts::CachedFacts;
use crate::context::lock;

/// Maximum number of runs, the newest ones, that a search looks at.
pub(crate) const SEARCHED_RUNS_MAX: usize = 5_000;
/// Maximum number of runs whose facts are cached.
const CACHED_FACTS_MAX: usize = 2 * SEARCHED_RUNS_MAX;
/// Minimum number of digits by which a text finds a run's id.
const ID_DIGITS_MIN: usize = 4;

/// Search in a list of runs. Each part that is set must match.
#[derive(Debug, Clone, Default)]
pub(crate) struct RunSearch {
    /// Part of the model's name with its provider, in lower case.
    pub(crate) model: Option<String>,
    /// Benchmark of the run. The inner `None` is a benchmark that doesn't exist, which no run has.
    pub(crate) benchmark: Option<Option<BenchmarkName>>,
    /// Caller whose runs are meant.
    pub(crate) owner: Option<Caller>,
    /// Text in the model, the name or a tag, or the first digits of the id; in lower case.
    pub(crate) text: Option<String>,
}

impl RunSearch {
    /// Returns true if every run matches.
    pub(crate) const fn is_everything(&self) -> bool {
        self.model.is_none() && self.benchmark.is_none() && self.owner.is_none() && self.text.is_none()
    }

    fn matches(&self, facts: &RunFacts, labels: Option<&SearchedLabels>) -> bool {
        let model = facts.model.to_lowercase();
        let is_text = |text: &String| {
            let in_labels = labels.is_some_and(|labels| {
                labels.name_lower.contains(text)
                    || labels.tags.iter().any(|tag| tag.to_lowercase().contains(text))
            });
            in_labels || model.contains(text) || is_id_prefix(facts.run, text)
        };
        self.model.as_ref().is_none_or(|part| model.contains(part))
            && self
                .benchmark
                .as_ref()
                .is_none_or(|name| name.as_ref().is_some_and(|name| facts.benchmarks.contains(name)))
            && self.owner.as_ref().is_none_or(|caller| caller.is_own(&facts.owner))
            && self.text.as_ref().is_none_or(is_text)
    }
}

fn is_id_prefix(run: RunId, text: &str) -> bool {
    let digits = text.replace('-', "");
    digits.len() >= ID_DIGITS_MIN && run.0.simple().to_string().starts_with(&digits)
}

impl Api {
    /// Returns those of the runs that match, in the same order, and the number of runs that were left unsearched, because
    /// they are too many.
    pub(crate) async fn search_runs(
        &self,
        mut runs: Vec<RunId>,
        search: &RunSearch,
    ) -> Result<(Vec<RunId>, u64), ApiError> {
        if search.is_everything() {
            return Ok((runs, 0));
        }
        let unsearched = runs.len().saturating_sub(SEARCHED_RUNS_MAX) as u64;
        runs.truncate(SEARCHED_RUNS_MAX);
        let facts = self.run_facts(&runs).await?;
        let labels = match search.text {
            Some(_) => self.state.searched_labels().await?,
            None => HashMap::new(),
        };
        runs.retain(|run| facts.get(run).is_some_and(|facts| search.matches(facts, labels.get(run))));
        Ok((runs, unsearched))
    }

    /// Returns facts about these runs, reading those that aren't cached.
    pub(crate) async fn run_facts(&self, runs: &[RunId]) -> Result<CachedFacts, ApiError> {
        let mut known: CachedFacts = {
            let cached = lock(&self.run_facts);
            runs.iter().filter_map(|run| Some((*run, Arc::clone(cached.get(run)?)))).collect()
        };
        let missing: Vec<RunId> = runs.iter().copied().filter(|run| !known.contains_key(run)).collect();
        if missing.is_empty() {
            return Ok(known);
        }
        let read = self.state.run_facts(&missing).await?;
        let read: CachedFacts = read.into_iter().map(|facts| (facts.run, Arc::new(facts))).collect();
        let mut cached = lock(&self.run_facts);
        if cached.len() + read.len() > CACHED_FACTS_MAX {
            let wanted: HashSet<&RunId> = runs.iter().collect();
            cached.retain(|run, _| wanted.contains(run));
        }
        cached.extend(read.iter().map(|(run, facts)| (*run, Arc::clone(facts))));
        drop(cached);
        known.extend(read);
        Ok(known)
    }
}

#[cfg(test)]
mod tests {
    use bench_domain::run::Owner;

    use super::*;

    #[test]
    fn every_part_of_a_search_must_match() {
        let run = RunId::random();
        let facts = RunFacts {
            run,
            model: "openrouter/Vendor/M-1".into(),
            benchmarks: vec!["mmlu_pro".parse().unwrap()],
            owner: Owner::Key("a".into()),
        };
        let labels = SearchedLabels { name_lower: "first try".into(), tags: vec!["Exp-7".into()] };
        let text = |text: &str| RunSearch { text: Some(text.into()), ..RunSearch::default() };
        let digits = run.0.simple().to_string();
        for found in ["vendor/m", "rst t", "exp-7", &digits[..4], &run.to_string()[..10]] {
            assert!(text(found).matches(&facts, Some(&labels)), "{found}");
        }
        for other in ["vendor/n", "second", &digits[..3], &digits[1..6]] {
            assert!(!text(other).matches(&facts, Some(&labels)), "{other}");
        }
        assert!(!text("rst t").matches(&facts, None));
        let model = RunSearch { model: Some("openrouter/v".into()), ..RunSearch::default() };
        assert!(model.matches(&facts, None));
        let other = |name: &str| RunSearch { benchmark: Some(name.parse().ok()), ..model.clone() };
        assert!(other("mmlu_pro").matches(&facts, None));
        assert!(!other("hle").matches(&facts, None) && !other("no name").matches(&facts, None));
        let key = |owner: &str| Caller::Key { owner: owner.into(), local: false };
        let own = |caller| RunSearch { owner: Some(caller), ..model.clone() }.matches(&facts, None);
        assert!(own(key("a")));
        assert!(!own(key("b")) && !own(Caller::Admin) && !own(Caller::Anonymous));
    }
}
