//! A host to test: every form of this machine, each with helpers to attack it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Once};
use std::time::Duration;

use bench_sandbox::isolation::{Exec, Form, Isolation, IsolationOptions, Limits, Output, Sandbox, forms};
use tempfile::TempDir;

/// Commands that are over long before this; no test waits for it.
const LONG: Duration = Duration::from_secs(120);

/// One form, under test.
#[derive(Clone)]
pub(crate) struct At {
    isolation: Arc<dyn Isolation>,
    folder: Arc<TempDir>,
}

/// The helper program.
pub(crate) fn helper() -> PathBuf {
    // A suite that runs as another user has a copy that this user can reach.
    std::env::var_os("BENCH_SANDBOX_TEST_HELPER")
        .map_or_else(|| env!("CARGO_BIN_EXE_bench-sandbox-stage").into(), PathBuf::from)
}

pub(crate) fn options(folder: &Path) -> IsolationOptions {
    IsolationOptions::new(helper(), folder)
}

/// Small, so that what gets through does no harm.
pub(crate) fn limits() -> Limits {
    Limits { memory_bytes: 256 << 20, processes: 48, disk_bytes: 24 << 20, open_files: 256 }
}

/// Runs a test in every form that this machine allows; at least one must be.
pub(crate) async fn each_form<F, Fut>(test: F)
where
    F: Fn(At) -> Fut,
    Fut: Future<Output = ()>,
{
    for at in all_forms().await {
        eprintln!("form: {}", at.form().name);
        test(at).await;
    }
}

pub(crate) async fn all_forms() -> Vec<At> {
    tools();
    let folder = Arc::new(tempfile::tempdir().unwrap());
    let options = options(&folder.path().join("sandboxes"));
    let outcomes = tokio::task::spawn_blocking(move || forms(&options)).await.unwrap();
    let mut all = Vec::new();
    for outcome in outcomes {
        match outcome {
            Ok(isolation) => all.push(At { isolation, folder: folder.clone() }),
            Err((name, reason)) => eprintln!("form {name} is not possible here: {reason}"),
        }
    }
    assert!(!all.is_empty(), "this machine allows no form");
    all
}

/// Says what is missing before every test fails of it.
fn tools() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        for tool in ["bash", "python3"] {
            let there = ["/usr/local/bin", "/usr/bin", "/bin"]
                .iter()
                .any(|folder| Path::new(folder).join(tool).exists());
            assert!(there, "{tool} is missing in the system's folders: these tests need it");
        }
    });
}

impl At {
    pub(crate) fn form(&self) -> &Form {
        self.isolation.form()
    }

    pub(crate) fn isolation(&self) -> &Arc<dyn Isolation> {
        &self.isolation
    }

    pub(crate) fn has(&self, what: &str) -> bool {
        self.form().holds.iter().any(|holds| holds == what)
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) async fn sandbox(&self) -> Arc<dyn Sandbox> {
        self.isolation.create(&limits()).await.unwrap()
    }

    pub(crate) async fn run(&self, sandbox: &Arc<dyn Sandbox>, command: &str) -> Output {
        sandbox.exec(&exec(command)).await.unwrap()
    }
}

pub(crate) fn exec(command: &str) -> Exec {
    Exec {
        command: command.to_owned(),
        cwd: None,
        env: BTreeMap::new(),
        timeout: LONG,
        output_bytes_max: 1 << 20,
    }
}
