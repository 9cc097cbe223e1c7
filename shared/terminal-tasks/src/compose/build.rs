//! Builds of services.

use serde_json::Value;

use super::BuildPlan;
use super::rules::{Element, is_inside, is_number_up_to, is_plain_table, is_texts};
use crate::refusal::Refusal;

/// Platforms for which images are built and run.
pub(super) const PLATFORMS: [&str; 2] = ["linux/amd64", "linux/arm64"];

/// Keys of a build for which [`check`] has a rule.
pub(super) const KEYS: [&str; 11] = [
    "args",
    "context",
    "dockerfile",
    "dockerfile_inline",
    "labels",
    "network",
    "no_cache",
    "platforms",
    "pull",
    "shm_size",
    "target",
];

/// Checks `build`.
pub(super) fn check(service: &Element<'_>, value: &Value) -> Result<BuildPlan, Refusal> {
    let Value::Object(table) = value else {
        return Err(service.refuse_value("build", value, "write a table with `context`"));
    };
    let build = service.below("build", table);
    let folder = build.policy.task_folder.as_str();
    let context = build.text("context").unwrap_or_default();
    if context.is_empty() {
        return Err(service.refuse_value("build", value, "set `context` to a folder of the task"));
    }
    for (key, value) in build.entries() {
        match key {
            "context" => build.expect(
                key,
                value,
                |value| value.as_str().is_some_and(|path| is_inside(path, folder)),
                "build from a folder of the task",
            )?,
            "dockerfile" => build.expect(
                key,
                value,
                |value| value.as_str().is_some_and(|path| is_inside(&joined(context, path), folder)),
                "use a Dockerfile of the task",
            )?,
            "dockerfile_inline" | "target" => build.expect(key, value, Value::is_string, "write a string")?,
            "args" => build.expect(key, value, is_plain_table, "write a table of strings")?,
            "no_cache" | "pull" => build.expect(key, value, Value::is_boolean, "write true or false")?,
            "labels" => {
                build.expect(key, value, super::service::are_labels, "leave out labels of the engine")?
            }
            "network" => {
                let is_allowed = |value: &Value| matches!(value.as_str(), Some("default" | "none"));
                build.expect(key, value, is_allowed, "leave it out")?;
            }
            "shm_size" => {
                let max = build.policy.shm_bytes_max as f64;
                build.expect(key, value, |value| is_number_up_to(value, max), "make it smaller")?;
            }
            "platforms" => {
                let is_known = |value: &Value| value.as_str().is_some_and(|name| PLATFORMS.contains(&name));
                let all = |value: &Value| {
                    is_texts(value) && value.as_array().is_some_and(|all| all.iter().all(is_known))
                };
                build.expect(key, value, all, "use `linux/amd64` or `linux/arm64`")?;
            }
            key if key.starts_with("x-") => {}
            _ => return Err(build.refuse_other_key(key, &KEYS, "leave it out")),
        }
    }
    Ok(BuildPlan { context: context.to_owned(), dockerfile: build.text("dockerfile").map(str::to_owned) })
}

/// Returns the path of a file relative to a folder, or the path itself if it is absolute.
fn joined(folder: &str, path: &str) -> String {
    if path.starts_with('/') {
        path.to_owned()
    } else {
        format!("{folder}/{}", path.trim_start_matches("./"))
    }
}
