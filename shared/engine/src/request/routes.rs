//! Routes of the engine's API that sandboxes may use, with their query parameters.

use http::Method;

use super::path::ApiPath;
use crate::refusal::Refusal;

/// What a request does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    Ping,
    Version,
    Info,
    Events,
    CreateContainer,
    ListContainers,
    Container(ContainerCall),
    Exec(ExecCall),
    CreateNetwork,
    ListNetworks,
    InspectNetwork,
    RemoveNetwork,
    ConnectNetwork,
    DisconnectNetwork,
    CreateVolume,
    ListVolumes,
    InspectVolume,
    RemoveVolume,
    Build,
    HoldBuilder,
    Pull,
    ListImages,
    InspectImage,
    TagImage,
    RemoveImage,
}

/// Calls on one container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ContainerCall {
    /// A call without a body and with a short response.
    Short,
    /// A call whose response is a stream, or comes only after a long time.
    Stream,
    /// Start or restart.
    Start,
    /// Upload of an archive.
    Upload,
    /// A connection in both directions.
    Attach,
    CreateExec,
    Update,
    Remove,
}

/// Calls on a command in a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExecCall {
    Inspect,
    Resize,
    Start,
}

/// A route with its known query parameters. In patterns, `*` is a part and `**` is a name of one or more parts.
struct Route {
    method: &'static str,
    pattern: &'static str,
    operation: Operation,
    query: &'static [&'static str],
}

const fn route(
    method: &'static str,
    pattern: &'static str,
    operation: Operation,
    query: &'static [&'static str],
) -> Route {
    Route { method, pattern, operation, query }
}

const SHORT: Operation = Operation::Container(ContainerCall::Short);
const START: Operation = Operation::Container(ContainerCall::Start);
const STREAM: Operation = Operation::Container(ContainerCall::Stream);
const UPLOAD: Operation = Operation::Container(ContainerCall::Upload);
const ATTACH: Operation = Operation::Container(ContainerCall::Attach);

const BUILD_QUERY: &[&str] = &[
    "dockerfile",
    "t*",
    "q",
    "nocache",
    "pull",
    "rm",
    "forcerm",
    "memory",
    "memswap",
    "cpushares",
    "cpusetcpus",
    "cpusetmems",
    "cpuperiod",
    "cpuquota",
    "buildargs",
    "shmsize",
    "labels",
    "networkmode",
    "target",
    "platform",
    "version",
    "squash",
    "extrahosts",
    "ulimits",
    "cachefrom",
    "cgroupparent",
    "isolation",
    "remote",
    "securityopt",
    "session",
    "outputs",
    "buildid",
];

/// All routes, grouped by resource.
#[rustfmt::skip]
const ROUTES: &[Route] = &[
    route("GET", "_ping", Operation::Ping, &[]),
    route("HEAD", "_ping", Operation::Ping, &[]),
    route("GET", "version", Operation::Version, &[]),
    route("GET", "info", Operation::Info, &[]),
    route("GET", "events", Operation::Events, &["since", "until", "filters"]),

    route("POST", "containers/create", Operation::CreateContainer, &["name", "platform"]),
    route("GET", "containers/json", Operation::ListContainers, &["all", "limit", "filters"]),
    route("GET", "containers/*/json", SHORT, &["size"]),
    route("GET", "containers/*/top", SHORT, &["ps_args"]),
    route("GET", "containers/*/logs", STREAM, &["follow", "stdout", "stderr", "since", "until", "timestamps", "tail", "details"]),
    route("GET", "containers/*/stats", STREAM, &["stream", "one-shot"]),
    route("GET", "containers/*/archive", STREAM, &["path"]),
    route("HEAD", "containers/*/archive", SHORT, &["path"]),
    route("PUT", "containers/*/archive", UPLOAD, &["path", "noOverwriteDirNonDir", "copyUIDGID"]),
    route("POST", "containers/*/start", START, &["detachKeys"]),
    route("POST", "containers/*/stop", STREAM, &["t", "signal"]),
    route("POST", "containers/*/restart", START, &["t", "signal"]),
    route("POST", "containers/*/kill", SHORT, &["signal"]),
    route("POST", "containers/*/pause", SHORT, &[]),
    route("POST", "containers/*/unpause", SHORT, &[]),
    route("POST", "containers/*/rename", SHORT, &["name"]),
    route("POST", "containers/*/resize", SHORT, &["h", "w"]),
    route("POST", "containers/*/wait", STREAM, &["condition"]),
    route("POST", "containers/*/attach", ATTACH, &["detachKeys", "logs", "stream", "stdin", "stdout", "stderr"]),
    route("POST", "containers/*/exec", Operation::Container(ContainerCall::CreateExec), &[]),
    route("POST", "containers/*/update", Operation::Container(ContainerCall::Update), &[]),
    route("DELETE", "containers/*", Operation::Container(ContainerCall::Remove), &["v", "force"]),

    route("POST", "exec/*/start", Operation::Exec(ExecCall::Start), &[]),
    route("POST", "exec/*/resize", Operation::Exec(ExecCall::Resize), &["h", "w"]),
    route("GET", "exec/*/json", Operation::Exec(ExecCall::Inspect), &[]),

    route("POST", "networks/create", Operation::CreateNetwork, &[]),
    route("GET", "networks", Operation::ListNetworks, &["filters"]),
    route("GET", "networks/*", Operation::InspectNetwork, &["verbose", "scope"]),
    route("DELETE", "networks/*", Operation::RemoveNetwork, &[]),
    route("POST", "networks/*/connect", Operation::ConnectNetwork, &[]),
    route("POST", "networks/*/disconnect", Operation::DisconnectNetwork, &[]),

    route("POST", "volumes/create", Operation::CreateVolume, &[]),
    route("GET", "volumes", Operation::ListVolumes, &["filters"]),
    route("GET", "volumes/*", Operation::InspectVolume, &[]),
    route("DELETE", "volumes/*", Operation::RemoveVolume, &["force"]),

    route("POST", "build", Operation::Build, BUILD_QUERY),
    // Not a route of engines.
    route("POST", "bench/builder", Operation::HoldBuilder, &[]),
    route("POST", "images/create", Operation::Pull, &["fromImage", "tag", "platform"]),
    route("GET", "images/json", Operation::ListImages, &["all", "filters", "digests", "shared-size", "manifests"]),
    route("GET", "images/**/json", Operation::InspectImage, &["manifests", "platform"]),
    route("GET", "images/**/history", Operation::InspectImage, &["platform"]),
    route("POST", "images/**/tag", Operation::TagImage, &["repo", "tag"]),
    route("DELETE", "images/**", Operation::RemoveImage, &["force", "noprune"]),
];

/// Finds the operation of a request, its known query parameters, and the name in its path, empty if there is none.
pub(crate) fn find_route(
    method: &Method,
    path: &ApiPath<'_>,
) -> Result<(Operation, &'static [&'static str], String), Refusal> {
    for route in ROUTES.iter().filter(|route| route.method == method.as_str()) {
        if let Some(name) = matches(route.pattern, &path.parts) {
            return Ok((route.operation, route.query, name));
        }
    }
    if matches!(path.parts[..], ["session" | "grpc"]) {
        return Err(Refusal::BuildKit);
    }
    Err(Refusal::Route { method: method.to_string(), path: format!("/{}", path.parts.join("/")) })
}

/// Matches the parts of a path, and returns the name at the place of `*` or `**`.
fn matches(pattern: &str, parts: &[&str]) -> Option<String> {
    let pattern: Vec<_> = pattern.split('/').collect();
    let Some(star) = pattern.iter().position(|part| part.starts_with('*')) else {
        return (pattern == parts).then(String::new);
    };
    let (before, after) = (&pattern[..star], &pattern[star + 1..]);
    let name_parts = parts.len().checked_sub(before.len() + after.len())?;
    let fits = if pattern[star] == "**" { name_parts >= 1 } else { name_parts == 1 };
    let name = parts.get(star..star + name_parts)?;
    (fits && parts.starts_with(before) && parts.ends_with(after)).then(|| name.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(method: &str, path: &str) -> Option<(Operation, String)> {
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        let (operation, _, name) = find_route(&method, &ApiPath::parse(path).ok()?).ok()?;
        Some((operation, name))
    }

    #[test]
    fn known_routes_have_names() {
        let (operation, name) = found("POST", "/v1.41/containers/abc/start").unwrap();
        assert_eq!((operation, name.as_str()), (START, "abc"));
        let (operation, name) = found("GET", "/images/localhost/bench/s1/x:1/json").unwrap();
        assert_eq!((operation, name.as_str()), (Operation::InspectImage, "localhost/bench/s1/x:1"));
        assert_eq!(found("POST", "/containers/create").unwrap().0, Operation::CreateContainer);
        assert_eq!(found("HEAD", "/_ping").unwrap().0, Operation::Ping);
    }

    #[test]
    fn other_routes_are_refused() {
        for (method, path) in [
            ("POST", "/session"),
            ("POST", "/grpc"),
            ("POST", "/v1.41/session"),
            ("POST", "/auth"),
            ("POST", "/commit"),
            ("POST", "/build/prune"),
            ("POST", "/containers/prune"),
            ("POST", "/networks/prune"),
            ("POST", "/volumes/prune"),
            ("POST", "/images/prune"),
            ("POST", "/images/load"),
            ("GET", "/images/get"),
            ("GET", "/images/x/get"),
            ("POST", "/images/x/push"),
            ("GET", "/images/search"),
            ("GET", "/containers/x/export"),
            ("GET", "/containers/x/attach/ws"),
            ("GET", "/containers/x/checkpoints"),
            ("GET", "/swarm"),
            ("POST", "/swarm/init"),
            ("GET", "/nodes"),
            ("GET", "/services"),
            ("GET", "/secrets"),
            ("GET", "/configs"),
            ("GET", "/plugins"),
            ("POST", "/plugins/pull"),
            ("GET", "/distribution/x/json"),
            ("GET", "/system/df"),
            ("GET", "/v4.0.0/libpod/info"),
            ("GET", "/libpod/containers/json"),
            ("POST", "/libpod/containers/create"),
            ("GET", "/v1.41/v1.41/info"),
            ("GET", "/v2.0/info"),
            ("GET", "/Containers/json"),
            ("GET", "/containers/JSON"),
            ("PUT", "/containers/create"),
            ("get", "/info"),
            ("POST", "/info"),
            ("GET", "/containers"),
            ("DELETE", "/containers/a/b"),
            ("DELETE", "/images"),
            ("PUT", "/volumes/x"),
            ("OPTIONS", "/info"),
            ("CONNECT", "/info"),
        ] {
            assert_eq!(found(method, path), None, "{method} {path}");
        }
    }
}
