//! The sources of a run's answers and of its judge's replies, as its order names them.

use std::collections::BTreeMap;
use std::sync::Arc;

use bench_domain::run::ItemNaming;
use bench_domain::{BenchmarkName, Code, ModelRole, RunId, RunSpec, SampleBody, Usage};
use bench_inference::tokens::usage_or_estimate;
use tokio::sync::OnceCell;

use super::model_client::{ModelClient, ModelClients, Unavailable};
use super::runs::RunContext;
use crate::RecordedResponses;

/// Name of the source that answers from the dataset, in orders and records.
pub(crate) const ORACLE: &str = "oracle";
/// Name of the source that gives no answers, in orders and records.
const NOP: &str = "nop";
/// Name of the source whose answers are the work of an agent in a container, in orders and records.
const CUSTOM: &str = "custom";
/// Name of the source that answers from a file of stored responses, in orders and records.
const REPLAY: &str = "replay";

/// The source of a run's answers.
pub(crate) enum AnswerSource {
    /// A model at a provider.
    Model(Box<ModelClient>),
    /// The dataset itself.
    Oracle,
    /// Nobody: every answer is empty.
    Nop,
    /// Responses from a file.
    ResponsesFile(ResponsesFile),
    /// The answers of an earlier run, which this run grades again.
    EarlierRun(EarlierRun),
    /// No source. The run fails.
    Unavailable(Unavailable),
}

impl AnswerSource {
    /// Creates the source that the run's order names. Calls no service.
    pub(crate) fn new(run: &RunContext, clients: &ModelClients) -> Self {
        let spec = &run.spec;
        if let Some(rejudges) = &spec.rejudges {
            return Self::EarlierRun(EarlierRun::new(rejudges.run));
        }
        if let Some(why) = outdated_responses(spec) {
            return Self::Unavailable(Unavailable::new(Code::StoredDataMissing, why));
        }
        match spec.model.provider.as_str() {
            ORACLE => Self::Oracle,
            // The agent's work follows in another stage.
            NOP | CUSTOM => Self::Nop,
            REPLAY => Self::ResponsesFile(ResponsesFile::new(spec.model.replay_key.as_deref())),
            _ => {
                let missing = Unavailable::new(Code::KeyRequired, "Run is missing API key credentials");
                let client = clients.client(run, ModelRole::Model, missing);
                client.map_or_else(Self::Unavailable, Self::Model)
            }
        }
    }

    /// Returns the tokens that an answer cost. Zero unless a provider was asked.
    pub(crate) fn spent_on(&self, body: &SampleBody) -> Usage {
        match self {
            Self::Model(_) => usage_or_estimate(&body.prompt, &body.answer),
            _ => Usage::default(),
        }
    }
}

/// Stored responses of a run, loaded once.
pub(crate) struct ResponsesFile {
    /// Key of the object that holds the responses.
    pub(crate) key: String,
    pub(crate) responses: OnceCell<Result<Arc<RecordedResponses>, String>>,
}

impl ResponsesFile {
    fn new(key: Option<&str>) -> Self {
        Self { key: key.unwrap_or_default().to_owned(), responses: OnceCell::new() }
    }
}

/// Returns the reason why stored responses that an older program accepted can't be used, if it applies. That
/// program took their ids for row indices, so part of the run may be graded against other items than the rest
/// would be.
fn outdated_responses(spec: &RunSpec) -> Option<&'static str> {
    let is_outdated = spec.model.replay_key.is_some() && spec.item_naming == ItemNaming::RowIndex;
    is_outdated.then_some(
        "this run was ordered by an older version, which took the ids of stored responses for indices of rows: order it \
         again",
    )
}

/// The earlier run, which asked the model.
#[derive(Debug)]
pub(crate) struct EarlierRun {
    pub(crate) run: RunId,
    /// Loaded once. `None` if the run was deleted.
    pub(crate) plans: OnceCell<Option<Plans>>,
}

/// Attempt and number of shards of each benchmark's plan.
pub(crate) type Plans = BTreeMap<BenchmarkName, (u32, u32)>;

impl EarlierRun {
    fn new(run: RunId) -> Self {
        Self { run, plans: OnceCell::new() }
    }
}

/// Source of the replies of a run's judge.
pub(crate) enum JudgeSource {
    /// A model at a provider.
    Model(Box<ModelClient>),
    /// The dataset itself, which replies as a perfect judge would.
    Oracle,
    /// No source. A sample that needs the judge fails the run.
    Unavailable(Unavailable),
}

impl JudgeSource {
    /// Creates the source that the run's order names. Calls no service.
    pub(crate) fn new(run: &RunContext, clients: &ModelClients) -> Self {
        let could_not = |Unavailable { code, why }: Unavailable| {
            let role = ModelRole::Judge;
            Self::Unavailable(Unavailable { code: role.code(code), why: role.explain(&why) })
        };
        let Some(judge) = &run.spec.judge else {
            return could_not(Unavailable::new(Code::JudgeMissing, "the run has no judge"));
        };
        match judge.model.provider.as_str() {
            ORACLE => Self::Oracle,
            REPLAY | NOP | CUSTOM => Self::Unavailable(Unavailable::new(
                Code::JudgeNotUsable,
                "the judge must be a model or `oracle`",
            )),
            _ => {
                let missing = Unavailable::new(
                    Code::JudgeKeyRequired,
                    "Run is missing API key credentials of its judge",
                );
                let client = clients.client(run, ModelRole::Judge, missing);
                client.map_or_else(could_not, Self::Model)
            }
        }
    }
}

/// Source of the messages of a run's simulated users.
pub(crate) enum UserSource {
    /// A model at a provider.
    Model(Box<ModelClient>),
    /// None. A conversation that needs it fails the run.
    Unavailable(Unavailable),
}

impl UserSource {
    /// Creates the source that the run's order names. Calls no service. The evaluated model never takes its place.
    pub(crate) fn new(run: &RunContext, clients: &ModelClients) -> Self {
        let could_not = |Unavailable { code, why }: Unavailable| {
            let role = ModelRole::UserModel;
            Self::Unavailable(Unavailable { code: role.code(code), why: role.explain(&why) })
        };
        let Some(user) = &run.spec.user else {
            return could_not(Unavailable::new(Code::InvalidItem, "the run has no user model"));
        };
        match user.model.provider.as_str() {
            ORACLE | REPLAY | NOP | CUSTOM => could_not(Unavailable::new(
                Code::UnsupportedProvider,
                "simulated users need a model at a provider",
            )),
            _ => {
                let missing = Unavailable::new(
                    Code::UserKeyRequired,
                    "Run is missing API key credentials of its user model",
                );
                let client = clients.client(run, ModelRole::UserModel, missing);
                client.map_or_else(could_not, Self::Model)
            }
        }
    }
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
                    "id": bench_domain::ModelId::from_name("replay", "a.jsonl"), "provider": "replay", "slug": "a.jsonl",
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
