//! Contents of a dataset's repository.

use std::collections::BTreeMap;

use bench_items::{Part, PartFile};
use reqwest::Url;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{Failure, Hub, RetryState, read_limited, select};
use crate::error::DatasetError;
use crate::progress::{Progress, Step};

/// Maximum size of a response of the hub's API. The largest repositories list 100,000 files.
const API_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Maximum number of files of one part of a dataset.
const FILES_MAX: usize = 2_000;

/// A dataset's repository at one commit.
#[derive(Debug)]
pub(crate) struct Repository {
    id: String,
    /// Commit id.
    pub(crate) commit: String,
    files: Vec<RemoteFile>,
    /// Metadata block of the dataset card.
    card: Value,
    /// Commit, tag or branch that was requested.
    reference: String,
}

/// A file that can be downloaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RemoteFile {
    /// Path within the repository, or a made-up path for converted files.
    pub(crate) path: String,
    pub(crate) url: Url,
    /// Length in bytes, if the hub reported it.
    pub(crate) bytes: Option<u64>,
    /// SHA-256 of the content, if the hub reported it.
    pub(crate) sha256: Option<String>,
}

impl Repository {
    /// Returns the file with that path.
    pub(crate) fn file(&self, path: &str) -> Result<RemoteFile, DatasetError> {
        let found = self.files.iter().find(|file| file.path == path).cloned();
        found.ok_or_else(|| DatasetError::not_found(&self.id, format!("{} has no file {path}", self.commit)))
    }
}

#[derive(Deserialize)]
struct RevisionResponse {
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
    /// Loads the repository of a dataset at a commit, tag or branch.
    pub(crate) async fn get_repository(
        &self,
        id: &str,
        reference: &str,
        progress: &dyn Progress,
    ) -> Result<Repository, DatasetError> {
        progress.step(Step::Resolving { dataset: id });
        let response = self.get_revision(id, reference, progress).await?;
        let mut files = Vec::with_capacity(response.siblings.len());
        for sibling in response.siblings {
            let parts = ["datasets"].into_iter().chain(id.split('/')).chain(["resolve", &response.sha]);
            let url = self.url(parts.chain(sibling.rfilename.split('/')))?;
            let sha256 = sibling.lfs.get("sha256").and_then(Value::as_str).map(str::to_lowercase);
            files.push(RemoteFile { path: sibling.rfilename, url, bytes: sibling.size, sha256 });
        }
        let (id, reference) = (id.to_owned(), reference.to_owned());
        Ok(Repository { id, commit: response.sha, files, card: response.card, reference })
    }

    /// Returns true if this commit is the current `main`. Only `main` is converted to Parquet, but another branch or
    /// commit id may point to the same commit.
    async fn is_head(&self, repository: &Repository, progress: &dyn Progress) -> bool {
        if repository.reference == "main" {
            return true;
        }
        let head = self.get_revision(&repository.id, "main", progress).await;
        head.is_ok_and(|head| head.sha == repository.commit)
    }

    /// Lists the files of one part. Tries, in this order, the files that the layout names, the files in the repository
    /// in a supported format, and the files that the hub has converted.
    pub(crate) async fn list_files(
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
        let chosen = select::list_files(&paths, &repository.card, part);
        let chosen: Vec<_> =
            chosen.into_iter().filter_map(|index| repository.files.get(index).cloned()).collect();
        let chosen =
            if chosen.is_empty() { self.converted_files(repository, part, progress).await? } else { chosen };
        if chosen.len() > FILES_MAX {
            let problem = format!("split {} has more than {FILES_MAX} files", part.split);
            return Err(DatasetError::Refused { dataset: repository.id.clone(), status: None, problem });
        }
        Ok(chosen)
    }

    async fn converted_files(
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
        let response: BTreeMap<String, BTreeMap<String, Vec<String>>> =
            match self.get_json(&repository.id, url, progress).await {
                Ok(response) => response,
                Err(DatasetError::NotFound { .. }) => return Err(missing("")),
                Err(error) => return Err(error),
            };
        let config = select::config_name(response.keys().map(String::as_str), part.config);
        let urls = config.and_then(|config| response.get(config)).and_then(|splits| splits.get(part.split));
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
            files.push(RemoteFile { path, url: self.rewrite_to_this_hub(url)?, bytes: None, sha256: None });
        }
        Ok(files)
    }

    /// Rewrites an address of the official hub to the configured hub, since mirrors return addresses of the hub that
    /// they mirror.
    fn rewrite_to_this_hub(&self, url: Url) -> Result<Url, DatasetError> {
        if url.host_str() != Some("huggingface.co") {
            return Ok(url);
        }
        let mut own = self.url([])?;
        let path = format!("{}{}", own.path().trim_end_matches('/'), url.path());
        own.set_path(&path);
        own.set_query(url.query());
        Ok(own)
    }

    async fn get_revision(
        &self,
        id: &str,
        reference: &str,
        progress: &dyn Progress,
    ) -> Result<RevisionResponse, DatasetError> {
        let parts = ["api", "datasets"].into_iter().chain(id.split('/')).chain(["revision", reference]);
        let mut url = self.url(parts)?;
        // Adds length and checksum of each file to the response.
        url.set_query(Some("blobs=true"));
        let response: RevisionResponse = self.get_json(id, url, progress).await?;
        let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        if response.sha.is_empty() || response.sha.len() > 64 || !response.sha.chars().all(plain) {
            let problem = "its response has no valid commit id".to_owned();
            return Err(DatasetError::Refused { dataset: id.to_owned(), status: None, problem });
        }
        Ok(response)
    }

    async fn get_json<T: DeserializeOwned>(
        &self,
        id: &str,
        url: Url,
        progress: &dyn Progress,
    ) -> Result<T, DatasetError> {
        let mut retries = RetryState::default();
        loop {
            let failure = match self.get(id, url.clone(), None).await {
                Ok((response, _)) => match read_limited(response, API_BYTES_MAX).await {
                    // A response that isn't JSON comes from an intermediary, such as a login page.
                    Ok(body) => match serde_json::from_slice(&body) {
                        Ok(response) => return Ok(response),
                        Err(error) => Failure::transient(format!("unexpected response ({error})")),
                    },
                    Err(failure) => failure,
                },
                Err(failure) => failure,
            };
            retries.wait_or_fail(self, failure, progress).await?;
        }
    }
}
