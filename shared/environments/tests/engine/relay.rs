//! A socket in front of the engine's, whose connections a test can cut.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tempfile::TempDir;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Notify;

/// A relay to the engine. It ends with the test.
pub(crate) struct Relay {
    folder: TempDir,
    cut: Arc<Notify>,
    refuses: Arc<AtomicBool>,
}

impl Relay {
    /// Starts a relay to the engine that `DOCKER_HOST` names, or to the machine's, which must have a socket.
    pub(crate) fn start() -> Self {
        let host = std::env::var("DOCKER_HOST").unwrap_or_else(|_| "unix:///var/run/docker.sock".to_owned());
        let engine = host.strip_prefix("unix://").unwrap().to_owned();
        let folder = TempDir::new().unwrap();
        let relay = Self { folder, cut: Arc::default(), refuses: Arc::default() };
        let listener = UnixListener::bind(relay.socket()).unwrap();
        let (cut, refuses) = (Arc::clone(&relay.cut), Arc::clone(&relay.refuses));
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                if !refuses.swap(false, Ordering::SeqCst) {
                    tokio::spawn(pass(client, engine.clone().into(), Arc::clone(&cut)));
                }
            }
        });
        relay
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("engine.sock")
    }

    /// Returns the value of `DOCKER_HOST` with which the engine is reached through the relay.
    pub(crate) fn host(&self) -> String {
        format!("unix://{}", self.socket().display())
    }

    /// Cuts all connections, and refuses the next one.
    pub(crate) fn cut(&self) {
        self.refuses.store(true, Ordering::SeqCst);
        self.cut.notify_waiters();
    }
}

async fn pass(mut client: UnixStream, engine: PathBuf, cut: Arc<Notify>) {
    let Ok(mut engine) = UnixStream::connect(Path::new(&engine)).await else { return };
    tokio::select! {
        _ = tokio::io::copy_bidirectional(&mut client, &mut engine) => {}
        () = cut.notified() => {}
    }
}
