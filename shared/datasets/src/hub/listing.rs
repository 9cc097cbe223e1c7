//! What is in a dataset's repository.

use std::collections::BTreeMap;

use bench_items::{Part, PartFile};
use reqwest::Url;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{Failure, Hub, Patience, limited, select};
use crate::error::DatasetError;
use crate::progress::{Progress, Step};

/// Bytes of an answer of the hub's API: the largest repositories list 100,000 files.
const API_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Files of one part of a dataset.
const FILES_MAX: usize = 2_000;

/// A dataset's repository at one commit.
#[derive(Debug)]
pub(crate) struct Repository {
    id: String,
    /// The commit.
    pub(crate) commit: String,
    files: Vec<RemoteFile>,
    /// The head of the dataset card.
    card: Value,
    /// What it was asked for by.
    reference: String,
}

/// A file that can be downloaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RemoteFile {
    /// Path within the repository, or what stands for it.
    pub(crate) path: String,
    pub(crate) url: Url,
    /// Its length, when the hub told.
    pub(crate) bytes: Option<u64>,
    /// SHA-256 of its content, when the hub told.
    pub(crate) sha256: Option<String>,
}

impl Repository {
    /// The file of that path.
    pub(crate) fn file(&self, path: &str) -> Result<RemoteFile, DatasetError> {
        let found = self.files.iter().find(|file| file.path == path).cloned();
        found.ok_or_else(|| DatasetError::not_found(&self.id, format!("{} has no file {path}", self.commit)))
    }
}

#[derive(Deserialize)]
struct RevisionAnswer {
    sha: String,
    #[serde(default)]
    siblings: Vec<Sibling>,
    #[serde(default, rename = "cardData")]
    card: Value,
}

#[derive(Deserialize)]
struct Sibling {
    rfilename: String,
    #[serde(default)]
    size: Option<u64>,
    #[serde(default)]
    lfs: Value,
}

impl Hub {
    /// The repository of a dataset at a commit, tag or branch.
    pub(crate) async fn repository(
        &self,
        id: &str,
        reference: &str,
        progress: &dyn Progress,
    ) -> Result<Repository, DatasetError> {
        progress.step(Step::Resolving { dataset: id });
        let answer = self.revision(id, reference, progress).await?;
        let mut files = Vec::with_capacity(answer.siblings.len());
        for sibling in answer.siblings {
            let parts = ["datasets"].into_iter().chain(id.split('/')).chain(["resolve", &answer.sha]);
            let url = self.url(parts.chain(sibling.rfilename.split('/')))?;
            let sha256 = sibling.lfs.get("sha256").and_then(Value::as_str).map(str::to_lowercase);
            files.push(RemoteFile { path: sibling.rfilename, url, bytes: sibling.size, sha256 });
        }
        let (id, reference) = (id.to_owned(), reference.to_owned());
        Ok(Repository { id, commit: answer.sha, files, card: answer.card, reference })
    }

    /// Whether this is what `main` is now, which alone is converted to parquet: a branch or commit may well be.
    async fn is_head(&self, repository: &Repository, progress: &dyn Progress) -> bool {
        if repository.reference == "main" {
            return true;
        }
        let head = self.revision(&repository.id, "main", progress).await;
        head.is_ok_and(|head| head.sha == repository.commit)
    }

    /// The files of one part. Looked at is, in this order, what the layout names, what is in the repository in a form
    /// that is read here, and what the hub has converted.
    pub(crate) async fn files(
        &self,
        repository: &Repository,
        part: Part,
        named: &[PartFile],
        progress: &dyn Progress,
    ) -> Result<Vec<RemoteFile>, DatasetError> {
        let named: Vec<_> = named.iter().filter(|file| file.part == part).collect();
        if !named.is_empty() {
            return named.into_iter().map(|file| repository.file(file.path)).collect();
        }
        let paths: Vec<&str> = repository.files.iter().map(|file| file.path.as_str()).collect();
        let chosen = select::files(&paths, &repository.card, part);
        let chosen: Vec<_> =
            chosen.into_iter().filter_map(|index| repository.files.get(index).cloned()).collect();
        let chosen =
            if chosen.is_empty() { self.converted(repository, part, progress).await? } else { chosen };
        if chosen.len() > FILES_MAX {
            let problem = format!("split {} has more than {FILES_MAX} files", part.split);
            return Err(DatasetError::Refused { dataset: repository.id.clone(), status: None, problem });
        }
        Ok(chosen)
    }

    async fn converted(
        &self,
        repository: &Repository,
        part: Part,
        progress: &dyn Progress,
    ) -> Result<Vec<RemoteFile>, DatasetError> {
        let missing = |why: &str| {
            let problem = format!(
                "no parquet, JSONL or CSV files of configuration {}, split {}{why}",
                part.config, part.split
            );
            DatasetError::not_found(&repository.id, problem)
        };
        if !self.is_head(repository, progress).await {
            return Err(missing("; only what is on `main` is converted"));
        }
        let parts = ["api", "datasets"].into_iter().chain(repository.id.split('/')).chain(["parquet"]);
        let url = self.url(parts)?;
        let answer: BTreeMap<String, BTreeMap<String, Vec<String>>> =
            match self.json(&repository.id, url, progress).await {
                Ok(answer) => answer,
                Err(DatasetError::NotFound { .. }) => return Err(missing("")),
                Err(error) => return Err(error),
            };
        let config = select::config_name(answer.keys().map(String::as_str), part.config);
        let urls = config.and_then(|config| answer.get(config)).and_then(|splits| splits.get(part.split));
        let urls = urls.filter(|urls| !urls.is_empty()).ok_or_else(|| missing(""))?;
        let mut files = Vec::with_capacity(urls.len());
        for (number, text) in urls.iter().enumerate() {
            let refused = |problem: String| DatasetError::Refused {
                dataset: repository.id.clone(),
                status: None,
                problem,
            };
            let url = Url::parse(text).map_err(|error| refused(format!("`{text}`: {error}")))?;
            let path = format!("converted/{}/{}/{number}.parquet", part.config, part.split);
            files.push(RemoteFile { path, url: self.at_this_hub(url)?, bytes: None, sha256: None });
        }
        Ok(files)
    }

    /// A mirror hands out addresses of the hub that it mirrors.
    fn at_this_hub(&self, url: Url) -> Result<Url, DatasetError> {
        if url.host_str() != Some("huggingface.co") {
            return Ok(url);
        }
        let mut own = self.url([])?;
        let path = format!("{}{}", own.path().trim_end_matches('/'), url.path());
        own.set_path(&path);
        own.set_query(url.query());
        Ok(own)
    }

    async fn revision(
        &self,
        id: &str,
        reference: &str,
        progress: &dyn Progress,
    ) -> Result<RevisionAnswer, DatasetError> {
        let parts = ["api", "datasets"].into_iter().chain(id.split('/')).chain(["revision", reference]);
        let mut url = self.url(parts)?;
        // Adds length and checksum of each file.
        url.set_query(Some("blobs=true"));
        let answer: RevisionAnswer = self.json(id, url, progress).await?;
        let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        if answer.sha.is_empty() || answer.sha.len() > 64 || !answer.sha.chars().all(plain) {
            let problem = "it named no commit".to_owned();
            return Err(DatasetError::Refused { dataset: id.to_owned(), status: None, problem });
        }
        Ok(answer)
    }

    async fn json<T: DeserializeOwned>(
        &self,
        id: &str,
        url: Url,
        progress: &dyn Progress,
    ) -> Result<T, DatasetError> {
        let mut patience = Patience::default();
        loop {
            let failure = match self.get(id, url.clone(), None).await {
                Ok((response, _)) => match limited(response, API_BYTES_MAX).await {
                    // What is no JSON comes from something on the way, such as a login page.
                    Ok(body) => match serde_json::from_slice(&body) {
                        Ok(answer) => return Ok(answer),
                        Err(error) => {
                            Failure::passing(format!("its answer is not what it should be ({error})"))
                        }
                    },
                    Err(failure) => failure,
                },
                Err(failure) => failure,
            };
            patience.after(self, failure, progress).await?;
        }
    }
}
