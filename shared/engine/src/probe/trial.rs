//! Runs a container with limits, to find out whether an engine works.
//!
//! Its image has one file: a program of a few bytes that exits with status 0.

use bytes::Bytes;
use http::Method;
use http_body_util::BodyExt;
use serde_json::{Map, Value, json};

use crate::client::{Client, full, request};
use crate::labels::Owner;

/// Memory limit of the container, in bytes.
const MEMORY_BYTES: u64 = 64 << 20;

/// Code that exits with status 0, and the machine's number in ELF headers.
#[cfg(target_arch = "x86_64")]
const CODE: (u16, &[u8]) = (62, &[0x31, 0xff, 0xb8, 60, 0, 0, 0, 0x0f, 0x05]);
#[cfg(target_arch = "aarch64")]
const CODE: (u16, &[u8]) = (183, &[0, 0, 0x80, 0xd2, 0xa8, 0x0b, 0x80, 0xd2, 1, 0, 0, 0xd4]);

/// Runs a container without a network.
pub(super) async fn run(client: &Client, instance: Option<&str>) -> Result<(), String> {
    let owner = instance.map(|instance| Owner::new(instance, "trial")).transpose();
    let owner = owner.map_err(|error| error.to_string())?;
    let mut labels = Map::new();
    if let Some(owner) = &owner {
        owner.write_into(&mut labels);
    }
    // A name of its own makes a layer of its own: removing the image of another process could take a shared one away.
    let name = format!("trial-{}", uuid::Uuid::new_v4().simple());
    let image = import(client, &name, &labels).await?;
    let ran = run_container(client, &image, &name, &labels).await;
    if let Err(error) = client.expect(Method::DELETE, &format!("/images/{image}"), None).await {
        tracing::warn!(%error, "Image of the engine's trial was not removed");
    }
    ran
}

/// Imports the image without a name, since several processes may probe the same engine, and returns its id.
async fn import(client: &Client, name: &str, labels: &Map<String, Value>) -> Result<String, String> {
    let archive = crate::context::program_archive(name, &program())
        .map_err(|error| format!("its image can't be made: {error}"))?;
    let address = format!("/images/create?{}", import_query(labels));
    let mut import =
        request(Method::POST, &address, full(Bytes::from(archive))).map_err(|error| error.to_string())?;
    import
        .headers_mut()
        .insert(http::header::CONTENT_TYPE, http::HeaderValue::from_static("application/x-tar"));
    let response = client.send(import).await.map_err(|error| error.to_string())?;
    let body = response.into_body().collect().await.map_err(|error| error.to_string())?.to_bytes();
    let text = String::from_utf8_lossy(&body);
    // The id is in the last of several lines of progress.
    let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let id = lines.filter_map(|line| Some(line["status"].as_str()?.trim().to_owned())).next_back();
    let is_id =
        |id: &String| id.len() >= 64 && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b':');
    id.filter(is_id).ok_or_else(|| {
        format!("it can't import an image: {}", text.trim().chars().take(300).collect::<String>())
    })
}

fn import_query(labels: &Map<String, Value>) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.append_pair("fromSrc", "-");
    for (name, value) in labels {
        query.append_pair("changes", &format!("LABEL {name}={value}"));
    }
    query.finish()
}

async fn run_container(
    client: &Client,
    image: &str,
    name: &str,
    labels: &Map<String, Value>,
) -> Result<(), String> {
    let call = async |method: Method, path: &str, body| {
        client.expect(method, path, body).await.map_err(|error| format!("it can't run a container: {error}"))
    };
    let body = json!({
        "Image": image,
        "Cmd": [format!("/{name}")],
        "Labels": labels,
        "HostConfig": {
            "NetworkMode": "none",
            "Memory": MEMORY_BYTES,
            "MemorySwap": MEMORY_BYTES,
            "PidsLimit": 16,
            "NanoCpus": 500_000_000,
        },
    });
    let created = call(Method::POST, "/containers/create", Some(&body)).await?;
    let id = created["Id"].as_str().unwrap_or_default().to_owned();
    let exited = async {
        call(Method::POST, &format!("/containers/{id}/start"), None).await?;
        call(Method::POST, &format!("/containers/{id}/wait"), None).await
    };
    let exited = exited.await;
    call(Method::DELETE, &format!("/containers/{id}?force=1&v=1"), None).await?;
    match exited?["StatusCode"].as_i64() {
        Some(0) => Ok(()),
        status => Err(format!("its container ended with status {}", status.unwrap_or(-1))),
    }
}

/// Creates a static program for Linux: header, one segment, code.
fn program() -> Vec<u8> {
    const BASE: u64 = 0x40_0000;
    const HEADERS: u64 = 64 + 56;
    let (machine, code) = CODE;
    let length = HEADERS + code.len() as u64;
    let mut bytes = vec![0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let mut put = |value: u64, width: usize| bytes.extend_from_slice(&value.to_le_bytes()[..width]);
    // Type, machine, version, entry point, positions of the tables, flags, sizes and counts.
    for (value, width) in
        [(2, 2), (u64::from(machine), 2), (1, 4), (BASE + HEADERS, 8), (64, 8), (0, 8), (0, 4)]
    {
        put(value, width);
    }
    for value in [64, 56, 1, 64, 0, 0] {
        put(value, 2);
    }
    // One segment to load, readable and executable: position, addresses, sizes, alignment.
    for (value, width) in
        [(1, 4), (5, 4), (0, 8), (BASE, 8), (BASE, 8), (length, 8), (length, 8), (0x1000, 8)]
    {
        put(value, width);
    }
    bytes.extend_from_slice(code);
    bytes
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn the_program_exits_with_status_0() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trial");
        std::fs::write(&path, super::program()).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert!(std::process::Command::new(path).status().unwrap().success());
    }
}
