//! Reservation of a slot for one sandbox.

use super::slot_pool::HolderId;

/// A request in the slot pool, and later the sandbox made for it. Dropping it withdraws the request or releases the
/// slot.
pub(super) struct Reservation {
    pub(super) holder_id: HolderId,
    /// Releases the reservation.
    release: Box<dyn Fn(HolderId) + Send + Sync>,
}

impl Reservation {
    pub(super) fn new(holder_id: HolderId, release: impl Fn(HolderId) + Send + Sync + 'static) -> Self {
        Self { holder_id, release: Box::new(release) }
    }

    /// Releases the reservation. Repeated calls have no effect.
    pub(super) fn release(&self) {
        (self.release)(self.holder_id);
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.release();
    }
}
