//! Handles the connections and calls of the test server.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::BufReader;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};
use uuid::Uuid;

use super::http::{Answer, Request, read};
use super::sandbox::TestSandbox;
use super::{Call, Endpoint, Fault, KEY, Options, Shared};

/// Time limit of commands whose request has none.
const TIMEOUT_DEFAULT_MS: u64 = 30_000;

pub(super) fn spawn(listener: TcpListener, shared: Arc<Shared>) -> JoinHandle<()> {
    tokio::spawn(async move {
        // Connections end with the listener.
        let mut connections = JoinSet::new();
        while let Ok((stream, _)) = listener.accept().await {
            let shared = Arc::clone(&shared);
            connections.spawn(async move {
                // Errors of clients that disconnect are ignored.
                let _ = connection(stream, shared).await;
            });
            while connections.try_join_next().is_some() {}
        }
    })
}

async fn connection(stream: TcpStream, shared: Arc<Shared>) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut stream = BufReader::new(stream);
    while let Some(request) = read(&mut stream).await? {
        let is_whole = request.body.is_some();
        // A call is completed even if the client disconnects.
        let serving = tokio::spawn(serve(request, Arc::clone(&shared)));
        let stream = stream.get_mut();
        match serving.await.unwrap_or(Reply::Nothing) {
            Reply::Whole(answer) if is_whole => answer.send(stream).await?,
            Reply::Whole(answer) | Reply::Half(answer) => return answer.send_half(stream).await,
            Reply::Nothing => return Ok(()),
        }
    }
    Ok(())
}

enum Reply {
    Whole(Answer),
    Half(Answer),
    Nothing,
}

async fn serve(request: Request, shared: Arc<Shared>) -> Reply {
    let Some((endpoint, sandbox)) = route(&request) else {
        return Reply::Whole(Answer::json(404, &json!({ "detail": "no such endpoint" })));
    };
    if endpoint != Endpoint::File && (request.key.as_deref() != Some(KEY) || !request.is_json) {
        return Reply::Whole(Answer::json(401, &json!({ "detail": "the key is refused" })));
    }
    let Some(body) = request.body.clone() else {
        return Reply::Whole(Answer::json(413, &json!({ "detail": "the request is too long" })));
    };
    let call = record_call(&shared, endpoint, sandbox, body);
    let fault = shared.options.rule.as_ref().map_or(Fault::None, |rule| rule(&call));
    match fault {
        Fault::None => Reply::Whole(perform(&shared, &call, &request).await),
        Fault::Status(status, body, headers) => {
            Reply::Whole(Answer { status, headers, body: body.into_bytes() })
        }
        Fault::Garbage => Reply::Whole(Answer {
            status: 200,
            headers: Vec::new(),
            body: "<html>\u{fffd} not what you asked for".into(),
        }),
        Fault::NoExitCode => {
            let mut answer = perform(&shared, &call, &request).await;
            let mut text: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
            if let Some(fields) = text.as_object_mut() {
                fields.remove("exitCode");
                fields.remove("sandboxId");
            }
            answer.body = text.to_string().into_bytes();
            Reply::Whole(answer)
        }
        Fault::Hang(time) => {
            tokio::time::sleep(time).await;
            Reply::Nothing
        }
        Fault::Late(time) => {
            let answer = perform(&shared, &call, &request).await;
            tokio::time::sleep(time).await;
            Reply::Whole(answer)
        }
        Fault::Drop => Reply::Nothing,
        Fault::DropAfter => {
            let answer = perform(&shared, &call, &request).await;
            match endpoint {
                Endpoint::File => Reply::Half(answer),
                // The client didn't receive the id.
                Endpoint::Create => {
                    let reported = serde_json::from_slice::<Value>(&answer.body).unwrap_or_default();
                    let id = reported["sandboxId"].as_str().unwrap_or_default();
                    shared.state().reported.retain(|reported| reported != id);
                    Reply::Nothing
                }
                _ => Reply::Nothing,
            }
        }
        Fault::Twice => {
            let (_, answer) =
                tokio::join!(perform(&shared, &call, &request), perform(&shared, &call, &request));
            Reply::Whole(answer)
        }
        Fault::Lose => {
            lose(&shared, call.sandbox.as_deref());
            Reply::Whole(not_found_answer())
        }
        Fault::NotReady => {
            let stderr = "error: vsock handshake failed: connection refused";
            Reply::Whole(Answer::json(200, &json!({ "stdout": "", "stderr": stderr, "exitCode": 1 })))
        }
    }
}

fn route(request: &Request) -> Option<(Endpoint, Option<String>)> {
    let path = request.path.split('?').next().unwrap_or_default();
    let parts: Vec<&str> = path.split('/').skip(1).collect();
    let of = |endpoint, id: &str| Some((endpoint, Some(id.to_owned())));
    match (request.method.as_str(), parts.as_slice()) {
        ("POST", ["api", "sandboxes"]) => Some((Endpoint::Create, None)),
        ("GET", ["api", "resources"]) => Some((Endpoint::Resources, None)),
        ("GET", ["api", "metrics", "timeseries"]) => Some((Endpoint::Metrics, None)),
        ("GET", ["api", "sandboxes", "stats"]) => Some((Endpoint::Stats, None)),
        ("GET", ["api", "sandboxes", id]) => of(Endpoint::Exists, id),
        ("POST", ["api", "sandboxes", id, "exec"]) => of(Endpoint::Exec, id),
        ("POST", ["api", "sandboxes", id, "files", "write"]) => of(Endpoint::Write, id),
        ("POST", ["api", "sandboxes", id, "terminate"]) => of(Endpoint::Terminate, id),
        ("GET", ["files", _]) => Some((Endpoint::File, None)),
        _ => None,
    }
}

/// Counts and logs a call.
fn record_call(shared: &Shared, endpoint: Endpoint, sandbox: Option<String>, body: Value) -> Call {
    let mut state = shared.state();
    let total = state.total;
    state.total += 1;
    let calls_by_endpoint = state.calls_by_endpoint.entry(endpoint).or_default();
    let before = *calls_by_endpoint;
    *calls_by_endpoint += 1;
    let sandbox_before = sandbox.as_ref().map_or(0, |id| {
        let count = state.calls_by_sandbox.entry(id.clone()).or_default();
        *count += 1;
        *count - 1
    });
    let call = Call { endpoint, sandbox, before, sandbox_before, total_before: total, body };
    state.log.push(call.clone());
    call
}

pub(super) fn lose(shared: &Shared, sandbox: Option<&str>) {
    let sandbox = sandbox.and_then(|id| shared.state().sandboxes.remove(id));
    // A running command may still hold a reference to it.
    if let Some(sandbox) = sandbox {
        sandbox.end();
    }
}

fn not_found_answer() -> Answer {
    Answer::json(404, &json!({ "detail": "Sandbox not found" }))
}

async fn perform(shared: &Arc<Shared>, call: &Call, request: &Request) -> Answer {
    let sandbox = call.sandbox.as_ref().and_then(|id| shared.state().sandboxes.get(id).cloned());
    match (call.endpoint, sandbox) {
        (Endpoint::Create, _) => create(shared, &call.body),
        (Endpoint::Resources, _) => Answer::json(200, &resources(shared)),
        (Endpoint::Metrics, _) => {
            Answer::json(200, &json!([{ "timestamp": "2026-01-02T03:04:05Z", "cpu_ratio": 0.5 }]))
        }
        (Endpoint::Stats, _) => {
            let mut ids: Vec<String> = shared.state().sandboxes.keys().cloned().collect();
            ids.sort();
            let stats: Vec<Value> = ids.iter().map(|id| json!({ "sandbox_id": id })).collect();
            Answer::json(200, &Value::Array(stats))
        }
        (Endpoint::File, _) => file(shared, request),
        (_, None) => not_found_answer(),
        (Endpoint::Exec, Some(sandbox)) => exec(shared, &sandbox, &call.body).await,
        (Endpoint::Write, Some(sandbox)) => {
            let (path, text) = (call.body["path"].as_str(), call.body["content"].as_str());
            match (path, text) {
                (Some(path), Some(text)) => match sandbox.write(path, text) {
                    Ok(()) => Answer::json(200, &json!({ "success": true })),
                    Err(error) => Answer::json(500, &json!({ "detail": error.to_string() })),
                },
                _ => Answer::json(422, &json!({ "detail": "path and content are needed" })),
            }
        }
        (Endpoint::Terminate, Some(sandbox)) => {
            drop(sandbox);
            let (shared, id) = (Arc::clone(shared), call.sandbox.clone());
            // Killing processes takes a while.
            let _ = tokio::task::spawn_blocking(move || lose(&shared, id.as_deref())).await;
            Answer::json(200, &json!({ "success": true }))
        }
        (Endpoint::Exists, Some(_)) => Answer::json(200, &json!({ "sandboxId": call.sandbox })),
    }
}

/// Returns true if sandboxes reach a container engine.
fn has_engine(options: &Options) -> bool {
    options.vars.iter().any(|(name, _)| name == "DOCKER_HOST")
}

fn create(shared: &Shared, body: &Value) -> Answer {
    if body["enableDockerSocket"] == true && !has_engine(&shared.options) {
        return Answer::json(501, &json!({ "detail": "this sandbox host has no container engine" }));
    }
    let mut state = shared.state();
    if shared.options.capacity.is_some_and(|capacity| state.sandboxes.len() >= capacity) {
        let headers = vec![("retry-after", "1".to_owned())];
        return Answer { headers, ..Answer::json(503, &json!({ "detail": "no room for another sandbox" })) };
    }
    let id = format!("sb-{}", Uuid::new_v4().simple());
    match TestSandbox::new(id.clone(), shared.root.path(), &shared.options) {
        Ok(sandbox) => {
            state.created += 1;
            state.sandboxes.insert(id.clone(), Arc::new(sandbox));
            state.reported.push(id.clone());
            Answer::json(201, &json!({ "sandboxId": id }))
        }
        Err(error) => Answer::json(500, &json!({ "detail": error.to_string() })),
    }
}

async fn exec(shared: &Shared, sandbox: &TestSandbox, body: &Value) -> Answer {
    let Some(command) = body["command"].as_str() else {
        return Answer::json(422, &json!({ "detail": "a command is needed" }));
    };
    let env: BTreeMap<String, String> = body["env"]
        .as_object()
        .into_iter()
        .flatten()
        .filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())))
        .collect();
    let limit = Duration::from_millis(body["timeoutMs"].as_u64().unwrap_or(TIMEOUT_DEFAULT_MS));
    match sandbox.run(command, body["cwd"].as_str(), &env, limit).await {
        Ok(mut ran) => {
            let most = shared.options.output_max;
            if let Some((cut, _)) = most.and_then(|most| ran.stdout.char_indices().nth(most)) {
                ran.stdout.truncate(cut);
                ran.stdout.push_str("\n[cut]\n");
            }
            let text = json!({ "stdout": ran.stdout, "stderr": ran.stderr, "exitCode": ran.code });
            Answer::json(200, &text)
        }
        Err(error) => Answer::json(500, &json!({ "detail": error.to_string() })),
    }
}

fn resources(shared: &Shared) -> Value {
    let open = shared.state().sandboxes.len();
    let capacity = shared.options.capacity;
    json!({
        "canCreateSandbox": capacity.is_none_or(|capacity| open < capacity),
        "rejectReason": null, "limits": { "sandboxes": capacity }, "priorityBreakdown": { "3": open },
    })
}

fn file(shared: &Shared, request: &Request) -> Answer {
    let name = request.path.rsplit('/').next().unwrap_or_default();
    let Some(bytes) = shared.options.files.get(name) else {
        return Answer::json(404, &json!({ "detail": "no such file" }));
    };
    let from = request.from.unwrap_or_default();
    let Some(rest) = bytes.get(from..) else { return Answer::json(416, &Value::Null) };
    let (status, headers) = match request.from {
        None => (200, Vec::new()),
        Some(from) => {
            let range = format!("bytes {from}-{}/{}", bytes.len().saturating_sub(1), bytes.len());
            (206, vec![("content-range", range)])
        }
    };
    Answer { status, headers, body: rest.to_vec() }
}
