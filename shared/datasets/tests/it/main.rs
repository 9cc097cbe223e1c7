//! Datasets through a hub on loopback and a real blob store.
#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

mod hub_server;
#[expect(dead_code, reason = "the tests of the reader use every kind of column")]
mod parquet_files;
mod support;

mod cached;
mod demo;
mod download;
mod gates;
mod local;
mod prepare;
