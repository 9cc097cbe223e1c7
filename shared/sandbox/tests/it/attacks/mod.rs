//! What hostile programs try. Each test is one of them, in every form.

mod files;
mod kernel;
mod network;
mod others;
mod resources;
