//! Rules of Python that decide what the official parsers accept, and how their messages are worded.
//!
//! The official program is written in Python; its error messages contain those of Python's JSON decoder, and models are
//! asked to act on them.

mod float;
mod json;
mod text;
mod value;

pub(crate) use float::parse_float;
pub(crate) use json::parse_json;
pub(crate) use text::{is_space, quote, repr, strip};
pub(crate) use value::Value;
