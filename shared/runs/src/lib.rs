//! An order becomes a run: resolved, checked, written, and sent to the planner.
//!
//! | module | what for |
//! | --- | --- |
//! | [`order`] | what is ordered |
//! | `orderer` | who orders, and what may be ordered with that |
//! | [`orders`] | [`Orders`]: from an order to a run |
//! | `model`, `availability`, `price`, `judge` | which model and judge an order means, whether they answer, what they cost |
//! | `benchmarks`, [`protocols`], [`options`], `choice` | what is run, and how |
//! | `template` | an order with all of that looked up |
//! | `create`, `rejudge`, [`scheduled`] | a run from an order, from another run's answers, from a schedule |
//! | `creator` | [`RunCreator`]: the write that all of them end with |
//! | `access` | what the access policy lets a caller order |
//! | `limits` | how much may be ordered |
//!
//! Nothing here knows HTTP: what is refused is a [`RunError`] with a code, and whoever took the order says it in its
//! own way. Nothing waits for a model or a dataset; the one exception is the look at the provider's list of models, for
//! a few seconds at most.

mod access;
mod availability;
mod benchmarks;
mod caller_keys;
mod choice;
mod create;
mod creator;
mod error;
mod judge;
mod limits;
mod model;
pub mod options;
pub mod order;
mod orderer;
pub mod orders;
mod price;
pub mod protocols;
mod rejudge;
pub mod scheduled;
mod template;

pub use access::NotAllowed;
pub use caller_keys::CallerKeys;
pub use choice::{Choice, UnknownBenchmark, UnknownChoice};
pub use create::{Created, Placed, Ready};
pub use creator::{RunCreator, RunCreatorConfig};
pub use error::RunError;
pub use model::FoundModel;
pub use order::{JudgeOrder, Order, RejudgeOrder, Trusted};
pub use orderer::{Orderer, Permissions, Standing};
pub use orders::{DatasetCheck, Orders, OrdersConfig};
pub use scheduled::NotMade;
pub use template::Ordered;
