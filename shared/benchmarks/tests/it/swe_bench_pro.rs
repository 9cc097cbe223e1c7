//! SWE-bench Pro without containers: two folders stand in for those of a container.

mod agent;
mod demo;
mod mini;
mod texts;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use bench_benchmarks::{Benchmark, InstanceProtocol, InstanceScripts, find};
use bench_domain::{EpisodeLog, VerificationReport};
use bench_items::{Item, Row};
use serde_json::Value;
use tempfile::TempDir;

/// Path of the miniature instance.
const MINI: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/vectors/swe_mini");

fn benchmark() -> &'static dyn Benchmark {
    find("swe_bench_pro").unwrap()
}

fn protocol() -> &'static dyn InstanceProtocol {
    benchmark().instance().unwrap()
}

fn mini_row() -> Row {
    let text = fs::read_to_string(format!("{MINI}/instances.jsonl")).unwrap();
    serde_json::from_str(text.lines().next().unwrap()).unwrap()
}

fn item(row: Row) -> Item {
    benchmark().item(0, row).unwrap().unwrap()
}

/// Returns the miniature's row with other values in some columns.
fn mini_with(columns: &[(&str, &str)]) -> Item {
    let mut row = mini_row();
    for (column, value) in columns {
        row.insert((*column).to_owned(), Value::from(*value));
    }
    item(row)
}

/// Reads an instance's scripts from a folder with the layout of the official repository.
fn scripts_in(root: &str, id: &str) -> InstanceScripts {
    let official = benchmark().official_files().unwrap();
    let files = official.files.iter().map(|file| {
        let path = format!("{root}/{}", file.path_for(id));
        (file.name.to_owned(), fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}")))
    });
    InstanceScripts::from_files(&files.collect::<BTreeMap<_, _>>()).unwrap()
}

fn mini_scripts() -> InstanceScripts {
    scripts_in(MINI, mini_row()["instance_id"].as_str().unwrap())
}

/// Folders that stand in for those of a container.
struct Container {
    folder: TempDir,
}

impl Container {
    /// Creates the folders with the repository that a script makes.
    fn new(make_repo: &Path) -> Self {
        let container = Self { folder: tempfile::tempdir().unwrap() };
        for name in ["workspace", "bin", "store", "home"] {
            fs::create_dir(container.path(name)).unwrap();
        }
        // Graders run `python`, which not every machine has under this name.
        std::os::unix::fs::symlink(python3(), container.path("bin/python")).unwrap();
        let made = container.bash(&format!("bash {} /app", make_repo.display()));
        assert!(made.status.success(), "{made:?}");
        container
    }

    fn mini() -> Self {
        Self::new(Path::new(&format!("{MINI}/make_repo.sh")))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn app(&self, name: &str) -> PathBuf {
        self.path("app").join(name)
    }

    /// Runs a script whose paths are those of a container.
    fn bash(&self, script: &str) -> Output {
        let own = |name: &str| self.path(name).to_string_lossy().into_owned();
        let script = script
            .replace("/var/lib/bench-instance", &own("store"))
            .replace("/workspace", &own("workspace"))
            .replace("/app", &own("app"));
        let path = format!("{}:{}", own("bin"), std::env::var("PATH").unwrap());
        Command::new("bash")
            .args(["-c", &script])
            .current_dir(self.folder.path())
            .env("PATH", path)
            .env("HOME", own("home"))
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .stdin(Stdio::null())
            .output()
            .unwrap()
    }

    /// Runs a script in the repository.
    fn in_app(&self, script: &str) -> Output {
        self.bash(&format!("set -e\ncd /app\nexport GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b\n{script}"))
    }

    /// Verifies a patch. Returns the exit code of the entry script with the report.
    fn verify(
        &self,
        item: &Item,
        patch: &str,
        scripts: &InstanceScripts,
    ) -> (Option<i32>, VerificationReport) {
        let verification = protocol().verification(item, patch, scripts).unwrap();
        assert_eq!(verification.folder, "/workspace");
        let workspace = self.path("workspace");
        let own = |name: &str| self.path(name).to_string_lossy().into_owned();
        for file in &verification.files {
            let text = match file.path.as_str() {
                "entryscript.sh" => {
                    file.text.replace("/workspace", &own("workspace")).replace("/app", &own("app"))
                }
                _ => file.text.clone(),
            };
            fs::write(workspace.join(&file.path), text).unwrap();
        }
        let ended = self.bash(&verification.command);
        let outputs = verification.outputs.iter().filter_map(|name| {
            let text = String::from_utf8_lossy(&fs::read(workspace.join(name)).ok()?).into_owned();
            Some(EpisodeLog { name: (*name).to_owned(), bytes: text.len() as u64, text, omitted: 0 })
        });
        let report = VerificationReport { outputs: outputs.collect(), ..VerificationReport::default() };
        (ended.status.code(), report)
    }

    /// Prepares the repository for an agent.
    fn prepare(&self, item: &Item) -> Output {
        self.bash(&protocol().preparation(item).unwrap())
    }

    /// Collects the agent's change: exit code, standard output and the change.
    fn collect(&self, item: &Item) -> (Option<i32>, String, String) {
        let collection = protocol().collection(item).unwrap();
        let ended = self.bash(&collection.script);
        let file = self.path("store").join(Path::new(collection.file).file_name().unwrap());
        let change =
            fs::read(file).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
        assert!(change.len() <= collection.bytes_max);
        (ended.status.code(), String::from_utf8_lossy(&ended.stdout).into_owned(), change)
    }
}

fn python3() -> PathBuf {
    let found = Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output().unwrap();
    String::from_utf8(found.stdout).unwrap().trim().into()
}

/// Returns true if the verdict on a verification is that the instance is resolved.
fn is_resolved(item: &Item, patch: &str, report: &VerificationReport) -> bool {
    let verdict = protocol().grade(item, patch, report);
    let resolved = verdict.detail["resolved"].as_bool().unwrap();
    assert_eq!(verdict.score, Some(if resolved { 1.0 } else { 0.0 }), "{verdict:?}");
    resolved
}
