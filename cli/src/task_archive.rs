//! Terminal tasks on this machine's disk, as archives for the store of tasks.

use std::fs::{self, File};
use std::io::{Cursor, Read, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use bench_tasks::{ARCHIVE_BYTES_MAX, EXPANDED_BYTES_MAX, TaskLimits};
use bench_terminal_tasks::{AdmissionLimits, AdmittedTask, admit_archive};
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use crate::exit::Problem;
use crate::output;

/// Files that make a folder a task.
const TASK_FILES: [&str; 2] = ["task.toml", "task.yaml"];
/// Maximum number of folders without a task that are named.
const SKIPPED_MAX: usize = 10;
/// Maximum number of files of a task.
const FILES_MAX: usize = 10_000;

/// An archive to upload.
#[derive(Debug)]
pub(crate) struct TaskArchive {
    /// Name of the folder or file.
    pub(crate) name: String,
    /// The ZIP archive.
    pub(crate) bytes: Vec<u8>,
}

/// A task of an order.
#[derive(Debug)]
pub(crate) enum GivenTask {
    /// Files on this machine.
    Archive(TaskArchive),
    /// Id or name of a stored task.
    Stored(String),
}

impl GivenTask {
    /// Returns the task's name as the user gave it.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Archive(archive) => &archive.name,
            Self::Stored(name) => name,
        }
    }
}

impl TaskArchive {
    /// Reads the task in the archive.
    ///
    /// # Errors
    /// Names file and line of a task that isn't admitted.
    pub(crate) fn read(&self) -> anyhow::Result<AdmittedTask> {
        let (trees, limits) = (TaskLimits::default().tree, AdmissionLimits::any_demand());
        let admitted = admit_archive(Cursor::new(&self.bytes), trees, &limits);
        admitted.with_context(|| format!("the task `{}` was not accepted", self.name))
    }

    /// Returns the content hash of the task in the archive.
    ///
    /// # Errors
    /// Names file and line of a task that isn't admitted.
    pub(crate) fn content_hash(&self) -> anyhow::Result<String> {
        Ok(self.read()?.hash.to_string())
    }
}

/// Reads the tasks of an order. A name that no file has may be that of a stored task, or its id.
pub(crate) fn read_given(given: &[PathBuf]) -> anyhow::Result<Vec<GivenTask>> {
    let mut tasks = Vec::new();
    for path in given {
        match path.to_str().filter(|text| !path.exists() && !text.contains(std::path::MAIN_SEPARATOR)) {
            Some(name) if !name.ends_with(".zip") => tasks.push(GivenTask::Stored(name.to_owned())),
            _ => tasks.extend(read(path)?.into_iter().map(GivenTask::Archive)),
        }
    }
    Ok(tasks)
}

/// Reads the tasks at all paths.
pub(crate) fn read_all(paths: &[PathBuf]) -> anyhow::Result<Vec<TaskArchive>> {
    read_each(paths).into_iter().map(|(_, task)| task).collect()
}

/// Reads the tasks at all paths. Returns the name of each, and the task or the reason why it can't be packed. A path without
/// a task counts as one that can't be packed.
pub(crate) fn read_each(paths: &[PathBuf]) -> Vec<(String, anyhow::Result<TaskArchive>)> {
    let mut tasks = Vec::new();
    for path in paths {
        match read_at(path) {
            Ok(read) => tasks.extend(read),
            Err(error) => tasks.push((name_of(path), Err(error))),
        }
    }
    tasks
}

/// Reads the tasks at a path.
fn read(path: &Path) -> anyhow::Result<Vec<TaskArchive>> {
    read_at(path)?.into_iter().map(|(_, task)| task).collect()
}

/// Reads the tasks at a path: a ZIP archive, a task's folder, or a folder of such folders. A folder that can't be packed
/// doesn't keep the others from being read.
fn read_at(path: &Path) -> anyhow::Result<Vec<(String, anyhow::Result<TaskArchive>)>> {
    let shown = path.display();
    let metadata = fs::metadata(path)
        .map_err(|error| Problem::usage(format!("could not read the task `{shown}`: {error}")))?;
    if metadata.is_file() {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if matches!(name, "task.toml" | "task.yaml") {
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
            return Err(Problem::usage(format!("`{shown}` is a file of a task"))
                .hint(format!("give its folder: {}", folder.unwrap_or(Path::new(".")).display()))
                .into());
        }
        if metadata.len() > ARCHIVE_BYTES_MAX {
            let why = format!("`{shown}` has more than {ARCHIVE_BYTES_MAX} bytes");
            return Err(Problem::usage(why).into());
        }
        let bytes = fs::read(path).with_context(|| format!("could not read `{shown}`"))?;
        let name = stem(path);
        return Ok(vec![(name.clone(), Ok(TaskArchive { name, bytes }))]);
    }
    if is_task(path) {
        return Ok(vec![(name_of(path), archive(path))]);
    }
    let entries = fs::read_dir(path).with_context(|| format!("could not read `{shown}`"))?;
    let entries = entries.filter_map(|entry| Some(entry.ok()?.path())).filter(|path| !is_hidden(path));
    let (mut folders, mut others): (Vec<PathBuf>, Vec<PathBuf>) = entries.partition(|path| is_task(path));
    folders.sort();
    others.sort();
    if folders.is_empty() {
        return Err(Problem::usage(format!("`{shown}` is not a terminal task, and has none in its folders"))
            .hint("a task's folder has the file task.toml (Harbor) or task.yaml (Terminal-Bench 1)")
            .into());
    }
    // A task that lost its configuration must not be left out without a word.
    let skipped = |path: &&PathBuf| path.is_dir() || path.extension().is_some_and(|end| end == "zip");
    for path in others.iter().filter(skipped).take(SKIPPED_MAX) {
        output::warn(&format!("`{}` is left out: it has neither task.toml nor task.yaml", path.display()));
    }
    Ok(folders.iter().map(|folder| (name_of(folder), archive(folder))).collect())
}

fn is_hidden(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'))
}

fn is_task(folder: &Path) -> bool {
    folder.is_dir() && TASK_FILES.iter().any(|file| folder.join(file).is_file())
}

fn stem(path: &Path) -> String {
    path.file_stem().map_or_else(|| "task".to_owned(), |name| name.to_string_lossy().into_owned())
}

/// Returns the name of a task's folder.
pub(crate) fn name_of(folder: &Path) -> String {
    // The folder may be `.`, whose name only the resolved path has.
    let resolved = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    resolved.file_name().map_or_else(|| "task".to_owned(), |name| name.to_string_lossy().into())
}

/// Packs a task's folder.
fn archive(folder: &Path) -> anyhow::Result<TaskArchive> {
    let resolved = folder.canonicalize().with_context(|| format!("could not read `{}`", folder.display()))?;
    let name = name_of(folder);
    let packed = Packed {
        what: "task",
        prefix: format!("{name}/"),
        bytes_max: EXPANDED_BYTES_MAX,
        advice: "let its Dockerfile download or make large files",
    };
    let bytes = pack(&resolved, folder, &packed)?;
    Ok(TaskArchive { name, bytes })
}

/// Kind of a folder that is packed.
pub(crate) struct Packed {
    /// Noun in messages: `task` or `agent`.
    pub(crate) what: &'static str,
    /// Beginning of the paths in the archive.
    pub(crate) prefix: String,
    /// Maximum size of the files, in bytes.
    pub(crate) bytes_max: u64,
    /// Advice if they are too large.
    pub(crate) advice: &'static str,
}

/// Packs a folder, which the user named `given`, as a ZIP archive. The same files give the same bytes.
///
/// # Errors
/// If a file can't be read or is a link, or the files are too many or too large.
pub(crate) fn pack(resolved: &Path, given: &Path, packed: &Packed) -> anyhow::Result<Vec<u8>> {
    let Packed { what, prefix, bytes_max, advice } = packed;
    let mut files = Vec::new();
    list(resolved, what, &mut files)?;
    files.sort();
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    let mut left = *bytes_max;
    for path in files {
        let shown = path.display();
        let inner = path.strip_prefix(resolved).unwrap_or(&path);
        let inner = inner
            .to_str()
            .ok_or_else(|| Problem::usage(format!("`{shown}` has a name that is not UTF-8")))?;
        let file = File::open(&path).with_context(|| format!("could not read `{shown}`"))?;
        let mut content = Vec::new();
        file.take(left + 1).read_to_end(&mut content).with_context(|| format!("could not read `{shown}`"))?;
        left = left.checked_sub(content.len() as u64).ok_or_else(|| {
            Problem::usage(format!("the {what} `{}` has more than {bytes_max} bytes", given.display()))
                .hint(*advice)
        })?;
        let options = SimpleFileOptions::default()
            .last_modified_time(zip::DateTime::default())
            .unix_permissions(mode(&path));
        zip.start_file(format!("{prefix}{inner}"), options)?;
        zip.write_all(&content)?;
    }
    Ok(zip.finish()?.into_inner())
}

/// Lists the files of a folder. Links are refused, since they may lead out of the folder.
fn list(folder: &Path, what: &str, files: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    let entries = fs::read_dir(folder).with_context(|| format!("could not read `{}`", folder.display()))?;
    for entry in entries {
        let entry = entry?;
        let (path, kind) = (entry.path(), entry.file_type()?);
        if kind.is_dir() {
            list(&path, what, files)?;
        } else if kind.is_file() {
            files.push(path);
        } else {
            let is_what = if kind.is_symlink() { "a link" } else { "neither a file nor a folder" };
            return Err(Problem::usage(format!("`{}` is {is_what}", path.display()))
                .hint(format!(
                    "{} {what} has no links, pipes or devices: copy the file to where it is needed",
                    if what.starts_with('a') { "an" } else { "a" }
                ))
                .into());
        }
        if files.len() > FILES_MAX {
            let why = format!("`{}` has more than {FILES_MAX} files", folder.display());
            return Err(Problem::usage(why).into());
        }
    }
    Ok(())
}

#[cfg(unix)]
fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt;
    let is_executable = fs::metadata(path).is_ok_and(|metadata| metadata.permissions().mode() & 0o111 != 0);
    if is_executable { 0o755 } else { 0o644 }
}

#[cfg(not(unix))]
fn mode(_path: &Path) -> u32 {
    0o644
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_a_task_a_folder_of_tasks_or_an_archive() {
        let folder = tempfile::tempdir().unwrap();
        let tasks = folder.path().join("tasks");
        for name in ["b", "a"] {
            fs::create_dir_all(tasks.join(name).join("tests")).unwrap();
            fs::write(tasks.join(name).join("task.toml"), "").unwrap();
            fs::write(tasks.join(name).join("tests/test.sh"), name).unwrap();
        }
        fs::create_dir_all(tasks.join("other")).unwrap();
        let all = read(&tasks).unwrap();
        assert_eq!(all.iter().map(|task| task.name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
        let one = read(&tasks.join("a")).unwrap();
        assert_eq!(one[0].bytes, all[0].bytes, "the same files give the same bytes");
        let packed = folder.path().join("packed.zip");
        fs::write(&packed, &one[0].bytes).unwrap();
        let packed = read(&packed).unwrap();
        assert_eq!((packed[0].name.as_str(), packed[0].bytes.len()), ("packed", one[0].bytes.len()));
        assert!(read(&tasks.join("other")).unwrap_err().to_string().contains("is not a terminal task"));
        assert!(read(&tasks.join("none")).is_err());
    }

    #[cfg(unix)]
    #[test]
    fn links_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("task.toml"), "").unwrap();
        std::os::unix::fs::symlink("/etc/passwd", folder.path().join("link")).unwrap();
        let error = read(folder.path()).unwrap_err();
        assert!(error.to_string().ends_with("/link` is a link"), "{error}");
        // A folder of tasks has the others nevertheless.
        let tasks = tempfile::tempdir().unwrap();
        fs::create_dir(tasks.path().join("good")).unwrap();
        fs::write(tasks.path().join("good/task.toml"), "").unwrap();
        std::os::unix::fs::symlink(folder.path(), tasks.path().join("broken")).unwrap();
        let read = read_each(&[tasks.path().to_owned(), tasks.path().join("none")]);
        let kinds: Vec<_> = read.iter().map(|(_, task)| task.is_ok()).collect();
        assert_eq!(kinds, [false, true, false]);
        assert_eq!(read[2].0, "none");
    }
}
