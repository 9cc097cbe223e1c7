//! Datasets through a hub on loopback and a real blob store.
#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

mod custom_layout;
mod hub_server;
#[expect(dead_code, reason = "the tests of the reader use every kind of column")]
mod parquet_files;
mod support;

mod attachments;
mod cached;
mod column_files;
mod csv_files;
mod demo;
mod documents;
mod download;
mod gates;
mod item_cache;
mod large;
mod local;
mod official_files;
mod prepare;
mod repository;
mod templates;
mod variants;
