//! Builds of images by the engine's classic builder.

use std::sync::Arc;

use http::{Method, Response};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde_json::json;
use tokio::sync::OwnedMutexGuard;

use super::Shared;
use super::builder::{BuildRight, wait};
use super::dispatch::Call;
use super::forward::drain;
use super::serve::Caller;
use crate::checks::check_build;
use crate::client::{AnyBody, BoxError};
use crate::context::{Builder, ContextError, check_dockerfile, receive, stream, with_label};
use crate::labels::layer_label;
use crate::probe::BuildService;
use crate::refusal::Refusal;
use crate::request::Query;

impl Shared {
    /// Checks parameters and Dockerfile of a build, and has the engine build it.
    pub(super) async fn build(
        self: &Arc<Self>,
        call: Call,
        mut body: Incoming,
        caller: Caller,
    ) -> Result<Response<AnyBody>, Refusal> {
        let built = self.build_checked(call, &mut body, &caller).await;
        if built.is_err() {
            drain(&mut body).await;
        }
        built
    }

    async fn build_checked(
        self: &Arc<Self>,
        mut call: Call,
        body: &mut Incoming,
        caller: &Caller,
    ) -> Result<Response<AnyBody>, Refusal> {
        let arguments = check_build(&mut call.query, &self.rules)?;
        let path = dockerfile_path(call.query.get("dockerfile").unwrap_or_default())?;
        // Before the context is received, since it takes space until it is built.
        let _waiting = wait(self, caller, Arc::clone(&self.contexts).acquire_owned()).await?;
        let bytes_max = self.rules.limits.context_bytes_max;
        let received = tokio::time::timeout(
            self.rules.limits.build_time_max,
            receive(body, &self.spool, bytes_max, &path),
        );
        let mut context = match received.await {
            Ok(received) => received.map_err(refusal)?,
            Err(_) => {
                return Err(Refusal::Malformed("the build's context was not received in time".to_owned()));
            }
        };
        let images = check_dockerfile(&path, &context.dockerfile, &arguments, self.builder)?;
        for image in images.keys() {
            self.check_image(image).await?;
        }
        // A name that the context can't contain.
        let name = format!(".bench-{}", uuid::Uuid::new_v4().simple());
        call.query.set("dockerfile", &name);
        if call.query.get("networkmode").is_none_or(|mode| matches!(mode, "" | "default")) {
            let _creating = self.creating.lock().await;
            self.ensure_default_network().await?;
            call.query.set("networkmode", self.rules.owner.default_network());
        }
        if self.builder == Builder::Buildah {
            name_network_for_podman(&mut call.query);
            // Layers of a build that fails would stay, and nothing would name their owner.
            call.query.set("layers", "0");
        }
        if self.builder == Builder::Classic {
            context.dockerfile = with_label(&context.dockerfile, &layer_label(self.rules.owner.instance()));
        }
        let finished = tokio::task::spawn_blocking(move || context.finish(&name)).await;
        let file = finished
            .map_err(std::io::Error::other)
            .and_then(|finished| finished)
            .map_err(|error| refusal(ContextError::Io(error)))?;
        let right = self.build_right(caller).await?;
        // Until the end of the build, no pull can give a checked name to another image.
        let unchanged = self.image_names(caller).await?;
        for name in call.query.get_all("t").filter(|name| !name.is_empty()) {
            self.check_new_name(name).await?;
        }
        for (image, is_certain) in &images {
            self.prepare_image(image, *is_certain).await?;
        }
        // The builder must not pull them again.
        call.query.remove("pull");
        let service = self.start_build_service().await?;
        if let Some(service) = &service {
            call.query.set("cgroupparent", service.parent());
        }
        let client = service.as_ref().map_or(&self.client, BuildService::client).clone();
        let group = service.as_ref().map(|service| service.group().clone());
        let build = RunningBuild {
            shared: Arc::clone(self),
            names: call.query.get_all("t").map(str::to_owned).collect(),
            right: Some(right),
            _unchanged: unchanged,
            service,
        };
        let body = stream(file).map_err(|error| Box::new(error) as BoxError).boxed_unsync();
        let address = call.address("");
        let built = self.forward_to(&client, Method::POST, &address, body, self.build_stream()).await?;
        Ok(self.limit_work(built, group, build))
    }

    /// Starts a service for a build, where the engine's own would build without limits.
    async fn start_build_service(&self) -> Result<Option<BuildService>, Refusal> {
        let Some(services) = &self.build_services else { return Ok(None) };
        let limits = &self.rules.limits;
        let started = services.start(limits.memory_bytes_max, limits.pids_max).await;
        started.map(Some).map_err(|error| Refusal::BuildService(error.to_string()))
    }
}

/// A build until its response has ended, or its client is gone.
struct RunningBuild {
    shared: Arc<Shared>,
    /// Names of the image.
    names: Vec<String>,
    right: Option<BuildRight>,
    _unchanged: OwnedMutexGuard<()>,
    /// Service that builds, if the engine's own doesn't.
    service: Option<BuildService>,
}

impl Drop for RunningBuild {
    fn drop(&mut self) {
        for name in &self.names {
            self.shared.touch_image(name);
        }
        let (shared, right, service) = (Arc::clone(&self.shared), self.right.take(), self.service.take());
        self.shared.tasks.spawn(async move {
            if let (Some(services), Some(service)) = (&shared.build_services, service) {
                services.end(service).await;
            }
            // Before another build begins, which could use them.
            shared.remove_layers().await;
            drop(right);
            shared.evict_images().await;
        });
    }
}

/// Names the network in podman's own parameters. Without them, its builds have the machine's network, whatever
/// `networkmode` says.
fn name_network_for_podman(query: &mut Query) {
    let mode = query.get("networkmode").unwrap_or_default();
    let (network, policy) = if mode == "none" { ("", "NetworkDisabled") } else { (mode, "NetworkEnabled") };
    let namespaces = json!([{ "Name": "network", "Host": false, "Path": network }]);
    query.set("networkmode", policy);
    query.set("nsoptions", namespaces.to_string());
}

/// Checks the path of the Dockerfile in the context.
fn dockerfile_path(path: &str) -> Result<String, Refusal> {
    let path = if path.is_empty() { "Dockerfile" } else { path.trim_start_matches("./") };
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-/".contains(&byte);
    let is_plain =
        path.bytes().all(is_allowed) && path.split('/').all(|part| !matches!(part, "" | "." | ".."));
    if is_plain && path.len() <= 200 {
        return Ok(path.to_owned());
    }
    Err(Refusal::Query {
        name: "dockerfile".to_owned(),
        allowed: "a path in the context, without `..`".to_owned(),
    })
}

fn refusal(error: ContextError) -> Refusal {
    match error {
        ContextError::TooLarge(bytes_max) => Refusal::TooLarge { bytes_max },
        error => Refusal::Malformed(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn podman_is_told_the_network_in_its_own_parameters() {
        for (mode, policy, path) in
            [("none", "NetworkDisabled", ""), ("bench-i1-s1", "NetworkEnabled", "bench-i1-s1")]
        {
            let mut query = Query::default();
            query.set("networkmode", mode);
            name_network_for_podman(&mut query);
            assert_eq!(query.get("networkmode"), Some(policy));
            let expected = json!([{ "Name": "network", "Host": false, "Path": path }]).to_string();
            assert_eq!(query.get("nsoptions"), Some(expected.as_str()));
        }
    }

    #[test]
    fn dockerfiles_are_inside_the_context() {
        assert_eq!(dockerfile_path("").unwrap(), "Dockerfile");
        assert_eq!(dockerfile_path("./sub/Dockerfile").unwrap(), "sub/Dockerfile");
        for path in ["/etc/passwd", "..", "a/../b", "a//b", "[\"a\"]", "a b"] {
            assert!(dockerfile_path(path).is_err(), "{path}");
        }
    }
}
