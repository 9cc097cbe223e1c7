//! Tasks: metadata, instructions, workspace, tests and solutions.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use bench_terminal_tasks::{ContentProblem, FormatProblem, Refusal, TaskPath};
use serde::{Deserialize, Serialize};

use crate::dependencies::{self, Dependencies, Unfixed};
use crate::files::TaskFiles;
use crate::json::read_json;
use crate::proof::Proof;
use crate::{Workspace, WorkspaceFile};

/// Name of the file that makes a folder a task.
pub const METADATA_FILE: &str = "metadata.json";
/// Name of the file with the proof that a task is admitted.
pub const PROOF_FILE: &str = "proof.json";
/// Name of the file beside the workspace with the packages of Python that a task needs.
const REQUIREMENTS_FILE: &str = "requirements.txt";
/// Folder with the solutions.
const SOLUTIONS: &str = "solutions";
/// Folder below the tests whose files are laid over the workspace.
const OVERLAY: &str = "overlay";
/// Time limit of a task that names none, for its build and its tests together.
const TIMEOUT_DEFAULT: u64 = 300;
/// Maximum time limit, in seconds.
const TIMEOUT_MAX: u64 = 3_600;

/// Language of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Language {
    /// Python 3.
    Python,
    /// JavaScript for Node.
    JavaScript,
    /// Go.
    Go,
    /// Rust.
    Rust,
    /// C++.
    Cpp,
    /// HTML with CSS and JavaScript.
    Html,
}

impl Language {
    /// All languages.
    pub const ALL: [Self; 6] = [Self::Python, Self::JavaScript, Self::Go, Self::Rust, Self::Cpp, Self::Html];

    /// Returns the name in metadata.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Python => "python",
            Self::JavaScript => "javascript",
            Self::Go => "go",
            Self::Rust => "rust",
            Self::Cpp => "cpp",
            Self::Html => "html",
        }
    }
}

impl fmt::Display for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Python => "Python",
            Self::JavaScript => "JavaScript",
            Self::Go => "Go",
            Self::Rust => "Rust",
            Self::Cpp => "C++",
            Self::Html => "HTML",
        })
    }
}

/// Program that runs a task's tests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TestCommand {
    /// Tests in files of their own, in a process that the answer's programs can't reach: `["lab"]`.
    Lab,
    /// `pytest`, with its arguments. Like the commands below, it loads the answer into the tests' own process.
    Pytest(Vec<String>),
    /// `go test`, with its arguments.
    Go(Vec<String>),
    /// `cargo`, with its arguments, beginning with `test`.
    Cargo(Vec<String>),
    /// `node`, with a script and its arguments.
    Node(Vec<String>),
    /// Any other command. It reports no tests, so that only its exit status could decide, which an answer can forge.
    Other(Vec<String>),
}

impl TestCommand {
    fn new(argv: &[String]) -> Self {
        let words: Vec<&str> = argv.iter().map(String::as_str).collect();
        let rest = |skipped: usize| argv.iter().skip(skipped).cloned().collect();
        match words.as_slice() {
            ["lab"] => Self::Lab,
            ["pytest" | "py.test", ..] => Self::Pytest(rest(1)),
            ["python" | "python3", "-m", "pytest", ..] => Self::Pytest(rest(3)),
            ["go", "test", ..] => Self::Go(rest(2)),
            ["cargo", "test", ..] => Self::Cargo(rest(1)),
            ["node", script, ..] if !script.starts_with('-') => Self::Node(rest(1)),
            _ => Self::Other(argv.to_vec()),
        }
    }

    /// Returns true if the tests run in a process that the answer's programs can't reach.
    pub const fn is_outside(&self) -> bool {
        matches!(self, Self::Lab)
    }

    /// Returns the runner's name, and its arguments.
    pub fn parts(&self) -> (&'static str, &[String]) {
        match self {
            Self::Lab => ("lab", &[]),
            Self::Pytest(args) => ("pytest", args),
            Self::Go(args) => ("go", args),
            Self::Cargo(args) => ("cargo", args),
            Self::Node(args) => ("node", args),
            Self::Other(args) => ("other", args),
        }
    }
}

/// Wrong solution of a task's author.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrongSolution {
    /// Name.
    pub name: String,
    /// Answer in one of the forms of [`Answer`](crate::Answer).
    pub answer: String,
    /// Names of the tests that it fails.
    pub fails: Vec<String>,
    /// Description of its mistake.
    pub why: String,
}

/// Mistake that a task's author has a wrong solution for, which its metadata describes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// Name of the wrong solution.
    pub name: String,
    /// Description.
    pub why: String,
}

/// Programming task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeTask {
    /// Name, unique in its dataset.
    pub id: String,
    /// Language.
    pub language: Language,
    /// Kind of work, such as `bug_fix`.
    pub kind: String,
    /// Difficulty, such as `expert`.
    pub difficulty: String,
    /// Tags.
    pub tags: Vec<String>,
    /// Text for the model.
    pub instructions: String,
    /// Files that the model gets and changes.
    pub workspace: Workspace,
    /// Tests, without the overlay.
    pub tests: BTreeMap<String, WorkspaceFile>,
    /// Files that are laid over the workspace after an answer was applied.
    pub overlay: BTreeMap<String, WorkspaceFile>,
    /// Commands that build the workspace, each as a list of arguments.
    pub build: Vec<Vec<String>>,
    /// Program that runs the tests.
    pub command: TestCommand,
    /// Time limit for the build and all tests together.
    pub timeout: Duration,
    /// Environment variables of all programs.
    pub env: BTreeMap<String, String>,
    /// Folder below the workspace where programs run; `None` for the workspace itself.
    pub working_dir: Option<String>,
    /// Packages that the task declares, or the reason why they aren't fixed.
    pub dependencies: Result<Vec<Dependencies>, Unfixed>,
    /// Reference solution, if the task has one.
    pub reference: Option<String>,
    /// Wrong solutions of the task's author.
    pub wrong: Vec<WrongSolution>,
    /// Mistakes of all wrong solutions, also of those whose files are left out.
    pub mistakes: Vec<Mistake>,
    /// Proof that the task was admitted, if it fits the task's files.
    pub proof: Option<Proof>,
    /// Digest of all files that decide about a verdict: all but the solutions and the proof.
    pub digest: String,
    /// Digest of the reference and the wrong solutions.
    pub solutions_digest: String,
}

/// `metadata.json`.
#[derive(Debug, Deserialize)]
struct Metadata {
    task_id: Option<String>,
    language: Language,
    #[serde(rename = "type", default)]
    kind: String,
    #[serde(default)]
    difficulty: String,
    #[serde(default)]
    tags: Vec<String>,
    instructions_file: String,
    #[serde(default = "default_workspace")]
    workspace_dir: String,
    #[serde(default = "default_tests")]
    tests_dir: String,
    #[serde(default)]
    eval: Evaluation,
    #[serde(default)]
    admission: Admission,
}

#[derive(Debug, Default, Deserialize)]
struct Evaluation {
    #[serde(default)]
    build: Vec<Vec<String>>,
    command: Option<Vec<String>>,
    timeout_seconds: Option<u64>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    working_dir: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
struct Admission {
    #[serde(default)]
    wrong: BTreeMap<String, Wrong>,
}

#[derive(Debug, Deserialize)]
struct Wrong {
    fails: Vec<String>,
    #[serde(default)]
    why: String,
}

fn default_workspace() -> String {
    "workspace".to_owned()
}

fn default_tests() -> String {
    "tests".to_owned()
}

impl CodeTask {
    /// Reads a task from its files.
    ///
    /// # Errors
    /// Names the file that is missing or wrong.
    pub fn read(files: &TaskFiles, folder_name: &str) -> Result<Self, Refusal> {
        let metadata = read_metadata(files)?;
        let invalid = |key: &str, value: &str, expected| {
            let problem =
                FormatProblem::InvalidValue { key: key.to_owned(), value: value.to_owned(), expected };
            Refusal::file(METADATA_FILE, problem)
        };
        for (key, folder) in [("workspace_dir", &metadata.workspace_dir), ("tests_dir", &metadata.tests_dir)]
        {
            TaskPath::new(folder).map_err(|_| invalid(key, folder, "a folder in the task"))?;
        }
        let Evaluation { build, command, timeout_seconds, env, working_dir } = metadata.eval;
        if let Some(folder) = &working_dir
            && TaskPath::new(folder).is_err()
        {
            return Err(invalid("eval.working_dir", folder, "a folder in the workspace"));
        }
        let seconds = timeout_seconds.unwrap_or(TIMEOUT_DEFAULT);
        if !(1..=TIMEOUT_MAX).contains(&seconds) {
            return Err(invalid("eval.timeout_seconds", &seconds.to_string(), "from 1 to 3600"));
        }
        if build.iter().chain(&command).any(Vec::is_empty) {
            return Err(invalid("eval", "[]", "commands with at least a program's name"));
        }
        let command = command.unwrap_or_else(|| vec!["pytest".to_owned(), "-q".to_owned()]);
        let command = TestCommand::new(&command);
        let instructions = text(files, &metadata.instructions_file, "the metadata names it as instructions")?;
        let workspace = files.below(&metadata.workspace_dir);
        if workspace.is_empty() {
            let advice = "a task has the files to change in it";
            return Err(Refusal::file(metadata.workspace_dir, ContentProblem::MissingFile { advice }));
        }
        let (overlay, tests): (BTreeMap<_, _>, BTreeMap<_, _>) =
            files.below(&metadata.tests_dir).into_iter().partition(|(path, _)| below_overlay(path).is_some());
        let overlay =
            overlay.into_iter().filter_map(|(path, file)| Some((below_overlay(&path)?.to_owned(), file)));
        let has_test_file =
            |name: &String| name.starts_with("test_") && name.ends_with(".py") && !name.contains('/');
        if command == TestCommand::Lab && !tests.keys().any(has_test_file) {
            let advice = "the command `lab` runs the files `test_*.py` in it";
            return Err(Refusal::file(metadata.tests_dir, ContentProblem::MissingFile { advice }));
        }
        let reference_path = format!("{SOLUTIONS}/reference.diff");
        let reference = match files.get(&reference_path) {
            Some(_) => Some(text(files, &reference_path, "")?),
            None => None,
        };
        let mut wrong = Vec::new();
        let mut mistakes = Vec::new();
        for (name, Wrong { fails, why }) in metadata.admission.wrong {
            mistakes.push(Mistake { name: name.clone(), why: why.clone() });
            let path = format!("{SOLUTIONS}/wrong-{name}.diff");
            // Programs contain tasks without their wrong solutions.
            if files.get(&path).is_some() {
                wrong.push(WrongSolution { answer: text(files, &path, "")?, name, fails, why });
            }
        }
        let digest = files.digest(|path| path == PROOF_FILE || is_solution(path));
        let proof = match files.get(PROOF_FILE) {
            Some(file) => Some(read_json(PROOF_FILE, &file.bytes)?),
            None => None,
        };
        let workspace = Workspace::new(workspace);
        let dependencies =
            dependencies::read(files.get(REQUIREMENTS_FILE), &workspace, working_dir.as_deref());
        Ok(Self {
            id: metadata.task_id.unwrap_or_else(|| folder_name.to_owned()),
            language: metadata.language,
            kind: metadata.kind,
            difficulty: metadata.difficulty,
            tags: metadata.tags,
            instructions: instructions.trim().to_owned(),
            workspace,
            tests,
            overlay: overlay.collect(),
            build,
            command,
            timeout: Duration::from_secs(seconds),
            env,
            working_dir,
            dependencies,
            reference,
            wrong,
            mistakes,
            proof: proof.filter(|proof: &Proof| proof.task_digest == digest),
            digest,
            solutions_digest: files.digest(|path| !is_solution(path)),
        })
    }

    /// Returns why answers can't be graded, if the task's test command or its declared packages make that impossible.
    pub fn ungradable(&self) -> Option<String> {
        let TestCommand::Other(command) = &self.command else {
            return self.dependencies.as_ref().err().map(Unfixed::to_string);
        };
        let shown: String = command.join(" ").chars().take(200).collect();
        Some(format!(
            "its test command `{shown}` reports no tests by name, and an answer can forge an exit status; use lab, pytest, go test, cargo test, or node with a script"
        ))
    }

    /// Returns the names of the tests that an answer must pass, if they were recorded.
    pub fn recorded_tests(&self) -> Option<&[String]> {
        self.proof.as_ref().map(|proof| proof.tests.as_slice())
    }

    /// Returns true if the proof was made with the present reference and wrong solutions.
    pub fn are_solutions_proven(&self) -> bool {
        let proven = self.proof.as_ref().and_then(|proof| proof.solutions_digest.as_ref());
        proven == Some(&self.solutions_digest)
    }
}

/// Returns true for the path of a reference or wrong solution.
fn is_solution(path: &str) -> bool {
    path.strip_prefix(SOLUTIONS).is_some_and(|rest| rest.starts_with('/'))
}

/// Returns the path below the overlay folder.
fn below_overlay(path: &str) -> Option<&str> {
    path.strip_prefix(OVERLAY)?.strip_prefix('/')
}

fn read_metadata(files: &TaskFiles) -> Result<Metadata, Refusal> {
    let file = files.get(METADATA_FILE).ok_or_else(|| {
        let advice = "it names the language, the instructions and the test command";
        Refusal::file(METADATA_FILE, ContentProblem::MissingFile { advice })
    })?;
    read_json(METADATA_FILE, &file.bytes)
}

fn text(files: &TaskFiles, path: &str, advice: &'static str) -> Result<String, Refusal> {
    let file = files.get(path).ok_or_else(|| Refusal::file(path, ContentProblem::MissingFile { advice }))?;
    let text = std::str::from_utf8(&file.bytes).map_err(|_| Refusal::file(path, FormatProblem::NotUtf8))?;
    if text.trim().is_empty() {
        return Err(Refusal::file(path, ContentProblem::EmptyFile { expected: "a text" }));
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests;
