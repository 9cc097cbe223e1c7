//! Compares the OpenAPI document with the router.

use std::collections::BTreeSet;

use crate::schema::{assert_fits, assert_fits_schema};
use crate::server::Server;
use serde_json::Value;

/// Routes of the exports function, which is served at the same address.
const ELSEWHERE: [&str; 5] = [
    "/api/runs/{run_id}/export",
    "/api/exports/public-key",
    "/.well-known/bench-runner-keys.json",
    "/api/exports/verify",
    "/api/uploads",
];
const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];

/// Returns the paths of the router, parsed from its debug output: it offers no other way to list them.
fn paths(routes: &axum::Router) -> BTreeSet<String> {
    let shown = format!("{routes:?}");
    let entries = shown.split("RouteId(").skip(1);
    let paths = entries.filter_map(|entry| entry.split_once("): \"")?.1.split('"').next());
    // The fallback's path is internal to axum.
    paths.filter(|path| !path.contains("__private__axum")).map(str::to_owned).collect()
}

#[tokio::test]
async fn the_document_has_the_routes_of_the_router_and_no_other() {
    let server = Server::local().await;
    let document = server.get("/openapi.json").await.json();
    assert_eq!(document["openapi"], "3.1.0");
    let mut documented: BTreeSet<String> = document["paths"].as_object().unwrap().keys().cloned().collect();
    for path in ELSEWHERE {
        assert!(documented.remove(path), "functions/exports/openapi.json lacks {path} of `ELSEWHERE`");
    }
    let routes = paths(&bench_api::routes(server.api.clone()));
    let undescribed: Vec<_> = routes.difference(&documented).collect();
    assert!(
        undescribed.is_empty(),
        "list the handlers of {undescribed:?} in `Document` of their folder, such as functions/api/src/runs.rs"
    );
    let unrouted: Vec<_> = documented.difference(&routes).collect();
    assert!(
        unrouted.is_empty(),
        "add {unrouted:?} to `routes` of their folder, or to `ELSEWHERE` if the exports function serves them"
    );
    for path in documented {
        let real = path
            .replace("{run_id}", "3f2b8c1e-7d4a-4f60-9b1e-0a5c6d7e8f90")
            .replace("{schedule_id}", "3f2b8c1e-7d4a-4f60-9b1e-0a5c6d7e8f90")
            .replace("{other_id}", "3f2b8c1e-7d4a-4f60-9b1e-0a5c6d7e8f90")
            .replace("{benchmark_name}", "mmlu_pro")
            .replace("{entry}", "nobody")
            .replace("{task_id}", "1")
            .replace("{agent_id}", "0");
        for method in METHODS {
            let reply = server.ask(&method.to_uppercase(), &real, &[], "").await;
            assert!(!reply.text.contains("\"Not Found\""), "{path} is not there");
            let is_documented = document["paths"][&path].get(method).is_some();
            let response = &document["paths"][&path][method]["responses"][reply.status.to_string()];
            let schema = &response["content"]["application/json"]["schema"];
            if schema.is_object() {
                let name = format!("{} of {method} {path}", reply.status);
                assert_fits_schema(&document, schema, &reply.json(), &name);
            }
            let is_routed = reply.status != 405;
            assert_eq!(
                is_routed, is_documented,
                "{method} {path}: `routes` (left) and the handler's `utoipa::path` (right) differ"
            );
        }
    }
}

#[tokio::test]
async fn every_reference_of_the_document_leads_somewhere() {
    let document = Server::local().await.get("/openapi.json").await.json();
    let mut open = vec![&document];
    let mut references = 0;
    while let Some(value) = open.pop() {
        match value {
            Value::Object(fields) => {
                if let Some(Value::String(reference)) = fields.get("$ref") {
                    assert!(document.pointer(&reference[1..]).is_some(), "{reference}");
                    references += 1;
                }
                open.extend(fields.values());
            }
            Value::Array(values) => open.extend(values),
            _ => {}
        }
    }
    assert!(references > 30);
    for (path, operations) in document["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            assert!(operation["summary"].is_string(), "{method} {path}: its handler has no doc comment");
            assert!(
                operation["responses"].as_object().is_some_and(|responses| !responses.is_empty()),
                "{method} {path}: `utoipa::path` of its handler has no responses"
            );
        }
    }
}

#[tokio::test]
async fn the_path_that_the_root_names_leads_to_the_document() {
    let server = Server::local().await;
    let docs = server.get("/").await.json()["docs"].as_str().unwrap().to_owned();
    assert_eq!(server.get(&docs).await.json(), server.get("/openapi.json").await.json());
}

/// Compares the views with the document: every sent field is described, and every value has the described type.
#[tokio::test]
async fn every_field_of_a_run_is_described() {
    let server = Server::local().await;
    let run = server.finished_run(&[bench_domain::Outcome::Correct]).await;
    let document = server.get("/openapi.json").await.json();
    let described = |schema: &str, value: &Value| {
        let properties = document["components"]["schemas"][schema]["properties"].as_object().unwrap();
        for field in value.as_object().unwrap().keys() {
            assert!(properties.contains_key(field), "{schema}.{field}");
        }
        assert_eq!(
            properties.len(),
            value.as_object().unwrap().len(),
            "{schema}: every field is always present"
        );
        assert_fits(&document, schema, value);
    };
    let view = server.get(&format!("/api/runs/{run}")).await.json();
    described("RunView", &view);
    described("RunBenchmarkView", &view["benchmarks"][0]);
    let details = server.get(&format!("/api/runs/{run}/benchmarks/mmlu_pro")).await.json();
    described("DetailsView", &details);
    let metrics = &view["benchmarks"][0]["metrics"];
    assert!(metrics["groups"].is_object() && metrics["coverage"].is_number(), "{metrics}");
    described("ItemsPage", &details["items"]);
    let mut item = details["items"]["items"][0].clone();
    for own in ["cut", "body_url"] {
        assert!(document["components"]["schemas"]["PageItem"].to_string().contains(own), "{own}");
        assert!(item.as_object_mut().unwrap().remove(own).is_some(), "{own}");
    }
    described("ItemView", &item);
    described("SummaryView", &details["summary"]);
    let events = server.get(&format!("/api/runs/{run}/events?cursor=")).await.json();
    described("EventsView", &events);
    described("EventView", &events["events"][0]);
    described("ModelView", &server.get("/api/models").await.json()["models"][0]);
    let benchmark = server.get("/api/benchmarks").await.json()["benchmarks"][0].clone();
    described("BenchmarkView", &benchmark);
    described("ProtocolView", &benchmark["protocols"][0]);
    described("PromptView", &benchmark["protocols"][0]["prompt"]);
    described("DatasetFacts", &benchmark["dataset"]);
}

#[tokio::test]
async fn errors_with_a_sentence_and_with_a_list_of_problems_are_described() {
    let server = Server::local().await;
    let document = server.get("/openapi.json").await.json();
    let sentence = server.get("/api/runs/3f2b8c1e-7d4a-4f60-9b1e-0a5c6d7e8f90").await.json();
    assert!(sentence["detail"].is_string());
    assert_fits(&document, "ErrorBody", &sentence);
    let wrong =
        serde_json::json!({ "model_id": 7, "selected_benchmarks": [true], "subset_pct": 0, "items": "x" });
    let problems = server.order("/api/runs", &[], &wrong).await.json();
    let list = problems["detail"].as_array().unwrap();
    assert!(list.iter().any(|problem| problem["loc"][2] == 0), "{list:?}");
    assert!(list.iter().any(|problem| problem.get("ctx").is_none()), "{list:?}");
    assert_fits(&document, "ErrorBody", &problems);
}

#[tokio::test]
async fn an_order_may_name_every_provider() {
    let document = Server::local().await.get("/openapi.json").await.json();
    let order = &document["components"]["schemas"]["Order"];
    let provider = &order["properties"]["provider"];
    assert_eq!(provider["type"], serde_json::json!(["string", "null"]));
    for name in bench_inference::PROVIDERS.iter().map(|provider| provider.name).chain(["oracle"]) {
        assert!(provider["description"].as_str().unwrap().contains(&format!("`{name}`")), "{provider}");
    }
    assert!(!order["required"].as_array().unwrap().contains(&"provider".into()), "{order}");
}
