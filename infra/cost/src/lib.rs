//! Cost of a run on AWS, from its counters and the list prices.
//!
//! [`MeasuredRun`]s hold the calls of real runs, [`predict`] scales them to any size, and [`PRICES`] price the resulting
//! [`Counters`]. Everything is a pure function: the same inputs give the same page.

mod counters;
mod measured;
mod model;
mod month;
mod prices;
mod tables;

pub use counters::{Counters, Line};
pub use measured::{MEASURED, MeasuredRun, Tallies, Tally, read, scale, sum};
pub use model::{Arch, MEMORY_MB, TURNS_BATCH, WORKER_BATCH, WORKER_MB, Workload, run as predict};
pub use month::{DAYS, Episodes, Installation, episodes, idle, nightly};
pub use prices::{PRICES, PRICES_AS_OF, Price, REGION, Usage};
pub use tables::{AIM_SAMPLES, AIM_USD, IDLE_AIM_USD, bill, page};
