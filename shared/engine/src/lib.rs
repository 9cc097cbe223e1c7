//! Gives sandboxes a container engine: finds one, filters its API, and removes what sandboxes leave behind.
//!
//! [`probe`] finds an engine, or starts podman's service. [`Proxy`] serves its API on a Unix socket to one sandbox: only
//! routes, parameters and fields that are known to be safe, and only on objects of that sandbox. [`reap`] removes what
//! a crash left behind. Nothing else in the program speaks to the engine's own socket.

mod build_group;
mod checks;
mod cleanup;
mod client;
mod context;
mod emptying;
mod firewall;
mod images;
mod labels;
mod network_traces;
mod pipes;
mod probe;
mod proxy;
mod refusal;
mod request;
mod rules;
mod short_path;

pub use self::cleanup::{CleanupError, reap};
pub use self::client::{Client, ClientError};
pub use self::images::ImageCache;
pub use self::labels::{InvalidId, LABEL_INSTANCE, LABEL_SANDBOX, Owner};
pub use self::probe::{Engine, EngineKind, EngineReport, ProbeError, ProbeOptions, discard, probe};
pub use self::proxy::{Proxy, ProxyError};
pub use self::rules::{FolderError, ImageRules, Limits, NetworkPolicy, SandboxRules, SharedFolder};
pub use short_path::SOCKET_PATH_BYTES_MAX;
