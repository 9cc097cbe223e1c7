//! Benchmarks, models and the API document.

use std::collections::BTreeSet;

use crate::call::{Caller, list};
use crate::target::Target;

pub(super) async fn health(target: &Target) {
    assert_eq!(target.get("/api/health").await.expect(200)["status"], "healthy");
    assert_eq!(target.get("/api/status").await.expect(200)["maintenance_mode"], false);
    assert_eq!(target.get("/api/auth/status").await.expect(200)["authenticated"], false);
    assert!(target.get("/").await.expect(200)["name"].is_string());
    target.get("/api/nothing-here").await.detail(404);
    target.post("/api/health", Caller::Nobody, &serde_json::json!({})).await.detail(405);
}

pub(super) async fn benchmarks_and_models(target: &Target) {
    let benchmarks = target.get("/api/benchmarks").await.expect(200);
    let listed = benchmarks.as_array().or_else(|| benchmarks["benchmarks"].as_array()).unwrap();
    let listed: BTreeSet<&str> = listed.iter().map(|benchmark| benchmark["name"].as_str().unwrap()).collect();
    let known = bench_benchmarks::all().iter().map(|benchmark| benchmark.name()).collect::<BTreeSet<_>>();
    assert_eq!(listed, known);
    let models = target.get("/api/models?search=oracle").await.expect(200);
    assert!(list(&models, "models").iter().any(|model| model["slug"] == "oracle"), "{models:#}");
    let none = target.get("/api/models?search=no-model-is-called-this").await.expect(200);
    assert_eq!(list(&none, "models").len(), 0);
}

/// The document is served, and every address in it leads to one of the functions.
pub(super) async fn document(target: &Target) {
    let document = target.get("/openapi.json").await.expect(200);
    assert!(document["openapi"].as_str().unwrap().starts_with("3."));
    assert_eq!(target.get("/docs").await.status, 200);
    let paths = document["paths"].as_object().unwrap();
    assert!(paths.len() > 15, "{} paths", paths.len());
    for (path, methods) in paths {
        if methods.get("get").is_none() {
            continue;
        }
        // With an unknown id, the function must report a missing object, not an unknown path.
        let mut address = path.clone();
        while let (Some(from), Some(to)) = (address.find('{'), address.find('}')) {
            address.replace_range(from..=to, "00000000-0000-4000-8000-000000000000");
        }
        let answer = target.get(&address).await;
        if answer.status == 503 {
            // Not every stack has a sandbox host; the function says so itself.
            assert!(address.contains("/sandy/") && !answer.detail(503).is_empty(), "GET {address}: 503");
        }
        assert!(answer.status != 405 && answer.status < 504, "GET {address}: {}", answer.status);
        if answer.status == 404 {
            assert_ne!(answer.detail(404), "Not Found", "GET {address} leads nowhere");
        }
    }
}
