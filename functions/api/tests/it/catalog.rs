//! Root, health, models, benchmarks, sign-in: the routes that the compatible system's HTTP test suite calls.

use crate::server::Server;
use serde_json::json;

#[tokio::test]
async fn the_root_names_the_server() {
    let server = Server::local().await;
    let root = server.get("/").await;
    assert_eq!(root.status, 200);
    assert_eq!(root.json(), json!({ "name": "Chutes Bench Runner", "version": "0.1.0", "docs": "/docs" }));
    // The page is served by servers that have it, not by this function.
    let accept = [("accept", "text/html,application/xhtml+xml,*/*;q=0.8")];
    let same = server.ask("GET", "/", &accept, "").await;
    assert_eq!((same.json(), same.headers["vary"].to_str().unwrap()), (root.json(), "Accept"));
}

#[tokio::test]
async fn health_and_status() {
    let server = Server::new(true, &[("MAINTENANCE_MESSAGE", "Back soon.")]).await;
    assert_eq!(server.get("/api/health").await.json(), json!({ "status": "healthy" }));
    let status = server.get("/api/status").await.json();
    assert_eq!(status, json!({ "maintenance_mode": false, "message": "Back soon." }));
}

#[tokio::test]
async fn models_are_never_empty() {
    let server =
        Server::new(true, &[("DEFAULT_MODEL", "lmstudio/Qwen3-4B"), ("BENCH_MODELS", "chutes/a/b")]).await;
    let page = server.get("/api/models?limit=10").await.json();
    let slugs: Vec<&str> =
        page["models"].as_array().unwrap().iter().map(|m| m["slug"].as_str().unwrap()).collect();
    assert_eq!(slugs, ["Qwen3-4B", "a/b", "oracle"]);
    assert_eq!(page["total"], 3);
    for field in [
        "id",
        "slug",
        "name",
        "provider",
        "tagline",
        "user",
        "logo",
        "chute_id",
        "instance_count",
        "is_active",
    ] {
        assert!(page["models"][0].get(field).is_some(), "{field}");
    }
    let of = |query: &'static str| {
        let server = &server;
        async move {
            let page = server.get(&format!("/api/models?{query}")).await.json();
            (page["models"].as_array().unwrap().len(), page["total"].as_u64().unwrap())
        }
    };
    assert_eq!(of("search=qWEN").await, (1, 1));
    assert_eq!(of("search=%25").await, (0, 0));
    assert_eq!(of("provider=oracle").await, (1, 1));
    assert_eq!(of("provider=nobody").await, (0, 0));
    assert_eq!(of("limit=1&offset=1").await, (1, 3));
    assert_eq!(of("limit=0").await, (0, 3));
    assert_eq!(of("offset=99").await, (0, 3));
    assert_eq!(server.get("/api/models?limit=-1").await.problems(), ["greater_than_equal"]);
    assert_eq!(server.get("/api/models?limit=501").await.problems(), ["less_than_equal"]);
    assert_eq!(server.get("/api/models?offset=x").await.problems(), ["int_parsing"]);
}

#[tokio::test]
async fn a_public_server_lists_only_models_that_can_be_ordered() {
    let models = ("BENCH_MODELS", "lmstudio/x,openai-compatible/y,chutes/a/b");
    let listed = async |local: bool, vars: &[(&str, &str)]| {
        let page = Server::new(local, &[&[models], vars].concat()).await.get("/api/models").await.json();
        let names = page["models"].as_array().unwrap().iter().map(|model| model["model"].clone());
        names.map(|name| name.as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(listed(false, &[]).await, ["chutes/a/b", "oracle"]);
    assert_eq!(listed(true, &[]).await, ["chutes/a/b", "oracle", "lmstudio/x"]);
    // A configured address is one that the operator means.
    let address = ("LMSTUDIO_BASE_URL", "http://10.0.0.7:1234/v1");
    assert_eq!(listed(false, &[address]).await, ["chutes/a/b", "oracle", "lmstudio/x"]);
}

#[tokio::test]
async fn the_answer_timeout_of_this_deployment_is_shown() {
    for (operator, aime, mmlu_pro) in [("", 3_600, 1_200), ("840", 840, 840), ("1500", 1_500, 1_200)] {
        let server = Server::new(true, &[("WORKER_ITEM_TIMEOUT_SECONDS", operator)]).await;
        for (name, seconds) in [("aime_2025", aime), ("mmlu_pro", mmlu_pro)] {
            let told = server.get(&format!("/api/benchmarks/{name}")).await.json();
            assert_eq!(told["item_timeout_seconds"], seconds, "{name} with `{operator}`");
            assert_eq!(told["protocols"][0]["item_timeout_seconds"], seconds, "{name} with `{operator}`");
        }
    }
}

#[tokio::test]
async fn benchmarks_say_what_they_are() {
    let server = Server::local().await;
    let all = server.get("/api/benchmarks").await.json()["benchmarks"].clone();
    let all = all.as_array().unwrap();
    assert_eq!(all.len(), bench_benchmarks::all().len());
    let names: Vec<&str> = all.iter().map(|benchmark| benchmark["name"].as_str().unwrap()).collect();
    assert!(names.is_sorted() && names.contains(&"mmlu_pro"));
    for benchmark in all {
        for field in [
            "name",
            "display_name",
            "description",
            "category",
            "is_enabled",
            "supports_subset",
            "requires_setup",
            "setup_notes",
            "default_selected",
            "total_items",
            "avg_item_latency_ms",
            "protocol",
            "deviations",
        ] {
            assert!(benchmark.get(field).is_some(), "{field}");
        }
        let is_bundled = ["code_lab", "expert_questions"].contains(&benchmark["name"].as_str().unwrap());
        assert_eq!(benchmark["dataset"]["id"].as_str().unwrap().is_empty(), is_bundled);
        assert_eq!(benchmark["dataset"]["revision"], json!(null));
        let protocols = benchmark["protocols"].as_array().unwrap();
        let defaults: Vec<bool> = protocols.iter().map(|one| one["is_default"].as_bool().unwrap()).collect();
        assert_eq!(defaults.iter().filter(|is_default| **is_default).count(), 1);
        assert!(defaults[0]);
        // Fields outside of the list describe the default protocol.
        assert_eq!(benchmark["protocol"], protocols[0]["protocol"]);
        assert_eq!(benchmark["prompt_digest"], protocols[0]["prompt"]["digest"]);
        assert_eq!(benchmark["judged"], json!(!protocols[0]["judge"].is_null()));
        let name = benchmark["name"].as_str().unwrap();
        assert_eq!(server.get(&format!("/api/benchmarks/{name}")).await.json(), *benchmark);
    }
    let short = server.get("/api/benchmarks?texts=false").await;
    assert!(
        short.text.len() * 10 < server.get("/api/benchmarks").await.text.len() * 7,
        "{}",
        short.text.len()
    );
    for (benchmark, whole) in short.json()["benchmarks"].as_array().unwrap().iter().zip(all) {
        assert_eq!(benchmark["deviations"], json!([]));
        for (field, value) in whole.as_object().unwrap() {
            let is_short = ["deviations", "sources", "protocols"].contains(&field.as_str());
            assert!(is_short || benchmark[field] == *value, "{field}");
        }
    }
    assert_eq!(server.get("/api/benchmarks?texts=x").await.problems().len(), 1);
    for unknown in ["nope", "MMLU_PRO", "%2e%2e", "mmlu_pro%00"] {
        let reply = server.get(&format!("/api/benchmarks/{unknown}")).await;
        assert_eq!(reply.status, 404, "{unknown}");
        assert_eq!(
            reply.json(),
            json!({
                "detail": "benchmark not found; `GET /api/benchmarks` lists them", "code": "benchmark_not_found",
            })
        );
    }
}

#[tokio::test]
async fn programming_tasks_are_listed_with_their_proofs_and_without_tests_or_solutions() {
    let server = Server::local().await;
    let benchmark = server.get("/api/benchmarks/code_lab").await.json();
    let list = server.get("/api/benchmarks/code_lab/tasks").await;
    let tasks = list.json()["tasks"].clone();
    let tasks = tasks.as_array().unwrap();
    assert_eq!(benchmark["code_tasks"], tasks.len());
    assert!(list.text.len() < 100_000, "{} bytes", list.text.len());
    for task in tasks {
        let id = task["task_id"].as_str().unwrap();
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tasks").join(id);
        let read = |path: &std::path::Path| std::fs::read_to_string(path).unwrap();
        let recorded: serde_json::Value = serde_json::from_str(&read(&folder.join("proof.json"))).unwrap();
        assert_eq!(task["digest"], recorded["task_digest"], "{id}");
        assert_eq!(task["tests"], recorded["tests"].as_array().unwrap().len(), "{id}");
        let wrong = task["proof"]["wrong"].as_array().unwrap();
        assert_eq!(wrong.len(), recorded["wrong"].as_object().unwrap().len(), "{id}");
        assert!(wrong.iter().all(|wrong| wrong["why"] != "" && wrong["fails"] != json!([])), "{id}");

        let reply = server.get(&format!("/api/benchmarks/code_lab/tasks/{id}")).await;
        let details = reply.json();
        assert_eq!(details["digest"], task["digest"], "{id}");
        assert_eq!(
            details["instructions"].as_str().unwrap(),
            read(&folder.join("instructions.md")).trim(),
            "{id}"
        );
        let project = details["project"].as_array().unwrap();
        assert_eq!(task["files"], project.len(), "{id}");
        for file in project {
            let content = read(&folder.join("workspace").join(file["path"].as_str().unwrap()));
            assert_eq!(file["text"], content, "{id}");
        }
        for secret in ["solutions", "tests"].map(|name| folder.join(name)) {
            for entry in std::fs::read_dir(secret).unwrap().map(|entry| entry.unwrap().path()) {
                let Ok(text) = std::fs::read_to_string(&entry) else { continue };
                let quoted = json!(text).to_string();
                assert!(!reply.text.contains(quoted.trim_matches('"')), "{id}: {}", entry.display());
            }
        }
    }
    let options = benchmark["protocols"][0]["options"].as_array().unwrap();
    let values = |name: &str| &options.iter().find(|option| option["name"] == name).unwrap()["values"];
    assert_eq!(*values("answer_form"), json!(["any", "diff", "blocks", "files"]));
    assert_eq!(*values("include_tests"), json!(["false", "true"]));
    assert_eq!(
        server.get("/api/benchmarks/mmlu_pro/tasks").await.json(),
        json!({ "benchmark": "mmlu_pro", "tasks": [] })
    );
    for (path, code) in [
        ("nope/tasks", "benchmark_not_found"),
        ("nope/tasks/go_text_merge", "benchmark_not_found"),
        ("code_lab/tasks/nope", "task_not_found"),
        ("code_lab/tasks/%2e%2e%2fgo_text_merge", "task_not_found"),
        ("mmlu_pro/tasks/go_text_merge", "task_not_found"),
    ] {
        let reply = server.get(&format!("/api/benchmarks/{path}")).await;
        assert_eq!(reply.status, 404, "{path}");
        assert_eq!(reply.json()["code"], code, "{path}");
    }
}

#[tokio::test]
async fn a_benchmark_is_shown_under_the_protocol_that_is_asked_for() {
    let server = Server::local().await;
    for benchmark in bench_benchmarks::all() {
        let path = format!("/api/benchmarks/{}", benchmark.name());
        let default = server.get(&path).await.json();
        for protocol in default["protocols"].as_array().unwrap() {
            let name = protocol["name"].as_str().unwrap();
            let shown = server.get(&format!("{path}?protocol={name}")).await.json();
            for field in ["protocol", "parser", "dataset", "metrics", "samples_per_item", "deviations"] {
                assert_eq!(shown[field], protocol[field], "{path} {name} {field}");
            }
            assert_eq!(shown["prompt_digest"], protocol["prompt"]["digest"]);
            assert_eq!((&shown["name"], &shown["protocols"]), (&default["name"], &default["protocols"]));
        }
    }
    let reply = server.get("/api/benchmarks/gpqa_diamond?protocol=official").await;
    assert_eq!(reply.status, 404);
    let detail = reply.json()["detail"].as_str().unwrap().to_owned();
    assert!(detail.contains("`official`") && detail.contains("simple-evals, authors"), "{detail}");
}

#[tokio::test]
async fn auth_status_reports_no_login() {
    let server = Server::local().await;
    let status = server.get("/api/auth/status").await.json();
    assert_eq!(
        status,
        json!({
            "idp_configured": false, "authenticated": false, "user": null, "has_invoke_scope": false, "pays": null,
            "may_order_oracle": true,
        })
    );
    assert_eq!(server.get("/api/auth/me").await.status, 401);
    assert_eq!(server.get("/api/auth/login").await.status, 501);
}

#[tokio::test]
async fn a_listed_origin_may_ask_from_a_browser() {
    let server = Server::new(true, &[("BENCH_ALLOWED_ORIGINS", "http://localhost:3000")]).await;
    let headers = [("origin", "http://localhost:3000"), ("access-control-request-method", "GET")];
    let reply = server.ask("OPTIONS", "/api/models", &headers, "").await;
    assert_eq!(reply.status, 200);
    assert_eq!(reply.headers["access-control-allow-origin"], "http://localhost:3000");
}

#[tokio::test]
async fn a_local_server_is_not_used_by_pages_from_elsewhere() {
    let server = Server::local().await;
    let foreign = [("host", "rebound.example:8000")];
    assert_eq!(server.ask("GET", "/api/runs", &foreign, "").await.status, 403);
    let cross = [("origin", "https://evil.example"), ("content-type", "application/json")];
    let reply = server.ask("POST", "/api/runs", &cross, r#"{"model_id":"oracle"}"#).await;
    assert_eq!(reply.status, 403);
    assert_eq!(server.get("/api/runs").await.json()["total"], 0);
}
