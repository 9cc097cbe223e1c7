//! Shared parts of both HTTP functions: errors, validation, authentication, views.
//!
//! | module | purpose |
//! | --- | --- |
//! | [`error`] | [`ApiError`]: a status and `{"detail": …, "code": …}` |
//! | [`fields`] | reading JSON bodies and query strings, with all problems reported at once |
//! | `query_key` | keys in query strings, which nothing may log, store or echo |
//! | [`Path`] | parameters of a path, refused in the form of other errors |
//! | [`auth`] | identifies callers and decides what they may change |
//! | [`guard`] | checks secrets before handlers run: delays wrong admin secrets, looks up access tokens |
//! | [`identity`] | sender of a request: [`Identity`], sessions' cookies, cross-site requests |
//! | [`attempts`] | failed attempts by address |
//! | [`server`] | common layers of all routers: panics, unknown paths, Host and Origin, CORS, headers |
//! | [`views`] | runs, benchmarks, items and events as JSON |
//! | [`size`] | sizes of responses that have a limit |
//!
//! An internal error is logged once, with its cause; the caller sees it without the cause. The code that
//! reads a request reports what is wrong with it; no request can end the process.

pub mod attempts;
pub mod auth;
pub mod body;
mod compression;
pub mod error;
mod field_error;
pub mod fields;
pub mod guard;
pub mod identity;
mod path;
mod query_key;
pub mod server;
pub mod size;
pub mod views;

pub use auth::{Access, Caller};
pub use error::{AdmissionRefusal, ApiError};
pub use field_error::FieldError;
pub use fields::{FieldReader, Location};
pub use guard::{Guard, SecretLimits};
pub use identity::Identity;
pub use path::Path;
pub use query_key::{KEY_PARAMETER, QueryKey, take_query_key, without_query_key};
pub use server::{ServerConfig, Subresource, finish, finish_around};
