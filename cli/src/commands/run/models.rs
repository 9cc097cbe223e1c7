//! Models as named on the command line, and files of stored responses.

use std::env;
use std::io::ErrorKind;
use std::path::PathBuf;

use anyhow::Context;
use bench_inference::{ModelName, ModelSource};
use bench_pipeline::RecordedResponses;

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
    pub(super) fn is_remote(&self) -> bool {
        self.source.is_some_and(ModelSource::is_remote)
    }
}

/// Reads the models that were named, or the one from `DEFAULT_MODEL`. A dry run needs none.
/// `for_agent` is true if agents work on the items.
pub(super) fn models(
    given: &[String],
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
    names.iter().map(|name| model(name, remote)).collect()
}

fn model(given: &str, remote: bool) -> anyhow::Result<Model> {
    let name = match ModelName::parse(given) {
        Ok(name) => name,
        // A server also accepts models by id and by slug.
        Err(_) if remote => {
            let name = given.trim().to_owned();
            return Ok(Model { slug: name.clone(), name, source: None, replay: None });
        }
        Err(error) => return Err(Problem::usage(format!("--model: {error}")).into()),
    };
    if name.source != ModelSource::Replay {
        return Ok(Model {
            name: name.to_string(),
            source: Some(name.source),
            slug: name.slug,
            replay: None,
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
    Ok(Model { name, source: Some(ModelSource::Replay), slug, replay: Some(replay) })
}
