//! Files of the official tag: from its archive, or from a source tree. Every file is checked by its digest.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Seek, Write};
use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use bench_benchmarks::tau_bench_telecom::PACKAGE_VERSION;
use sha2::{Digest, Sha256};
use zip::ZipArchive;

use crate::exit::Problem;
use crate::output;

/// Files that are installed, each with its SHA-256 in the tag, in the format of `sha256sum`.
const FILES: &str = include_str!("../../../../../../shared/sandbox/tau2-files.txt");
/// Address of the source archive of the tag.
const ARCHIVE: &str = "https://github.com/sierra-research/tau2-bench/archive/refs/tags/v1.0.1.zip";
/// File with the version of a source tree.
const PROJECT: &str = "pyproject.toml";
/// Maximum size of an archive, in bytes. It has recordings, too.
const ARCHIVE_BYTES_MAX: u64 = 2 << 30;
/// Maximum size of a file, in bytes. The largest is the file of all tasks, with 14 MB.
const FILE_BYTES_MAX: u64 = 64 << 20;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
const SILENCE_MAX: Duration = Duration::from_secs(60);
/// Number of files in a message.
const NAMES_MAX: usize = 3;

/// Returns the digest of the package: of the list of its files with their digests.
pub(super) fn digest() -> String {
    hex::encode(Sha256::digest(FILES))
}

/// Returns the files with their digests.
fn files() -> impl Iterator<Item = (&'static str, &'static str)> {
    FILES.lines().filter_map(|line| line.split_once("  ")).map(|(digest, path)| (path, digest))
}

/// Files of the tag, checked.
pub(super) struct Source(BTreeMap<&'static str, Vec<u8>>);

impl Source {
    /// Reads the files from a source tree or an archive, or downloads the archive.
    pub(super) async fn read(named: Option<&Path>) -> anyhow::Result<Self> {
        match named {
            Some(path) if path.is_dir() => {
                Self::checked(&format!("`{}`", path.display()), |file| read_file(&path.join(file)))
            }
            Some(path) => {
                let archive = fs::File::open(path)
                    .map_err(|error| Problem::usage(format!("--source: `{}`: {error}", path.display())))?;
                Self::unpack(&format!("`{}`", path.display()), archive)
            }
            None => {
                output::note(&format!("Downloading {ARCHIVE}"));
                let archive = download(ARCHIVE).await.map_err(|why| {
                    Problem::failure(format!("could not download the source archive of tau2: {why}"))
                        .hint("download it on another machine, and name it with --source")
                })?;
                Self::unpack("the archive", archive)
            }
        }
    }

    fn unpack(what: &str, archive: impl Read + Seek) -> anyhow::Result<Self> {
        let not_one = |why: String| {
            Problem::failure(format!("{what} is not a source tree or ZIP archive of tau2: {why}"))
        };
        let mut archive = ZipArchive::new(archive).map_err(|error| not_one(error.to_string()))?;
        // An archive of a tag has one folder, named by the tag; others may have none.
        let root = archive
            .file_names()
            .filter_map(|name| name.ok()?.strip_suffix(PROJECT).map(str::to_owned))
            .filter(|folder| folder.is_empty() || folder.matches('/').count() == 1 && folder.ends_with('/'))
            .min_by_key(String::len);
        let root = root.ok_or_else(|| not_one(format!("it has no {PROJECT}")))?;
        Self::checked(what, |file| {
            let mut entry = match archive.by_name(&format!("{root}{file}")) {
                Ok(entry) => entry,
                Err(zip::result::ZipError::FileNotFound) => return Ok(None),
                Err(error) => return Err(not_one(format!("{file}: {error}")).into()),
            };
            read_bounded(&mut entry, file).map(Some)
        })
    }

    /// Reads all files, and compares their digests.
    fn checked(
        what: &str,
        mut read: impl FnMut(&str) -> anyhow::Result<Option<Vec<u8>>>,
    ) -> anyhow::Result<Self> {
        let project = read(PROJECT)?;
        let version = project.as_deref().and_then(project_version);
        match version {
            None => {
                return Err(Problem::failure(format!(
                    "{what} is not a source tree or ZIP archive of tau2: it has no {PROJECT} of tau2"
                ))
                .into());
            }
            Some(version) if version != PACKAGE_VERSION => {
                return Err(Problem::failure(format!(
                    "{what} is tau2 {version}, and {PACKAGE_VERSION} is needed"
                ))
                .hint(format!("name the source of the tag v{PACKAGE_VERSION}"))
                .into());
            }
            Some(_) => {}
        }
        let mut all = BTreeMap::new();
        let mut wrong = Vec::new();
        for (path, digest) in files() {
            match read(path)? {
                None => wrong.push(format!("{path} is missing")),
                Some(bytes) if hex::encode(Sha256::digest(&bytes)) != digest => {
                    wrong.push(format!("{path} was changed"));
                }
                Some(bytes) => {
                    all.insert(path, bytes);
                }
            }
        }
        if wrong.is_empty() {
            return Ok(Self(all));
        }
        let more = wrong.len().checked_sub(NAMES_MAX).filter(|more| *more > 0);
        let more = more.map(|more| format!(", and {more} more")).unwrap_or_default();
        let named = wrong.iter().take(NAMES_MAX).cloned().collect::<Vec<_>>().join(", ");
        Err(Problem::failure(format!("{what} differs from tau2 {PACKAGE_VERSION}: {named}{more}"))
            .hint(format!("name an unchanged source of the tag v{PACKAGE_VERSION}"))
            .into())
    }

    /// Writes the files into a folder.
    pub(super) fn write(&self, folder: &Path) -> anyhow::Result<()> {
        for (path, bytes) in &self.0 {
            let path = folder.join(path);
            let parent = path.parent().unwrap_or(folder);
            fs::create_dir_all(parent)
                .and_then(|()| fs::write(&path, bytes))
                .with_context(|| format!("could not write {}", path.display()))?;
        }
        Ok(())
    }
}

/// Returns the version of a project file of tau2.
fn project_version(project: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(project);
    let value = |name: &str| {
        let line =
            text.lines().find_map(|line| line.trim().strip_prefix(name)?.trim_start().strip_prefix('='));
        line.map(|value| value.trim().trim_matches(['"', '\'']).to_owned())
    };
    (value("name")? == "tau2").then(|| value("version")).flatten()
}

fn read_file(path: &Path) -> anyhow::Result<Option<Vec<u8>>> {
    let failed = || format!("could not read {}", path.display());
    let mut file = match fs::File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).with_context(failed),
    };
    read_bounded(&mut file, &path.display().to_string()).map(Some)
}

fn read_bounded(file: &mut impl Read, name: &str) -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut limited = file.take(FILE_BYTES_MAX + 1);
    limited.read_to_end(&mut bytes).with_context(|| format!("could not read {name}"))?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(Problem::failure(format!("{name} is larger than {} MiB", FILE_BYTES_MAX >> 20)).into());
    }
    Ok(bytes)
}

/// Downloads an archive into a temporary file. What it has is checked by digests afterwards.
async fn download(address: &str) -> Result<fs::File, String> {
    let client = bench_inference::http_client(false, |builder| {
        builder
            .redirect(reqwest::redirect::Policy::limited(5))
            .connect_timeout(CONNECT_TIMEOUT)
            .read_timeout(SILENCE_MAX)
    })
    .map_err(|error| error.to_string())?;
    let describe = |error: reqwest::Error| match error.is_connect() {
        true => "the server cannot be reached".to_owned(),
        false => error.without_url().to_string(),
    };
    let mut response = client.get(address).send().await.map_err(describe)?;
    if !response.status().is_success() {
        return Err(format!("the server answered {}", response.status()));
    }
    let no_file = |error: std::io::Error| format!("could not write a temporary file: {error}");
    let mut file = tempfile::tempfile().map_err(no_file)?;
    let mut bytes = 0;
    while let Some(piece) = response.chunk().await.map_err(describe)? {
        bytes += piece.len() as u64;
        if bytes > ARCHIVE_BYTES_MAX {
            return Err(format!("it is larger than {} GiB", ARCHIVE_BYTES_MAX >> 30));
        }
        file.write_all(&piece).map_err(no_file)?;
    }
    file.rewind().map_err(no_file)?;
    Ok(file)
}

#[cfg(test)]
mod tests;
