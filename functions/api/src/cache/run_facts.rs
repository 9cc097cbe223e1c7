//! Facts about runs, which never change.

use std::collections::HashMap;
use std::sync::Arc;

use bench_domain::RunId;
use bench_state::RunFacts;

/// Facts by run.
pub(crate) type CachedFacts = HashMap<RunId, Arc<RunFacts>>;
