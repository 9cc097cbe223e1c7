//! Creation of sandboxes: waits for a slot, and hands the new sandbox to its caller.

use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use tokio::sync::oneshot;
use tokio::time::timeout;
use uuid::Uuid;

use super::end_reason::EndReason;
use super::entry::Entry;
use super::reservation::Reservation;
use super::slot_pool::SlotPool;
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
    /// True if programs should have a container engine: a filtered one of their own, whose address they find in
    /// `DOCKER_HOST`. Default: false.
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
            let _ = self.host.end(&entry, EndReason::Unclaimed);
        }
    }
}

impl SandboxHost {
    /// Creates a sandbox as soon as there is a slot for it. If the call is dropped, its request is withdrawn and a
    /// sandbox that was already created for it is ended.
    ///
    /// # Errors
    /// All of [`HostError`] except [`HostError::Gone`] and [`HostError::Conflict`].
    pub async fn create(&self, request: &NewSandbox) -> Result<SandboxView, HostError> {
        let priority = match request.priority {
            None => Priority::Normal,
            Some(number) => Priority::from_number(number).ok_or_else(|| {
                HostError::Invalid(
                    "The priority must be 0 (critical), 1 (high), 2 (normal) or 3 (low).".to_owned(),
                )
            })?,
        };
        let with_engine = request.enable_docker_socket == Some(true);
        if with_engine {
            // Before the wait for a slot, since the answer may be that there is none.
            let found = self.search_engine().await;
            found
                .map_err(|_| HostError::Failed("The search for a container engine failed.".to_owned()))??;
        }
        let preemptable = request.preemptable.unwrap_or(false);
        let reservation = self.wait_for_reservation(priority, preemptable).await?;
        self.check_memory()?;
        let (sender, receiver) = oneshot::channel();
        let host = self.weak_self.upgrade().ok_or_else(shutting_down)?;
        // Runs to its end even if the caller stops waiting, since a half-made sandbox is harder to clean up than a
        // whole one.
        let creation = async move {
            let made = host.create_entry(priority, preemptable, with_engine, reservation).await;
            // If the caller is gone, the unsent sandbox is dropped, which ends it.
            let _ = sender.send(made.map(|entry| Handover { host, entry: Some(entry) }));
        };
        self.tasks.spawn_on(creation, &self.runtime);
        let made =
            receiver.await.map_err(|_| HostError::Failed("Creating the sandbox failed.".to_owned()))??;
        let entry = made.take().ok_or_else(shutting_down)?;
        Ok(self.view(&entry))
    }

    async fn wait_for_reservation(
        &self,
        priority: Priority,
        preemptable: bool,
    ) -> Result<Reservation, HostError> {
        let (reservation, granted) = self.update_slots(|slot_pool| {
            if self.closed.is_cancelled() {
                return Err(shutting_down());
            }
            self.check_waiting(slot_pool)?;
            let (holder_id, granted) = slot_pool.request_sandbox(priority, preemptable);
            let host = self.weak_self.clone();
            let release = move |number| {
                if let Some(host) = host.upgrade() {
                    host.update_slots(|slot_pool| slot_pool.remove(number));
                }
            };
            Ok((Reservation::new(holder_id, release), granted))
        })?;
        match timeout(self.config.create_wait, granted).await {
            Ok(Ok(())) => Ok(reservation),
            Ok(Err(_)) => Err(shutting_down()),
            Err(_) => {
                let wait = self.config.create_wait.as_secs();
                // Withdraw this request first, so that the message doesn't count it as waiting.
                drop(reservation);
                let reason =
                    self.slot_pool().full_reason().unwrap_or_else(|| "There was no free slot.".to_owned());
                Err(HostError::Full {
                    reason: format!("No room for a sandbox became free within {wait} s. {reason}"),
                    retry_after: Duration::from_secs(5),
                })
            }
        }
    }

    /// Fails if too many requests are waiting.
    pub(super) fn check_waiting(&self, slot_pool: &SlotPool) -> Result<(), HostError> {
        if slot_pool.waiting() < self.config.waiting_max {
            return Ok(());
        }
        let waiting = slot_pool.waiting();
        Err(HostError::TooManyRequests(format!(
            "{waiting} requests are already waiting for a slot: try again later."
        )))
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

    async fn create_entry(
        &self,
        priority: Priority,
        preemptable: bool,
        with_engine: bool,
        reservation: Reservation,
    ) -> Result<Arc<Entry>, HostError> {
        let limits = &self.config.limits;
        let made = match with_engine {
            true => self.isolation.create_with_engine(limits).await,
            false => self.isolation.create(limits).await,
        };
        let sandbox = made.map_err(|error| {
            tracing::warn!(%error, "Could not create a sandbox: {error}");
            HostError::from_creation_error(&error)
        })?;
        let id = format!("sb-{}", Uuid::new_v4().simple());
        let proxy = match sandbox.engine_place().filter(|_| with_engine) {
            Some(place) => match self.engine.attach(&id, place).await {
                Ok(proxy) => Some(proxy),
                Err(error) => {
                    sandbox.end().await;
                    return Err(error);
                }
            },
            None => None,
        };
        let holder_id = reservation.holder_id;
        let entry = Arc::new(Entry::new(id.clone(), priority, preemptable, sandbox, proxy, reservation));
        self.entries().insert(id, Arc::clone(&entry));
        if self.closed.is_cancelled() {
            let _ = self.end(&entry, EndReason::Shutdown);
            return Err(shutting_down());
        }
        let priority = priority.as_str();
        tracing::info!(sandbox.id = entry.id, priority, preemptable, "Created sandbox {}", entry.id);
        // From now on, the sandbox may be preempted.
        self.update_slots(|slot_pool| slot_pool.mark_ready(holder_id));
        Ok(entry)
    }
}

/// Returns the error for requests during shutdown.
pub(super) fn shutting_down() -> HostError {
    HostError::Full {
        reason: "The sandbox host is being shut down.".to_owned(),
        retry_after: Duration::from_secs(30),
    }
}
