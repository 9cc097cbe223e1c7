//! Serves a router on a TCP listener, for untrusted callers.
//!
//! `axum::serve` accepts as many connections as there are file descriptors and waits for headers and bodies
//! without limit, so idle callers can make a server unreachable. [`serve`] limits all of that:
//!
//! | subject | limit |
//! | --- | --- |
//! | a request's header, and the time between two requests | [`Limits::header_timeout`], then the connection is closed |
//! | a request's body | [`Limits::body_stall_timeout`], [`Limits::body_bytes_per_second_min`] and [`Limits::body_timeout`], then 408 |
//! | a client that doesn't read its response | [`Limits::response_stall_timeout`], then the connection is closed |
//! | connections, in total and per address | [`Limits::connections_max`] and [`Limits::connections_per_address_max`] |
//!
//! When a limit on connections is reached, a new connection replaces the one that has waited longest for a
//! request. If all of them are busy, the new one is answered 503 and closed. A response may take as long as
//! its client reads it: event streams and long polls aren't affected.
//!
//! Handlers find the caller's address in the request's extensions as `axum::extract::ConnectInfo<SocketAddr>`.

mod body;
mod connections;
mod limits;
mod serve;
mod stream;
#[cfg(test)]
mod tests;

pub use body::BodyTimedOut;
pub use connections::network_of;
pub use limits::{CONNECTIONS_DEFAULT, Limits, open_files_limit, raise_open_files_limit};
pub use serve::serve;
