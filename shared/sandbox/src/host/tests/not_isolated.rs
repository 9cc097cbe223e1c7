//! NOT ISOLATED, for tests only: runs commands as plain child processes in a temporary folder, to test the host with
//! real processes.

use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use tempfile::TempDir;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Command;

use crate::isolation::{Exec, Form, Isolation, IsolationError, Limits, Output, Sandbox, Usage};

pub(super) struct NotIsolated(Form);

impl Default for NotIsolated {
    fn default() -> Self {
        Self(Form {
            name: "not-isolated",
            holds: Vec::new(),
            lacks: vec!["Everything: this is for tests.".to_owned()],
        })
    }
}

struct Folder {
    folder: TempDir,
    over: AtomicBool,
}

#[async_trait]
impl Isolation for NotIsolated {
    fn form(&self) -> &Form {
        &self.0
    }

    async fn create(&self, _: &Limits) -> Result<Arc<dyn Sandbox>, IsolationError> {
        let folder = TempDir::new().map_err(|error| IsolationError::Failed(error.to_string()))?;
        Ok(Arc::new(Folder { folder, over: AtomicBool::new(false) }))
    }
}

#[async_trait]
impl Sandbox for Folder {
    async fn exec(&self, exec: &Exec) -> Result<Output, IsolationError> {
        let failed = |error: std::io::Error| IsolationError::Failed(error.to_string());
        let mut child = Command::new("bash")
            .arg("-c")
            .arg(&exec.command)
            .current_dir(self.folder.path().join(exec.cwd.as_deref().unwrap_or(".")))
            .envs(&exec.env)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(failed)?;
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let (stdout, stderr) = tokio::join!(
            read_capped(stdout, exec.output_bytes_max),
            read_capped(stderr, exec.output_bytes_max)
        );
        let status = child.wait().await.map_err(failed)?;
        Ok(Output {
            dropped_bytes: stdout.1 + stderr.1,
            stdout: stdout.0,
            stderr: stderr.0,
            exit_code: status.code(),
        })
    }

    async fn write(&self, path: &str, content: &[u8]) -> Result<(), IsolationError> {
        let path = self.folder.path().join(path);
        let write = || {
            std::fs::create_dir_all(path.parent().unwrap_or(self.folder.path()))?;
            std::fs::write(&path, content)
        };
        write().map_err(|error| IsolationError::Write(error.to_string()))
    }

    async fn usage(&self) -> Usage {
        Usage { cpu_seconds: Some(0.0), memory_bytes: Some(0), disk_bytes: Some(0) }
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::SeqCst)
    }

    async fn end(&self) {
        self.over.store(true, Ordering::SeqCst);
    }
}

/// Reads a stream; returns its beginning and the number of further bytes.
async fn read_capped(stream: Option<impl AsyncRead + Unpin>, bytes_max: usize) -> (Vec<u8>, u64) {
    let (mut kept, mut dropped) = (Vec::new(), 0);
    let Some(mut stream) = stream else { return (kept, dropped) };
    let mut piece = vec![0; 16 << 10];
    while let Ok(length @ 1..) = stream.read(&mut piece).await {
        let keep = length.min(bytes_max - kept.len());
        kept.extend_from_slice(&piece[..keep]);
        dropped += (length - keep) as u64;
    }
    (kept, dropped)
}
