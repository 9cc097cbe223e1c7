//! Exports of a run's results, and their verification.

use bench_signing::{KeysDocument, Limits, verify_bytes};
use bytes::Bytes;
use reqwest::Method;
use reqwest::multipart::{Form, Part};
use serde_json::json;

use crate::call::{Answer, Caller, demo_order, number, sha256_hex};
use crate::target::{HANGS, Target};

pub(super) async fn table_and_archive_are_served_and_verified(target: &Target) {
    let mut body = demo_order(crate::target::ANSWERS_A, "mmlu_pro");
    body["subset_count"] = json!(20);
    let run = target.order(Caller::Admin, body).await;
    let found = target.wait_for_end(&run, "succeeded").await;

    let table = target.download(Caller::Nobody, &format!("{run}/export")).await;
    let table = String::from_utf8(table.to_vec()).unwrap();
    assert!(table.starts_with("\u{feff}") || table.lines().next().unwrap().contains("item_id"), "{table}");
    let rows = table.lines().filter(|line| line.contains("mmlu_pro")).count();
    assert!(rows as u64 >= number(&found["progress"], "total"), "{rows} rows");

    let archive = target.download(Caller::Nobody, &format!("{run}/export?format=zip")).await;
    let again = target.download(Caller::Nobody, &format!("{run}/export?format=zip")).await;
    assert!(archive == again, "an archive that changes");
    let keys = target.get("/.well-known/bench-runner-keys.json").await.expect(200);
    let keys: KeysDocument = serde_json::from_value(keys).unwrap();
    let trusted = keys.trusted_keys();
    let verified = verify_bytes(&archive, &trusted, &Limits::default(), jiff::Timestamp::now());
    assert!(verified.valid, "{:?}", verified.errors);
    assert_eq!(verified.run_id.as_deref(), found["id"].as_str());
    assert_eq!(verified.overall_score, found["overall_score"].as_f64());
    let signer = target.get("/api/exports/public-key").await.expect(200);
    assert_eq!(verified.public_key_fingerprint.as_deref(), signer["public_key_fingerprint"].as_str());

    let verification = verify(target, archive.clone()).await.expect(200);
    assert_eq!(
        (&verification["valid"], &verification["run_id"]),
        (&json!(true), &found["id"]),
        "{verification:#}"
    );
    let mut changed = archive.to_vec();
    let middle = changed.len() / 2;
    changed[middle] ^= 1;
    assert!(!verify_bytes(&changed, &trusted, &Limits::default(), jiff::Timestamp::now()).valid);
    let verification = verify(target, changed.into()).await.expect(200);
    assert_eq!(verification["valid"], false, "{verification:#}");
    verify(target, Bytes::new()).await.expect(200);
}

async fn verify(target: &Target, archive: Bytes) -> Answer {
    let part = Part::stream(archive).file_name("results.zip");
    let request = target.request(Method::POST, "/api/exports/verify", Caller::Nobody);
    target.send(request.multipart(Form::new().part("file", part))).await
}

pub(super) async fn what_is_not_over_is_not_exported(target: &Target) {
    let mut body = demo_order(HANGS, "mmlu_pro");
    body["subset_count"] = json!(1);
    let run = target.order(Caller::Key("sk-e2e-open-1d77"), body).await;
    for format in ["csv", "zip"] {
        target.get(&format!("{run}/export?format={format}")).await.detail(400);
    }
    target.get(&format!("{run}/export?format=docx")).await.detail(422);
    target.get("/api/runs/00000000-0000-4000-8000-000000000000/export").await.detail(404);
    target.post(&format!("{run}/cancel"), Caller::Admin, &json!({})).await.expect(200);
}

/// An archive too large for a request is uploaded to the store, to an address that accepts nothing else.
pub(super) async fn uploaded_archive_is_verified(target: &Target) {
    let (mine, other) = (Caller::Key("sk-e2e-upload-6f02"), Caller::Key("sk-e2e-upload-other"));
    let mut body = demo_order(crate::target::ANSWERS_A, "aime_2025");
    body["subset_count"] = json!(3);
    let run = target.order(Caller::Admin, body).await;
    target.wait_for_end(&run, "succeeded").await;
    let archive = target.download(Caller::Nobody, &format!("{run}/export?format=zip")).await;
    let sha256 = sha256_hex(&archive);
    let order = json!({ "purpose": "verify", "bytes": archive.len(), "sha256": sha256 });
    target.post("/api/uploads", Caller::Nobody, &order).await.detail(401);
    let place = target.post("/api/uploads", mine, &order).await.expect(201);
    let upload = json!({ "upload_id": place["upload_id"] });
    target.post("/api/exports/verify", mine, &upload).await.detail(404);

    target.put_upload(&place["url"], &place["headers"], archive).await;
    target.post("/api/exports/verify", other, &upload).await.detail(404);
    let verification = target.post("/api/exports/verify", mine, &upload).await.expect(200);
    assert_eq!(verification["valid"], true, "{verification:#}");
    assert!(run.ends_with(verification["run_id"].as_str().unwrap()));
    // The upload is deleted after its use.
    target.post("/api/exports/verify", mine, &upload).await.detail(404);

    let order = json!({ "purpose": "verify", "bytes": 1_u64 << 30, "sha256": sha256 });
    target.post("/api/uploads", mine, &order).await.detail(413);
}
