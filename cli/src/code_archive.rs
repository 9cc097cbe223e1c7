//! Programming tasks on this machine's disk.

use std::fs;
use std::io::{Cursor, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use bench_benchmarks::code_lab::task_row;
use bench_code_tasks::{CodeTask, METADATA_FILE, TASK_BYTES_MAX, TaskFiles};
use bench_terminal_tasks::{ARCHIVE_BYTES_MAX, Archive};
use tempfile::TempDir;

use crate::exit::Problem;
use crate::output;
use crate::task_archive::{Packed, name_of, pack};

/// Maximum number of entries of an archive whose kind is looked up.
const ENTRIES_MAX: usize = 10_000;
/// Folder of the project that a task is about, unless its metadata names another one.
const WORKSPACE_FOLDER: &str = "workspace";
/// File with the instructions of a task.
const INSTRUCTIONS_FILE: &str = "instructions.md";
/// Folder of the hidden tests of a task.
const TESTS_FOLDER: &str = "tests";
/// Maximum number of terminal tasks that are named as left out.
const SKIPPED_MAX: usize = 10;
/// Configuration files of terminal tasks: each task has one of these.
const TERMINAL_TASK_FILES: [&str; 2] = ["task.toml", "task.yaml"];

/// A programming task and where it was read from.
#[derive(Debug)]
pub(crate) struct CodeArchive {
    /// Name of the folder or file.
    pub(crate) name: String,
    /// Its folder; `None` for a ZIP archive.
    pub(crate) folder: Option<PathBuf>,
    /// Its files.
    pub(crate) files: TaskFiles,
}

impl CodeArchive {
    /// Reads the task in the files.
    ///
    /// # Errors
    /// Names file and line of what is missing or wrong.
    pub(crate) fn read(&self) -> anyhow::Result<CodeTask> {
        CodeTask::read(&self.files, &self.name)
            .map_err(|refusal| Problem::failure(format!("the task `{}`: {refusal}", self.name)).into())
    }
}

/// Splits paths into those of programming tasks, and the others. A folder of tasks is one of programming tasks if any of its
/// folders has `metadata.json`, or if none is a terminal task and one looks like a programming task.
pub(crate) fn split(paths: &[PathBuf]) -> anyhow::Result<(Vec<PathBuf>, Vec<PathBuf>)> {
    let (mut code, mut others) = (Vec::new(), Vec::new());
    for path in paths {
        if is_terminal_task(path) {
            others.push(path.clone());
            continue;
        }
        let mut inner: Vec<PathBuf> = match fs::read_dir(path) {
            Ok(entries) => entries.filter_map(|entry| Some(entry.ok()?.path())).collect(),
            Err(_) => Vec::new(),
        };
        inner.sort();
        let has_described = inner.iter().any(|path| is_described(path));
        let is_single = is_described(path) || (is_task(path) && !has_described);
        if is_single || is_archive(path) {
            code.push(path.clone());
            continue;
        }
        let (terminal, mut inner): (Vec<PathBuf>, Vec<PathBuf>) =
            inner.into_iter().partition(|path| is_terminal_task(path));
        inner.retain(|path| is_task(path));
        if inner.is_empty() || !(has_described || terminal.is_empty()) {
            others.push(path.clone());
            continue;
        }
        for path in terminal.iter().take(SKIPPED_MAX) {
            output::warn(&format!(
                "`{}` is left out: it is a terminal task beside programming tasks",
                path.display()
            ));
        }
        code.extend(inner);
    }
    Ok((code, others))
}

/// Reads a programming task: a folder or a ZIP archive.
///
/// # Errors
/// If it can't be read, has a link or an unsafe name, or is too large.
pub(crate) fn read(path: &Path) -> anyhow::Result<CodeArchive> {
    let is_folder = path.is_dir();
    let (name, bytes) = if is_folder {
        let resolved = path.canonicalize().with_context(|| format!("could not read `{}`", path.display()))?;
        let packed = Packed {
            what: "task",
            prefix: String::new(),
            bytes_max: TASK_BYTES_MAX,
            advice: "remove build output, caches and large files",
        };
        (name_of(path), pack(&resolved, path, &packed)?)
    } else {
        if fs::metadata(path).is_ok_and(|metadata| metadata.len() > ARCHIVE_BYTES_MAX) {
            let why = format!("`{}` has more than {ARCHIVE_BYTES_MAX} bytes", path.display());
            return Err(Problem::usage(why).into());
        }
        let bytes = fs::read(path).with_context(|| format!("could not read `{}`", path.display()))?;
        (
            path.file_stem().map_or_else(|| "task".to_owned(), |stem| stem.to_string_lossy().into_owned()),
            bytes,
        )
    };
    let refused = |refusal| Problem::failure(format!("the task `{name}`: {refusal}"));
    let files = TaskFiles::from_archive(Cursor::new(bytes)).and_then(|files| files.rooted_at(METADATA_FILE));
    let files = files.map_err(refused)?;
    Ok(CodeArchive { name, folder: is_folder.then(|| path.to_owned()), files })
}

/// Programming tasks as a file that can be imported as a dataset.
#[derive(Debug)]
pub(crate) struct PackedTasks {
    /// The file, which is removed with this value.
    pub(crate) path: PathBuf,
    _folder: TempDir,
}

/// Packs the programming tasks at a path into a dataset. Returns `None` if there are none, as for a file of rows.
///
/// # Errors
/// If a task can't be read.
pub(crate) fn as_dataset(path: &Path) -> anyhow::Result<Option<PackedTasks>> {
    let (tasks, _) = split(&[path.to_owned()])?;
    if tasks.is_empty() {
        return Ok(None);
    }
    let folder = tempfile::tempdir().context("could not create a temporary folder")?;
    let packed = folder.path().join(format!("{}.jsonl", name_of(path)));
    let mut file = std::io::BufWriter::new(fs::File::create(&packed)?);
    for path in &tasks {
        let archive = read(path)?;
        let task = archive.read()?;
        serde_json::to_writer(&mut file, &task_row(&task.id, &archive.files))?;
        file.write_all(b"\n")?;
    }
    file.flush()?;
    Ok(Some(PackedTasks { path: packed, _folder: folder }))
}

/// Returns true for a folder with the metadata of a programming task.
fn is_described(folder: &Path) -> bool {
    folder.join(METADATA_FILE).is_file()
}

/// Returns true for the folder of a programming task, also of one that lacks `metadata.json`: reading it names what's missing.
fn is_task(folder: &Path) -> bool {
    let looks_like_task = || {
        folder.join(WORKSPACE_FOLDER).is_dir()
            && (folder.join(INSTRUCTIONS_FILE).is_file() || folder.join(TESTS_FOLDER).is_dir())
    };
    is_described(folder) || (looks_like_task() && !is_terminal_task(folder))
}

/// Returns true for the folder of a terminal task: one with such a configuration, and without the metadata of a programming task.
fn is_terminal_task(folder: &Path) -> bool {
    TERMINAL_TASK_FILES.iter().any(|name| folder.join(name).is_file()) && !is_described(folder)
}

/// Returns true for a ZIP archive of a programming task: one without the configuration of a terminal task.
fn is_archive(path: &Path) -> bool {
    // Opening a pipe would wait for its writer.
    if !path.is_file() {
        return false;
    }
    let Ok(file) = fs::File::open(path) else { return false };
    let Ok(archive) = Archive::open(file, ENTRIES_MAX) else { return false };
    let has = |name: &str| archive.files().iter().any(|file| file.path.name() == name);
    let has_folder = |name: &str| {
        let mut folders = archive.files().iter().filter_map(|file| file.path.as_str().rsplit_once('/'));
        folders.any(|(folder, _)| folder.split('/').any(|part| part == name))
    };
    let looks_like_task =
        || has_folder(WORKSPACE_FOLDER) && (has(INSTRUCTIONS_FILE) || has_folder(TESTS_FOLDER));
    (has(METADATA_FILE) || looks_like_task()) && !TERMINAL_TASK_FILES.iter().any(|name| has(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes empty files, splits the paths, and returns the names of programming tasks and others.
    fn names(files: &[&str], given: &[&str]) -> (Vec<String>, Vec<String>) {
        let folder = tempfile::tempdir().unwrap();
        for file in files {
            let path = folder.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        let given: Vec<PathBuf> = given.iter().map(|path| folder.path().join(path)).collect();
        let (code, others) = split(&given).unwrap();
        let names = |paths: Vec<PathBuf>| paths.iter().map(|path| name_of(path)).collect();
        (names(code), names(others))
    }

    #[test]
    fn programming_tasks_are_told_from_other_folders() {
        let described = ["all/one/metadata.json", "all/one/workspace/a.py"];
        let bare = ["all/two/workspace/a.py", "all/two/tests/t.py"];
        let other = ["all/other/workspace/a.py"];
        let terminal = ["all/terminal/task.toml", "all/terminal/tests/t.sh", "all/terminal/workspace/a.py"];
        for (files, given, code, others) in [
            (described.to_vec(), "all", vec!["one"], vec![]),
            (described.to_vec(), "all/one", vec!["one"], vec![]),
            ([&described[..], &bare, &other].concat(), "all", vec!["one", "two"], vec![]),
            (bare.to_vec(), "all", vec!["two"], vec![]),
            (vec!["all/two/workspace/a.py", "all/two/instructions.md"], "all/two", vec!["two"], vec![]),
            (other.to_vec(), "all", vec![], vec!["all"]),
            (other.to_vec(), "all/other", vec![], vec!["other"]),
            (terminal.to_vec(), "all", vec![], vec!["all"]),
            (terminal.to_vec(), "all/terminal", vec![], vec!["terminal"]),
            (vec!["all/task.yaml", "all/solution/metadata.json"], "all", vec![], vec!["all"]),
            ([&terminal[..], &bare, &other].concat(), "all", vec![], vec!["all"]),
            ([&terminal[..], &described].concat(), "all", vec!["one"], vec![]),
            // A folder of tasks with such names.
            (
                vec!["all/workspace/metadata.json", "all/tests/metadata.json"],
                "all",
                vec!["tests", "workspace"],
                vec![],
            ),
        ] {
            let found = names(&files, &[given]);
            let expected = (
                code.iter().map(|name| (*name).to_owned()).collect(),
                others.iter().map(|name: &&str| (*name).to_owned()).collect(),
            );
            assert_eq!(found, expected, "{files:?} {given}");
        }
    }
}
