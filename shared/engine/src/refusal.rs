//! Refusals of requests, and the responses that state them.

use http::StatusCode;
use serde_json::json;

use crate::client::ClientError;

/// Beginning of the messages of requests that no client may send, whenever it tries. Clients find the reason behind it in
/// the output of the docker command.
const NOT_ALLOWED: &str = "refused by the sandbox host: ";

/// Reason why a request isn't passed on to the engine.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refusal {
    /// The route isn't on the list of allowed routes.
    #[error(
        "`{method} {path}` is not available to sandboxes; available: containers, exec, images, networks, \
         volumes, classic builds, events, version and info"
    )]
    Route { method: String, path: String },
    /// The newer builder's connection, whose content can't be checked.
    #[error("BuildKit is not available to sandboxes; allowed: the classic builder, with `DOCKER_BUILDKIT=0`")]
    BuildKit,
    /// The path has characters or parts that could be read in two ways.
    #[error(
        "the path `{path}` is ambiguous; allowed: letters, digits and `_.:@/-`, without empty parts, `.` or `..`"
    )]
    Path { path: String },
    /// A query parameter isn't known, is repeated, or has a value that isn't allowed.
    #[error("query parameter `{name}` is not allowed here; allowed: {allowed}")]
    Query { name: String, allowed: String },
    /// A field of the body isn't known or has a value that isn't allowed.
    #[error("field `{field}` is not allowed; allowed: {allowed}")]
    Field { field: String, allowed: String },
    /// A limit of the sandbox is exceeded.
    #[error("`{what}` is above this sandbox's limit of {limit}")]
    Limit { what: String, limit: String },
    /// The files of a container could not be counted in time.
    #[error("the container's files were not counted within {seconds} s")]
    Uncounted { seconds: u64 },
    /// An image may not be used or named by this sandbox.
    #[error("image `{image}` is not available to this sandbox; allowed: {allowed}")]
    Image { image: String, allowed: String },
    /// Another sandbox made the image of this name.
    #[error(
        "an image with the name `{image}` is here already, and only the sandbox that built it may replace or remove it"
    )]
    NameTaken { image: String },
    /// A line that may be text of an instruction may also use an image, which isn't here.
    #[error(
        "a line inside an instruction of the Dockerfile could also mean the image `{image}`: let it begin with another word"
    )]
    UncertainImage { image: String },
    /// An image has instructions for builds that are based on it.
    #[error("the image `{image}` has `ONBUILD` instructions, which are not allowed: use another image")]
    Triggers { image: String },
    /// Podman's storage can't be read.
    #[error(
        "builds on images are not available: whether they have `ONBUILD` instructions is only to be seen in podman's storage, \
         which the sandbox host can't read"
    )]
    HiddenTriggers,
    /// An image that a build needs could not be pulled.
    #[error("the image `{image}` could not be pulled: {why}")]
    Pull { image: String, why: String },
    /// A line of a Dockerfile asks for more than the sandbox has.
    #[error("{file}:{line}: {reason}")]
    Dockerfile { file: String, line: usize, reason: String },
    /// The object doesn't exist or belongs to someone else; both look the same.
    #[error("no such {kind}: {name}")]
    NotFound { kind: &'static str, name: String },
    /// The body isn't what the engine's API expects.
    #[error("{0}")]
    Malformed(String),
    /// The body is longer than its limit.
    #[error("the request body is larger than {bytes_max} bytes")]
    TooLarge { bytes_max: u64 },
    /// The proxy is stopping.
    #[error("the sandbox is stopping")]
    Stopping,
    /// The service for a build doesn't start.
    #[error("podman could not be started for the build: {0}")]
    BuildService(String),
    /// The engine didn't answer.
    #[error(transparent)]
    Engine(#[from] ClientError),
}

impl Refusal {
    /// Creates the refusal of a field.
    pub(crate) fn field(field: impl Into<String>, allowed: impl Into<String>) -> Self {
        Self::Field { field: field.into(), allowed: allowed.into() }
    }

    /// Returns the status of the response.
    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Self::NotFound { .. } | Self::Pull { .. } => StatusCode::NOT_FOUND,
            Self::Malformed(_) => StatusCode::BAD_REQUEST,
            Self::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Stopping => StatusCode::SERVICE_UNAVAILABLE,
            Self::Uncounted { .. } | Self::Engine(ClientError::TimedOut { .. }) => {
                StatusCode::GATEWAY_TIMEOUT
            }
            Self::BuildService(_) | Self::Engine(_) => StatusCode::BAD_GATEWAY,
            _ => StatusCode::FORBIDDEN,
        }
    }

    /// Returns the JSON body of the response, in the form of the engine's own errors.
    pub(crate) fn body(&self) -> String {
        let message = match self.status() {
            StatusCode::FORBIDDEN => format!("{NOT_ALLOWED}{self}"),
            _ => self.to_string(),
        };
        json!({ "message": message }).to_string()
    }
}
