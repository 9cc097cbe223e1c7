//! Tests of the client with a local server that gives scripted answers.

use std::sync::{Arc, Mutex};

use bench_sandy::{Sandy, SandyConfig, SandyError};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// A server that gives every request the same answer and records the heads of requests.
struct Scripted {
    address: String,
    heads: Arc<Mutex<Vec<String>>>,
}

impl Scripted {
    async fn answering(status: u16, body: impl Into<Vec<u8>>) -> Self {
        let mut answer =
            format!("HTTP/1.1 {status} X\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n")
                .into_bytes();
        answer.extend(body.into());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let heads = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&heads);
        tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    head.push(stream.read_u8().await.unwrap());
                }
                seen.lock().unwrap().push(String::from_utf8(head).unwrap());
                // Fails if the client disconnects after reading a part.
                let _ = stream.write_all(&answer).await;
            }
        });
        Self { address, heads }
    }

    async fn json(body: &Value) -> Self {
        Self::answering(200, body.to_string()).await
    }

    fn sandy(&self) -> Sandy {
        sandy(&[("SANDY_BASE_URL", &format!("{}/", self.address)), ("SANDY_API_KEY", "sandy-key")])
    }
}

fn sandy(vars: &[(&str, &str)]) -> Sandy {
    let var = |name: &str| vars.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
    Sandy::new(SandyConfig::from_vars(var).unwrap())
}

#[tokio::test]
async fn resources_are_completed_and_unknown_fields_dropped() {
    let gib = 1_073_741_824_i64;
    let server = Scripted::json(&json!({
        "canCreateSandbox": true, "rejectReason": null, "limits": { "max": 4, "other": null },
        "priorityBreakdown": { "0": 1, "3": 2.0 }, "cpu_percent": 12.5, "cpuCount": 8,
        "load_avg_1m": 1.0, "load5": 2.5, "load_avg_5m": 9.0,
        "memoryTotalBytes": 8 * gib, "memoryUsedBytes": 2 * gib, "memoryAvailableBytes": 6 * gib,
        "diskUsedRatio": 0.25, "diskFreeBytes": 7.0, "secret": "not for you",
    }))
    .await;
    let resources = serde_json::to_value(server.sandy().resources().await.unwrap()).unwrap();
    assert_eq!(
        resources,
        json!({
            "canCreateSandbox": true, "rejectReason": null, "limits": { "max": 4.0, "other": null },
            "priorityBreakdown": { "0": 1, "3": 2 }, "cpu_percent": 12.5, "memory_percent": 25.0,
            "memory_total_gb": 8.0, "memory_available_gb": 6.0, "disk_used_ratio": 0.25, "cpuCount": 8,
            "load1": 1.0, "load5": 2.5, "load15": null, "memoryTotalBytes": 8 * gib, "memoryUsedBytes": 2 * gib,
            "memoryAvailableBytes": 6 * gib, "diskTotalBytes": null, "diskUsedBytes": null, "diskFreeBytes": 7,
            "diskUsedRatio": 0.25,
        })
    );
    let head = server.heads.lock().unwrap()[0].to_lowercase();
    assert!(head.starts_with("get /api/resources http/1.1"), "{head}");
    assert!(
        head.contains("authorization: bearer sandy-key") && head.contains("content-type: application/json")
    );
}

#[tokio::test]
async fn metrics_and_stats_are_lists_with_times() {
    let server = Scripted::json(&json!([
        { "timestamp": "2026-01-02T03:04:05", "cpu_ratio": 0.5, "x": 1 },
        { "timestamp": 1_767_323_045, "memory_ratio": 1 },
        { "timestamp": 1_767_323_045_000.0_f64 },
    ]))
    .await;
    let metrics = serde_json::to_value(server.sandy().metrics(12).await.unwrap()).unwrap();
    let (first, second) = ("2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z");
    assert_eq!(
        metrics,
        json!([
            { "timestamp": first, "cpu_ratio": 0.5, "memory_ratio": null, "disk_ratio": null },
            { "timestamp": second, "cpu_ratio": null, "memory_ratio": 1.0, "disk_ratio": null },
            { "timestamp": second, "cpu_ratio": null, "memory_ratio": null, "disk_ratio": null },
        ])
    );
    assert!(server.heads.lock().unwrap()[0].starts_with("GET /api/metrics/timeseries?hours=12 "));

    let server = Scripted::json(&json!([{ "sandbox_id": "a", "memory_usage_bytes": 5 }])).await;
    let stats = server.sandy().sandboxes(&["a".to_owned(), "b&c".to_owned()]).await.unwrap();
    assert_eq!((stats[0].sandbox_id.as_str(), stats[0].memory_usage_bytes), ("a", Some(5)));
    server.sandy().sandboxes(&[]).await.unwrap();
    let heads = server.heads.lock().unwrap().clone();
    assert!(heads[0].starts_with("GET /api/sandboxes/stats?ids=a%2Cb%26c "), "{}", heads[0]);
    assert!(heads[1].starts_with("GET /api/sandboxes/stats "), "{}", heads[1]);
}

#[tokio::test]
async fn an_answer_of_unexpected_shape_is_an_error_with_a_sentence() {
    for (body, part) in [
        ("<html>", "not JSON"),
        ("", "not JSON"),
        ("[]", "it is not an object"),
        ("{}", "canCreateSandbox is not present"),
        (r#"{"canCreateSandbox":"yes"}"#, "canCreateSandbox is not true or false"),
        (r#"{"canCreateSandbox":true,"cpu_percent":"x"}"#, "cpu_percent is not a number"),
        (r#"{"canCreateSandbox":true,"cpuCount":1.5}"#, "cpuCount is not a whole number"),
        (r#"{"canCreateSandbox":true,"cpuCount":1e300}"#, "cpuCount is not a whole number"),
        (r#"{"canCreateSandbox":true,"limits":[1]}"#, "limits is not an object"),
        (r#"{"canCreateSandbox":true,"limits":{"a":"b"}}"#, "an entry of limits is not a number"),
    ] {
        let error = Scripted::answering(200, body).await.sandy().resources().await.unwrap_err();
        assert!(matches!(&error, SandyError::Shape(what) if what.contains(part)), "{body}: {error}");
    }
    for (body, part) in [
        ("{}", "it is not a list"),
        ("[1]", "an entry is not an object"),
        ("[{}]", "timestamp is not present"),
        (r#"[{"timestamp":"soon"}]"#, "timestamp is not a time"),
    ] {
        let error = Scripted::answering(200, body).await.sandy().metrics(1).await.unwrap_err().to_string();
        assert!(error.contains(part), "{body}: {error}");
    }
}

#[tokio::test]
async fn errors_have_a_cause_and_repeat_nothing_of_the_service() {
    let secret = Scripted::answering(401, r#"{"detail":"key sandy-key is bad"}"#).await;
    let error = secret.sandy().resources().await.unwrap_err();
    assert_eq!(
        (&error, error.to_string().as_str()),
        (&SandyError::Status(401), "Sandy answered with status 401")
    );
    // Following the redirect would send the key elsewhere.
    let moved = Scripted::answering(302, "").await;
    assert_eq!(moved.sandy().resources().await, Err(SandyError::Status(302)));
    let long = Scripted::answering(200, vec![b' '; (1 << 20) + 1]).await;
    assert_eq!(long.sandy().resources().await, Err(SandyError::TooLong));
    let free = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let nobody = sandy(&[("SANDY_BASE_URL", &format!("http://{free}")), ("SANDY_API_KEY", "k")]);
    let error = nobody.resources().await.unwrap_err().to_string();
    assert!(error.starts_with("Sandy cannot be reached: "), "{error}");
}

#[tokio::test]
async fn without_a_key_no_call_is_made() {
    let server = Scripted::json(&json!([])).await;
    let unset = sandy(&[("SANDY_BASE_URL", &server.address), ("SANDY_API_KEY", " ")]);
    assert_eq!(
        unset.metrics(1).await.unwrap_err().to_string(),
        "Sandy API key is not configured: set SANDY_API_KEY"
    );
    let nowhere = sandy(&[("SANDY_API_KEY", "k")]);
    assert_eq!(
        nowhere.metrics(1).await.unwrap_err().to_string(),
        "Sandy base URL is not configured: set SANDY_BASE_URL"
    );
    assert!(server.heads.lock().unwrap().is_empty());
    for bad in ["x", "ftp://x", "https://u:sandy-password@x", "https://x/?a=b"] {
        let read = SandyConfig::from_vars(|name| (name == "SANDY_BASE_URL").then(|| bad.to_owned()));
        let problem = read.unwrap_err();
        assert!(problem.starts_with("SANDY_BASE_URL") && !problem.contains("sandy-password"), "{problem}");
    }
}
