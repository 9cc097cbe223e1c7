//! Making sandboxes: waiting for a place, and handing over what was made.

use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use tokio::sync::oneshot;
use tokio::time::timeout;
use uuid::Uuid;

use super::entry::Entry;
use super::place::Place;
use super::room::Room;
use super::why::Why;
use super::{HostError, Priority, SandboxHost, SandboxView};

/// A sandbox that is asked for. Fields that are not known are passed over, as clients of other hosts send them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NewSandbox {
    /// 0 critical, 1 high, 2 normal (unless said otherwise), 3 low.
    #[serde(default)]
    pub priority: Option<u64>,
    /// Whether it gives way to sandboxes of higher priority. Not unless said so.
    #[serde(default)]
    pub preemptable: Option<bool>,
    /// Whether programs in it may use the machine's container engine. Never on this host.
    #[serde(default)]
    pub enable_docker_socket: Option<bool>,
    /// Which engine that would be; without one it means nothing.
    #[serde(default)]
    pub upstream: Option<String>,
}

/// A sandbox on its way to who asked for it. Whoever does not take it has gone away: then it is ended.
struct Handover {
    host: Arc<SandboxHost>,
    entry: Option<Arc<Entry>>,
}

impl Handover {
    fn take(mut self) -> Option<Arc<Entry>> {
        self.entry.take()
    }
}

impl Drop for Handover {
    fn drop(&mut self) {
        if let Some(entry) = self.entry.take() {
            // It goes on by itself.
            let _ = self.host.end(&entry, Why::Unclaimed);
        }
    }
}

impl SandboxHost {
    /// Makes a sandbox, once there is a place for it. When the call is dropped, its place in the line is given up; what
    /// was made for it is ended.
    ///
    /// # Errors
    /// Each of [`HostError`] but [`HostError::Gone`] and [`HostError::Conflict`].
    pub async fn create(&self, asked: &NewSandbox) -> Result<SandboxView, HostError> {
        let priority = match asked.priority {
            None => Priority::Normal,
            Some(number) => Priority::of_number(number).ok_or_else(|| {
                HostError::Invalid(
                    "The priority is 0 (critical), 1 (high), 2 (normal) or 3 (low).".to_owned(),
                )
            })?,
        };
        if asked.enable_docker_socket == Some(true) {
            return Err(HostError::NotHere(
                "This sandbox host gives no access to a container engine, since that would be access to the whole \
                 machine: ask without enableDockerSocket, or use a host that has engines."
                    .to_owned(),
            ));
        }
        let preemptable = asked.preemptable.unwrap_or(false);
        let place = self.wait_for_place(priority, preemptable).await?;
        self.check_memory()?;
        let (hand_over, taken) = oneshot::channel();
        let host = self.this.upgrade().ok_or_else(shut_down)?;
        // To its end also when nobody waits for it any more: half a sandbox is worse than a whole one.
        let making = async move {
            let made = host.make(priority, preemptable, place).await;
            // An answer that nobody takes is dropped, and with it the sandbox is ended.
            let _ = hand_over.send(made.map(|entry| Handover { host, entry: Some(entry) }));
        };
        self.tasks.spawn_on(making, &self.runtime);
        let made = taken.await.map_err(|_| HostError::Failed("Making the sandbox failed.".to_owned()))??;
        let entry = made.take().ok_or_else(shut_down)?;
        Ok(self.view(&entry))
    }

    async fn wait_for_place(&self, priority: Priority, preemptable: bool) -> Result<Place, HostError> {
        let (place, granted) = self.change_room(|room| {
            if self.closed.is_cancelled() {
                return Err(shut_down());
            }
            self.check_waiting(room)?;
            let (number, granted) = room.wish_place(priority, preemptable);
            let host = self.this.clone();
            let leave = move |number| {
                if let Some(host) = host.upgrade() {
                    host.change_room(|room| room.gone(number));
                }
            };
            Ok((Place::new(number, leave), granted))
        })?;
        match timeout(self.config.create_wait, granted).await {
            Ok(Ok(())) => Ok(place),
            Ok(Err(_)) => Err(shut_down()),
            Err(_) => {
                let wait = self.config.create_wait.as_secs();
                // It does not count itself among those who wait.
                drop(place);
                let why = self.room().why_full().unwrap_or_else(|| "There was no place.".to_owned());
                Err(HostError::Full {
                    reason: format!("No place for a sandbox came free within {wait} s. {why}"),
                    retry_after: Duration::from_secs(5),
                })
            }
        }
    }

    /// That not too many wait.
    pub(super) fn check_waiting(&self, room: &Room) -> Result<(), HostError> {
        if room.waiting() < self.config.waiting_max {
            return Ok(());
        }
        let waiting = room.waiting();
        Err(HostError::TooMany(format!("{waiting} requests wait for a place already: come again later.")))
    }

    pub(super) fn check_memory(&self) -> Result<(), HostError> {
        let reserve = self.config.memory_reserve_bytes;
        match self.machine.memory_available_bytes() {
            Some(available) if available < reserve => Err(HostError::Full {
                reason: format!(
                    "The machine has only {} MiB of memory left; {} MiB must be free for another sandbox.",
                    available >> 20,
                    reserve >> 20
                ),
                retry_after: Duration::from_secs(10),
            }),
            _ => Ok(()),
        }
    }

    async fn make(
        &self,
        priority: Priority,
        preemptable: bool,
        place: Place,
    ) -> Result<Arc<Entry>, HostError> {
        let made = self.isolation.create(&self.config.limits).await;
        let sandbox = made.map_err(|error| {
            tracing::warn!(%error, "A sandbox could not be made: {error}");
            HostError::of_making(&error)
        })?;
        let id = format!("sb-{}", Uuid::new_v4().simple());
        let number = place.number;
        let entry = Arc::new(Entry::new(id.clone(), priority, preemptable, sandbox, place));
        self.entries().insert(id, Arc::clone(&entry));
        if self.closed.is_cancelled() {
            let _ = self.end(&entry, Why::Shutdown);
            return Err(shut_down());
        }
        let priority = priority.as_str();
        tracing::info!(sandbox.id = entry.id, priority, preemptable, "Made sandbox {}", entry.id);
        // From now on it may have to leave for others.
        self.change_room(|room| room.made(number));
        Ok(entry)
    }
}

/// What is told while the host ends.
pub(super) fn shut_down() -> HostError {
    HostError::Full {
        reason: "The sandbox host is being shut down.".to_owned(),
        retry_after: Duration::from_secs(30),
    }
}
