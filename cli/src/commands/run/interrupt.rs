//! Ctrl-C: once to stop, twice to end at once.

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// Hears Ctrl-C and requests to end.
#[derive(Debug, Clone)]
pub(crate) struct Interrupt {
    stopped: watch::Receiver<bool>,
}

impl Interrupt {
    /// Listens from now on. The second signal ends the process at once: everything that was acknowledged is safe.
    pub(crate) fn listen() -> Self {
        let (stop, stopped) = watch::channel(false);
        tokio::spawn(async move {
            let (Ok(mut interrupt), Ok(mut terminate)) =
                (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
            else {
                // Signals then do what they do without anybody listening. The sender stays, so that nobody is told.
                tracing::warn!("Signals cannot be heard; Ctrl-C ends the process at once");
                return std::future::pending().await;
            };
            let mut heard = 0;
            loop {
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                }
                heard += 1;
                if heard > 1 {
                    std::process::exit(130);
                }
                // Nobody waits any more when the work is done.
                let _ = stop.send(true);
            }
        });
        Self { stopped }
    }

    /// Returns once a signal was heard.
    pub(crate) async fn wait(&self) {
        let mut stopped = self.stopped.clone();
        if stopped.wait_for(|stopped| *stopped).await.is_err() {
            // The listener ended with the runtime.
            std::future::pending::<()>().await;
        }
    }
}
