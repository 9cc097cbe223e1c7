//! Creation of sandboxes: waits for a slot, and hands the new sandbox to its caller.

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

/// Request for a sandbox. Unknown fields are ignored, since clients of other hosts send them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NewSandbox {
    /// Priority: 0 critical, 1 high, 2 normal (default), 3 low.
    #[serde(default)]
    pub priority: Option<u64>,
    /// True if sandboxes of higher priority may take its slot. Default: false.
    #[serde(default)]
    pub preemptable: Option<bool>,
    /// True if programs should have access to the machine's container engine, which this host never allows.
    #[serde(default)]
    pub enable_docker_socket: Option<bool>,
    /// Address of the container engine; ignored.
    #[serde(default)]
    pub upstream: Option<String>,
}

/// A new sandbox on its way to the caller. If the caller has gone away and doesn't take it, dropping it ends the
/// sandbox.
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
            // Cleanup continues in the background.
            let _ = self.host.end(&entry, Why::Unclaimed);
        }
    }
}

impl SandboxHost {
    /// Creates a sandbox as soon as there is a slot for it. If the call is dropped, its request is withdrawn and a
    /// sandbox that was already created for it is ended.
    ///
    /// # Errors
    /// All of [`HostError`] except [`HostError::Gone`] and [`HostError::Conflict`].
    pub async fn create(&self, asked: &NewSandbox) -> Result<SandboxView, HostError> {
        let priority = match asked.priority {
            None => Priority::Normal,
            Some(number) => Priority::of_number(number).ok_or_else(|| {
                HostError::Invalid(
                    "The priority must be 0 (critical), 1 (high), 2 (normal) or 3 (low).".to_owned(),
                )
            })?,
        };
        if asked.enable_docker_socket == Some(true) {
            return Err(HostError::NotHere(
                "This sandbox host gives no access to a container engine, since that would be access to the whole \
                 machine: omit enableDockerSocket, or use a host that has engines."
                    .to_owned(),
            ));
        }
        let preemptable = asked.preemptable.unwrap_or(false);
        let place = self.wait_for_place(priority, preemptable).await?;
        self.check_memory()?;
        let (hand_over, taken) = oneshot::channel();
        let host = self.this.upgrade().ok_or_else(shut_down)?;
        // Runs to its end even if the caller stops waiting, since a half-made sandbox is harder to clean up than a
        // whole one.
        let making = async move {
            let made = host.make(priority, preemptable, place).await;
            // If the caller is gone, the unsent sandbox is dropped, which ends it.
            let _ = hand_over.send(made.map(|entry| Handover { host, entry: Some(entry) }));
        };
        self.tasks.spawn_on(making, &self.runtime);
        let made = taken.await.map_err(|_| HostError::Failed("Creating the sandbox failed.".to_owned()))??;
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
                // Withdraw this request first, so that the message doesn't count it as waiting.
                drop(place);
                let why = self.room().why_full().unwrap_or_else(|| "There was no free slot.".to_owned());
                Err(HostError::Full {
                    reason: format!("No room for a sandbox became free within {wait} s. {why}"),
                    retry_after: Duration::from_secs(5),
                })
            }
        }
    }

    /// Fails if too many requests are waiting.
    pub(super) fn check_waiting(&self, room: &Room) -> Result<(), HostError> {
        if room.waiting() < self.config.waiting_max {
            return Ok(());
        }
        let waiting = room.waiting();
        Err(HostError::TooMany(format!("{waiting} requests are already waiting for a slot: try again later.")))
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
            tracing::warn!(%error, "Could not create a sandbox: {error}");
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
        tracing::info!(sandbox.id = entry.id, priority, preemptable, "Created sandbox {}", entry.id);
        // From now on, the sandbox may be preempted.
        self.change_room(|room| room.made(number));
        Ok(entry)
    }
}

/// Returns the error for requests during shutdown.
pub(super) fn shut_down() -> HostError {
    HostError::Full {
        reason: "The sandbox host is being shut down.".to_owned(),
        retry_after: Duration::from_secs(30),
    }
}
