//! Requests to the engine's API: paths, routes and query parameters that can be read in only one way.

mod path;
mod query;
mod routes;

pub(crate) use self::path::ApiPath;
pub(crate) use self::query::Query;
pub(crate) use self::routes::{ContainerCall, ExecCall, Operation, find_route};
