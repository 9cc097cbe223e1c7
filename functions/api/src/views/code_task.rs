//! Views of programming tasks, for the API and the command line. They have nothing of tests but their names, and no solutions.

use bench_benchmarks::{Benchmark, CodeTask};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Maximum size of a file whose text is shown, in bytes.
const TEXT_BYTES_MAX: usize = 256 * 1024;

/// Programming tasks of a benchmark.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CodeTasksView {
    /// Name of the benchmark.
    pub benchmark: String,
    /// Tasks in the order of their ids.
    pub tasks: Vec<CodeTaskView>,
}

/// Programming task, as lists show it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CodeTaskView {
    /// Id of the task, by which orders name it in `items`.
    pub task_id: String,
    /// Language in the task's metadata, such as `cpp`.
    pub language: String,
    /// Name of the language for people, such as `C++`.
    pub language_name: String,
    /// Kind of work, such as `bug_fix`; empty if the task names none.
    #[serde(rename = "type")]
    pub kind: String,
    /// Difficulty, such as `expert`; empty if the task names none.
    pub difficulty: String,
    /// Tags.
    pub tags: Vec<String>,
    /// Number of tests that an answer must pass; null if they aren't recorded.
    pub tests: Option<u64>,
    /// True if tests run in a process that the answer's programs can't reach.
    pub tests_are_outside: bool,
    /// Number of files of the project.
    pub files: u64,
    /// Lines of its text files.
    pub lines: u64,
    /// Size of all its files in bytes.
    pub bytes: u64,
    /// Time limit for the build and all tests together, in seconds.
    pub timeout_seconds: u64,
    /// SHA-256 of all files that decide about a verdict.
    pub digest: String,
    /// Proof that the task is admitted; null if there is none that fits its files.
    pub proof: Option<AdmissionProofView>,
}

/// Proof that a task is admitted: the untouched project and the wrong solutions fail, and the reference passes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AdmissionProofView {
    /// Number of times in a row that the reference passed all tests.
    pub repeats: u32,
    /// Wrong solutions that the tests refuse.
    pub wrong: Vec<RefusedSolutionView>,
}

/// Wrong solution that the tests refuse.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RefusedSolutionView {
    /// Name.
    pub name: String,
    /// Description of its mistake; empty if the task gives none.
    pub why: String,
    /// Names of the tests that it fails.
    pub fails: Vec<String>,
}

/// Programming task with what a model gets: instructions and files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CodeTaskDetailsView {
    /// Facts that lists show.
    #[serde(flatten)]
    pub task: CodeTaskView,
    /// Instructions, in Markdown.
    pub instructions: String,
    /// Commands that build the project, each as a list of arguments.
    pub build: Vec<Vec<String>>,
    /// Files of the project in the order of their paths.
    pub project: Vec<ProjectFileView>,
}

/// File of a project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ProjectFileView {
    /// Path in the project.
    pub path: String,
    /// Size in bytes.
    pub bytes: u64,
    /// Content; null for a binary file, and for one of more than 256 KiB.
    pub text: Option<String>,
}

/// Lists the programming tasks that are a benchmark's items and come with the program; none for other benchmarks.
pub fn code_tasks(benchmark: &dyn Benchmark) -> CodeTasksView {
    CodeTasksView {
        benchmark: benchmark.name().to_owned(),
        tasks: benchmark.code_tasks().iter().map(CodeTaskView::from).collect(),
    }
}

/// Returns a programming task of a benchmark with its instructions and files; `None` if the benchmark has no such task.
pub fn code_task(benchmark: &dyn Benchmark, id: &str) -> Option<CodeTaskDetailsView> {
    let task = benchmark.code_tasks().iter().find(|task| task.id == id)?;
    let file = |path: &String, bytes: &[u8]| ProjectFileView {
        path: path.clone(),
        bytes: bytes.len() as u64,
        text: std::str::from_utf8(bytes).ok().filter(|text| text.len() <= TEXT_BYTES_MAX).map(str::to_owned),
    };
    Some(CodeTaskDetailsView {
        task: CodeTaskView::from(task),
        instructions: task.instructions.clone(),
        build: task.build.clone(),
        project: task.workspace.files().iter().map(|(path, content)| file(path, &content.bytes)).collect(),
    })
}

impl From<&CodeTask> for CodeTaskView {
    fn from(task: &CodeTask) -> Self {
        let files = || task.workspace.files().values();
        let lines =
            files().filter_map(|file| std::str::from_utf8(&file.bytes).ok()).map(|text| text.lines().count());
        Self {
            task_id: task.id.clone(),
            language: task.language.as_str().to_owned(),
            language_name: task.language.to_string(),
            kind: task.kind.clone(),
            difficulty: task.difficulty.clone(),
            tags: task.tags.clone(),
            tests: task.recorded_tests().map(|tests| tests.len() as u64),
            tests_are_outside: task.command.is_outside(),
            files: files().count() as u64,
            lines: lines.sum::<usize>() as u64,
            bytes: files().map(|file| file.bytes.len() as u64).sum(),
            timeout_seconds: task.timeout.as_secs(),
            digest: task.digest.clone(),
            proof: proof(task),
        }
    }
}

fn proof(task: &CodeTask) -> Option<AdmissionProofView> {
    let proof = task.proof.as_ref()?;
    let why = |name: &str| {
        task.mistakes.iter().find(|mistake| mistake.name == name).map(|mistake| mistake.why.clone())
    };
    let wrong = proof.wrong.iter().map(|(name, fails)| RefusedSolutionView {
        name: name.clone(),
        why: why(name).unwrap_or_default(),
        fails: fails.clone(),
    });
    Some(AdmissionProofView { repeats: proof.repeats, wrong: wrong.collect() })
}
