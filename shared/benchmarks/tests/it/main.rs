//! Tests that run programs in Python.

mod job;
mod python;
mod scicode;
