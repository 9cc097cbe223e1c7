//! Events in the form in which AWS sends them to functions.

use serde_json::{Value, json};

/// Host of the emulated HTTP API.
const HOST: &str = "example.execute-api.us-east-1.amazonaws.com";

/// Returns a request through API Gateway or a function URL. Both use payload version 2.0.
pub fn http(method: &str, path_and_query: &str, headers: &[(&str, &str)], body: Option<&str>) -> Value {
    let (path, query) = path_and_query.split_once('?').unwrap_or((path_and_query, ""));
    let mut all = serde_json::Map::new();
    for (name, value) in [("host", HOST), ("x-forwarded-proto", "https"), ("x-forwarded-port", "443")] {
        all.insert(name.to_owned(), json!(value));
    }
    for (name, value) in headers {
        all.insert(name.to_lowercase(), json!(value));
    }
    json!({
        "version": "2.0", "routeKey": "$default", "rawPath": path, "rawQueryString": query,
        "headers": all,
        "requestContext": {
            "accountId": "000000000000", "apiId": "example", "domainName": HOST, "domainPrefix": "example",
            "http": { "method": method, "path": path, "protocol": "HTTP/1.1", "sourceIp": "192.0.2.1",
                      "userAgent": "test" },
            "requestId": "request", "routeKey": "$default", "stage": "$default",
            "time": "21/Nov/2026:00:00:00 +0000", "timeEpoch": 1_795_219_200_000_u64,
        },
        "body": body, "isBase64Encoded": false,
    })
}

/// Converts it to a request to a function URL with IAM authentication, signed by CloudFront's origin access control.
pub fn sign(mut request: Value) -> Value {
    let host = "0123456789abcdefghijklmnopqrstuv.lambda-url.us-east-1.on.aws";
    request["headers"]["host"] = json!(host);
    request["headers"]["x-amz-date"] = json!("20261121T000000Z");
    let context = &mut request["requestContext"];
    context["domainName"] = json!(host);
    context["authorizer"] = json!({ "iam": {
        "accessKey": "ASIAEXAMPLE", "accountId": "111122223333", "callerId": "AROAEXAMPLE:OriginAccessSession",
        "cognitoIdentity": null, "principalOrgId": null,
        "userArn": "arn:aws:sts::111122223333:assumed-role/OriginAccessControlRole/OriginAccessSession",
        "userId": "AROAEXAMPLE:OriginAccessSession",
    }});
    request
}

/// Returns a batch of messages from the queue of this name.
pub fn sqs(queue: &str, bodies: &[&str]) -> Value {
    let records = bodies.iter().enumerate().map(|(number, body)| {
        json!({
            "messageId": format!("message-{number}"), "receiptHandle": format!("receipt-{number}"),
            "body": body,
            "attributes": {
                "ApproximateReceiveCount": "1", "SentTimestamp": "1795219200000",
                "SenderId": "AIDAEXAMPLE", "ApproximateFirstReceiveTimestamp": "1795219200001",
            },
            "messageAttributes": {}, "md5OfBody": "", "eventSource": "aws:sqs",
            "eventSourceARN": format!("arn:aws:sqs:us-east-1:000000000000:{queue}"),
            "awsRegion": "us-east-1",
        })
    });
    json!({ "Records": records.collect::<Vec<Value>>() })
}

/// Returns the event that EventBridge Scheduler sends for a task.
pub fn schedule(task: &str) -> Value {
    json!({ "task": task })
}
