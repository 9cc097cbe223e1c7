//! Name of a judge model, from the command line or a variable.

use bench_inference::{ModelName, ModelNameError, ModelSource};

use crate::exit::Problem;

/// Variable with the judge of runs that name none.
pub(crate) const MODEL_VARIABLE: &str = "BENCH_JUDGE_MODEL";

/// Judge with its parsed name.
#[derive(Debug, Clone)]
pub(crate) struct NamedJudge {
    /// `provider/model`, or a server's own name of a model.
    pub(crate) name: String,
    /// `None` if the name is a server's own.
    pub(crate) source: Option<ModelSource>,
    /// The provider's name of the model.
    pub(crate) slug: String,
}

/// Parses a name that `flag` gives. A server may have names of its own.
pub(crate) fn named_judge(flag: &str, given: &str, remote: bool) -> anyhow::Result<NamedJudge> {
    match ModelName::parse_judge(given) {
        Ok(name) => Ok(NamedJudge { name: name.to_string(), source: Some(name.source), slug: name.slug }),
        Err(error) if remote && error != ModelNameError::StoredJudge => {
            let name = given.trim().to_owned();
            Ok(NamedJudge { slug: name.clone(), name, source: None })
        }
        Err(error) => Err(Problem::usage(format!("{flag}: {error}")).into()),
    }
}

/// Checks that the judge named by the variable, if any, is valid.
pub(crate) fn check_variable(text: Option<&str>) -> anyhow::Result<()> {
    let text = text.filter(|text| !text.trim().is_empty());
    text.map(|text| named_judge(MODEL_VARIABLE, text, false)).transpose().map(drop)
}
