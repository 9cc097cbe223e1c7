//! Which settings each API takes, and what is said about the others.

use super::*;
use crate::providers::{CHUTES, LMSTUDIO, OPENAI_COMPATIBLE, OPENROUTER};

fn fields(host: &str) -> &'static SettingFields {
    OPENAI_COMPATIBLE.setting_fields(Some(host))
}

fn effort(effort: ReasoningEffort) -> Generation {
    Generation { reasoning_effort: Some(effort), ..Generation::default() }
}

fn thinking(tokens: u32) -> Generation {
    Generation { thinking_budget: Some(tokens), ..Generation::default() }
}

#[test]
fn apis_are_known_by_provider_and_host() {
    for (host, expected) in [
        ("api.openai.com", "OpenAI"),
        ("eu.api.openai.com", "OpenAI"),
        ("acme.openai.azure.com", "OpenAI"),
        ("api.anthropic.com:443", "Anthropic"),
        ("generativelanguage.googleapis.com", "Google"),
        ("openrouter.ai", "OpenRouter"),
    ] {
        assert_eq!(fields(host).name, Some(expected), "{host}");
    }
    for other in ["127.0.0.1:8000", "notapi.openai.com.example.org", "xapi.openai.com", "llm.chutes.ai"] {
        assert_eq!(fields(other).name, None, "{other}");
    }
    // A proxy in front of OpenRouter.
    assert_eq!(OPENROUTER.setting_fields(Some("127.0.0.1:9")).name, Some("OpenRouter"));
    assert!(LMSTUDIO.setting_fields(None).effort.is_none());
    assert_eq!(CHUTES.setting_fields(Some("llm.chutes.ai")), &COMMON);
}

#[test]
fn a_setting_without_a_field_is_refused_by_name() {
    let top_k = Generation { top_k: Some(20), ..Generation::default() };
    let seed = Generation { seed: Some(1), ..Generation::default() };
    let hot = Generation { temperature: Some(1.5), ..Generation::default() };
    let stops = |texts: &[&str]| Generation {
        stop: texts.iter().map(|text| (*text).to_owned()).collect(),
        ..Generation::default()
    };
    for (fields, own, setting, part) in [
        (fields("api.openai.com"), top_k.clone(), "top_k", "OpenAI has no field for it"),
        (fields("api.anthropic.com"), top_k.clone(), "top_k", "Anthropic has no field"),
        (fields("api.anthropic.com"), seed.clone(), "sampler_seed", "Anthropic has no field"),
        (
            fields("api.anthropic.com"),
            effort(ReasoningEffort::Low),
            "reasoning_effort",
            "Anthropic has no field",
        ),
        (fields("api.anthropic.com"), hot.clone(), "temperature", "at most 1, not 1.5"),
        (fields("api.anthropic.com"), stops(&["\n"]), "stop", "whitespace"),
        (fields("api.openai.com"), thinking(4096), "thinking_budget", "OpenAI has no field for it"),
        (fields("api.openai.com"), stops(&["a", "b", "c", "d", "e"]), "stop", "at most 4 texts"),
        (
            fields("generativelanguage.googleapis.com"),
            effort(ReasoningEffort::ExtraHigh),
            "reasoning_effort",
            "Google has no `xhigh`; it takes `none`, `minimal`, `low`, `medium`, `high`",
        ),
        (&LMSTUDIO_FIELDS, effort(ReasoningEffort::High), "reasoning_effort", "LM Studio has no field"),
        (&COMMON, thinking(4096), "thinking_budget", "`extra_body`"),
    ] {
        let problem = fields.check("LM Studio", &own).unwrap_err();
        assert_eq!(problem.setting, setting);
        assert!(problem.problem.contains(part), "{problem}");
    }
    for (fields, own) in [
        (fields("api.openai.com"), seed),
        (fields("api.openai.com"), hot),
        (fields("api.openai.com"), effort(ReasoningEffort::ExtraHigh)),
        (fields("api.anthropic.com"), stops(&["END"])),
        (&COMMON, top_k.clone()),
        (&LMSTUDIO_FIELDS, top_k),
        (&OPENROUTER_FIELDS, thinking(4096)),
    ] {
        assert_eq!(fields.check("x", &own), Ok(()));
    }
}

#[test]
fn a_thinking_budget_leaves_room_for_the_answer() {
    let with = |max_tokens, temperature| Generation { max_tokens, temperature, ..thinking(4_096) };
    let anthropic = fields("api.anthropic.com");
    let check = |fields: &SettingFields, model: &str, merged: &Generation| {
        fields.check_merged("x", model, merged).map_err(|problem| problem.problem)
    };
    assert_eq!(check(anthropic, "claude", &with(Some(8_192), None)), Ok(()));
    assert_eq!(check(anthropic, "claude", &with(Some(8_192), Some(1.0))), Ok(()));
    for (fields, model, merged, part) in [
        (anthropic, "claude", with(Some(4_096), None), "leave no room"),
        (anthropic, "claude", with(None, None), "only with `max_tokens`; give one above 4096"),
        (anthropic, "claude", with(Some(8_192), Some(0.0)), "`--omit temperature`"),
        (anthropic, "claude", thinking(1_023), "1024 to 128000"),
        (&OPENROUTER_FIELDS, "anthropic/claude", thinking(1_000), "1024 to 128000"),
        (&OPENROUTER_FIELDS, "z-ai/glm", with(Some(2_048), None), "leave no room"),
        (fields("generativelanguage.googleapis.com"), "gemini", thinking(40_000), "1 to 32768"),
    ] {
        let problem = check(fields, model, &merged).unwrap_err();
        assert!(problem.contains(part), "{problem}");
    }
    assert_eq!(check(&OPENROUTER_FIELDS, "z-ai/glm", &thinking(1_000)), Ok(()));
    assert_eq!(check(&OPENROUTER_FIELDS, "z-ai/glm", &with(None, Some(0.0))), Ok(()));
    assert_eq!(check(&COMMON, "m", &Generation { max_tokens: Some(1), ..Generation::default() }), Ok(()));
}

#[test]
fn an_extra_body_overrides_nothing() {
    let extra = |text: &str| Generation { extra_body: Some(text.to_owned()), ..Generation::default() };
    for (field, _) in RESERVED_FIELDS {
        let problem = check_settings(&extra(&format!(r#"{{"a":1,"{field}":null}}"#))).unwrap_err();
        assert_eq!(problem.setting, "extra_body");
        assert!(problem.problem.contains(&format!("`{field}`")), "{problem}");
    }
    for text in ["[]", "3", "{", "null"] {
        assert!(check_settings(&extra(text)).unwrap_err().problem.contains("JSON object"), "{text}");
    }
    let reasoning = extra(r#"{"reasoning":{"exclude":true}}"#);
    assert_eq!(check_settings(&reasoning), Ok(()));
    let with_effort = Generation { reasoning_effort: Some(ReasoningEffort::Low), ..reasoning };
    let problem = check_settings(&with_effort).unwrap_err();
    assert!(problem.problem.contains("`reasoning` together with `reasoning_effort`"), "{problem}");
    let both = Generation { reasoning_effort: Some(ReasoningEffort::Low), ..thinking(2_000) };
    assert_eq!(check_settings(&both).unwrap_err().setting, "thinking_budget");
    assert_eq!(check_settings(&Generation::default()), Ok(()));
}
