//! Checks the health of an environment.

use std::time::Duration;

use serde_json::Value;

use super::Exec;
use super::exec::{COMMAND_START_MAX, millis};
use crate::operation::{Operation, OperationResult, sealed::Program};
use crate::program;
use crate::{Environment, EnvironmentError};

/// Repeats a command until it succeeds with exit code 0. The number of consecutive failures after which it has failed
/// counts after the start period only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckHealth {
    /// The command; its time limit is that of one check.
    pub check: Exec,
    /// Time between two checks.
    pub interval: Duration,
    /// Time after the start during which failures don't count.
    pub start_period: Duration,
    /// Time between two checks during the start period.
    pub start_interval: Duration,
    /// Number of consecutive failures after which the environment has failed.
    pub retries: u32,
}

impl Program for CheckHealth {
    fn program(&self) -> &'static str {
        program::CHECK_HEALTH
    }

    fn request(&self, environment: &Environment) -> Result<Value, EnvironmentError> {
        let mut request = self.check.to_request(environment)?;
        for (name, time) in [
            ("timeout_ms", self.check.time_limit),
            ("interval_ms", self.interval),
            ("start_period_ms", self.start_period),
            ("start_interval_ms", self.start_interval),
        ] {
            request[name] = millis(time).into();
        }
        request["retries"] = self.retries.into();
        Ok(request)
    }

    fn time_limit(&self) -> Duration {
        let wait = COMMAND_START_MAX.saturating_add(self.interval.max(self.start_interval));
        let one = self.check.time_limit.saturating_add(wait);
        let all = one.saturating_mul(self.retries.saturating_add(2)).saturating_add(self.start_period);
        all.min(Duration::from_hours(12))
    }
}

impl Operation for CheckHealth {
    type Output = ();

    fn read(&self, _done: Value, _result: &OperationResult<'_>) -> Result<(), EnvironmentError> {
        Ok(())
    }
}
