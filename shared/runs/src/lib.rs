//! Creates runs from orders: resolves and checks an order, writes its run, and sends it to the planner.
//!
//! | module | contents |
//! | --- | --- |
//! | [`order`] | orders |
//! | `orderer` | callers that order, and what they may order |
//! | [`orders`] | [`Orders`]: resolves orders and creates their runs |
//! | `model`, `availability`, `price`, `helper`, `judge`, `user` | models, judges and user simulators of orders: resolution, availability checks, prices |
//! | `custom_agent`, `agent_problem` | custom agents of orders, in the place of a model |
//! | `benchmarks`, [`protocols`], [`options`], `choice` | benchmarks of orders, and choices for them |
//! | `template` | resolved orders |
//! | `outline` | orders that aren't placed, for estimates |
//! | `create`, `rejudge`, [`scheduled`] | creation of runs from orders, other runs' answers, and schedules |
//! | `creator` | [`RunCreator`]: the write at the end of each of them |
//! | `access` | checks of the access policy |
//! | `limits` | limits of orders |
//! | [`settings`] | generation settings of orders, checked against provider and benchmarks |
//!
//! Nothing here depends on HTTP: a rejected order is a [`RunError`] with a code, and the code that took the order
//! translates it. Nothing waits for a model or a dataset, except for the check of the provider's model list, which
//! takes a few seconds at most.

mod access;
mod agent_problem;
mod availability;
mod benchmarks;
mod caller_keys;
mod choice;
mod create;
mod creator;
mod custom_agent;
mod error;
mod helper;
mod judge;
mod limits;
mod model;
pub mod options;
pub mod order;
mod orderer;
pub mod orders;
mod outline;
mod price;
pub mod protocols;
mod rejudge;
pub mod scheduled;
pub mod settings;
mod template;
mod user;

pub use access::{AccessDenied, TERMINAL_TASKS};
pub use agent_problem::{CustomAgentProblem, NO_MODEL};
pub use caller_keys::CallerKeys;
pub use choice::{Choice, UnknownBenchmark, UnknownChoice};
pub use create::{CreatedRun, NewOrder, OrderLookup};
pub use creator::{RunCreator, RunCreatorConfig};
pub use error::RunError;
pub use model::FoundModel;
pub use order::{JudgeOrder, Order, OrderWarning, RejudgeOrder, TrustedSettings, UserOrder};
pub use orderer::{CHUTES, Orderer, Permissions, Standing, UserStanding};
pub use orders::{DatasetCheck, Orders, OrdersConfig};
pub use outline::{OrderOutline, OutlinedBenchmark};
pub use rejudge::has_judged_answers;
pub use scheduled::ScheduledRunError;
pub use template::{KeptModels, ResolvedOrder};
