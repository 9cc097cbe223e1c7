//! Reservation of a slot for one sandbox.

use super::room::Number;

/// A request in the slot pool, and later the sandbox made for it. Dropping it withdraws the request or releases the
/// slot.
pub(super) struct Place {
    pub(super) number: Number,
    /// Releases the reservation.
    leave: Box<dyn Fn(Number) + Send + Sync>,
}

impl Place {
    pub(super) fn new(number: Number, leave: impl Fn(Number) + Send + Sync + 'static) -> Self {
        Self { number, leave: Box::new(leave) }
    }

    /// Releases the reservation. Repeated calls have no effect.
    pub(super) fn leave(&self) {
        (self.leave)(self.number);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.leave();
    }
}
