//! What both HTTP functions need: errors, validation, authentication, views, OpenAPI pages.
//!
//! | module | what for |
//! | --- | --- |
//! | [`error`] | [`ApiError`]: a status and `{"detail": …, "code": …}` |
//! | [`fields`] | reading JSON bodies and query strings, with every problem told at once |
//! | [`Path`] | parameters of a path, refused like everything else |
//! | [`auth`] | who calls, and what that caller may change |
//! | [`guard`] | secrets checked before a handler: wrong admin secrets are delayed, access tokens looked up |
//! | [`attempts`] | failed attempts by address |
//! | [`server`] | what stands around every router: panics, unknown paths, Host and Origin, CORS, headers |
//! | [`views`] | runs, benchmarks, items and events as JSON |
//! | [`size`] | how large an answer is where answers have a bound |
//! | [`page`], [`docs`] | pages without anything from elsewhere |
//!
//! What holds here: an error from inside is logged once, with its cause, and told without it. What a caller
//! sent is read by code that says what is wrong with it; nothing of it can end the process.

pub mod attempts;
pub mod auth;
pub mod body;
pub mod docs;
pub mod error;
mod field_error;
pub mod fields;
pub mod guard;
pub mod page;
mod path;
pub mod server;
pub mod size;
pub mod views;

pub use auth::{Access, Caller};
pub use error::ApiError;
pub use field_error::FieldError;
pub use fields::{FieldReader, Location};
pub use guard::{Guard, SecretLimits};
pub use path::Path;
pub use server::{ServerConfig, finish};
