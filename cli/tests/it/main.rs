//! Tests of the `bench` program: input files, command, exit code and output.

#![allow(clippy::unwrap_used, clippy::panic, reason = "what fails here fails the test")]

mod access;
mod budget;
mod doctor;
mod documents;
mod dry;
mod earlier;
mod interrupted;
mod items;
mod judging;
mod keys;
mod kill;
mod messages;
mod options;
mod origin;
mod provider;
mod run;
mod sandy;
mod schedules;
mod score;
mod serve;
mod settings;
mod support;
mod usage;
mod verify;
mod version;
