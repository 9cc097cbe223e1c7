//! Attacks by hostile programs. Each test runs one in every form.

mod files;
mod kernel;
mod network;
mod processes;
mod resources;
