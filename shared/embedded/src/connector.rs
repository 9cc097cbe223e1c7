//! HTTP client of the SDK, which routes each request to a service in this process.

use std::sync::{Arc, Mutex, PoisonError, RwLock};

use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_runtime_api::http::Headers;
use aws_smithy_types::body::SdkBody;
use bytes::Bytes;
use http_body_util::BodyExt;

use crate::EmbeddedError;
use crate::calls::{Call, CompletedCall, Permission, Recorder, Service};
use crate::data_dir::DataDir;
use crate::dynamodb::{self, DynamoDb, ParsedCall, Units, WithheldRequests};
use crate::faults::{self, FaultCounts, FaultKind, Injector};
use crate::s3;
use crate::service_response::ServiceResponse;
use crate::service_thread::ServiceStopped;
use crate::small_services::{KMS_KEY_ID, SmallCall, SmallServices};
use crate::sqs::{self, Sqs};

/// The services behind the SDK.
#[derive(Debug)]
pub(crate) struct Services {
    pub(crate) dynamodb: DynamoDb,
    pub(crate) sqs: Sqs,
    /// `None` after a shutdown.
    s3: RwLock<Option<s3::Endpoint>>,
    pub(crate) small_services: SmallServices,
    /// Lock of the data directory, released when everything else is closed.
    dir: Mutex<Option<DataDir>>,
    injector: Option<Injector>,
    recorder: Option<Recorder>,
}

impl Services {
    pub(crate) fn new(
        dynamodb: DynamoDb,
        sqs: Sqs,
        s3: s3::Endpoint,
        small_services: SmallServices,
        dir: DataDir,
        injector: Option<Injector>,
        recorder: Option<Recorder>,
    ) -> Self {
        let (s3, dir) = (RwLock::new(Some(s3)), Mutex::new(Some(dir)));
        Self { dynamodb, sqs, s3, small_services, dir, injector, recorder }
    }

    pub(crate) fn s3_endpoint(&self) -> Option<s3::Endpoint> {
        self.s3.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn fault_counts(&self) -> FaultCounts {
        self.injector.as_ref().map(Injector::counts).unwrap_or_default()
    }

    pub(crate) fn cannot_share(&self) -> Result<(), EmbeddedError> {
        let dir = self.dir.lock().unwrap_or_else(PoisonError::into_inner);
        dir.as_ref().map_or(Ok(()), DataDir::cannot_share)
    }

    /// Closes the services, then releases the directory. Later calls fail.
    pub(crate) fn shut_down(&self) {
        self.sqs.stop();
        self.dynamodb.stop();
        drop(self.s3.write().unwrap_or_else(PoisonError::into_inner).take());
        drop(self.dir.lock().unwrap_or_else(PoisonError::into_inner).take());
    }
}

impl Drop for Services {
    fn drop(&mut self) {
        self.shut_down();
    }
}

/// The SDK's HTTP client.
#[derive(Debug, Clone)]
pub(crate) struct Connector {
    pub(crate) services: Arc<Services>,
    /// The function that this client belongs to.
    pub(crate) caller: Option<&'static str>,
}

impl HttpClient for Connector {
    fn http_connector(&self, _: &HttpConnectorSettings, _: &RuntimeComponents) -> SharedHttpConnector {
        SharedHttpConnector::new(self.clone())
    }
}

impl HttpConnector for Connector {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let (services, caller) = (Arc::clone(&self.services), self.caller);
        HttpConnectorFuture::new(async move { services.route(request, caller).await })
    }
}

pub(crate) type RouteResult = Result<HttpResponse, ConnectorError>;
type Caller = Option<&'static str>;

/// Effects of fault injection on a request to DynamoDB that is run.
struct Admitted {
    withheld: WithheldRequests,
    response_lost: bool,
}

impl Services {
    pub(crate) async fn route(&self, request: HttpRequest, caller: Caller) -> RouteResult {
        let target = request.headers().get("x-amz-target").map(str::to_owned);
        if let Some(call) = SmallCall::from_headers(target.as_deref(), request.headers().get("content-type"))
        {
            return self.small_services(&call, request, caller).await;
        }
        match target.as_deref() {
            Some(target) => {
                if let Some(action) = target.strip_prefix(dynamodb::TARGET_PREFIX) {
                    self.dynamodb(action, request, caller).await
                } else if let Some(action) = target.strip_prefix(sqs::TARGET_PREFIX) {
                    self.sqs(action, request, caller).await
                } else {
                    let text = format!("no embedded service serves {target}");
                    Err(ConnectorError::user(text.into()))
                }
            }
            None => self.s3(request, caller).await,
        }
    }

    async fn dynamodb(&self, action: &str, request: HttpRequest, caller: Caller) -> RouteResult {
        let body = read_body(request).await?;
        let mut call = match DynamoDb::parse(action, &body) {
            Ok(call) => call,
            Err(answer) => return respond(answer),
        };
        let meter = self.meter();
        let mut refused = Units::default();
        let mut table = String::new();
        if meter.is_some() {
            call.request.request_consumed_units();
            refused = call.request.units_when_refused();
            table = call.request.tables().into_iter().next().unwrap_or_default().to_owned();
        }
        let Admitted { withheld, response_lost } = match self.admit(action, &mut call.request, caller) {
            Ok(admitted) => admitted,
            Err(answer) => return respond(answer),
        };
        let (answer, units) = self.dynamodb.call(call, withheld).await.map_err(closed_error)?;
        if let Some(meter) = meter {
            let units = if dynamodb::is_refused_write(&answer) { refused } else { units };
            meter.completed(&CompletedCall {
                call: Call { caller, service: Service::DynamoDb, action, resource: Some(table.as_str()) },
                status: answer.status,
                request_bytes: body.len() as u64,
                response_bytes: answer.body.len() as u64,
                read_units: units.read,
                write_units: units.write,
            });
        }
        if response_lost { Err(broken_connection()) } else { respond(answer) }
    }

    /// Runs a request of this process without HTTP. Returns `None` unless it succeeds, and if the bytes of bodies are
    /// measured, which only requests over HTTP have.
    pub(crate) async fn run_directly(
        &self,
        action: &str,
        mut request: dynamodb::Request,
        caller: Caller,
    ) -> Option<dynamodb::Response> {
        self.meter().is_none().then_some(())?;
        let Admitted { withheld, response_lost } = self.admit(action, &mut request, caller).ok()?;
        let response = self.dynamodb.run(ParsedCall::without_token(request), withheld).await.ok()?.ok()?;
        (!response_lost).then_some(response)
    }

    /// Records a request to DynamoDB and injects faults into it. The error is the response of a request that isn't run.
    fn admit(
        &self,
        action: &str,
        request: &mut dynamodb::Request,
        caller: Caller,
    ) -> Result<Admitted, ServiceResponse> {
        let mut admitted = Admitted { withheld: WithheldRequests::Nothing, response_lost: false };
        if self.injector.is_none() && self.recorder.is_none() {
            return Ok(admitted);
        }
        let tables: Vec<&str> = request.tables().into_iter().collect();
        self.record(caller, Service::DynamoDb, action, &tables);
        self.record_permissions(caller, || {
            let permissions = request.permissions().into_iter();
            permissions.map(|(action, table)| (format!("dynamodb:{action}"), table)).collect()
        });
        let Some(injector) = &self.injector else { return Ok(admitted) };
        if injector.injects(FaultKind::Throttle, action, &tables) {
            return Err(faults::throttled(Service::DynamoDb, injector.pick(3)));
        }
        if injector.injects(FaultKind::Deny, action, &tables) {
            return Err(faults::denied(Service::DynamoDb, action, &tables));
        }
        let items = request.transaction_items();
        let can_conflict = items > 0 || matches!(action, "PutItem" | "UpdateItem" | "DeleteItem");
        if can_conflict && injector.injects(FaultKind::Conflict, action, &tables) {
            return Err(faults::conflict(items, injector.pick(items)));
        }
        let is_batch = matches!(action, "BatchWriteItem" | "BatchGetItem");
        let withhold = is_batch && injector.injects(FaultKind::Unprocessed, action, &tables);
        admitted.response_lost = injector.injects(FaultKind::LostResponse, action, &tables);
        if withhold {
            let mut n = 0;
            admitted.withheld = WithheldRequests::take_from(request, || {
                n += 1;
                injector.coin(n)
            });
        }
        Ok(admitted)
    }

    async fn sqs(&self, action: &str, request: HttpRequest, caller: Caller) -> RouteResult {
        respond(self.sqs_json(action, read_body(request).await?, caller).await?)
    }

    /// Runs an SQS request. The error is a lost response, or that the services are closed.
    pub(crate) async fn sqs_json(
        &self,
        action: &str,
        body: Bytes,
        caller: Caller,
    ) -> Result<ServiceResponse, ConnectorError> {
        let mut response_lost = false;
        if self.injector.is_some() || self.recorder.is_some() {
            let queue = Sqs::resource(&body);
            let queues: Vec<&str> = queue.as_deref().into_iter().collect();
            self.record(caller, Service::Sqs, action, &queues);
            // A batch requires the permission for its single action.
            let part = action.strip_suffix("Batch").unwrap_or(action);
            self.record_permissions(caller, || {
                vec![(format!("sqs:{part}"), queue.clone().unwrap_or_else(|| "*".to_owned()))]
            });
            if let Some(injector) = &self.injector {
                if injector.injects(FaultKind::Throttle, action, &queues) {
                    return Ok(faults::throttled(Service::Sqs, injector.pick(3)));
                }
                if injector.injects(FaultKind::Deny, action, &queues) {
                    return Ok(faults::denied(Service::Sqs, action, &queues));
                }
                response_lost = injector.injects(FaultKind::LostResponse, action, &queues);
            }
        }
        let copies = |queue: &str| match &self.injector {
            None => 1,
            Some(injector) if injector.injects(FaultKind::Lose, action, &[queue]) => 0,
            Some(injector) if injector.injects(FaultKind::Duplicate, action, &[queue]) => 2,
            Some(_) => 1,
        };
        let answer = self.sqs.call(action, &body, copies).await.map_err(closed_error)?;
        if let Some(meter) = self.meter() {
            let queue = Sqs::resource(&body);
            meter.completed(&CompletedCall {
                call: Call { caller, service: Service::Sqs, action, resource: queue.as_deref() },
                status: answer.status,
                request_bytes: body.len() as u64,
                response_bytes: answer.body.len() as u64,
                read_units: 0.0,
                write_units: 0.0,
            });
        }
        if response_lost { Err(broken_connection()) } else { Ok(answer) }
    }

    async fn s3(&self, request: HttpRequest, caller: Caller) -> RouteResult {
        let mut response_lost = false;
        let mut bucket_if_missing = None;
        if self.injector.is_some() || self.recorder.is_some() {
            let uri: http::Uri = request.uri().parse().unwrap_or_default();
            let action = s3_action(request.method(), &uri);
            let bucket = uri.path().split('/').nth(1).filter(|bucket| !bucket.is_empty());
            let buckets: Vec<&str> = bucket.into_iter().collect();
            self.record(caller, Service::S3, &action, &buckets);
            let permissions = s3_permissions(&action, uri.path().trim_start_matches('/'), request.headers());
            bucket_if_missing =
                bucket.filter(|_| matches!(&*action, "GetObject" | "HeadObject")).map(str::to_owned);
            self.record_permissions(caller, || permissions);
            if let Some(injector) = &self.injector {
                if injector.injects(FaultKind::Throttle, &action, &buckets) {
                    return respond(faults::throttled(Service::S3, injector.pick(3)));
                }
                if injector.injects(FaultKind::Deny, &action, &buckets) {
                    return respond(faults::denied(Service::S3, &action, &buckets));
                }
                response_lost = injector.injects(FaultKind::LostResponse, &action, &buckets);
            }
        }
        let endpoint = self.s3_endpoint().ok_or_else(|| closed_error(ServiceStopped))?;
        let request = request.try_into_http1x().map_err(|error| ConnectorError::user(error.into()))?;
        let info = self.meter().map(|_| S3RequestInfo::from_request(&request));
        let response = endpoint.handle_sdk(request).await;
        if let (Some(meter), Some(info)) = (self.meter(), info) {
            let (status, body) = (response.status().as_u16(), response.body());
            meter.completed(&info.completed(caller, status, response.headers(), body));
        }
        let response =
            HttpResponse::try_from(response).map_err(|error| ConnectorError::other(error.into(), None))?;
        if let Some(bucket) = bucket_if_missing.filter(|_| response.status().as_u16() == 404) {
            // AWS returns 404 for a missing object only to callers that may list the bucket; others
            // get 403.
            self.record_permissions(caller, || vec![("s3:ListBucket".to_owned(), bucket)]);
        }
        if response_lost { Err(broken_connection()) } else { Ok(response) }
    }

    fn meter(&self) -> Option<&Recorder> {
        self.recorder.as_ref().filter(|recorder| recorder.observes_completed_calls())
    }

    async fn small_services(&self, call: &SmallCall, request: HttpRequest, caller: Caller) -> RouteResult {
        let body = read_body(request).await?;
        let mut response_lost = false;
        let (action, resource) = call.describe(&body);
        if self.injector.is_some() || self.recorder.is_some() {
            let resources: Vec<&str> = resource.as_deref().into_iter().collect();
            self.record(caller, call.service, &action, &resources);
            self.record_permissions(caller, || {
                // Requests to KMS may omit the key, which the ciphertext identifies.
                let unnamed = if call.service == Service::Kms { KMS_KEY_ID } else { "*" };
                let on = resource.clone().unwrap_or_else(|| unnamed.to_owned());
                vec![(format!("{}:{action}", call.service.prefix()), on)]
            });
            if let Some(injector) = &self.injector {
                if injector.injects(FaultKind::Throttle, &action, &resources) {
                    return respond(faults::throttled(call.service, injector.pick(3)));
                }
                if injector.injects(FaultKind::Deny, &action, &resources) {
                    return respond(faults::denied(call.service, &action, &resources));
                }
                response_lost = injector.injects(FaultKind::LostResponse, &action, &resources);
            }
        }
        let answer = self.small_services.call(call, &body);
        if let Some(meter) = self.meter() {
            meter.completed(&CompletedCall {
                call: Call { caller, service: call.service, action: &action, resource: resource.as_deref() },
                status: answer.status,
                request_bytes: body.len() as u64,
                response_bytes: answer.body.len() as u64,
                read_units: 0.0,
                write_units: 0.0,
            });
        }
        if response_lost { Err(broken_connection()) } else { respond(answer) }
    }

    fn record(&self, caller: Caller, service: Service, action: &str, resources: &[&str]) {
        if let Some(recorder) = &self.recorder {
            if resources.is_empty() {
                recorder.record(&Call { caller, service, action, resource: None });
            }
            for resource in resources {
                recorder.record(&Call { caller, service, action, resource: Some(resource) });
            }
        }
    }

    fn record_permissions(&self, caller: Caller, permissions: impl FnOnce() -> Vec<(String, String)>) {
        if let (Some(recorder), Some(caller)) = (&self.recorder, caller) {
            for (action, resource) in permissions() {
                recorder.record_permission(Permission { caller, action, resource });
            }
        }
    }
}

/// The parts of an S3 request that are needed after its response.
struct S3RequestInfo {
    action: String,
    bucket: Option<String>,
    request_bytes: u64,
}

impl S3RequestInfo {
    fn from_request(request: &http::Request<SdkBody>) -> Self {
        let bucket = request.uri().path().split('/').nth(1).filter(|bucket| !bucket.is_empty());
        // A body that is streamed in signed chunks declares the length of its content.
        let decoded = request.headers().get("x-amz-decoded-content-length");
        let decoded = decoded.and_then(|length| length.to_str().ok()?.parse().ok());
        Self {
            action: s3_action(request.method().as_str(), request.uri()),
            bucket: bucket.map(str::to_owned),
            request_bytes: decoded.or_else(|| request.body().content_length()).unwrap_or_default(),
        }
    }

    fn completed(
        &self,
        caller: Caller,
        status: u16,
        headers: &http::HeaderMap,
        body: &SdkBody,
    ) -> CompletedCall<'_> {
        let declared = headers.get(http::header::CONTENT_LENGTH);
        let declared = declared.and_then(|length| length.to_str().ok()?.parse().ok());
        let head = self.action.starts_with("Head");
        CompletedCall {
            call: Call {
                caller,
                service: Service::S3,
                action: &self.action,
                resource: self.bucket.as_deref(),
            },
            status,
            request_bytes: self.request_bytes,
            response_bytes: if head { 0 } else { body.content_length().or(declared).unwrap_or_default() },
            read_units: 0.0,
            write_units: 0.0,
        }
    }
}

/// Returns the S3 action of a request. The SDK names most actions in the query; the others follow
/// from method and query.
fn s3_action(method: &str, uri: &http::Uri) -> String {
    let query = uri.query().unwrap_or_default();
    let value = |name: &str| {
        query.split('&').find_map(|pair| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            (key == name).then_some(value)
        })
    };
    if let Some(action) = value("x-id") {
        return action.to_owned();
    }
    let in_bucket = uri.path().trim_matches('/').contains('/');
    let action = match (method, in_bucket) {
        ("GET", false) if value("list-type").is_some() => "ListObjectsV2",
        ("GET", false) if uri.path() == "/" => "ListBuckets",
        ("GET", false) if value("uploads").is_some() => "ListMultipartUploads",
        ("GET", false) => "ListObjects",
        ("PUT", false) => "CreateBucket",
        ("DELETE", false) => "DeleteBucket",
        ("HEAD", false) => "HeadBucket",
        ("POST", false) if value("delete").is_some() => "DeleteObjects",
        ("POST", true) if value("uploads").is_some() => "CreateMultipartUpload",
        ("POST", true) if value("uploadId").is_some() => "CompleteMultipartUpload",
        ("GET", true) => "GetObject",
        ("PUT", true) => "PutObject",
        ("DELETE", true) => "DeleteObject",
        ("HEAD", true) => "HeadObject",
        (method, _) => method,
    };
    action.to_owned()
}

/// Returns the permissions that an S3 call requires. `path` is the bucket, and after a slash the
/// percent-encoded key.
fn s3_permissions(action: &str, path: &str, headers: &Headers) -> Vec<(String, String)> {
    let (bucket, key) = path.split_once('/').unwrap_or((path, ""));
    let object = format!("{bucket}/{key}");
    let on = |action: &str, resource: &str| (format!("s3:{action}"), resource.to_owned());
    match action {
        "GetObject" | "HeadObject" => vec![on("GetObject", &object)],
        "PutObject" | "CreateMultipartUpload" | "UploadPart" | "CompleteMultipartUpload" => {
            vec![on("PutObject", &object)]
        }
        "CopyObject" | "UploadPartCopy" => {
            let source = headers.get("x-amz-copy-source").unwrap_or_default().trim_start_matches('/');
            vec![on("PutObject", &object), on("GetObject", source)]
        }
        "ListParts" => vec![on("ListMultipartUploadParts", &object)],
        "ListObjects" | "ListObjectsV2" | "HeadBucket" => vec![on("ListBucket", bucket)],
        "ListMultipartUploads" => vec![on("ListBucketMultipartUploads", bucket)],
        // The keys are in the body.
        "DeleteObjects" => vec![on("DeleteObject", &format!("{bucket}/*"))],
        "ListBuckets" => vec![on("ListAllMyBuckets", "*")],
        other if key.is_empty() => vec![on(other, bucket)],
        other => vec![on(other, &object)],
    }
}

async fn read_body(mut request: HttpRequest) -> Result<Bytes, ConnectorError> {
    let body: SdkBody = request.take_body();
    match body.collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) => Err(ConnectorError::user(error)),
    }
}

fn respond(answer: ServiceResponse) -> RouteResult {
    answer.into_response().map_err(|error| ConnectorError::other(error, None))
}

fn closed_error(_: ServiceStopped) -> ConnectorError {
    ConnectorError::user(crate::EmbeddedError::Closed.into())
}

/// Returns the error for a lost response, after which the caller can't know whether the call was
/// executed.
fn broken_connection() -> ConnectorError {
    let error = std::io::Error::new(std::io::ErrorKind::ConnectionReset, "connection reset (injected fault)");
    ConnectorError::io(error.into())
}

#[cfg(test)]
mod tests {
    use aws_smithy_runtime_api::http::Headers;

    use super::{s3_action, s3_permissions};

    #[test]
    fn s3_rights_are_named_as_in_policies() {
        for (action, path, permissions) in [
            ("HeadObject", "b/k/l", &[("s3:GetObject", "b/k/l")][..]),
            ("UploadPart", "b/k", &[("s3:PutObject", "b/k")]),
            ("AbortMultipartUpload", "b/k", &[("s3:AbortMultipartUpload", "b/k")]),
            ("ListObjectsV2", "b", &[("s3:ListBucket", "b")]),
            ("DeleteObjects", "b/", &[("s3:DeleteObject", "b/*")]),
            ("CreateBucket", "b", &[("s3:CreateBucket", "b")]),
            ("CopyObject", "b/k", &[("s3:PutObject", "b/k"), ("s3:GetObject", "c/from")]),
        ] {
            let mut headers = Headers::new();
            headers.insert("x-amz-copy-source", "/c/from");
            let found = s3_permissions(action, path, &headers);
            let found: Vec<_> = found.iter().map(|(action, on)| (action.as_str(), on.as_str())).collect();
            assert_eq!(found, permissions, "{action}");
        }
    }

    #[test]
    fn s3_actions() {
        for (method, uri, action) in [
            ("PUT", "http://x/b/k?x-id=PutObject", "PutObject"),
            ("PUT", "http://x/b/k/l?partNumber=1&uploadId=2&x-id=UploadPart", "UploadPart"),
            ("GET", "http://x/b?list-type=2&prefix=a", "ListObjectsV2"),
            ("GET", "http://x/b/?list-type=2", "ListObjectsV2"),
            ("HEAD", "http://x/b/k", "HeadObject"),
            ("POST", "http://x/b?delete", "DeleteObjects"),
            ("POST", "http://x/b/k?uploads", "CreateMultipartUpload"),
            ("PUT", "http://x/b", "CreateBucket"),
        ] {
            assert_eq!(s3_action(method, &uri.parse().unwrap()), action, "{method} {uri}");
        }
    }
}
