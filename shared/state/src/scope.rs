//! Which runs a process works on.
//!
//! The functions of a deployed system share one table and work on all runs. In a data directory one process works at a
//! time: a server continues what was ordered at a server, a command in the foreground works on the runs that it ordered
//! or resumed itself. Any other open run is interrupted: it stays as it is until it is resumed.

use crate::{Origin, RunRecord, Scope, State};

impl State {
    /// Whether this process works on a run that is open. One that it doesn't work on is interrupted until it is resumed.
    pub fn works_on(&self, run: &RunRecord) -> bool {
        match (self.scope, run.origin) {
            (Scope::All, _) | (Scope::Server, Origin::Server) => true,
            (Scope::Foreground, Origin::Foreground { start }) => start == self.epoch,
            (Scope::Server, Origin::Foreground { .. }) | (Scope::Foreground, Origin::Server) => false,
        }
    }
}
