//! Compose files of a task.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Placeholder for the folder of the build, whose path only the sandbox knows.
const FOLDER: &str = "@FOLDER@";
/// Variables that the docker command has itself. A task's variables must not replace them.
const RESERVED: [&str; 4] = ["PATH", "HOME", "DOCKER_HOST", "DOCKER_CONFIG"];

/// Image of the main container, unless the task's compose file has another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MainImage {
    /// An image of a registry, or one that the host has.
    Prebuilt(String),
    /// A Dockerfile, by its path in the folder of the build.
    Dockerfile(String),
    /// None: the task's compose file says what the main service is.
    Compose,
}

/// What an environment is made of: our base file, then the task's compose files, which overlay it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ComposeFiles {
    /// Service in which the agent works: `main`, or `client` in tasks of Terminal-Bench 1.
    pub service: String,
    /// Image of that service.
    pub image: MainImage,
    /// Folder of the build and of relative paths, within the task; empty for the task's folder.
    pub folder: String,
    /// Compose files of the task, within the task, in their order.
    pub files: Vec<String>,
    /// Variables of the order for `${VAR}`. Compose sees no others.
    pub variables: BTreeMap<String, String>,
}

impl ComposeFiles {
    /// Returns our base file: an image, and a command that keeps the container running.
    pub(crate) fn base(&self) -> Value {
        let mut service = json!({ "command": ["sh", "-c", "sleep infinity"] });
        match &self.image {
            MainImage::Prebuilt(name) => service["image"] = literal(name).into(),
            MainImage::Dockerfile(path) => {
                service["build"] = json!({ "context": FOLDER });
                // Left out where it is the default, since a compose file of the task that has the Dockerfile inline must not
                // get both.
                if path != "Dockerfile" {
                    service["build"]["dockerfile"] = literal(path).into();
                }
            }
            MainImage::Compose => {}
        }
        json!({ "services": { self.service.as_str(): service } })
    }

    /// Checks names and paths.
    pub(crate) fn check(&self) -> Result<(), &'static str> {
        let is_inside = |path: &str| {
            !path.starts_with('/')
                && !path.chars().any(char::is_control)
                && path.split('/').all(|part| part != "..")
        };
        if !is_inside(&self.folder) || !self.files.iter().all(|path| !path.is_empty() && is_inside(path)) {
            return Err("the compose files are not in the task's folder");
        }
        if !is_service(&self.service) {
            return Err("the service has no valid name");
        }
        let is_name = |name: &str| {
            !name.is_empty()
                && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
                && !RESERVED.contains(&name)
        };
        match self.variables.iter().all(|(name, value)| is_name(name) && !value.contains('\0')) {
            true => Ok(()),
            false => Err("a variable has no valid name, or replaces one of the docker command"),
        }
    }
}

/// Returns true for a valid name of a service.
pub(super) fn is_service(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    (1..=60).contains(&name.len())
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(is_plain)
}

/// Escapes a text so that compose doesn't look for variables in it.
fn literal(text: &str) -> String {
    text.replace('$', "$$")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files() -> ComposeFiles {
        ComposeFiles {
            service: "main".to_owned(),
            image: MainImage::Dockerfile("Dockerfile".to_owned()),
            folder: "environment".to_owned(),
            files: vec!["environment/docker-compose.yaml".to_owned()],
            variables: BTreeMap::new(),
        }
    }

    #[test]
    fn the_base_builds_or_names_an_image() {
        let main = |image| ComposeFiles { image, ..files() }.base()["services"]["main"].clone();
        let command = json!(["sh", "-c", "sleep infinity"]);
        assert_eq!(main(MainImage::Compose), json!({ "command": command }));
        assert_eq!(
            main(MainImage::Prebuilt("a$b".to_owned())),
            json!({ "command": command, "image": "a$$b" })
        );
        assert_eq!(files().base()["services"]["main"]["build"], json!({ "context": "@FOLDER@" }));
        let build = json!({ "context": "@FOLDER@", "dockerfile": "a/Dockerfile" });
        assert_eq!(main(MainImage::Dockerfile("a/Dockerfile".to_owned()))["build"], build);
    }

    #[test]
    fn files_outside_the_task_and_reserved_variables_are_refused() {
        assert_eq!(files().check(), Ok(()));
        let variables = |name: &str| BTreeMap::from([(name.to_owned(), String::new())]);
        for bad in [
            ComposeFiles { folder: "/etc".to_owned(), ..files() },
            ComposeFiles { folder: "a/../..".to_owned(), ..files() },
            ComposeFiles { files: vec![String::new()], ..files() },
            ComposeFiles { files: vec!["../x.yaml".to_owned()], ..files() },
            ComposeFiles { service: "-x".to_owned(), ..files() },
            ComposeFiles { variables: variables("DOCKER_HOST"), ..files() },
            ComposeFiles { variables: variables("A=B"), ..files() },
            ComposeFiles { variables: variables(""), ..files() },
        ] {
            assert!(bad.check().is_err(), "{bad:?}");
        }
    }
}
