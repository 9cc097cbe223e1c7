//! Exact bodies of requests.

use super::*;
use crate::providers::OPENAI_COMPATIBLE;
use crate::settings::{COMMON, LMSTUDIO_FIELDS, OPENROUTER_FIELDS, SettingFields};
use crate::{ChatRequest, Dialect};
use bench_domain::{Image, Prompt, ToolCall};

fn text(request: &ChatRequest<'_>, fields: &'static SettingFields, dialect: Dialect) -> String {
    String::from_utf8(request_body(PreparedRequest { request, fields, dialect }).unwrap()).unwrap()
}

fn body_for(fields: &'static SettingFields, generation: &Generation, dialect: Dialect) -> String {
    let prompt = Prompt::user("Hi \"you\"");
    let request = ChatRequest {
        model: "a/b",
        prompt: &prompt,
        generation,
        reply_schema: None,
        tools: None,
        is_continued: false,
    };
    text(&request, fields, dialect)
}

fn body(generation: &Generation, dialect: Dialect) -> String {
    body_for(&COMMON, generation, dialect)
}

#[test]
fn only_what_is_set_is_sent() {
    assert_eq!(
        body(&Generation::default(), Dialect::default()),
        r#"{"model":"a/b","messages":[{"role":"user","content":"Hi \"you\""}],"stream":true,"stream_options":{"include_usage":true}}"#
    );
    let all = Generation {
        temperature: Some(0.0),
        top_p: Some(0.9),
        max_tokens: Some(10),
        stop: vec!["END".into()],
        seed: Some(-1),
        ..Generation::default()
    };
    assert!(
        body(&all, Dialect::default()).contains(
            r#""temperature":0.0,"top_p":0.9,"max_tokens":10,"stop":["END"],"seed":-1,"stream":true"#
        )
    );
    let dialect =
        Dialect { omits_stream_options: true, has_max_completion_tokens: true, omits_reply_schema: false };
    assert!(
        body(&all, dialect)
            .ends_with(r#""top_p":0.9,"max_completion_tokens":10,"stop":["END"],"seed":-1,"stream":true}"#)
    );
}

#[test]
fn a_schema_is_sent_to_servers_that_know_one() {
    let schema = serde_json::json!({"type": "object"});
    let (prompt, generation) = (Prompt::user("Hi"), Generation::default());
    let request = ChatRequest {
        model: "a/b",
        prompt: &prompt,
        generation: &generation,
        reply_schema: Some(&schema),
        tools: None,
        is_continued: false,
    };
    let body = |dialect| text(&request, &COMMON, dialect);
    assert!(body(Dialect::default()).contains(
        r#""response_format":{"type":"json_schema","json_schema":{"name":"reply","strict":true,"schema":{"type":"object"}}},"stream":true"#
    ));
    let dialect = Dialect { omits_reply_schema: true, ..Dialect::default() };
    assert!(!body(dialect).contains("response_format"));
}

#[test]
fn images_follow_the_text_of_their_message() {
    let image = |data_url: &str| Image { data_url: data_url.to_owned() };
    let mut question = ChatMessage::new(Role::User, "Which?");
    question.images = vec![image("data:image/png;base64,AA=="), image("data:image/gif;base64,BB==")];
    let mut wordless = ChatMessage::new(Role::User, "");
    wordless.images = vec![image("data:image/png;base64,CC==")];
    let prompt = Prompt { messages: vec![ChatMessage::new(Role::System, "Be brief."), question, wordless] };
    let generation = Generation::default();
    let request = ChatRequest {
        model: "a/b",
        prompt: &prompt,
        generation: &generation,
        reply_schema: None,
        tools: None,
        is_continued: false,
    };
    let body: Value = serde_json::from_str(&text(&request, &COMMON, Dialect::default())).unwrap();
    let url = |url: &str| serde_json::json!({"type": "image_url", "image_url": {"url": url}});
    assert_eq!(
        body["messages"],
        serde_json::json!([
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": [
                {"type": "text", "text": "Which?"},
                url("data:image/png;base64,AA=="), url("data:image/gif;base64,BB=="),
            ]},
            {"role": "user", "content": [url("data:image/png;base64,CC==")]},
        ])
    );
}

/// Every setting that the API takes, in its own fields.
#[test]
fn every_api_gets_its_own_fields() {
    let all = Generation {
        temperature: Some(1.0),
        top_p: Some(0.95),
        max_tokens: Some(8192),
        stop: vec!["END".into()],
        extra_body: Some(r#"{"min_p": 1.0, "x": {"y": [12345678901234567890123]}}"#.into()),
        ..Generation::default()
    };
    let effort = Generation { reasoning_effort: Some(ReasoningEffort::High), ..all.clone() };
    let thinking = Generation { thinking_budget: Some(4096), ..all.clone() };
    let with_all =
        |generation: &Generation| Generation { seed: Some(7), top_k: Some(20), ..generation.clone() };
    let at = |host| OPENAI_COMPATIBLE.setting_fields(Some(host));
    let start = r#"{"model":"a/b","messages":[{"role":"user","content":"Hi \"you\""}],"temperature":1.0,"top_p":0.95,"#;
    let end = r#""stream":true,"stream_options":{"include_usage":true},"min_p": 1.0, "x": {"y": [12345678901234567890123]}}"#;
    for (name, fields, generation, expected) in [
        (
            "common",
            &COMMON,
            with_all(&effort),
            r#""max_tokens":8192,"stop":["END"],"seed":7,"top_k":20,"reasoning_effort":"high","#,
        ),
        (
            "LM Studio",
            &LMSTUDIO_FIELDS,
            with_all(&all),
            r#""max_tokens":8192,"stop":["END"],"seed":7,"top_k":20,"#,
        ),
        (
            "OpenRouter, effort",
            &OPENROUTER_FIELDS,
            with_all(&effort),
            r#""max_tokens":8192,"stop":["END"],"seed":7,"top_k":20,"reasoning":{"effort":"high"},"#,
        ),
        (
            "OpenRouter, budget",
            &OPENROUTER_FIELDS,
            with_all(&thinking),
            r#""max_tokens":8192,"stop":["END"],"seed":7,"top_k":20,"reasoning":{"max_tokens":4096},"#,
        ),
        (
            "OpenAI",
            at("api.openai.com"),
            Generation { seed: Some(7), ..effort.clone() },
            r#""max_completion_tokens":8192,"stop":["END"],"seed":7,"reasoning_effort":"high","#,
        ),
        (
            "Anthropic",
            at("api.anthropic.com"),
            thinking.clone(),
            r#""max_tokens":8192,"stop":["END"],"thinking":{"type":"enabled","budget_tokens":4096},"#,
        ),
        (
            "Google, effort",
            at("generativelanguage.googleapis.com"),
            Generation { seed: Some(7), ..effort.clone() },
            r#""max_tokens":8192,"stop":["END"],"seed":7,"reasoning_effort":"high","#,
        ),
        (
            "Google, budget",
            at("generativelanguage.googleapis.com"),
            thinking,
            r#""max_tokens":8192,"stop":["END"],"extra_body":{"google":{"thinking_config":{"thinking_budget":4096}}},"#,
        ),
    ] {
        assert_eq!(fields.check(name, &generation), Ok(()));
        assert_eq!(fields.check_merged(name, "a/b", &generation), Ok(()));
        assert_eq!(
            body_for(fields, &generation, Dialect::default()),
            format!("{start}{expected}{end}"),
            "{name}"
        );
    }
}

#[test]
fn an_order_can_choose_the_field_of_the_token_limit() {
    let openai = OPENAI_COMPATIBLE.setting_fields(Some("api.openai.com"));
    let chosen = |field| Generation { max_tokens: Some(9), max_tokens_field: field, ..Generation::default() };
    for (fields, field, expected) in [
        (&COMMON, None, r#""max_tokens":9,"#),
        (&COMMON, Some(MaxTokensField::MaxCompletionTokens), r#""max_completion_tokens":9,"#),
        (openai, None, r#""max_completion_tokens":9,"#),
        (openai, Some(MaxTokensField::MaxTokens), r#""max_tokens":9,"#),
    ] {
        let body = body_for(fields, &chosen(field), Dialect::default());
        assert!(body.contains(&format!("}}],{expected}\"stream\"")), "{body}");
    }
}

#[test]
fn an_empty_extra_body_adds_nothing() {
    let plain = body(&Generation::default(), Dialect::default());
    for empty in ["{}", " { } "] {
        let generation = Generation { extra_body: Some(empty.to_owned()), ..Generation::default() };
        assert_eq!(body(&generation, Dialect::default()), plain);
    }
}

proptest::proptest! {
    /// A request without the newer settings has the bytes that older versions sent.
    #[test]
    fn absent_settings_send_nothing(
        temperature in proptest::option::of(0.0..2.0_f64),
        max_tokens in proptest::option::of(1..10_000_u32),
        seed in proptest::option::of(proptest::prelude::any::<i64>()),
    ) {
        let generation = Generation { temperature, max_tokens, seed, ..Generation::default() };
        let mut expected = r#"{"model":"a/b","messages":[{"role":"user","content":"Hi \"you\""}]"#.to_owned();
        let settings = [
            ("temperature", temperature.map(|number| serde_json::json!(number))),
            ("max_tokens", max_tokens.map(Value::from)),
            ("seed", seed.map(Value::from)),
        ];
        for (name, value) in settings {
            expected.extend(value.map(|value| format!(",\"{name}\":{value}")));
        }
        expected.push_str(r#","stream":true,"stream_options":{"include_usage":true}}"#);
        for fields in [&COMMON, &LMSTUDIO_FIELDS, &OPENROUTER_FIELDS] {
            proptest::prop_assert_eq!(body_for(fields, &generation, Dialect::default()), expected.clone());
        }
    }
}

#[test]
fn conversations_with_models_of_anthropic_are_cached() {
    let turn = |role, text: &str| ChatMessage::new(role, text);
    let prompt = Prompt {
        messages: vec![
            turn(Role::User, "1"),
            turn(Role::Assistant, "2"),
            turn(Role::User, "3"),
            turn(Role::Assistant, ""),
            turn(Role::User, "5"),
            turn(Role::Assistant, "6"),
            turn(Role::User, "7"),
        ],
    };
    let generation = Generation::default();
    let marked = |model, fields, is_continued| {
        let request = ChatRequest {
            model,
            prompt: &prompt,
            generation: &generation,
            reply_schema: None,
            tools: None,
            is_continued,
        };
        let body: Value = serde_json::from_str(&text(&request, fields, Dialect::default())).unwrap();
        let marks = body["messages"].as_array().unwrap().iter().filter(|message| {
            let part = &message["content"][0];
            part["cache_control"] == serde_json::json!({"type": "ephemeral"}) && part["type"] == "text"
        });
        marks.map(|message| message["content"][0]["text"].as_str().unwrap().to_owned()).collect::<String>()
    };
    assert_eq!(marked("anthropic/x", &OPENROUTER_FIELDS, true), "3567");
    assert_eq!(marked("a/Claude-5", &OPENROUTER_FIELDS, true), "3567");
    for (model, fields, is_continued) in [
        ("anthropic/x", &OPENROUTER_FIELDS, false),
        ("openai/x", &OPENROUTER_FIELDS, true),
        ("anthropic/x", &COMMON, true),
    ] {
        assert_eq!(marked(model, fields, is_continued), "", "{model}");
    }
}

#[test]
fn tools_their_calls_and_results_are_sent_in_openais_form() {
    let tools = serde_json::json!([{ "type": "function", "function": { "name": "look" } }]);
    let call = ToolCall { id: "c1".into(), name: "look".into(), arguments: r#"{"x": 1}"#.into() };
    let messages = vec![
        ChatMessage { tool_calls: vec![call], ..ChatMessage::new(Role::Assistant, "") },
        ChatMessage { tool_call_id: Some("c1".into()), ..ChatMessage::new(Role::Tool, "a tree") },
    ];
    let (prompt, generation) = (Prompt { messages }, Generation { seed: Some(7), ..Generation::default() });
    let mut request = ChatRequest {
        model: "a/b",
        prompt: &prompt,
        generation: &generation,
        reply_schema: None,
        tools: Some(&tools),
        is_continued: true,
    };
    assert_eq!(
        text(&request, &COMMON, Dialect::default()),
        concat!(
            r#"{"model":"a/b","messages":[{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"look","arguments":"{\"x\": 1}"}}]},"#,
            r#"{"role":"tool","content":"a tree","tool_call_id":"c1"}],"seed":7,"#,
            r#""tools":[{"function":{"name":"look"},"type":"function"}],"tool_choice":"auto","stream":true,"stream_options":{"include_usage":true}}"#,
        )
    );
    let none = serde_json::json!([]);
    request.tools = Some(&none);
    assert!(!text(&request, &COMMON, Dialect::default()).contains("tool_choice"));
}
