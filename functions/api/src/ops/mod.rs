//! What operators look at: workers, runs, queues, tokens, and the host of the sandboxes.

mod overview;
mod sandy;
mod series;

use std::sync::{Arc, Mutex};
use std::time::Instant;

use bench_sandy::Sandy;
use bench_web::Caller;
use http::HeaderMap;

use crate::Api;

pub(crate) use overview::{__path_get_overview, get_overview};
pub use overview::{OverviewView, overview};
pub(crate) use sandy::{
    __path_get_metrics, __path_get_resources, __path_get_sandboxes, get_metrics, get_resources, get_sandboxes,
};

/// Returns whether a caller sees single workers, runs and sandboxes: admins do, and everybody who reaches a server that
/// is bound to loopback.
fn sees_details(api: &Api, headers: &HeaderMap) -> bool {
    api.config.server.local || api.access.reader(headers) == Caller::Admin
}

/// What is kept between two looks.
#[derive(Debug)]
pub(crate) struct Ops {
    pub(crate) sandy: Sandy,
    answers: Mutex<sandy::Kept>,
    hours: Mutex<series::PastHours>,
    overview: Mutex<Option<(Instant, u64, Arc<OverviewView>)>>,
}

impl Ops {
    pub(crate) fn new(sandy: Sandy) -> Self {
        Self { sandy, answers: Mutex::default(), hours: Mutex::default(), overview: Mutex::default() }
    }
}
