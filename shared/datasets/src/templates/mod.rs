//! Official texts that prompts are made of.
//!
//! They are no part of this program: each is downloaded from where its authors keep it, at a commit, checked
//! against its pinned digest, and kept in the blob store under that digest.
//!
//! | object | holds |
//! | --- | --- |
//! | `templates/SHA256` | the text as compressed JSON |
//! | `templates/origins/ORIGIN` | the digest found at an origin, where only the commit is pinned |

mod part;
mod python;

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use bench_blobs::{BlobError, Blobs};
use bench_items::{Layout, TemplateOrigin, TemplateRole, TemplateSpec};
use sha2::{Digest, Sha256};

use crate::error::DatasetError;
use crate::hub::Hub;
use crate::keys;
use crate::library::Library;
use crate::progress::{Progress, Step};

/// Upper bound of a file that holds an official text, in bytes.
const FILE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Upper bound of one official text, in bytes.
const TEXT_BYTES_MAX: usize = 1024 * 1024;
/// How long one file may take, retries and waits included.
const FILE_TIME_MAX: Duration = Duration::from_secs(60);

/// Where official texts may be looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// In the blob store only: nothing is downloaded.
    Store,
    /// There first, then at their origins.
    Origins,
}

/// An official text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateText {
    /// SHA-256 of the text in UTF-8, lowercase hex.
    pub sha256: String,
    /// The text.
    pub text: String,
}

/// The official texts that could be had.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OfficialTexts {
    /// By the names of [`Layout::templates`].
    pub texts: BTreeMap<String, TemplateText>,
    /// For those that could not, why: a sentence for each reason.
    pub notes: Vec<String>,
}

impl OfficialTexts {
    /// The digest of each text, by name.
    pub fn digests(&self) -> BTreeMap<String, String> {
        self.texts.iter().map(|(name, text)| (name.clone(), text.sha256.clone())).collect()
    }

    /// The texts alone, by name.
    pub fn into_texts(self) -> BTreeMap<String, String> {
        self.texts.into_iter().map(|(name, text)| (name, text.text)).collect()
    }
}

/// Why a text could not be had from its origin.
struct Absent(String);

/// What came of asking origins, so that none is asked twice.
#[derive(Default)]
struct Asked {
    /// By who has them and the parts of their address: several texts may stand in one file.
    files: HashMap<(String, String), Result<Vec<u8>, String>>,
    /// Who is out of reach, and why.
    unreachable: HashMap<String, String>,
}

impl Library {
    /// The official texts of a benchmark. One that cannot be had is left out, and a note says why; a text whose
    /// digest is not the pinned one counts as such.
    ///
    /// # Errors
    /// When the blob store fails.
    pub async fn templates(
        &self,
        layout: &dyn Layout,
        reach: Reach,
        progress: &dyn Progress,
    ) -> Result<OfficialTexts, DatasetError> {
        let mut had = OfficialTexts::default();
        let mut asked = Asked::default();
        let mut absent: Vec<(String, Vec<&TemplateSpec>)> = Vec::new();
        for spec in layout.templates() {
            if let Some(text) = self.stored(spec).await? {
                had.texts.insert(spec.name.to_owned(), text);
                continue;
            }
            if reach == Reach::Store {
                continue;
            }
            match self.at_origin(spec, &mut asked, progress).await? {
                Ok(text) => {
                    had.texts.insert(spec.name.to_owned(), text);
                }
                Err(Absent(why)) => match absent.iter_mut().find(|(known, _)| *known == why) {
                    Some((_, specs)) => specs.push(spec),
                    None => absent.push((why, vec![spec])),
                },
            }
        }
        for (why, specs) in absent {
            let note = format!("{}: {why}", without(&specs));
            tracing::warn!(benchmark = layout.name(), "Not all official texts could be had: {note}");
            had.notes.push(note);
        }
        Ok(had)
    }

    /// The text from the blob store.
    async fn stored(&self, spec: &TemplateSpec) -> Result<Option<TemplateText>, DatasetError> {
        let sha256 = match spec.sha256 {
            Some(pinned) => pinned.to_owned(),
            None => {
                let noted = self.blobs.get_json::<String>(&keys::template_origin(&name_of(spec))).await;
                let Some(noted) = readable(noted)?.flatten() else { return Ok(None) };
                noted
            }
        };
        let text = readable(load_template(&self.blobs, &sha256).await)?.flatten();
        Ok(text.map(|text| TemplateText { sha256, text }))
    }

    async fn at_origin(
        &self,
        spec: &TemplateSpec,
        asked: &mut Asked,
        progress: &dyn Progress,
    ) -> Result<Result<TemplateText, Absent>, DatasetError> {
        let (hub, dataset, place, path) = self.place(spec);
        let Asked { files, unreachable } = asked;
        let file = match files.entry((hub.config().hub_url.clone(), place.join("/"))) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => {
                let file = match unreachable.get(&hub.config().hub_url) {
                    Some(why) => Err(why.clone()),
                    None => {
                        progress.step(Step::Downloading { file: path, done_bytes: 0, total_bytes: None });
                        download(hub, &dataset, &place, unreachable, progress).await
                    }
                };
                new.insert(file)
            }
        };
        let text = match file {
            Ok(file) => part::cut(path, file, spec.part).map_err(|why| format!("{}: {why}", name_of(spec))),
            Err(why) => Err(why.clone()),
        };
        let text = match text {
            Ok(text) if text.len() > TEXT_BYTES_MAX => {
                return Ok(Err(Absent(format!(
                    "{}: it has more than {TEXT_BYTES_MAX} bytes",
                    name_of(spec)
                ))));
            }
            Ok(text) => text,
            Err(why) => return Ok(Err(Absent(why))),
        };
        let sha256 = hex::encode(Sha256::digest(&text));
        if let Some(pinned) = spec.sha256.filter(|pinned| *pinned != sha256) {
            let why = format!("{}: its SHA-256 is {sha256} instead of {pinned}", name_of(spec));
            return Ok(Err(Absent(why)));
        }
        self.blobs.put_json(&keys::template(&sha256), &text).await?;
        if spec.sha256.is_none() {
            self.blobs.put_json(&keys::template_origin(&name_of(spec)), &sha256).await?;
        }
        Ok(Ok(TemplateText { sha256, text }))
    }

    /// Who has a file, whose it is, the parts of its address, and its path.
    fn place(&self, spec: &TemplateSpec) -> (&Hub, String, Vec<&'static str>, &'static str) {
        match spec.origin {
            TemplateOrigin::GitHub { repository, commit, path } => {
                let parts = repository.split('/').chain([commit]).chain(path.split('/'));
                (&self.github, repository.to_owned(), parts.collect(), path)
            }
            TemplateOrigin::Hub { id, commit, path } => {
                let parts = ["datasets"].into_iter().chain(id.split('/')).chain(["resolve", commit]);
                (&self.hub, id.to_owned(), parts.chain(path.split('/')).collect(), path)
            }
        }
    }
}

/// What there is without these texts.
fn without(specs: &[&TemplateSpec]) -> String {
    let mut by_role: BTreeMap<TemplateRole, Vec<String>> = BTreeMap::new();
    for spec in specs {
        by_role.entry(spec.role).or_default().push(format!("`{}`", spec.name));
    }
    let said = by_role.into_iter().map(|(role, names)| {
        let (s, names) = (if names.len() == 1 { "" } else { "s" }, names.join(", "));
        match role {
            TemplateRole::Wording => format!("own wording instead of the official text{s} {names}"),
            TemplateRole::Program => format!("own grader instead of the official program{s} {names}"),
            TemplateRole::Given => format!("items with the given step{s} {names} cannot be asked"),
        }
    });
    said.collect::<Vec<_>>().join(", ")
}

/// A file of an origin, or why it could not be had.
async fn download(
    hub: &Hub,
    dataset: &str,
    place: &[&str],
    unreachable: &mut HashMap<String, String>,
    progress: &dyn Progress,
) -> Result<Vec<u8>, String> {
    let mut out_of_reach = |why: String| {
        unreachable.insert(hub.config().hub_url.clone(), why.clone());
        Err(why)
    };
    let file = hub.small_file(dataset, place, FILE_BYTES_MAX, progress);
    match tokio::time::timeout(FILE_TIME_MAX, file).await {
        Ok(Ok(file)) => Ok(file),
        Ok(Err(DatasetError::Unreachable { hub, problem })) => {
            out_of_reach(format!("{hub} could not be reached ({problem})"))
        }
        Ok(Err(DatasetError::NotFound { dataset, problem })) => {
            Err(format!("{} was not found in {dataset} ({problem})", place.join("/")))
        }
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => out_of_reach(format!(
            "{} did not answer within {} s",
            hub.config().hub_url,
            FILE_TIME_MAX.as_secs()
        )),
    }
}

/// What tells an official text apart, for people and for its note in the blob store.
fn name_of(spec: &TemplateSpec) -> String {
    let origin = match spec.origin {
        TemplateOrigin::GitHub { repository, commit, path } => format!("github {repository}@{commit}/{path}"),
        TemplateOrigin::Hub { id, commit, path } => format!("hub {id}@{commit}/{path}"),
    };
    format!("{origin}, {}", spec.part)
}

/// An object that is damaged is had anew.
fn readable<T, E>(read: Result<T, E>) -> Result<Option<T>, DatasetError>
where
    DatasetError: From<E>,
{
    match read.map_err(DatasetError::from) {
        Ok(value) => Ok(Some(value)),
        Err(DatasetError::Blob(BlobError::Damaged { key, problem })) => {
            tracing::warn!(key, problem, "An official text cannot be read and is had anew");
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// The official texts that a plan was made with, by name.
///
/// # Errors
/// When the blob store fails, or has one of them no more: then no prompt can be made as it was planned.
pub async fn load_templates(
    blobs: &Blobs,
    digests: &BTreeMap<String, String>,
) -> Result<BTreeMap<String, String>, DatasetError> {
    let mut texts = BTreeMap::new();
    for (name, sha256) in digests {
        let gone = || DatasetError::TemplateGone { name: name.clone(), sha256: sha256.clone() };
        texts.insert(name.clone(), load_template(blobs, sha256).await?.ok_or_else(gone)?);
    }
    Ok(texts)
}

/// The official text of that digest, if it is in the blob store.
///
/// # Errors
/// When the blob store fails, or what it has under the digest is another text.
pub async fn load_template(blobs: &Blobs, sha256: &str) -> Result<Option<String>, DatasetError> {
    let key = keys::template(sha256);
    let Some(text) = blobs.get_json::<String>(&key).await? else { return Ok(None) };
    let found = hex::encode(Sha256::digest(&text));
    if found != sha256 {
        let problem = format!("the SHA-256 of its text is {found}");
        return Err(BlobError::Damaged { key, problem }.into());
    }
    Ok(Some(text))
}
