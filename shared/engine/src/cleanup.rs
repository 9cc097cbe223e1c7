//! Removes what sandboxes created: when one stops, and at a start what a crash left behind.

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::client::{Client, ClientError};
use crate::emptying::{empty, kill};
use crate::labels::{InvalidId, LABEL_INSTANCE, LABEL_LAYER, LABEL_SANDBOX, Owner, check_id, layer_label};
use crate::network_traces::NetworkTraces;

/// Number of rounds in which objects are removed until none is left.
const ROUNDS_MAX: u32 = 5;
/// Pause between two rounds.
const ROUND_PAUSE: Duration = Duration::from_millis(300);

/// Failure to remove everything.
#[derive(Debug, thiserror::Error)]
pub enum CleanupError {
    /// The engine can't be asked.
    #[error("can't clean up: {0}")]
    Engine(#[from] ClientError),
    /// Objects are still there after several rounds.
    #[error("can't remove {left}: {reason}")]
    Left {
        /// The objects, by kind and id.
        left: String,
        /// The engine's last message.
        reason: String,
    },
    /// The instance's id isn't valid.
    #[error(transparent)]
    Instance(#[from] InvalidId),
}

/// Kinds of objects that a sandbox owns, in the order in which they are removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OwnKind {
    Container,
    Network,
    Volume,
    Image,
}

impl OwnKind {
    const ALL: [Self; 4] = [Self::Container, Self::Network, Self::Volume, Self::Image];

    fn list(self, filter: &str) -> String {
        let filters = json!({ "label": [filter] }).to_string();
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.append_pair("filters", &filters);
        match self {
            Self::Container => format!("/containers/json?all=1&{}", query.finish()),
            Self::Network => format!("/networks?{}", query.finish()),
            Self::Volume => format!("/volumes?{}", query.finish()),
            Self::Image => format!("/images/json?{}", query.finish()),
        }
    }

    fn address(self, id: &str) -> String {
        match self {
            Self::Container => format!("/containers/{id}?force=1&v=1"),
            Self::Network => format!("/networks/{id}"),
            Self::Volume => format!("/volumes/{id}?force=1"),
            Self::Image => format!("/images/{id}?force=1"),
        }
    }
}

impl fmt::Display for OwnKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Container => "container",
            Self::Network => "network",
            Self::Volume => "volume",
            Self::Image => "image",
        })
    }
}

/// Lists the ids of an owner's objects.
pub(crate) async fn own_ids(
    client: &Client,
    kind: OwnKind,
    owner: &Owner,
) -> Result<BTreeSet<String>, ClientError> {
    list(client, kind, &owner.label_filter(), |labels| owner.owns(labels)).await
}

/// Removes everything that a sandbox owns, apart from images that have a name if `keep_images` is true.
pub(crate) async fn remove_sandbox(
    client: &Client,
    owner: &Owner,
    keep_images: bool,
) -> Result<(), CleanupError> {
    remove(client, &owner.label_filter(), keep_images, |labels| owner.owns(labels)).await
}

/// Removes what sandboxes of `instance` left behind, except for those named in `running`, and nothing else.
///
/// Images that have a name stay if `keep_images` is true.
pub async fn reap(
    client: &Client,
    instance: &str,
    running: &BTreeSet<String>,
    keep_images: bool,
) -> Result<(), CleanupError> {
    check_id(instance)?;
    let is_left = |labels: &Value| {
        let sandbox = labels[LABEL_SANDBOX].as_str();
        labels[LABEL_INSTANCE] == instance && sandbox.is_some_and(|sandbox| !running.contains(sandbox))
    };
    remove(client, &format!("{LABEL_INSTANCE}={instance}"), keep_images, is_left).await?;
    Ok(remove_layers(client, instance).await?)
}

async fn remove(
    client: &Client,
    filter: &str,
    keep_images: bool,
    is_meant: impl Fn(&Value) -> bool,
) -> Result<(), CleanupError> {
    let (mut left, mut reason) = (Vec::new(), String::new());
    for round in 0..ROUNDS_MAX {
        if round > 0 {
            tokio::time::sleep(ROUND_PAUSE).await;
        }
        left.clear();
        for kind in OwnKind::ALL {
            let skips = |entry: &Value| keep_images && kind == OwnKind::Image && has_name(entry);
            let is_meant = |entry: &Value| is_meant(&entry["Labels"]) && !skips(entry);
            for id in list_entries(client, kind, filter, is_meant).await? {
                if kind == OwnKind::Container {
                    kill(client, &id).await?;
                    empty(client, &id).await?;
                }
                let traces = match kind {
                    OwnKind::Network => NetworkTraces::of(client, &id).await?,
                    _ => NetworkTraces::default(),
                };
                let (status, answer) = client.call(Method::DELETE, &kind.address(&id), None).await?;
                traces.remove().await;
                if !status.is_success() && status != StatusCode::NOT_FOUND {
                    reason = answer["message"].as_str().unwrap_or("no message").to_owned();
                }
                left.push(format!("{kind} {id}"));
            }
        }
        // A round that finds nothing proves that nothing is left.
        if left.is_empty() {
            return Ok(());
        }
    }
    Err(CleanupError::Left { left: left.join(", "), reason })
}

/// Removes the layers of an instance's builds by docker that belong to no image: those of builds that failed, and of earlier
/// stages. No build of the instance may be running.
pub(crate) async fn remove_layers(client: &Client, instance: &str) -> Result<(), ClientError> {
    let filters = json!({ "dangling": ["true"], "label": [layer_label(instance)] }).to_string();
    let query = form_urlencoded::Serializer::new(String::new()).append_pair("filters", &filters).finish();
    let address = format!("/images/json?{query}");
    // Each removal takes the layers below with it that have no other use. The container of a command that was left is there
    // for another moment.
    for round in 0..2 * ROUNDS_MAX {
        if round > 0 {
            tokio::time::sleep(ROUND_PAUSE).await;
        }
        let found = client.expect(Method::GET, &address, None).await?;
        let layers = found.as_array().map(Vec::as_slice).unwrap_or_default();
        // Engines have ignored filters that they don't know.
        let is_meant = |layer: &&Value| {
            let labels = &layer["Labels"];
            labels[LABEL_LAYER] == instance && labels[LABEL_SANDBOX].is_null() && !has_name(layer)
        };
        let nameless = layers.iter().filter(is_meant);
        let mut is_any = false;
        for id in nameless.filter_map(|layer| layer["Id"].as_str()) {
            is_any = true;
            client.call(Method::DELETE, &format!("/images/{id}"), None).await?;
        }
        if !is_any {
            break;
        }
    }
    Ok(())
}

/// Returns true if an image in a list has a name.
fn has_name(image: &Value) -> bool {
    let names = image["RepoTags"].as_array().map(Vec::as_slice).unwrap_or_default();
    names.iter().filter_map(Value::as_str).any(|name| name != "<none>:<none>")
}

async fn list(
    client: &Client,
    kind: OwnKind,
    filter: &str,
    is_meant: impl Fn(&Value) -> bool,
) -> Result<BTreeSet<String>, ClientError> {
    list_entries(client, kind, filter, |entry| is_meant(&entry["Labels"])).await
}

async fn list_entries(
    client: &Client,
    kind: OwnKind,
    filter: &str,
    is_meant: impl Fn(&Value) -> bool,
) -> Result<BTreeSet<String>, ClientError> {
    let found = client.expect(Method::GET, &kind.list(filter), None).await?;
    let entries = if kind == OwnKind::Volume { &found["Volumes"] } else { &found };
    let id_field = if kind == OwnKind::Volume { "Name" } else { "Id" };
    let entries = entries.as_array().map(Vec::as_slice).unwrap_or_default();
    let meant = entries.iter().filter(|entry| is_meant(entry));
    Ok(meant.filter_map(|entry| entry[id_field].as_str()).map(str::to_owned).collect())
}
