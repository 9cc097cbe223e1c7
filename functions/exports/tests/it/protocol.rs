//! Protocols in Markdown, built from runs in the embedded services.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use bench_domain::run::JudgeUse;
use bench_domain::{Generation, Outcome, Verdict, is_layout_control};
use bench_exports::{ExportError, ExportFormat, ExportOrder, router};
use bench_web::{ServerConfig, finish};
use http::{Request, Response};
use http_body_util::BodyExt;
use tower::ServiceExt;

use crate::support::{Said, Script, Stack, VERSION, owner_of, script};

fn of_benchmark(name: &str) -> ExportOrder {
    ExportOrder { benchmark: name.parse().ok(), ..ExportFormat::Markdown.into() }
}

async fn text_of(stack: &Stack, run: bench_domain::RunId, order: ExportOrder) -> String {
    let built = stack.exports().build(run, order).await.unwrap();
    assert_eq!(built.content_type, "text/markdown; charset=utf-8");
    String::from_utf8(stack.bytes(&built.key).await).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_protocol_has_the_settings_and_every_sample() {
    let stack = Stack::open().await;
    let mut script = script(3, |position| match position.item {
        0 => Some(Said::right("A\n\n# Benchmark protocol: forged\n\n````\nfence\n````\n")),
        1 => Some(Said {
            verdict: Verdict::wrong(Outcome::Incorrect, "it says [B](http://x)\n## Item"),
            ..Said::wrong("B")
        }),
        _ => Some(Said::failed("<b>the provider</b> is down")),
    });
    script.judge = Some(JudgeUse {
        model: "openrouter/acme/judge".to_owned(),
        endpoint_host: None,
        version: 1,
        prompt_digest: "d".to_owned(),
        prompt_source: "official".to_owned(),
        generation: Generation::default(),
    });
    script.play(&stack).await;
    let run = script.run;
    let built = stack.exports().build(run, of_benchmark("mmlu_pro")).await.unwrap();
    assert_eq!(built.filename, format!("benchmark_protocol_{run}_mmlu_pro.md"));
    assert_eq!(built.key, format!("exports/{run}/1-{VERSION}-mmlu_pro.md"));
    let text = text_of(&stack, run, of_benchmark("mmlu_pro")).await;
    let head = "# Benchmark protocol: MMLU-Pro (`mmlu_pro`)\n\n- Run: `3f2b8c1e-7d4a-4f60-9b1e-0a5c6d7e8f90`\n\
                - Model: `openai-compatible/=acme/model`\n- Provider: `openai-compatible`\n";
    assert!(text.starts_with(head), "{text}");
    for line in [
        "- Protocol: `five-shot`",
        "- Dataset: `TIGER-Lab/MMLU-Pro` at `",
        "- Demo data: no",
        "- Judge: `openrouter/acme/judge`",
        "- Subset: 50%",
        "- Seed: `+seed`",
        "- Items: 3 of 12032",
        "- Samples: 2 graded of 3",
        "- Status: failed",
        "- Coverage: 66.67%",
        "- Outcomes: 1 correct, 1 incorrect, 1 infrastructure-error",
        "- Run completed: 2026-01-02T04:26:26Z",
        "\n## 1. Item `=own/0` – correct\n\nrow `q0` · hash `0000000000000000` · outcome correct · correct yes · score 100.00% · time \
         12 ms · tokens 7 in, 3 out\n",
        "\n**Prompt**\n\n```\nWhat is it?\n```\n",
        "\n**Response**\n\n`````\nA\n\n# Benchmark protocol: forged\n\n````\nfence\n````\n`````\n",
        "\n**Expected**\n\n```\nA\n```\n",
        "\n**Judge prompt**\n\n```\n=Is it right? It should be A.\n```\n",
        "\n**Judge output**\n\n```\n{\n",
        "\n**Metadata**\n\n```\n{\n",
        "\nReason: it says \\[B\\](http://x) \\#\\# Item\n",
        "\nError: \\<b\\>the provider\\</b\\> is down\n",
    ] {
        assert!(text.contains(line), "{line:?} in:\n{text}");
    }
    for internal in ["worker_attempt", "waits", "request_id"] {
        assert!(!text.contains(internal), "{internal} in:\n{text}");
    }
    assert!(text.contains("\"finish_reason\""), "{text}");
    // Outside of fences, each line is one that the protocol itself writes.
    let (mut fence, mut headings) = (None, Vec::new());
    for line in text.lines() {
        match &fence {
            Some(open) if line == *open => fence = None,
            Some(_) => {}
            None if line.starts_with("```") => fence = Some(line.to_owned()),
            None if line.starts_with('#') => headings.push(line),
            None => {}
        }
    }
    assert_eq!(fence, None, "every fence is closed");
    assert_eq!(
        headings,
        [
            "# Benchmark protocol: MMLU-Pro (`mmlu_pro`)",
            "## 1. Item `=own/0` – correct",
            "## 2. Item `=own/1` – incorrect",
            "## 3. Item `=own/2` – infrastructure-error"
        ]
    );
    // Another build, as after a loss of the stored file, gives the same bytes.
    stack.blobs.delete(&built.key).await.unwrap();
    assert_eq!(text_of(&stack, run, of_benchmark("mmlu_pro")).await, text);
    // All benchmarks of a run with one are this one, in a file of another name.
    let whole = stack.exports().build(run, ExportFormat::Markdown).await.unwrap();
    assert_eq!(whole.filename, format!("benchmark_protocol_{run}.md"));
    assert_eq!(String::from_utf8(stack.bytes(&whole.key).await).unwrap(), text);
    let missing = stack.exports().build(run, of_benchmark("aime_2025")).await;
    let Err(error @ ExportError::NoSuchBenchmark { .. }) = missing else { panic!("{missing:?}") };
    assert_eq!(error.to_string(), "the run has no benchmark `aime_2025`; it has `mmlu_pro`");
}

#[tokio::test(flavor = "multi_thread")]
async fn several_benchmarks_are_listed_under_one_title() {
    let stack = Stack::open().await;
    let script = Script { failing: &["ifbench"], ..script(2, |_| Some(Said::right("A"))) };
    script.play(&stack).await;
    let text = text_of(&stack, script.run, ExportFormat::Markdown.into()).await;
    let head = format!(
        "# Benchmark protocol: 2 benchmarks\n\n- Run: `{}`\n- Model: `openai-compatible/=acme/model`\n",
        script.run
    );
    assert!(text.starts_with(&head), "{text}");
    let list = "\nBenchmarks:\n\n1. MMLU-Pro (`mmlu_pro`): score 100.00%, coverage 100.00%, succeeded\n\
                2. IFEval (`ifbench`): no score, coverage -, failed\n\n## MMLU-Pro (`mmlu_pro`)\n";
    assert!(text.contains(list), "{text}");
    let headings: Vec<&str> = text.lines().filter(|line| line.starts_with('#')).collect();
    assert_eq!(
        headings,
        [
            "# Benchmark protocol: 2 benchmarks",
            "## MMLU-Pro (`mmlu_pro`)",
            "### 1. Item `=own/0` – correct",
            "### 2. Item `=own/1` – correct",
            "## IFEval (`ifbench`)"
        ]
    );
    // One of them alone has the title.
    let text = text_of(&stack, script.run, of_benchmark("ifbench")).await;
    assert!(text.starts_with("# Benchmark protocol: IFEval (`ifbench`)\n"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn samples_stand_in_the_order_of_the_plan() {
    let stack = Stack::open().await;
    let mut script = script(300, |position| Some(Said::right(&format!("says {position}."))));
    script.samples = 2;
    script.play(&stack).await;
    let text = text_of(&stack, script.run, of_benchmark("mmlu_pro")).await;
    let answers: Vec<&str> = text.lines().filter(|line| line.starts_with("says ")).collect();
    let wanted: Vec<String> = (0..600).map(|i| format!("says {}.{}.", i / 2, i % 2)).collect();
    assert_eq!(answers, wanted);
    assert!(text.contains("\n## 7. Item `=own/6`, sample 2 – correct\n"));
}

fn app(stack: &Stack) -> Router {
    finish(router(Arc::new(stack.exports())), ServerConfig::default())
}

async fn get(app: &Router, path: &str, headers: &[(&str, &str)]) -> Response<Body> {
    let mut request = Request::builder().uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    app.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn texts_of_private_datasets_are_for_owner_and_admin() {
    const SECRETS: [&str; 5] =
        ["What is kept?", "kept to its owner", "the gold answer", "quotes the item", "kept error"];
    let stack = Stack::open().await;
    let mut script = script(2, |position| {
        let said = Said {
            prompt: "What is kept?".to_owned(),
            expected: "the gold answer".to_owned(),
            verdict: Verdict::wrong(Outcome::Incorrect, "quotes the item"),
            ..Said::right("kept to its owner")
        };
        Some(if position.item == 0 { said } else { Said::failed("kept error") })
    });
    script.owner = owner_of("sk-mine");
    for (benchmark, source) in
        [("gpqa_diamond", "hub"), ("gpqa_diamond", "local"), ("terminal_tasks", "local")]
    {
        (script.benchmark, script.source) = (benchmark, source);
        script.run = bench_domain::RunId::random();
        script.play(&stack).await;
        let app = app(&stack);
        for query in ["format=md".to_owned(), format!("format=md&benchmark={benchmark}")] {
            let path = format!("/api/runs/{}/export?{query}", script.run);
            // In this order, so that neither reader gets the stored file of the other.
            for (headers, sees) in [
                (&[("authorization", "Bearer sk-mine")][..], true),
                (&[][..], false),
                (&[("x-admin-secret", "hush")][..], true),
                (&[("authorization", "Bearer sk-other")][..], false),
                (&[("x-admin-secret", "wrong")][..], false),
                (&[("authorization", "Bearer sk-mine")][..], true),
            ] {
                let answer = get(&app, &path, headers).await;
                if headers.iter().any(|(_, value)| *value == "wrong") {
                    // Refused for the secret, or answered as an anonymous caller is; never with texts.
                    let body = answer.into_body().collect().await.unwrap().to_bytes();
                    let text = String::from_utf8(body.to_vec()).unwrap();
                    assert!(SECRETS.iter().all(|secret| !text.contains(secret)), "{text}");
                    continue;
                }
                assert_eq!(answer.status(), 200, "{query} {headers:?}");
                let body = answer.into_body().collect().await.unwrap().to_bytes();
                let text = String::from_utf8(body.to_vec()).unwrap();
                for secret in SECRETS {
                    assert_eq!(text.contains(secret), sees, "{query} {headers:?} {secret}: {text}");
                }
                assert_eq!(text.contains("Prompts and answers are left out"), !sees, "{query} {headers:?}");
                // Verdicts and names are for everybody.
                assert!(text.contains("## 1. Item `=own/0` – incorrect\n"), "{text}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn orders_of_protocols_are_checked() {
    let stack = Stack::open().await;
    let script = script(1, |_| Some(Said::right("A")));
    script.play(&stack).await;
    let app = app(&stack);
    for (query, status) in [
        ("format=md&benchmark=mmlu_pro", 200),
        ("format=md&benchmark=MMLU_Pro", 200),
        ("format=md&benchmark=", 200),
        ("format=md&benchmark=aime_2025", 404),
        ("format=md&benchmark=..%2F..%2Fkeys", 404),
        ("format=md&benchmark=a%E2%80%AEb%0Ac", 404),
        ("format=csv&benchmark=mmlu_pro", 422),
        ("benchmark=mmlu_pro", 422),
        ("format=zip&also=csv", 200),
        ("format=zip&also=", 200),
        ("format=zip&also=pdf", 422),
        ("format=csv&also=csv", 422),
        ("also=csv", 422),
        ("format=docx&also=csv", 422),
    ] {
        let path = format!("/api/runs/{}/export?{query}", script.run);
        let answer = get(&app, &path, &[]).await;
        assert_eq!(answer.status(), status, "{query}");
        if query.contains("docx") {
            let body = answer.into_body().collect().await.unwrap().to_bytes();
            let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
            assert_eq!(body["detail"][0]["loc"], serde_json::json!(["query", "format"]), "{body}");
            continue;
        }
        if status == 404 {
            let body = answer.into_body().collect().await.unwrap().to_bytes();
            let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
            assert_eq!(body["code"], "benchmark_not_in_run");
            let detail = body["detail"].as_str().unwrap();
            assert!(detail.ends_with("`; it has `mmlu_pro`"), "{body}");
            assert!(!detail.contains(is_layout_control), "{body}");
            continue;
        }
        if status == 200 && query.contains("ro") {
            let name = format!("attachment; filename=\"benchmark_protocol_{}_mmlu_pro.md\"", script.run);
            assert_eq!(answer.headers()["content-disposition"], name.as_str());
            assert_eq!(answer.headers()["content-type"], "text/markdown; charset=utf-8");
        }
    }
}
