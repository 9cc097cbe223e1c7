//! Models as named on the command line, and files of stored responses.

use std::env;
use std::fmt;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::str::FromStr;

use anyhow::Context;
use bench_domain::ReasoningEffort;
use bench_inference::{ModelName, ModelSource};
use bench_pipeline::RecordedResponses;
use bench_runs::settings::THINKING_BUDGET_MAX;

use crate::exit::Problem;

/// Maximum size of a file of stored responses, in bytes. Encoding as JSON at most doubles it.
const REPLAY_BYTES_MAX: u64 = bench_blobs::OBJECT_BYTES_MAX as u64 / 2;

/// Model, with the stored responses that replace it, if any.
#[derive(Debug)]
pub(super) struct Model {
    /// Name as given, without the path of a file.
    pub(super) name: String,
    /// `None` if the name is a server's own name of a model.
    pub(super) source: Option<ModelSource>,
    /// Name at the provider.
    pub(super) slug: String,
    pub(super) replay: Option<Responses>,
    /// Thinking level of its run, in place of that of the order.
    pub(super) level: Option<ThinkingLevel>,
}

/// Level of a model's thinking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ThinkingLevel {
    /// The provider's own level.
    Base,
    /// Effort.
    Effort(ReasoningEffort),
    /// Maximum number of tokens.
    Budget(u32),
}

impl FromStr for ThinkingLevel {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "base" {
            return Ok(Self::Base);
        }
        let budget = text.parse().ok().filter(|tokens| (1..=THINKING_BUDGET_MAX).contains(tokens));
        let level = budget.map(Self::Budget).or_else(|| ReasoningEffort::from_name(text).map(Self::Effort));
        level.ok_or_else(|| {
            format!(
                "it must be base, a number of tokens up to {THINKING_BUDGET_MAX}, or one of {}",
                ReasoningEffort::names()
            )
        })
    }
}

impl fmt::Display for ThinkingLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Base => f.write_str("base"),
            Self::Effort(effort) => effort.fmt(f),
            Self::Budget(tokens) => write!(f, "{tokens} tokens"),
        }
    }
}

/// Stored responses, as text and parsed.
#[derive(Debug)]
pub(super) struct Responses {
    /// Name of the file.
    pub(super) file: String,
    pub(super) text: String,
    pub(super) replay: RecordedResponses,
}

impl Model {
    /// Returns the name with the thinking level, if the order names one.
    pub(super) fn shown(&self) -> String {
        match self.level {
            Some(level) => format!("{} (thinking {level})", self.name),
            None => self.name.clone(),
        }
    }

    pub(super) fn is_remote(&self) -> bool {
        self.source.is_some_and(ModelSource::is_remote)
    }
}

/// Reads the models that were named, or the one from `DEFAULT_MODEL`. A dry run needs none.
/// `for_agent` is true if agents work on the items. With several thinking levels, a model is there once for each.
pub(super) fn models(
    given: &[String],
    levels: &[ThinkingLevel],
    for_agent: bool,
    dry_run: bool,
    remote: bool,
) -> anyhow::Result<Vec<Model>> {
    let mut names: Vec<String> = given.iter().filter(|name| !name.trim().is_empty()).cloned().collect();
    if names.is_empty() {
        names.extend(env::var("DEFAULT_MODEL").ok().filter(|name| !name.trim().is_empty()));
    }
    if names.is_empty() && !dry_run {
        let hint = match for_agent {
            true => {
                "give the model that the agent asks with --model; `--agent oracle` runs the tasks' own solutions and asks none"
            }
            false => {
                "give one with --model, or set DEFAULT_MODEL; `bench run --model oracle --demo` needs no account"
            }
        };
        return Err(Problem::usage("no model was given").hint(hint).into());
    }
    let levels: Vec<Option<ThinkingLevel>> = match levels {
        [] => vec![None],
        levels => levels.iter().copied().map(Some).collect(),
    };
    let mut models = Vec::with_capacity(names.len() * levels.len());
    for name in &names {
        for level in &levels {
            models.push(Model { level: *level, ..model(name, remote)? });
        }
    }
    Ok(models)
}

fn model(given: &str, remote: bool) -> anyhow::Result<Model> {
    let name = match ModelName::parse(given) {
        Ok(name) => name,
        // A server also accepts models by id and by slug.
        Err(_) if remote => {
            let name = given.trim().to_owned();
            return Ok(Model { slug: name.clone(), name, source: None, replay: None, level: None });
        }
        Err(error) => return Err(Problem::usage(format!("--model: {error}")).into()),
    };
    if name.source != ModelSource::Replay {
        return Ok(Model {
            name: name.to_string(),
            source: Some(name.source),
            slug: name.slug,
            replay: None,
            level: None,
        });
    }
    if remote {
        return Err(Problem::usage(
            "stored responses can't be used with --server: servers accept no files from callers",
        )
        .hint("leave --server out to run on this machine")
        .into());
    }
    let path = PathBuf::from(&name.slug);
    let shown = path.display();
    let metadata = std::fs::metadata(&path).map_err(|error| match error.kind() {
        ErrorKind::NotFound => Problem::usage(format!("--model: there is no file `{shown}`")),
        _ => Problem::usage(format!("--model: could not read `{shown}`: {error}")),
    })?;
    if metadata.is_dir() {
        return Err(Problem::usage(format!("--model: `{shown}` is a folder"))
            .hint("give a file with stored responses")
            .into());
    }
    if metadata.len() > REPLAY_BYTES_MAX {
        return Err(Problem::failure(format!("`{shown}` is larger than {REPLAY_BYTES_MAX} bytes")).into());
    }
    let text = std::fs::read(&path).with_context(|| format!("could not read `{shown}`"))?;
    let text =
        String::from_utf8(text).map_err(|_| Problem::failure(format!("`{shown}` is not UTF-8 text")))?;
    let replay =
        RecordedResponses::parse(&text).map_err(|error| Problem::failure(format!("{shown}, {error}")))?;
    if replay.is_empty() {
        return Err(Problem::failure(format!("`{shown}` has no responses")).into());
    }
    // Results are published, so they must not contain the file's path on this machine.
    let slug = path.file_name().map_or_else(|| name.slug.clone(), |file| file.to_string_lossy().into_owned());
    let name = ModelName { source: ModelSource::Replay, slug: slug.clone() }.to_string();
    let replay = Responses { file: shown.to_string(), text, replay };
    Ok(Model { name, source: Some(ModelSource::Replay), slug, replay: Some(replay), level: None })
}
