//! Ctrl-C handling: the first one stops the work, the second one ends the process.

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// Receives Ctrl-C and termination requests.
#[derive(Debug, Clone)]
pub(crate) struct Interrupt {
    stopped: watch::Receiver<bool>,
}

impl Interrupt {
    /// Starts to listen. The second signal ends the process immediately, which is safe for all acknowledged writes.
    pub(crate) fn listen() -> Self {
        let (stop, stopped) = watch::channel(false);
        // Before the task runs, so that no signal ends the process once this function has returned.
        let signals = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()));
        tokio::spawn(async move {
            let (Ok(mut interrupt), Ok(mut terminate)) = signals else {
                // Signals keep their default effect. The pending future keeps the sender alive, so that receivers see
                // no change.
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
                // Sending fails if all receivers are gone because the work is done.
                let _ = stop.send(true);
            }
        });
        Self { stopped }
    }

    /// Returns after the first signal.
    pub(crate) async fn wait(&self) {
        let mut stopped = self.stopped.clone();
        if stopped.wait_for(|stopped| *stopped).await.is_err() {
            // The listener ended with the runtime.
            std::future::pending::<()>().await;
        }
    }
}
