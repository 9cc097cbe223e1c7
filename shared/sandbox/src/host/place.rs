//! A sandbox's place in the room.

use super::room::Number;

/// A place in the room, from the wish for it on. It comes free when this is dropped.
pub(super) struct Place {
    pub(super) number: Number,
    /// Frees it.
    leave: Box<dyn Fn(Number) + Send + Sync>,
}

impl Place {
    pub(super) fn new(number: Number, leave: impl Fn(Number) + Send + Sync + 'static) -> Self {
        Self { number, leave: Box::new(leave) }
    }

    /// Gives it up. It does not matter how often.
    pub(super) fn leave(&self) {
        (self.leave)(self.number);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.leave();
    }
}
