//! Check of compose files before `docker compose config` reads them.
//!
//! `config` itself reads files: those of `include`, `extends`, `env_file` and others. A path outside the task would put
//! files of the machine into the output.

use std::collections::BTreeSet;

use super::{ComposeSource, literals};
use crate::node::{Node, Table, Value};
use crate::refusal::{ComposeProblem, Refusal};
use crate::tree::Tree;

/// Maximum number of files that `extends` may lead to.
const FILES_MAX: usize = 16;

/// Checks a compose file of the task, and the files to which `extends` leads.
///
/// # Errors
/// If a file isn't YAML, or names a file outside the task or another project, or if the project's own file has a key or a
/// literal value that every run would refuse.
pub fn check_compose_source(tree: &Tree, file: &str) -> Result<Vec<ComposeSource>, Refusal> {
    let (mut sources, mut seen, mut open) = (Vec::new(), BTreeSet::new(), vec![file.to_owned()]);
    while let Some(file) = open.pop() {
        if !seen.insert(file.clone()) {
            continue;
        }
        if seen.len() > FILES_MAX {
            let problem = ComposeProblem::TooMany { what: "files", max: FILES_MAX };
            return Err(Refusal::file(file, problem));
        }
        let source = ComposeSource::read(tree, &file)?;
        open.extend(check_file(&source)?);
        sources.push(source);
    }
    if let Some(own) = sources.first() {
        literals::check(own)?;
    }
    Ok(sources)
}

/// Checks a file. Returns the paths of the files to which it leads.
fn check_file(source: &ComposeSource) -> Result<Vec<String>, Refusal> {
    let Value::Table(root) = &source.root.value else { return Ok(Vec::new()) };
    let not_allowed = |line: u32, owner: &str, key: &str, advice| {
        let (owner, key) = (owner.to_owned(), key.to_owned());
        let problem = ComposeProblem::KeyNotAllowed { owner, key, meant: None, advice };
        Refusal::line(source.file.clone(), line, problem)
    };
    if let Some((line, _)) = root.get("include") {
        return Err(not_allowed(*line, "the project", "include", "write the services into one file"));
    }
    let mut files = Vec::new();
    let Some((_, Node { value: Value::Table(services), .. })) = root.get("services") else {
        return Ok(files);
    };
    for (name, (_, service)) in services {
        let Value::Table(service) = &service.value else { continue };
        let owner = format!("service {}", crate::refusal::Quoted(name));
        for (key, path, line) in paths(service) {
            let inner = resolve(&source.file, path).filter(|inner| !inner.is_empty());
            let Some(inner) = inner else {
                let advice = "name a file of the task";
                let value = path.to_owned();
                let problem = ComposeProblem::ValueNotAllowed { owner, key: key.to_owned(), value, advice };
                return Err(Refusal::line(source.file.clone(), line, problem));
            };
            if key == "extends.file" {
                files.push(inner);
            }
        }
    }
    Ok(files)
}

/// Returns the paths of files that `config` reads for a service, with their keys and lines.
fn paths(service: &Table) -> Vec<(&'static str, &str, u32)> {
    let mut found = Vec::new();
    if let Some((_, Node { value: Value::Table(extends), .. })) = service.get("extends")
        && let Some((line, Node { value: Value::Text(path), .. })) = extends.get("file")
    {
        found.push(("extends.file", path.as_str(), *line));
    }
    for key in ["env_file", "label_file"] {
        let Some((line, node)) = service.get(key) else { continue };
        let nodes = match &node.value {
            Value::List(nodes) => nodes.as_slice(),
            _ => std::slice::from_ref(node),
        };
        found.extend(nodes.iter().map(|node| match &node.value {
            Value::Text(path) => (key, path.as_str(), node.line),
            Value::Table(table) => match table.get("path") {
                Some((line, Node { value: Value::Text(path), .. })) => (key, path.as_str(), *line),
                _ => (key, "", node.line),
            },
            _ => (key, "", *line),
        }));
    }
    found
}

/// Returns the path in the task that a file of the task means by a relative path, empty for the task's folder; `None` if
/// it is or may be elsewhere.
pub(super) fn resolve(file: &str, path: &str) -> Option<String> {
    if path.is_empty() || path.starts_with(['/', '~']) || path.contains(['$', '\\', ':', '\0']) {
        return None;
    }
    let folder = file.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}
