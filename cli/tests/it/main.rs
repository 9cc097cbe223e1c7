//! Tests of the `bench` program: input files, command, exit code and output.

#![allow(clippy::unwrap_used, clippy::panic, reason = "what fails here fails the test")]

mod access;
mod agents;
mod artifacts;
mod budget;
mod code_tasks;
mod doctor;
mod documents;
mod dry;
mod earlier;
mod full_disk;
mod generation;
mod interrupted;
mod items;
mod judging;
mod keys;
mod kill;
mod labels;
mod messages;
mod names;
mod options;
mod origin;
mod preview;
mod provider;
mod reading;
mod run;
mod samples;
mod sandy;
mod schedules;
mod score;
mod serve;
mod settings;
mod shared_dir;
mod support;
mod tasks;
mod terminal;
mod turns;
mod usage;
mod verify;
mod version;
mod view;
mod waiting;
