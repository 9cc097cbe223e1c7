//! Chooses what happens with a request.

use std::sync::Arc;

use http::request::Parts;
use http::{Method, Request, Response};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Incoming;
use serde_json::{Value, json};

use super::Shared;
use super::forward::{Stream, drain, json_response};
use super::serve::Caller;
use crate::client::{AnyBody, full};
use crate::labels::LABEL_NO_NETWORK;
use crate::refusal::Refusal;
use crate::request::{ApiPath, ExecCall, Operation, Query, find_route};
use crate::rules::NetworkPolicy;

/// Fields of the engine's description that sandboxes see. Others describe the machine.
const INFO_FIELDS: [&str; 21] = [
    "ID",
    "Name",
    "ServerVersion",
    "OSType",
    "Architecture",
    "NCPU",
    "MemTotal",
    "Driver",
    "CgroupDriver",
    "CgroupVersion",
    "MemoryLimit",
    "SwapLimit",
    "PidsLimit",
    "CpuCfsPeriod",
    "CpuCfsQuota",
    "CPUShares",
    "CPUSet",
    "IPv4Forwarding",
    "OperatingSystem",
    "KernelVersion",
    "DefaultRuntime",
];

/// A checked request: version, name in its path, and parameters.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) method: Method,
    pub(super) version: String,
    /// Parts of the path after the version.
    pub(super) path: String,
    pub(super) name: String,
    pub(super) query: Query,
}

impl Call {
    /// Returns the address of the call with `id` in place of the name.
    pub(super) fn address(&self, id: &str) -> String {
        let path = match (self.name.is_empty(), self.path.split_once(&format!("/{}", self.name))) {
            (false, Some((before, after))) => format!("{before}/{id}{after}"),
            _ => self.path.clone(),
        };
        format!("{}/{path}{}", self.version, self.query.encode())
    }
}

impl Shared {
    /// Checks a request, and passes it on.
    pub(super) async fn dispatch(
        self: Arc<Self>,
        request: Request<Incoming>,
        caller: Caller,
    ) -> Result<Response<AnyBody>, Refusal> {
        let (parts, body) = request.into_parts();
        if parts.uri.authority().is_some() {
            return Err(Refusal::Path { path: parts.uri.to_string().chars().take(200).collect() });
        }
        let path = ApiPath::parse(parts.uri.path())?;
        let (operation, known, name) = find_route(&parts.method, &path)?;
        let query = Query::parse(parts.uri.query(), known)?;
        let call = Call {
            method: parts.method.clone(),
            version: path.version.to_owned(),
            path: path.parts.join("/"),
            name,
            query,
        };
        match operation {
            Operation::Ping => self.ping(&call).await,
            Operation::Version => Ok(json_response(&self.description.version)),
            Operation::Info => self.info(),
            Operation::Events => self.events(call).await,
            Operation::CreateContainer => self.create_container(call, body).await,
            Operation::ListContainers | Operation::ListNetworks | Operation::ListVolumes => {
                self.list(call, operation).await
            }
            Operation::Container(kind) => self.container(call, kind, upgradable(parts, body), caller).await,
            Operation::Exec(kind) => self.exec(call, kind, upgradable(parts, body), caller).await,
            Operation::CreateNetwork => self.create_network(call, body).await,
            Operation::InspectNetwork | Operation::RemoveNetwork => self.network(call).await,
            Operation::ConnectNetwork => self.connect(call, body, true).await,
            Operation::DisconnectNetwork => self.connect(call, body, false).await,
            Operation::CreateVolume => self.create_volume(call, body).await,
            Operation::InspectVolume | Operation::RemoveVolume => self.volume(call).await,
            Operation::Build => self.build(call, body, caller).await,
            Operation::HoldBuilder => Arc::clone(&self).hold_builder(upgradable(parts, body), caller).await,
            Operation::Pull => self.pull(call, &caller).await,
            Operation::ListImages => self.list_images(call).await,
            Operation::InspectImage => self.inspect_image(call).await,
            Operation::TagImage => self.tag_image(call, &caller).await,
            Operation::RemoveImage => self.remove_image(call).await,
        }
    }

    /// Announces the classic builder, so that clients don't try the one that needs a session.
    async fn ping(&self, call: &Call) -> Result<Response<AnyBody>, Refusal> {
        let mut response = self.short(call, &call.address(""), None).await?;
        response.headers_mut().insert("builder-version", http::HeaderValue::from_static("1"));
        // Older versions of podman don't name it, which docker's command takes as an unknown system.
        response.headers_mut().insert("ostype", http::HeaderValue::from_static("linux"));
        Ok(response)
    }

    fn info(&self) -> Result<Response<AnyBody>, Refusal> {
        let Value::Object(mut fields) = self.description.info.clone() else {
            return Err(Refusal::Malformed("the engine described itself in an unknown form".to_owned()));
        };
        fields.retain(|name, _| INFO_FIELDS.contains(&name.as_str()));
        fields.insert("Swarm".to_owned(), json!({ "LocalNodeState": "inactive" }));
        if self.rules.network == NetworkPolicy::None {
            fields.insert("Labels".to_owned(), json!([LABEL_NO_NETWORK]));
        }
        Ok(json_response(&Value::Object(fields)))
    }

    async fn exec(
        &self,
        call: Call,
        kind: ExecCall,
        mut request: Request<Incoming>,
        caller: Caller,
    ) -> Result<Response<AnyBody>, Refusal> {
        let id = self.own_exec(&call.name).await?;
        let address = call.address(&id);
        match kind {
            ExecCall::Inspect | ExecCall::Resize => self.short(&call, &address, None).await,
            ExecCall::Start => {
                let mut body = self.read_json(request.body_mut()).await?;
                crate::checks::check_exec_start(&mut body)?;
                self.hijack(&call, &address, request, Some(&body), caller.permit).await
            }
        }
    }

    /// Reads a JSON body within its limit. An empty body is an empty object.
    pub(super) async fn read_json(&self, body: &mut Incoming) -> Result<Value, Refusal> {
        let bytes_max = self.rules.limits.json_bytes_max;
        let limit = usize::try_from(bytes_max).unwrap_or(usize::MAX);
        let bytes = match Limited::new(&mut *body, limit).collect().await {
            Ok(collected) => collected.to_bytes(),
            Err(error) if error.is::<LengthLimitError>() => {
                drain(body).await;
                return Err(Refusal::TooLarge { bytes_max });
            }
            Err(error) => return Err(Refusal::Malformed(format!("the body was not received: {error}"))),
        };
        if bytes.iter().all(u8::is_ascii_whitespace) {
            return Ok(json!({}));
        }
        serde_json::from_slice(&bytes)
            .map_err(|error| Refusal::Malformed(format!("the body is not JSON: {error}")))
    }

    /// Sends a call without a long response, with the limits of one.
    pub(super) async fn short(
        &self,
        call: &Call,
        address: &str,
        body: Option<&Value>,
    ) -> Result<Response<AnyBody>, Refusal> {
        let body = body.map(Value::to_string).unwrap_or_default();
        self.forward(call.method.clone(), address, full(body), Stream::short()).await
    }
}

/// Puts a request together again, with the right to take over its connection.
fn upgradable(parts: Parts, body: Incoming) -> Request<Incoming> {
    Request::from_parts(parts, body)
}
