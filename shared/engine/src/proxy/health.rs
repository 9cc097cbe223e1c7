//! Health checks of containers where podman can't run them.
//!
//! Podman leaves the times of checks to systemd. Without it, for example in a container, a check never runs, and whoever
//! waits for a healthy container waits in vain.

use std::path::Path;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use http::{Method, StatusCode};
use serde_json::Value;
use tokio::time::Instant;

use super::Shared;
use crate::client::ClientError;
use crate::probe::EngineKind;

/// Folder that exists if systemd runs the machine.
const SYSTEMD: &str = "/run/systemd/system";
/// Interval of a check that states none, and the shortest one.
const INTERVAL: Duration = Duration::from_secs(30);
const INTERVAL_MIN: Duration = Duration::from_secs(1);

/// Times of a container's health check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Times {
    interval: Duration,
    /// Interval during the start period.
    start_interval: Duration,
    start_period: Duration,
}

impl Times {
    /// Reads the times of a container's description; `None` if it has no check.
    fn of(container: &Value) -> Option<Self> {
        let check = &container["Config"]["Healthcheck"];
        let kind = check["Test"].as_array()?.first()?.as_str()?;
        if matches!(kind, "" | "NONE") {
            return None;
        }
        let time = |name: &str| check[name].as_u64().filter(|nanos| *nanos > 0).map(Duration::from_nanos);
        let interval = time("Interval").unwrap_or(INTERVAL).max(INTERVAL_MIN);
        Some(Self {
            interval,
            start_interval: time("StartInterval").map_or(interval, |time| time.max(INTERVAL_MIN)),
            start_period: time("StartPeriod").unwrap_or_default(),
        })
    }

    /// Returns the time from one check to the next.
    fn next(&self, since_start: Duration) -> Duration {
        if since_start < self.start_period { self.start_interval } else { self.interval }
    }
}

/// Returns true if this program has to run the checks of containers itself.
pub(super) fn are_checked_here(kind: EngineKind) -> bool {
    kind == EngineKind::Podman && !Path::new(SYSTEMD).exists()
}

impl Shared {
    /// Runs the health check of a container that was started, if it has one and the engine can't, until the container
    /// ends or the proxy stops.
    pub(super) async fn check_health(self: &Arc<Self>, id: String) {
        let Some(checked) = &self.checked else { return };
        let Ok(Some(times)) = self.health_times(&id).await else { return };
        if !checked.lock().unwrap_or_else(PoisonError::into_inner).insert(id.clone()) {
            return;
        }
        let shared = Arc::clone(self);
        self.tasks.spawn(async move {
            tokio::select! {
                () = shared.stopping.cancelled() => {}
                () = shared.run_checks(&id, times) => {}
            }
            if let Some(checked) = &shared.checked {
                checked.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
            }
        });
    }

    /// Returns the times of a running container's check.
    async fn health_times(&self, id: &str) -> Result<Option<Times>, ClientError> {
        let found = self.client.expect(Method::GET, &format!("/containers/{id}/json"), None).await?;
        let is_running = found["State"]["Running"] == true;
        Ok(Times::of(&found).filter(|_| is_running))
    }

    async fn run_checks(&self, id: &str, times: Times) {
        let started = Instant::now();
        // Podman 4 and 5 accept this version.
        let address = format!("/v4.0.0/libpod/containers/{id}/healthcheck");
        loop {
            tokio::time::sleep(times.next(started.elapsed())).await;
            match self.client.call(Method::GET, &address, None).await {
                Ok((StatusCode::NOT_FOUND, _)) => return,
                // It has stopped, or podman can't say; an engine that fails may be back later.
                Ok((StatusCode::CONFLICT, _)) if !self.is_running(id).await => return,
                Ok(_) => {}
                Err(error) => tracing::debug!(%error, container = id, "A health check was not run"),
            }
        }
    }

    /// Returns false if a container has stopped or is gone.
    async fn is_running(&self, id: &str) -> bool {
        match self.client.call(Method::GET, &format!("/containers/{id}/json"), None).await {
            Ok((StatusCode::OK, found)) => found["State"]["Running"] != false,
            Ok((StatusCode::NOT_FOUND, _)) => false,
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn times_have_defaults_and_a_minimum() {
        let of = |check: Value| Times::of(&json!({ "Config": { "Healthcheck": check } }));
        let seconds = Duration::from_secs;
        for none in
            [json!(null), json!({ "Test": [] }), json!({ "Test": ["NONE"] }), json!({ "Interval": 1 })]
        {
            assert_eq!(of(none.clone()), None, "{none}");
        }
        let plain = of(json!({ "Test": ["CMD", "true"] })).unwrap();
        assert_eq!((plain.next(seconds(0)), plain.next(seconds(100))), (seconds(30), seconds(30)));
        let fast = of(json!({ "Test": ["CMD-SHELL", "true"], "Interval": 1000 })).unwrap();
        assert_eq!(fast.next(seconds(0)), seconds(1));
        let check = json!({
            "Test": ["CMD", "true"], "Interval": 60_000_000_000_u64, "StartInterval": 2_000_000_000_u64,
            "StartPeriod": 10_000_000_000_u64,
        });
        let starts = of(check).unwrap();
        assert_eq!((starts.next(seconds(9)), starts.next(seconds(10))), (seconds(2), seconds(60)));
    }
}
