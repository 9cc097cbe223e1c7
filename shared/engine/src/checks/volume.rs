//! Body of `volumes/create`.

use serde_json::Value;

use super::fields::Rule::{OneOf, Text, TextMap, Unset};
use super::fields::{Rule, check_fields};
use super::values::own_labels;
use crate::labels::Owner;
use crate::refusal::Refusal;

const FIELDS: &[(&str, Rule)] = &[
    ("Name", Text),
    ("Driver", OneOf(&["", "local"])),
    ("DriverOpts", Unset("no options: they can mount folders of the machine")),
    ("Labels", TextMap),
    ("ClusterVolumeSpec", Unset("local volumes")),
];

/// Checks the body of `volumes/create`, adds labels, and returns the name, which may be empty.
pub(crate) fn check_volume(body: &mut Value, owner: &Owner) -> Result<String, Refusal> {
    let fields = check_fields("", body, FIELDS)?;
    own_labels("", fields, owner)?;
    let name = fields.get("Name").and_then(Value::as_str).unwrap_or_default().to_owned();
    if name.is_empty() || is_name(&name) {
        return Ok(name);
    }
    Err(Refusal::field("Name", "letters, digits and `_.-`"))
}

/// Returns true for names of volumes and networks, as opposed to paths.
pub(super) fn is_name(name: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
    name.len() <= 128
        && name.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric())
        && name.bytes().all(is_allowed)
}
