//! The API's router over the embedded services: tests send requests and check statuses and bodies.

#![allow(clippy::unwrap_used, clippy::panic)] // a test that cannot go on ends

mod access;
mod bad_input;
mod budget;
mod catalog;
mod compare;
mod creation;
mod document;
mod estimate;
mod events;
mod executions;
mod gated;
mod hidden;
mod item_index;
mod items;
mod judges;
mod labels;
mod leaderboard;
mod lifecycle;
mod limits;
mod messages;
mod ops;
mod ownership;
mod payers;
mod rejudge;
mod schedules;
mod schema;
mod search;
mod server;
mod sign_in;
mod tasks;
mod upstream;
mod user_models;
mod users;
mod visibility;
