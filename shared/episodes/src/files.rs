//! Files of a task with their contents.

use std::collections::BTreeMap;
use std::io::{Cursor, Read};

use bench_environments::{BundleError, TaskFile, task_bundle};
use bench_terminal_tasks::{
    AdmissionLimits, AdmittedTask, Archive, ArchiveProblem, InputFiles, Mode, Refusal, TaskFormat, TaskPath,
    TreeLimits, admit_archive, admit_terminal_bench, read_tar_gz,
};

/// Files and folders of Terminal-Bench 1 with the solution and the tests.
const SOLUTION_AND_TESTS: [&str; 4] = ["solution.sh", "solution.yaml", "run-tests.sh", "tests"];

/// A task that was admitted again, with the contents of its files.
#[derive(Debug, Clone)]
pub struct TaskFiles {
    /// The task, its files' digests and its content hash.
    pub admitted: AdmittedTask,
    contents: BTreeMap<String, Vec<u8>>,
}

/// Error of an archive that can't be used.
#[derive(Debug, thiserror::Error)]
pub enum TaskFilesError {
    /// It isn't admitted.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// Its files can't be sent to a sandbox.
    #[error(transparent)]
    Bundle(#[from] BundleError),
}

impl TaskFiles {
    /// Admits the task in a ZIP archive, and reads its files.
    ///
    /// # Errors
    /// If the task is refused.
    pub fn read(archive: &[u8], trees: TreeLimits, limits: &AdmissionLimits) -> Result<Self, TaskFilesError> {
        let admitted = admit_archive(Cursor::new(archive), trees, limits)?;
        let mut files = Self { admitted, contents: BTreeMap::new() };
        let mut archive = Archive::open(Cursor::new(archive), trees.entries_max)?;
        archive.read(&mut |file, content| files.add(&file.path, content))?;
        Ok(files)
    }

    /// Admits the task of Terminal-Bench 1 in a gzipped tar archive, and reads its files. `instruction` is the text for
    /// the agent of a task that has none.
    ///
    /// # Errors
    /// If the task is refused.
    pub fn read_terminal_bench(
        archive: &[u8],
        instruction: Option<&str>,
        trees: TreeLimits,
        limits: &AdmissionLimits,
    ) -> Result<Self, TaskFilesError> {
        let admitted = admit_terminal_bench(archive, instruction, trees, limits)?;
        let mut files = Self { admitted, contents: BTreeMap::new() };
        read_tar_gz(archive, trees, &mut |path, _, content| files.add(path, content))?;
        Ok(files)
    }

    /// Keeps the content of a file of the archive, if it is one of the task's.
    fn add(&mut self, path: &TaskPath, content: &mut dyn Read) -> Result<(), Refusal> {
        let Some(path) = path.relative_to(&self.admitted.folder) else { return Ok(()) };
        if let Some(known) = self.admitted.tree.get(path) {
            let mut bytes = Vec::new();
            content.take(known.bytes).read_to_end(&mut bytes).map_err(|error| {
                Refusal::file(path, ArchiveProblem::Unreadable { cause: error.to_string() })
            })?;
            self.contents.insert(path.to_owned(), bytes);
        }
        Ok(())
    }

    /// Returns the task's files as one sequence of bytes, for upload to a sandbox, which builds images from them.
    ///
    /// In the format of Terminal-Bench 1, images are built from the task's whole folder. Its solution and tests are left
    /// out, so that `COPY . .` doesn't copy them, except those that a Dockerfile or a compose file names.
    ///
    /// # Errors
    /// If they are too large together.
    pub fn bundle(&self) -> Result<Vec<u8>, BundleError> {
        let hidden = self.hidden();
        let is_hidden = |path: &str| hidden.iter().any(|name| path.strip_prefix(name).is_some_and(is_end));
        let files = self.admitted.tree.files().filter(|(path, _)| !is_hidden(path.as_str()));
        let files = files.map(|(path, _)| (path.as_str().to_owned(), path.as_str()));
        task_bundle(&files.filter_map(|(name, path)| self.file(name, path)).collect::<Vec<_>>())
    }

    /// Returns the files and folders that stay out of the folder that images are built from.
    fn hidden(&self) -> Vec<&'static str> {
        if self.admitted.task.format != TaskFormat::TerminalBench1 {
            return Vec::new();
        }
        let is_definition = |path: &str| {
            let name = path.rsplit('/').next().unwrap_or(path).to_ascii_lowercase();
            name.contains("dockerfile") || name.contains("compose")
        };
        let definitions = self.contents.iter().filter(|(path, _)| is_definition(path));
        let texts: Vec<_> = definitions.map(|(_, bytes)| String::from_utf8_lossy(bytes)).collect();
        let is_named = |name: &str| texts.iter().any(|text| names(text, name));
        SOLUTION_AND_TESTS.into_iter().filter(|name| !is_named(name)).collect()
    }

    /// Returns files for a folder of a container.
    pub(crate) fn inputs(&self, files: &InputFiles) -> Vec<TaskFile> {
        files.iter().filter_map(|(name, path)| self.file(name.clone(), path.as_str())).collect()
    }

    /// Returns the files below a folder, without some of them, by their paths in it.
    pub(crate) fn below(&self, folder: &str, without: &[&str]) -> Vec<TaskFile> {
        let files = self.admitted.tree.below(folder).filter(|(name, _, _)| !without.contains(name));
        files.filter_map(|(name, path, _)| self.file(name.to_owned(), path.as_str())).collect()
    }

    fn file(&self, name: String, path: &str) -> Option<TaskFile> {
        let known = self.admitted.tree.get(path)?;
        let bytes = self.contents.get(path)?.clone();
        Some(TaskFile { path: name, is_executable: known.mode == Mode::Executable, bytes })
    }
}

/// Returns true if a definition names a file or folder beside it. Comments and paths elsewhere, such as `/tests`, don't.
fn names(definition: &str, name: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '/');
    let lines = definition.lines().filter(|line| !line.trim_start().starts_with('#'));
    lines.flat_map(|line| line.match_indices(name).map(move |(at, _)| line.split_at(at))).any(
        |(before, found)| {
            let before = before.strip_suffix("./").unwrap_or(before);
            let after = found.strip_prefix(name).unwrap_or_default();
            !before.ends_with(is_part) && (after.starts_with('/') || !after.starts_with(is_part))
        },
    )
}

/// Returns true for the rest of a path behind a file's or a folder's name.
fn is_end(rest: &str) -> bool {
    rest.is_empty() || rest.starts_with('/')
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use zip::ZipWriter;
    use zip::write::SimpleFileOptions;

    use super::*;

    fn files(dockerfile: &str) -> TaskFiles {
        let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
        for (path, text) in [
            ("task.yaml", "instruction: Do it.\ndifficulty: hard\n"),
            (
                "docker-compose.yaml",
                "services:\n  client:\n    build: .\n    environment: [TEST_DIR=/tests]\n",
            ),
            ("Dockerfile", dockerfile),
            ("run-tests.sh", "true"),
            ("tests/test_outputs.py", "# the test"),
            ("tests-data.txt", "data"),
            ("solution.sh", "touch done"),
            ("app/solution.sh", "part of the environment"),
        ] {
            archive.start_file(path, SimpleFileOptions::default()).unwrap();
            archive.write_all(text.as_bytes()).unwrap();
        }
        let archive = archive.finish().unwrap().into_inner();
        TaskFiles::read(&archive, TreeLimits::default(), &AdmissionLimits::default()).unwrap()
    }

    #[test]
    fn solution_and_tests_are_not_in_the_folder_of_images() {
        for (dockerfile, expected) in [
            (
                "FROM scratch\n# The tests\nCOPY . /tests\n",
                ["solution.sh", "run-tests.sh", "tests"].as_slice(),
            ),
            ("FROM scratch\nCOPY run-tests.sh app/tests /x\n", &["solution.sh", "tests"]),
            ("FROM scratch\nADD [\"./tests\", \"/x\"]\n", &["solution.sh", "run-tests.sh"]),
        ] {
            let hidden: Vec<_> =
                files(dockerfile).hidden().into_iter().filter(|name| *name != "solution.yaml").collect();
            assert_eq!(hidden, expected, "{dockerfile}");
            let bundle = files(dockerfile).bundle().unwrap();
            let has = |text: &str| bundle.windows(text.len()).any(|part| part == text.as_bytes());
            assert!(
                !has("touch done") && has("part of the environment") && has("tests-data.txt"),
                "{dockerfile}"
            );
            assert_eq!(has("# the test"), !expected.contains(&"tests"), "{dockerfile}");
        }
    }
}
