//! Sources of a run's answers.

use bench_domain::run::ItemNaming;
use bench_domain::{Code, RunSpec, SampleBody, Secret, Usage};
use bench_inference::tokens::usage_or_estimate;
use bench_state::RunRecord;

use super::earlier_run::EarlierRun;
use super::recorded::Recorded;
use super::{oracle, recorded};
use crate::provider::{Key, Provider, Providers, Role, Unavailable};

/// The source of a run's answers.
pub(crate) enum AnswerSource {
    /// A model at a provider.
    Provider(Box<Provider>),
    /// The dataset itself.
    Oracle,
    /// Responses from a file.
    Recorded(Recorded),
    /// The answers of an earlier run, which this one judges anew.
    EarlierRun(EarlierRun),
    /// None: the run fails.
    Unavailable(Unavailable),
}

impl AnswerSource {
    /// Returns the source of a run. Calls nothing.
    pub(crate) fn new(run: &RunRecord, caller_key: Option<Secret>, providers: &Providers) -> Self {
        let spec = &run.spec;
        if let Some(rejudges) = &spec.rejudges {
            return Self::EarlierRun(EarlierRun::new(rejudges.run));
        }
        if let Some(why) = outdated_responses(spec) {
            return Self::Unavailable(Unavailable::new(Code::StoredDataMissing, why));
        }
        match spec.model.provider.as_str() {
            oracle::NAME => Self::Oracle,
            recorded::NAME => Self::Recorded(Recorded::new(spec.model.replay_key.as_deref())),
            _ => {
                let missing = Unavailable::new(Code::KeyRequired, "Run is missing API key credentials");
                let key = Key::new(spec.auth, caller_key, missing);
                providers
                    .resolve(run, Role::Model, &spec.model, key)
                    .map_or_else(Self::Unavailable, Self::Provider)
            }
        }
    }

    /// Returns the tokens that an answer cost: none where no provider was asked.
    pub(crate) fn spent_on(&self, body: &SampleBody) -> Usage {
        match self {
            Self::Provider(_) => usage_or_estimate(&body.prompt, &body.answer),
            _ => Usage::default(),
        }
    }
}

/// Returns why stored responses that an older program took in are not used: it took their ids for indices of rows, so that
/// part of the run may be graded against other items than the rest would be.
fn outdated_responses(spec: &RunSpec) -> Option<&'static str> {
    let is_outdated = spec.model.replay_key.is_some() && spec.item_naming == ItemNaming::RowIndex;
    is_outdated.then_some(
        "this run was ordered by an older version, which took the ids of stored responses for indices of rows: order it \
         again",
    )
}

#[cfg(test)]
mod tests {
    use bench_domain::run::{AuthMode, Owner};
    use bench_domain::{RunId, Timestamp};
    use serde_json::json;

    use super::*;

    #[test]
    fn stored_responses_of_an_older_program_are_not_used() {
        let spec = |replay_key: Option<&str>, item_naming: Option<&str>| -> RunSpec {
            let mut spec = json!({
                "id": RunId::random(), "benchmarks": ["mmlu_pro"], "selected_benchmarks": null,
                "model": {
                    "id": bench_domain::ModelId::of("replay", "a.jsonl"), "provider": "replay", "slug": "a.jsonl",
                    "replay_key": replay_key,
                },
                "subset": bench_domain::Subset::default(), "owner": Owner::Local, "auth": AuthMode::System,
                "coverage_min": 0.9, "software": "0.1.0", "created_at": Timestamp::default(),
            });
            if let Some(naming) = item_naming {
                spec["item_naming"] = naming.into();
            }
            serde_json::from_value(spec).unwrap()
        };
        let why = outdated_responses(&spec(Some("uploads/a"), None)).unwrap();
        assert!(why.ends_with("order it again"), "{why}");
        assert_eq!(outdated_responses(&spec(Some("uploads/a"), Some("source-id"))), None);
        assert_eq!(outdated_responses(&spec(None, None)), None, "a model that is asked");
    }
}
