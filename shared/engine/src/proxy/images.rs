//! Calls on images: pull, show, name and remove.

use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use http::{Method, Response, StatusCode};
use http_body_util::BodyExt;
use serde_json::Value;
use tokio::sync::OwnedMutexGuard;

use super::Shared;
use super::builder::wait;
use super::container::json_of;
use super::dispatch::Call;
use super::forward::{Stream, json_response};
use super::serve::Caller;
use crate::checks::is_unset;
use crate::client::{AnyBody, full};
use crate::context::Builder;
use crate::refusal::Refusal;
use crate::request::Query;
use crate::rules::tagged_name;

impl Shared {
    /// Pulls an image that the sandbox may use, without credentials.
    pub(super) async fn pull(
        self: &Arc<Self>,
        mut call: Call,
        caller: &Caller,
    ) -> Result<Response<AnyBody>, Refusal> {
        let image = call.query.get("fromImage").unwrap_or_default();
        let tag = call.query.get("tag").unwrap_or_default();
        let separator = if tag.contains(':') { "@" } else { ":" };
        let given = if tag.is_empty() { image.to_owned() } else { format!("{image}{separator}{tag}") };
        // `localhost` is this machine, not a registry.
        let reference = tagged_name(&given)
            .filter(|name| !name.starts_with("localhost/") && self.rules.images.is_usable(name))
            .ok_or_else(|| self.rules.images.refuse_use(&given))?;
        let guard = Pulling {
            _unchanged: self.image_names(caller).await?,
            is_new: self.is_missing(&reference).await,
            shared: Arc::clone(self),
            reference: reference.clone(),
        };
        call.query.set("fromImage", reference);
        call.query.remove("tag");
        let pulled = self.forward(Method::POST, &call.address(""), full(""), self.build_stream()).await?;
        Ok(self.limit_work(pulled, None, guard))
    }

    /// Waits until no build depends on the names of images and no pull changes them.
    pub(super) async fn image_names(&self, caller: &Caller) -> Result<OwnedMutexGuard<()>, Refusal> {
        let names = Arc::clone(&self.pulls).lock_owned();
        wait(self, caller, async { Ok::<_, Infallible>(names.await) }).await
    }

    async fn is_missing(&self, reference: &str) -> bool {
        matches!(self.usable_image(reference).await, Err(Refusal::NotFound { .. }))
    }

    /// Pulls an image that a build needs, unless it is there, and checks that it adds no instructions to the build.
    ///
    /// The image is looked for by its full name. Builders also find images of the machine by a short name, and would pull by
    /// themselves what nobody has checked.
    pub(super) async fn prepare_image(&self, reference: &str, is_certain: bool) -> Result<(), Refusal> {
        let Some(name) = tagged_name(reference) else { return Err(self.rules.images.refuse_use(reference)) };
        let found = match self.usable_image(&name).await {
            Err(Refusal::NotFound { .. }) if is_certain => self.pull_base(&name).await?,
            Err(Refusal::NotFound { .. }) => {
                return Err(Refusal::UncertainImage { image: reference.to_owned() });
            }
            found => found?,
        };
        if self.has_triggers(&found).await? {
            return Err(Refusal::Triggers { image: reference.to_owned() });
        }
        self.touch_image(&name);
        Ok(())
    }

    /// Returns true if an image has instructions for builds that are based on it. Podman doesn't show them, so they are read
    /// where it stores them.
    async fn has_triggers(&self, found: &Value) -> Result<bool, Refusal> {
        let shown = !is_unset(&found["Config"]["OnBuild"]);
        if shown || self.builder == Builder::Classic {
            return Ok(shown);
        }
        let id = found["Id"].as_str().unwrap_or_default().trim_start_matches("sha256:").to_owned();
        let Some(storage) = self.storage.clone() else { return Err(Refusal::HiddenTriggers) };
        let config = tokio::task::spawn_blocking(move || stored_config(&storage, &id)).await;
        match config {
            Ok(Some(config)) => Ok(!is_unset(&config["config"]["OnBuild"])),
            _ => Err(Refusal::HiddenTriggers),
        }
    }

    /// Pulls an image and returns its description.
    async fn pull_base(&self, name: &str) -> Result<Value, Refusal> {
        let mut query = Query::default();
        query.set("fromImage", name);
        let address = format!("/images/create{}", query.encode());
        let pulled = self.forward(Method::POST, &address, full(""), self.build_stream()).await?;
        let pulled = self.limit_work(pulled, None, ());
        let answer = pulled.into_body().collect().await.map(http_body_util::Collected::to_bytes);
        match self.usable_image(name).await {
            Ok(found) => {
                self.record_pull(name, &found["Id"]);
                Ok(found)
            }
            Err(Refusal::NotFound { .. }) => {
                let answer = answer.map_err(|error| Refusal::Malformed(error.to_string()))?;
                let text = String::from_utf8_lossy(&answer);
                let last = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
                let last: Value = serde_json::from_str(last).unwrap_or_default();
                let why = last["error"]
                    .as_str()
                    .or(last["message"].as_str())
                    .unwrap_or("the registry doesn't have it");
                Err(Refusal::Pull { image: name.to_owned(), why: why.chars().take(500).collect() })
            }
            Err(refusal) => Err(refusal),
        }
    }

    /// Shows an image, or its history.
    pub(super) async fn inspect_image(&self, call: Call) -> Result<Response<AnyBody>, Refusal> {
        let id = id_of(&self.usable_image(&call.name).await?);
        self.touch_image(&call.name);
        let (status, mut found) = json_of(self.short(&call, &call.address(&id), None).await?).await?;
        self.hide_names(&mut found);
        let mut response = json_response(&found);
        *response.status_mut() = status;
        Ok(response)
    }

    /// Gives an image a name of this sandbox.
    pub(super) async fn tag_image(&self, call: Call, caller: &Caller) -> Result<Response<AnyBody>, Refusal> {
        let id = id_of(&self.usable_image(&call.name).await?);
        let repository = call.query.get("repo").unwrap_or_default();
        let tag = call.query.get("tag").filter(|tag| !tag.is_empty()).unwrap_or("latest");
        let _unchanged = self.image_names(caller).await?;
        self.check_new_name(&format!("{repository}:{tag}")).await?;
        self.short(&call, &call.address(&id), None).await
    }

    /// Removes an image or a name of this sandbox. Without force, so images of other containers stay.
    pub(super) async fn remove_image(&self, call: Call) -> Result<Response<AnyBody>, Refusal> {
        let found = self.usable_image(&call.name).await?;
        if !self.rules.owner.owns(&found["Config"]["Labels"]) {
            let taken = || Refusal::NameTaken { image: call.name.clone() };
            return Err(self.rules.images.check_own(&call.name).err().unwrap_or_else(taken));
        }
        if call.query.is_set("force") {
            return Err(Refusal::Query { name: "force".to_owned(), allowed: "`0`".to_owned() });
        }
        // By name, so that an image with other names keeps those.
        let asked = tagged_name(&call.name).unwrap_or_else(|| id_of(&found));
        let response = self.short(&call, &call.address(&asked), None).await?;
        if response.status() != StatusCode::OK {
            tracing::debug!(image = call.name, status = %response.status(), "Image was not removed");
        }
        Ok(response)
    }

    /// Records a use of an image.
    pub(super) fn touch_image(&self, reference: &str) {
        if let Some(cache) = &self.cache {
            cache.touch(reference);
        }
    }

    /// Records that the engine has pulled an image which it didn't have.
    fn record_pull(&self, reference: &str, id: &Value) {
        if let (Some(cache), Some(id)) = (&self.cache, id.as_str()) {
            cache.record_pull(reference, id);
        }
    }

    /// Removes images that weren't used for long, if there are too many.
    pub(super) async fn evict_images(&self) {
        if let Some(cache) = &self.cache
            && let Err(error) = cache.evict(&self.client).await
        {
            tracing::warn!(%error, "Images that weren't used for long were not removed");
        }
    }

    /// Returns the limits of a build or pull.
    pub(super) fn build_stream(&self) -> Stream {
        let limits = &self.rules.limits;
        Stream { time_max: limits.build_time_max, bytes_max: limits.stream_bytes_max }
    }
}

/// Returns the id of an image, by which calls go on.
pub(super) fn id_of(found: &Value) -> String {
    found["Id"].as_str().unwrap_or_default().to_owned()
}

/// Reads the configuration of an image in podman's storage, where the folder of the storage driver's images has one for each
/// image, and a file for the digest of its configuration, which is its id.
fn stored_config(storage: &Path, id: &str) -> Option<Value> {
    if id.is_empty() || !id.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let file = format!("={}", STANDARD.encode(format!("sha256:{id}")));
    let drivers = std::fs::read_dir(storage).ok()?.flatten();
    let folders = drivers.filter(|entry| entry.file_name().to_string_lossy().ends_with("-images"));
    let bytes =
        folders.map(|entry| entry.path().join(id).join(&file)).find_map(|path| std::fs::read(path).ok())?;
    serde_json::from_slice(&bytes).ok()
}

/// A pull until its response has ended, or its client is gone.
struct Pulling {
    shared: Arc<Shared>,
    reference: String,
    /// The engine didn't have the image before.
    is_new: bool,
    _unchanged: OwnedMutexGuard<()>,
}

impl Drop for Pulling {
    fn drop(&mut self) {
        if !self.is_new {
            return;
        }
        let (shared, reference) = (Arc::clone(&self.shared), std::mem::take(&mut self.reference));
        self.shared.tasks.spawn(async move {
            if let Ok(found) = shared.usable_image(&reference).await {
                shared.record_pull(&reference, &found["Id"]);
            }
        });
    }
}
