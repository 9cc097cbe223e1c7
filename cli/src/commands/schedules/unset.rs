//! Settings of a schedule that go back to their defaults.

use clap::Args;
use serde_json::{Map, Value, json};

use crate::commands::order_settings::OrderSettings;
use crate::exit::Problem;

/// Fields of the judge's and the user simulator's settings in an order.
const JUDGE_FIELD: &str = "judge";
const USER_FIELD: &str = "user_model";
/// Options whose field has another name, besides generation settings and limits.
const FIELDS: [(&str, &str); 13] = [
    ("item", "items"),
    ("subset-pct", "subset_pct"),
    ("subset-count", "subset_count"),
    ("limit", "subset_count"),
    ("seed", "subset_seed"),
    ("protocol", "protocols"),
    ("option", "benchmark_options"),
    ("agent-option", "agent_options"),
    ("demo", "demo"),
    ("budget-usd", "budget_usd"),
    ("budget-tokens", "budget_tokens"),
    ("judge-model", JUDGE_FIELD),
    ("user-model", USER_FIELD),
];
/// Options whose field is within another one: option, outer field and inner field.
const INNER_FIELDS: [(&str, &str, &str); 4] = [
    ("judge-temperature", JUDGE_FIELD, "temperature"),
    ("judge-seed", JUDGE_FIELD, "seed"),
    ("judge-max-tokens", JUDGE_FIELD, "max_tokens"),
    ("user-temperature", USER_FIELD, "temperature"),
];
/// Options of labels and of the schedule itself.
const OTHER_FIELDS: [(&str, &str); 4] =
    [("tag", "tags"), ("note", "notes"), ("visibility", "visibility"), ("webhook-url", "webhook_url")];

/// Option that can be removed from a schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Setting {
    /// Name of the option, without its hyphens in front.
    option: String,
    /// Field of the order.
    field: String,
    /// Field within that field, for settings of the judge and the user simulator.
    inner: Option<&'static str>,
}

/// Parses the name of an option, with or without the hyphens in front.
pub(super) fn parse_setting(text: &str) -> Result<Setting, String> {
    let name = text.trim().trim_start_matches('-').replace('_', "-");
    let all = settings();
    let names = || all.iter().map(|setting| setting.option.as_str()).collect::<Vec<_>>().join(", ");
    let found = all.iter().find(|setting| setting.option == name).cloned();
    found.ok_or_else(|| format!("it must be one of {}", names()))
}

/// Returns all settings that can be removed.
fn settings() -> Vec<Setting> {
    let generation = OrderSettings::augment_args(clap::Command::new("settings"));
    let generation = generation.get_arguments().filter_map(|arg| {
        Some(Setting { option: arg.get_long()?.to_owned(), field: arg.get_id().to_string(), inner: None })
    });
    let mut all: Vec<Setting> = generation.collect();
    all.extend(FIELDS.iter().chain(&OTHER_FIELDS).map(|(option, field)| Setting {
        option: (*option).to_owned(),
        field: (*field).to_owned(),
        inner: None,
    }));
    all.extend(INNER_FIELDS.map(|(option, field, inner)| Setting {
        option: option.to_owned(),
        field: field.to_owned(),
        inner: Some(inner),
    }));
    all
}

/// Adds the fields that remove settings to those of a change.
///
/// # Errors
/// Fails if the change also sets one of them.
pub(super) fn remove(unset: &[Setting], fields: &mut Map<String, Value>) -> anyhow::Result<()> {
    let given = fields.clone();
    for Setting { option, field, inner } in unset {
        let is_given = match (inner, given.get(field)) {
            (_, None) => false,
            (Some(inner), Some(outer)) => outer.get(inner).is_some(),
            (None, Some(_)) => true,
        };
        if is_given {
            return Err(Problem::usage(format!("--unset: `{option}` is both given and removed")).into());
        }
        match inner {
            None if field == "subset_pct" => fields.insert(field.clone(), json!(100)),
            None => fields.insert(field.clone(), Value::Null),
            Some(inner) => match fields.entry(field.clone()).or_insert_with(|| json!({})) {
                Value::Object(outer) => outer.insert((*inner).to_owned(), Value::Null),
                // The model itself is removed, with all its settings.
                _ => None,
            },
        };
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn removed(names: &[&str], given: Value) -> Result<Value, String> {
        let unset: Vec<Setting> = names.iter().map(|name| parse_setting(name).unwrap()).collect();
        let mut fields = given.as_object().unwrap().clone();
        remove(&unset, &mut fields).map_err(|error| error.to_string())?;
        Ok(Value::Object(fields))
    }

    #[test]
    fn settings_are_named_as_their_options() {
        assert_eq!(
            removed(
                &["temperature", "--timeout", "max_tokens", "limit", "subset-pct"],
                json!({ "name": "n" })
            ),
            Ok(json!({ "name": "n", "temperature": null, "timeout_seconds": null, "max_tokens": null,
                "subset_count": null, "subset_pct": 100 }))
        );
        assert_eq!(
            removed(&["judge-seed", "judge-temperature"], json!({ "judge": { "max_tokens": 5 } })),
            Ok(json!({ "judge": { "max_tokens": 5, "seed": null, "temperature": null } }))
        );
        assert_eq!(removed(&["judge-model", "judge-seed"], json!({})), Ok(json!({ "judge": null })));
        assert_eq!(
            removed(&["user-temperature"], json!({ "user_model": { "model_id": "u" } })),
            Ok(json!({ "user_model": { "model_id": "u", "temperature": null } }))
        );
        assert_eq!(removed(&["user-model"], json!({})), Ok(json!({ "user_model": null })));
        let unknown = parse_setting("model").unwrap_err();
        assert!(unknown.starts_with("it must be one of samples, temperature, "), "{unknown}");
    }

    #[test]
    fn a_setting_is_either_given_or_removed() {
        for (name, given) in [
            ("temperature", json!({ "temperature": 0.5 })),
            ("judge-seed", json!({ "judge": { "seed": 1 } })),
            ("judge-model", json!({ "judge": { "model_id": "oracle" } })),
            ("user-temperature", json!({ "user_model": { "temperature": 1 } })),
        ] {
            let refused = removed(&[name], given).unwrap_err();
            assert_eq!(refused, format!("--unset: `{name}` is both given and removed"));
        }
    }

    /// A new field of orders must be removable, or left out on purpose.
    #[test]
    fn every_field_of_an_order_can_be_removed() {
        let fields: std::collections::BTreeSet<String> =
            settings().into_iter().map(|setting| setting.field).collect();
        let document = bench_api::document();
        let order = document["components"]["schemas"]["Order"]["properties"].as_object().unwrap();
        // An order of tasks has tasks and an agent.
        let of_tasks = ["tasks", "agent"];
        let kept = ["model_id", "provider", "selected_benchmarks", "name", "config"];
        let kept: Vec<&str> = kept.into_iter().chain(of_tasks).collect();
        for name in order.keys().filter(|name| !kept.contains(&name.as_str())) {
            assert!(fields.contains(name), "{name}");
        }
    }
}
