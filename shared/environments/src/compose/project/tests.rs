use std::collections::BTreeMap;

use super::*;
use crate::{EngineName, ImageBuilder, Labels, MainImage};

fn environment() -> Environment {
    let labels = Labels { owner: "o".to_owned(), run: "r".to_owned(), sample: "s$1".to_owned() };
    Environment { name: "ep1".parse().unwrap(), labels, content_hash: "0123abcd".to_owned() }
}

fn facts() -> EngineFacts {
    EngineFacts {
        architecture: String::new(),
        engine: EngineName::Podman,
        version: "4".to_owned(),
        compose: "2".to_owned(),
        has_network: true,
        builder: ImageBuilder::Classic,
        workspace: "/workspace".to_owned(),
        host_workspace: "/host/1".to_owned(),
    }
}

fn files() -> ComposeFiles {
    ComposeFiles {
        service: "main".to_owned(),
        image: MainImage::Compose,
        folder: String::new(),
        files: Vec::new(),
        variables: BTreeMap::new(),
    }
}

fn project(resolved: &Value) -> Result<Project, ProjectError> {
    Project::new(&resolved.to_string(), &files(), &environment(), &facts(), &|_| Ok(()))
}

fn build(argument: &str) -> Value {
    json!({ "context": "/workspace/environments/ep1/task/environment", "args": { "A": argument } })
}

#[test]
fn images_are_named_by_content_and_build() {
    let name = |argument: &str| {
        let resolved = json!({ "services": { "main": { "build": build(argument), "image": "debian:12" } } });
        project(&resolved).unwrap().images()[0].clone()
    };
    let first = name("1");
    assert!(first.is_built && first.name.starts_with("bench__0123abcd:main-"), "{first:?}");
    assert_eq!(first, name("1"));
    assert_ne!(first, name("2"));
    // The folder of the environment is no part of the name.
    let other = Environment { name: "ep2".parse().unwrap(), ..environment() };
    let resolved =
        json!({ "services": { "main": { "build": build("1") } } }).to_string().replace("ep1", "ep2");
    let other = Project::new(&resolved, &files(), &other, &facts(), &|_| Ok(())).unwrap();
    assert_eq!(other.images()[0].name, first.name);
    let pulled = project(&json!({ "services": { "main": { "image": "debian:12" } } })).unwrap();
    let image = ProjectImage { service: "main".to_owned(), name: "debian:12".to_owned(), is_built: false };
    assert_eq!(pulled.images(), [image]);
}

#[test]
fn the_check_sees_what_the_task_asks_for() {
    let resolved = json!({ "services": { "main": {
        "image": "x", "deploy": { "resources": {} }, "privileged": true,
        "volumes": [{ "type": "bind", "source": "/workspace/a", "target": "/a" }],
    } } });
    let check = |output: &[u8]| {
        assert_eq!(serde_json::from_slice::<Value>(output).unwrap(), resolved);
        Err("services.main.privileged is not allowed".to_owned())
    };
    let refused = Project::new(&resolved.to_string(), &files(), &environment(), &facts(), &check);
    assert_eq!(refused, Err(ProjectError::Refused("services.main.privileged is not allowed".to_owned())));
}

#[test]
fn everything_has_labels_and_limits() {
    let resolved = json!({
        "services": { "main": { "image": "x", "restart": "always" }, "db": { "image": "y", "labels": { "a": "b" } } },
        "networks": { "default": { "name": "ep1_default" } },
        "volumes": { "data": null },
    });
    let made =
        project(&resolved).unwrap().with_limits(&ContainerLimits::default()).with_network(Network::None);
    let root: Value = serde_json::from_str(&made.to_json()).unwrap();
    for element in [
        &root["services"]["main"],
        &root["services"]["db"],
        &root["networks"]["default"],
        &root["volumes"]["data"],
    ] {
        assert_eq!(element["labels"]["bench-runner.environment"], "ep1");
        assert_eq!(element["labels"]["bench-runner.sample"], "s$$1");
    }
    assert_eq!(root["services"]["db"]["labels"]["a"], "b");
    assert_eq!(root["services"]["main"]["restart"], "on-failure");
    assert_eq!(root["services"]["db"]["pids_limit"], 1_024);
    assert_eq!(root["networks"]["default"]["internal"], true);
}

#[test]
fn a_single_service_without_network_has_no_interface() {
    let resolved = json!({
        "services": { "main": { "image": "x", "networks": { "default": null } } }, "networks": { "default": {} },
    });
    let root = project(&resolved).unwrap().with_network(Network::None).root;
    assert_eq!(root["services"]["main"]["network_mode"], "none");
    assert!(root.get("networks").is_none() && root["services"]["main"].get("networks").is_none());
}

#[test]
fn what_is_no_project_is_refused() {
    for resolved in [
        "",
        "[]",
        "{}",
        r#"{"services":[]}"#,
        r#"{"services":{"main":1}}"#,
        r#"{"services":{"db":{"image":"x"}}}"#,
        r#"{"services":{"main":{}}}"#,
        r#"{"services":{"main":{"image":1}}}"#,
        r#"{"services":{"a b":{"image":"x"}}}"#,
    ] {
        let made = Project::new(resolved, &files(), &environment(), &facts(), &|_| Ok(()));
        assert!(matches!(made, Err(ProjectError::Unusable(_))), "{resolved}");
    }
}
