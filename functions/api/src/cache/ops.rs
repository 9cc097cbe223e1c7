//! Cache of the operators' pages.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use bench_sandy::{Sandy, SandyError};
use bench_state::ops::MinuteLoad;
use serde_json::Value;

use crate::views::overview::OverviewView;

/// Responses of the sandbox service by query, with the time of each.
pub(crate) type Answers = BTreeMap<String, (Instant, Result<Value, SandyError>)>;

/// Load of hours that have ended, by hours since 1970.
pub(crate) type PastHours = BTreeMap<i64, Vec<MinuteLoad>>;

/// Cache of the operators' pages.
#[derive(Debug)]
pub(crate) struct Ops {
    pub(crate) sandy: Sandy,
    pub(crate) answers: Mutex<Answers>,
    pub(crate) hours: Mutex<PastHours>,
    pub(crate) overview: Mutex<Option<(Instant, u64, Arc<OverviewView>)>>,
}

impl Ops {
    pub(crate) fn new(sandy: Sandy) -> Self {
        Self { sandy, answers: Mutex::default(), hours: Mutex::default(), overview: Mutex::default() }
    }
}
