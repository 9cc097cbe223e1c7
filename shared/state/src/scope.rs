//! Runs that a process works on.
//!
//! The functions of a deployed system share one table and work on all runs. In a data directory, one process works at a
//! time, its owner. It works on runs that it ordered or resumed itself, and on those that other commands ordered or
//! resumed while it was the owner; a server also continues runs that were ordered at a server. Any other open run is
//! interrupted: it stays unchanged until it is resumed.

use crate::{Origin, RunRecord, Scope, State};

impl State {
    /// Returns true if this process works on an open run. Other open runs are interrupted until they are resumed.
    pub fn works_on(&self, run: &RunRecord) -> bool {
        match (self.scope, run.origin) {
            (Scope::All, _) | (Scope::Server, Origin::Server) => true,
            (Scope::Server | Scope::Foreground, Origin::Foreground { start }) => start == self.epoch,
            (Scope::Foreground, Origin::Server) => false,
        }
    }
}
