//! Measures the grading of programming tasks: `bench-code-lab [REPEATS]`, default 3, in the project's folder.
//!
//! For a task of each language, compares the time from a stored answer to its verdict in `bench run` with the time that its
//! build and its tests take without a sandbox. Then grades the references of all tasks, and prints the time and its ratio to the
//! aim. `BENCH_HOME` names a data directory with toolchains; without it, they are installed in `target/bench-code-lab`.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, ensure};
use bench_benchmarks::code_lab::{Extent, task_job};
use bench_code_tasks::{Answer, CodeTask, TaskFiles};
use bench_domain::FileContent;
use bench_stack::sandboxes::toolchains;
use bench_terminal_tasks::TaskPath;
use serde_json::Value;

const REPEATS_DEFAULT: usize = 3;
/// Folder of the tasks.
const TASKS: &str = "tasks";
/// Data directory if `BENCH_HOME` names none.
const DATA_DIR: &str = "target/bench-code-lab";
/// Aimed ratio of the time from an answer to its verdict to the time of the bare build and tests.
const RATIO_AIM: f64 = 1.3;
/// Aimed time for the references of all tasks, in seconds.
const ALL_AIM_SECONDS: f64 = 300.0;

fn main() -> anyhow::Result<()> {
    let repeats = std::env::args().nth(1).map_or(Ok(REPEATS_DEFAULT), |text| text.parse())?;
    ensure!(repeats > 0, "the number of repeats must be at least 1");
    let bench = std::env::current_exe()?.with_file_name("bench");
    ensure!(
        bench.exists(),
        "`{}` does not exist: build bench-cli with the same profile first",
        bench.display()
    );
    let data_dir = std::env::var_os("BENCH_HOME").map_or_else(|| PathBuf::from(DATA_DIR), PathBuf::from);
    fs::create_dir_all(&data_dir)?;
    let lab = Lab { bench, data_dir: data_dir.canonicalize()? };
    lab.install()?;
    println!(
        "{:<24} {:<11} {:>7} {:>9} {:>6} {:>9}",
        "task", "language", "bare s", "verdict s", "ratio", "to aim"
    );
    for (name, task) in one_per_language()? {
        let mut bare = f64::INFINITY;
        let mut graded = f64::INFINITY;
        for _ in 0..repeats {
            bare = bare.min(lab.bare_seconds(&name, &task)?);
            graded = graded.min(lab.graded_seconds(Some(&name))?);
        }
        let ratio = graded / bare;
        let language = task.language.to_string();
        println!(
            "{name:<24} {language:<11} {bare:>7.2} {graded:>9.2} {ratio:>6.2} {:>9.2}",
            ratio / RATIO_AIM
        );
    }
    let all = lab.graded_seconds(None)?;
    println!(
        "\nthe references of all tasks are graded in {all:.0} s ({:.2} of the {ALL_AIM_SECONDS} s aimed at)",
        all / ALL_AIM_SECONDS
    );
    Ok(())
}

/// The command, and the data directory with its toolchains.
struct Lab {
    bench: PathBuf,
    data_dir: PathBuf,
}

impl Lab {
    fn command(&self) -> Command {
        let mut command = Command::new(&self.bench);
        command.env("BENCH_HOME", &self.data_dir).env("HF_HUB_OFFLINE", "1");
        command
    }

    fn install(&self) -> anyhow::Result<()> {
        let status =
            self.command().args(["sandy", "setup", "--toolchains"]).stdout(Stdio::null()).status()?;
        ensure!(status.success(), "the toolchains could not be installed: {status}");
        Ok(())
    }

    /// Runs a reference's build and tests without a sandbox. Returns their time in seconds.
    fn bare_seconds(&self, name: &str, task: &CodeTask) -> anyhow::Result<f64> {
        let reference = task.reference.as_deref().context("the task has no reference")?;
        let workspace = Answer::read(reference)?.apply(&task.workspace)?.workspace;
        let place = tempfile::tempdir()?;
        for file in task_job(task, &workspace, &[0; 32], Extent::All).files {
            let FileContent::Bytes(bytes) = file.content else {
                anyhow::bail!("`{}` is not in memory", file.path)
            };
            fs::write(place.path().join(file.path), bytes)?;
        }
        // Like in a sandbox, the supervisor has no capabilities, with which programs could read its memory.
        let mut supervisor = if rustix::process::geteuid().is_root() {
            let mut limited = Command::new("setpriv");
            limited.args(["--bounding-set=-all", "--inh-caps=-all", "python3"]);
            limited
        } else {
            Command::new("python3")
        };
        let status = supervisor
            .args(["-I", "-B", "supervisor.py"])
            .env("PATH", self.path()?)
            .current_dir(place.path())
            .stdout(Stdio::null())
            .status()
            .context("could not start the supervisor")?;
        ensure!(status.success(), "{name}: the supervisor failed: {status}");
        let signed: Value = serde_json::from_slice(&fs::read(place.path().join("results.json"))?)?;
        let text = signed.get("text").and_then(Value::as_str).context("the results have no text")?;
        let results: bench_benchmarks::code_lab::TaskResults = serde_json::from_str(text)?;
        ensure!(
            results.passes(task.recorded_tests()),
            "{name}: the reference fails: {:?}",
            results.missed(None)
        );
        Ok(results.build_seconds + results.test_seconds)
    }

    /// Returns the search path of programs, with the toolchains first.
    fn path(&self) -> anyhow::Result<OsString> {
        let programs = toolchains::current(&self.data_dir).into_iter().map(|one| one.folder.host.join("bin"));
        let inherited = std::env::var_os("PATH").unwrap_or_default();
        let folders: Vec<PathBuf> = programs.chain(std::env::split_paths(&inherited)).collect();
        Ok(std::env::join_paths(folders)?)
    }

    /// Grades the reference of one task or of all in a run. Returns the time from its first answer to its end in seconds.
    fn graded_seconds(&self, name: Option<&str>) -> anyhow::Result<f64> {
        let out = tempfile::tempdir()?;
        let mut run = self.command();
        run.args(["run", "--json", "--model", "oracle", "--benchmark", "code_lab"]);
        if let Some(name) = name {
            run.args(["--item", name]);
        }
        let done = run.arg("--out").arg(out.path()).stderr(Stdio::null()).output()?;
        ensure!(done.status.success(), "the run did not succeed: {}", done.status);
        let runs: Value = serde_json::from_slice(&done.stdout)?;
        let time = |field: &str| -> anyhow::Result<jiff::Timestamp> {
            let text = runs.pointer(&format!("/0/{field}")).and_then(Value::as_str);
            Ok(text.with_context(|| format!("the run has no `{field}`"))?.parse()?)
        };
        let score = runs.pointer("/0/score").and_then(Value::as_f64);
        ensure!(score == Some(1.0), "{}: the references fail: score {score:?}", name.unwrap_or("all tasks"));
        Ok(time("completed_at")?.duration_since(time("started_at")?).as_secs_f64())
    }
}

/// Reads the first task of each language, in alphabetical order.
fn one_per_language() -> anyhow::Result<Vec<(String, CodeTask)>> {
    let entries = fs::read_dir(TASKS).with_context(|| format!("there is no folder `{TASKS}` here"))?;
    let mut folders = entries.map(|entry| Ok(entry?.path())).collect::<anyhow::Result<Vec<_>>>()?;
    folders.sort();
    let mut chosen: BTreeMap<String, (String, CodeTask)> = BTreeMap::new();
    for folder in folders.iter().filter(|folder| folder.is_dir()) {
        let name = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let mut files = TaskFiles::default();
        add_files(&mut files, folder, folder)?;
        let task =
            CodeTask::read(&files, &name).with_context(|| format!("could not read the task `{name}`"))?;
        chosen.entry(task.language.to_string()).or_insert((name, task));
    }
    Ok(chosen.into_values().collect())
}

fn add_files(files: &mut TaskFiles, root: &Path, folder: &Path) -> anyhow::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            add_files(files, root, &path)?;
            continue;
        }
        let relative = path.strip_prefix(root)?.to_str().context("a path is not UTF-8")?;
        let name = TaskPath::new(relative).map_err(|problem| anyhow::anyhow!("`{relative}` {problem}"))?;
        files.add(&name, Some(0o644), fs::read(&path)?).map_err(|refusal| anyhow::anyhow!("{refusal}"))?;
    }
    Ok(())
}
