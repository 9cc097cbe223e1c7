//! Paths of mounted files, as the engine's host sees them.

use serde_json::Value;

/// Replaces the sandbox's working folder at the beginning of mounted paths by the same folder's path on the host, where
/// the engine looks for them.
pub(super) fn translate(project: &mut Value, workspace: &str, host_workspace: &str) {
    if workspace == host_workspace {
        return;
    }
    let translate = |path: &mut Value| {
        let moved =
            path.as_str().and_then(|text| text.strip_prefix(workspace)).filter(|rest| rest.starts_with('/'));
        if let Some(moved) = moved.map(|rest| format!("{host_workspace}{rest}")) {
            *path = moved.into();
        }
    };
    for kind in ["configs", "secrets"] {
        for element in
            project.get_mut(kind).and_then(Value::as_object_mut).into_iter().flat_map(|all| all.values_mut())
        {
            element.get_mut("file").map(translate);
        }
    }
    let services = project.get_mut("services").and_then(Value::as_object_mut);
    for service in services.into_iter().flat_map(|all| all.values_mut()) {
        for mount in service.get_mut("volumes").and_then(Value::as_array_mut).into_iter().flatten() {
            if mount["type"] == "bind" {
                mount.get_mut("source").map(translate);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_mounts_of_the_sandbox_are_translated() {
        let mut project = json!({
            "services": { "main": {
                "build": { "context": "/workspace/a" },
                "volumes": [
                    { "type": "bind", "source": "/workspace/a/b", "target": "/workspace/a" },
                    { "type": "bind", "source": "/workspaces/a", "target": "/x" },
                    { "type": "volume", "source": "data", "target": "/y" },
                ],
            } },
            "configs": { "c": { "file": "/workspace/c" }, "d": { "content": "/workspace/d" } },
        });
        translate(&mut project, "/workspace", "/var/sandboxes/1");
        let main = &project["services"]["main"];
        assert_eq!(main["volumes"][0]["source"], "/var/sandboxes/1/a/b");
        assert_eq!(main["volumes"][0]["target"], "/workspace/a");
        assert_eq!(main["volumes"][1]["source"], "/workspaces/a");
        assert_eq!(main["build"]["context"], "/workspace/a");
        assert_eq!(project["configs"]["c"]["file"], "/var/sandboxes/1/c");
        assert_eq!(project["configs"]["d"]["content"], "/workspace/d");
    }
}
