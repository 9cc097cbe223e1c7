//! A pool of threads.

mod pool;

pub use pool::{Handle, Pool};
