//! Sources of the judge's replies.

use bench_domain::{Code, Secret};
use bench_state::RunRecord;

use crate::answer::{oracle, recorded};
use crate::provider::{Key, Provider, Providers, Role, Unavailable};

/// The source of the replies of a run's judge.
pub(crate) enum JudgeSource {
    /// A model at a provider.
    Provider(Box<Provider>),
    /// The dataset itself: what a perfect judge would say.
    Oracle,
    /// None: a sample that needs it fails the run.
    Unavailable(Unavailable),
}

impl JudgeSource {
    /// Returns the source of a run. Calls nothing.
    pub(crate) fn new(run: &RunRecord, caller_key: Option<Secret>, providers: &Providers) -> Self {
        let could_not = |Unavailable { code, why }: Unavailable| {
            Self::Unavailable(Unavailable { code: code.of_judge(), why: Role::Judge.explain(&why) })
        };
        let Some(judge) = &run.spec.judge else {
            return could_not(Unavailable::new(Code::JudgeMissing, "the run has no judge"));
        };
        match judge.model.provider.as_str() {
            oracle::NAME => Self::Oracle,
            recorded::NAME => Self::Unavailable(Unavailable::new(
                Code::JudgeNotUsable,
                "the judge must be a model or `oracle`",
            )),
            _ => {
                let missing = Unavailable::new(
                    Code::JudgeKeyRequired,
                    "Run is missing API key credentials of its judge",
                );
                let key = Key::new(judge.auth, caller_key, missing);
                providers.resolve(run, Role::Judge, &judge.model, key).map_or_else(could_not, Self::Provider)
            }
        }
    }
}
