//! Labels that name the owner of a container, network, volume or image.

use serde_json::{Map, Value};

/// Label with the id of the host's instance that created an object.
pub const LABEL_INSTANCE: &str = "bench-runner.instance";
/// Label with the id of the sandbox that owns an object.
pub const LABEL_SANDBOX: &str = "bench-runner.sandbox";
/// Label of the layers of docker's builds, with the id of the host's instance. It is the same for all sandboxes of a host, so
/// that they share the builder's cache, and no other host's, whose build could be using its layers.
pub(crate) const LABEL_LAYER: &str = "bench-runner.layer";
/// Label of an engine whose containers have no network, since the host can't limit what they would reach.
pub(crate) const LABEL_NO_NETWORK: &str = "bench-runner.network=none";
/// Maximum length of an instance's or a sandbox's id, in characters.
const ID_CHARS_MAX: usize = 64;

/// Owner of objects in the engine: a sandbox of an instance of the sandbox host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    instance: String,
    sandbox: String,
}

/// Error of an id that can't be a label and part of a name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{id}` is not an id of 1 to {ID_CHARS_MAX} lower-case letters, digits and hyphens")]
pub struct InvalidId {
    /// The id as given.
    pub id: String,
}

impl Owner {
    /// Creates an owner. Both ids consist of lower-case letters, digits and hyphens.
    pub fn new(instance: &str, sandbox: &str) -> Result<Self, InvalidId> {
        for id in [instance, sandbox] {
            check_id(id)?;
        }
        Ok(Self { instance: instance.to_owned(), sandbox: sandbox.to_owned() })
    }

    /// Returns the id of the host's instance.
    #[must_use]
    pub fn instance(&self) -> &str {
        &self.instance
    }

    /// Returns the id of the sandbox.
    #[must_use]
    pub fn sandbox(&self) -> &str {
        &self.sandbox
    }

    /// Returns the label filter that selects this owner's objects.
    pub(crate) fn label_filter(&self) -> String {
        format!("{LABEL_SANDBOX}={}", self.sandbox)
    }

    /// Returns true if `labels` name this owner.
    pub(crate) fn owns(&self, labels: &Value) -> bool {
        labels[LABEL_SANDBOX] == self.sandbox.as_str() && labels[LABEL_INSTANCE] == self.instance.as_str()
    }

    /// Writes this owner into `labels`, in place of any other.
    pub(crate) fn write_into(&self, labels: &mut Map<String, Value>) {
        labels.retain(|name, _| !is_reserved(name));
        labels.insert(LABEL_INSTANCE.to_owned(), self.instance.clone().into());
        labels.insert(LABEL_SANDBOX.to_owned(), self.sandbox.clone().into());
    }

    /// Returns the name of the network that this sandbox's containers use by default.
    pub(crate) fn default_network(&self) -> String {
        format!("bench-{}-{}", self.instance, self.sandbox)
    }
}

/// Checks an id that becomes a label and part of names.
pub(crate) fn check_id(id: &str) -> Result<(), InvalidId> {
    let is_allowed = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-');
    let is_id = !id.is_empty() && id.len() <= ID_CHARS_MAX && id.bytes().all(is_allowed);
    if is_id { Ok(()) } else { Err(InvalidId { id: id.to_owned() }) }
}

/// Returns true for the labels that name the owner, which only the proxy sets.
pub(crate) fn is_reserved(label: &str) -> bool {
    [LABEL_INSTANCE, LABEL_SANDBOX].iter().any(|reserved| label.eq_ignore_ascii_case(reserved))
}

/// Returns the label of the layers of an instance's builds, in the form of `LABEL` and of filters.
pub(crate) fn layer_label(instance: &str) -> String {
    format!("{LABEL_LAYER}={instance}")
}
