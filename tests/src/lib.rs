//! Whole-system tests, and the servers that they run against.

pub mod model_server;
