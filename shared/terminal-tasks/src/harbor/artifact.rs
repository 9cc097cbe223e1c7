//! Artifacts: entries of `artifacts` of the task and its steps.

use crate::model::Artifact;
use crate::node::{Fields, Value};
use crate::refusal::Refusal;

use super::environment::SERVICE;

/// Name of the list of kept files.
const MANIFEST: &str = "manifest.json";

/// Reads the entries: paths, or tables.
pub(super) fn read(fields: &Fields<'_>) -> Result<Vec<Artifact>, Refusal> {
    const KEY: &str = "artifacts";
    let mut artifacts = Vec::new();
    for (index, node) in fields.list(KEY)?.iter().enumerate() {
        artifacts.push(match &node.value {
            Value::Text(source) => {
                check_source(fields, KEY, source)?;
                Artifact { source: source.clone(), destination: None, exclude: Vec::new(), service: None }
            }
            _ => read_table(&fields.element(KEY, index, node)?)?,
        });
    }
    Ok(artifacts)
}

fn read_table(fields: &Fields<'_>) -> Result<Artifact, Refusal> {
    let source = fields.required_text("source")?;
    check_source(fields, "source", source)?;
    let destination = fields.text("destination")?.filter(|path| !path.is_empty());
    if let Some(path) = destination {
        let is_plain = !path.starts_with('/')
            && !path.contains(['\\', '\0'])
            && path.split('/').all(|part| part != "..")
            && path.split('/').any(|part| !matches!(part, "" | "."))
            && path.trim_end_matches('/') != MANIFEST;
        if !is_plain {
            return Err(fields.invalid(
                "destination",
                path,
                "a relative path without `..`, other than `manifest.json`",
            ));
        }
    }
    let service = service(fields, "service")?;
    if service.as_deref().is_some_and(|service| service != SERVICE) && !source.starts_with('/') {
        return Err(fields.invalid("source", source, "an absolute path, because it names another service"));
    }
    Ok(Artifact {
        source: source.to_owned(),
        destination: destination.map(str::to_owned),
        exclude: fields.texts("exclude")?.unwrap_or_default(),
        service,
    })
}

fn check_source(fields: &Fields<'_>, key: &str, source: &str) -> Result<(), Refusal> {
    if source.is_empty() || source.contains('\0') || source.split('/').any(|part| part == "..") {
        return Err(fields.invalid(key, source, "a path in the container without `..`"));
    }
    Ok(())
}

/// Reads the name of a service of a compose file.
pub(super) fn service(fields: &Fields<'_>, key: &str) -> Result<Option<String>, Refusal> {
    let Some(service) = fields.text(key)?.map(str::trim) else { return Ok(None) };
    let is_name = service.bytes().next().is_some_and(|first| first.is_ascii_alphanumeric())
        && service.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte));
    if is_name {
        Ok(Some(service.to_owned()))
    } else {
        Err(fields.invalid(key, service, "the name of a service: letters, digits, `-`, `_` and `.`"))
    }
}
