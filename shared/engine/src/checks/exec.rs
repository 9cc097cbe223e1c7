//! Bodies of `containers/{id}/exec` and `exec/{id}/start`.

use serde_json::Value;

use super::fields::Rule::{Elsewhere, Flag, Text, Texts, Unset};
use super::fields::{Rule, check_fields};
use super::values::check_variables;
use crate::refusal::Refusal;

const CREATE: &[(&str, Rule)] = &[
    ("User", Text),
    ("Privileged", Unset("`false`")),
    ("Tty", Flag),
    ("ConsoleSize", Elsewhere),
    ("AttachStdin", Flag),
    ("AttachStdout", Flag),
    ("AttachStderr", Flag),
    ("Detach", Flag),
    ("DetachKeys", Text),
    ("Env", Texts),
    ("WorkingDir", Text),
    ("Cmd", Texts),
];
const START: &[(&str, Rule)] = &[("Detach", Flag), ("Tty", Flag), ("ConsoleSize", Elsewhere)];

/// Checks the body of `containers/{id}/exec`.
pub(crate) fn check_exec(body: &mut Value) -> Result<(), Refusal> {
    let fields = check_fields("", body, CREATE)?;
    fields.remove("ConsoleSize");
    check_variables("", fields)
}

/// Checks the body of `exec/{id}/start`.
pub(crate) fn check_exec_start(body: &mut Value) -> Result<(), Refusal> {
    check_fields("", body, START)?.remove("ConsoleSize");
    Ok(())
}
