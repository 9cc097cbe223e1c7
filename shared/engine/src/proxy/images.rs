//! Calls on images: pull, show, name and remove.

use std::sync::Arc;

use http::{Method, Response, StatusCode};

use super::Shared;
use super::container::json_of;
use super::dispatch::Call;
use super::forward::{Stream, json_response};
use crate::client::{AnyBody, full};
use crate::refusal::Refusal;

impl Shared {
    /// Pulls an image that the sandbox may use, without credentials.
    pub(super) async fn pull(&self, mut call: Call) -> Result<Response<AnyBody>, Refusal> {
        let image = call.query.get("fromImage").unwrap_or_default().to_owned();
        let tag = call.query.get("tag").unwrap_or_default().to_owned();
        let separator = if tag.contains(':') { "@" } else { ":" };
        let reference = if tag.is_empty() { image.clone() } else { format!("{image}{separator}{tag}") };
        // `localhost` is this machine, not a registry.
        if reference.starts_with("localhost/") || !self.rules.images.is_usable(&reference) {
            return Err(self.rules.images.refuse_use(&reference));
        }
        self.record_pull(&reference).await;
        call.query.set("fromImage", image);
        let pulled = self.forward(Method::POST, &call.address(""), full(""), self.build_stream()).await?;
        Ok(self.limit_work(pulled, (), Arc::default()))
    }

    /// Shows an image, or its history.
    pub(super) async fn inspect_image(&self, call: Call) -> Result<Response<AnyBody>, Refusal> {
        self.usable_image(&call.name).await?;
        self.touch_image(&call.name);
        let (status, mut found) = json_of(self.short(&call, &call.address(&call.name), None).await?).await?;
        self.hide_names(&mut found);
        let mut response = json_response(&found);
        *response.status_mut() = status;
        Ok(response)
    }

    /// Gives an image a name of this sandbox.
    pub(super) async fn tag_image(&self, call: Call) -> Result<Response<AnyBody>, Refusal> {
        self.usable_image(&call.name).await?;
        let repository = call.query.get("repo").unwrap_or_default();
        let tag = call.query.get("tag").filter(|tag| !tag.is_empty()).unwrap_or("latest");
        self.rules.images.check_own(&format!("{repository}:{tag}"))?;
        self.short(&call, &call.address(&call.name), None).await
    }

    /// Removes an image or a name of this sandbox. Without force, so images of other containers stay.
    pub(super) async fn remove_image(&self, call: Call) -> Result<Response<AnyBody>, Refusal> {
        let found = self.usable_image(&call.name).await?;
        if !self.rules.images.is_own(&call.name) && !self.rules.owner.owns(&found["Config"]["Labels"]) {
            return Err(self
                .rules
                .images
                .check_own(&call.name)
                .err()
                .unwrap_or(Refusal::NotFound { kind: "image", name: call.name.clone() }));
        }
        if call.query.is_set("force") {
            return Err(Refusal::Query { name: "force".to_owned(), allowed: "`0`".to_owned() });
        }
        let response = self.short(&call, &call.address(&call.name), None).await?;
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

    /// Records that the engine is about to pull an image, if it doesn't have it.
    pub(super) async fn record_pull(&self, reference: &str) {
        if let Some(cache) = &self.cache
            && matches!(self.usable_image(reference).await, Err(Refusal::NotFound { .. }))
        {
            cache.record_pull(reference);
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
