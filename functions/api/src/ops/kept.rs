//! What is kept between two looks of operators.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use bench_sandy::{Sandy, SandyError};
use bench_state::ops::MinuteLoad;
use serde_json::Value;

use super::overview_view::OverviewView;

/// Answers by question, with the time of each.
pub(super) type Answers = BTreeMap<String, (Instant, Result<Value, SandyError>)>;

/// Hours that are over, by their number since 1970.
pub(super) type PastHours = BTreeMap<i64, Vec<MinuteLoad>>;

/// What is kept between two looks.
#[derive(Debug)]
pub(crate) struct Ops {
    pub(crate) sandy: Sandy,
    pub(super) answers: Mutex<Answers>,
    pub(super) hours: Mutex<PastHours>,
    pub(super) overview: Mutex<Option<(Instant, u64, Arc<OverviewView>)>>,
}

impl Ops {
    pub(crate) fn new(sandy: Sandy) -> Self {
        Self { sandy, answers: Mutex::default(), hours: Mutex::default(), overview: Mutex::default() }
    }
}
