//! Checks that every entry in the table of providers is usable and documented.

use std::collections::HashSet;
use std::path::Path;

use super::*;
use crate::address::parse_base;
use crate::{ConfigError, InferenceConfig, ModelName, ModelSource};

fn document(path: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)).unwrap()
}

fn config(var: impl Fn(&str) -> Option<String>) -> Result<InferenceConfig, ConfigError> {
    InferenceConfig::from_vars(var)
}

/// Returns the variables that must be unique to each provider.
fn variables(provider: &Provider) -> Vec<&'static str> {
    let list = provider.public_list.as_ref().map(|list| list.base_url_variable);
    [provider.key_variable, provider.base_url_variable].into_iter().chain(list).collect()
}

/// Returns true for a lowercase letter followed by lowercase letters, digits and hyphens.
fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_lowercase())
        && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
}

fn is_variable(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_uppercase())
        && text.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
}

#[test]
fn names_may_have_digits_and_hyphens_but_no_slash() {
    for (name, is_right) in
        [("a1", true), ("a-b", true), ("1a", false), ("a/b", false), ("A", false), ("", false)]
    {
        assert_eq!(is_name(name), is_right, "{name}");
    }
}

#[test]
fn names_and_variables_belong_to_one_provider() {
    let mut seen: HashSet<&str> = ["oracle", "replay"].into();
    for provider in PROVIDERS.iter().copied() {
        let name = provider.name;
        assert!(seen.insert(name), "{name} is there twice");
        assert!(is_name(name), "{name}");
        assert_eq!(Provider::from_name(name), Some(provider));
        assert_eq!(ModelSource::from_name(name), Some(ModelSource::Provider(provider)));
        let model = ModelName::parse(&format!("{name}/a/b")).unwrap();
        assert_eq!((model.source.provider(), model.slug.as_str()), (Some(provider), "a/b"));
        for variable in variables(provider) {
            assert!(seen.insert(variable), "{variable} is there twice");
            assert!(is_variable(variable), "{name}: {variable}");
        }
        assert!(provider.key_variable.ends_with("_API_KEY"), "the deployed secret has no other keys: {name}");
        assert!(!provider.description.is_empty(), "{name}");
        assert!(!provider.display_name.is_empty() && !provider.display_name.ends_with('.'), "{name}");
        for prefix in provider.slug_prefixes {
            assert!(Provider::from_name(prefix).is_some_and(|other| other != provider), "{name}: {prefix}");
        }
    }
}

#[test]
fn addresses_are_usable() {
    for provider in PROVIDERS.iter().copied() {
        let urls =
            [provider.default_base_url, provider.public_list.as_ref().map(|list| list.default_base_url)];
        for url in urls.into_iter().flatten() {
            let parsed = parse_base(url).unwrap();
            assert!(!url.ends_with('/'), "{url}");
            // A key must not be sent to another machine in plain text.
            let is_loopback = parsed.host_str() == Some("127.0.0.1");
            assert!(parsed.scheme() == "https" || is_loopback, "{url}");
            assert_eq!(is_loopback, provider.is_local(), "{url}");
        }
        if let Some(list) = &provider.public_list {
            let base = parse_base(list.default_base_url).unwrap();
            let (first, second) = ((list.page)(&base, 0).unwrap(), (list.page)(&base, 1).unwrap());
            assert!(first != second && list.page_models > 0, "{first}");
            assert!(first.as_str().starts_with(list.default_base_url), "{first}");
        }
        let at_list = provider.account.is_some_and(|account| account.at == AccountAt::PublicList);
        assert!(!at_list || provider.public_list.is_some(), "{provider}");
    }
}

#[test]
fn settings_are_read_from_the_variables_that_the_table_names() {
    for provider in PROVIDERS.iter().copied() {
        let value = |name: &str| match name {
            name if name == provider.key_variable => Some("key-of-this-one".to_owned()),
            name if name == provider.base_url_variable => Some("http://10.0.0.1:80/base".to_owned()),
            _ => None,
        };
        let endpoint = config(value).unwrap().endpoint(provider).unwrap();
        assert_eq!(endpoint.provider(), provider);
        assert_eq!(endpoint.base_url(), "http://10.0.0.1/base");
        assert_eq!(endpoint.key().unwrap().expose(), "key-of-this-one");
        let refused = config(|name| (name == provider.base_url_variable).then(|| "no address".to_owned()));
        assert_eq!(refused.unwrap_err().variable, provider.base_url_variable);
        let empty = config(|_| None).unwrap();
        match (provider.default_base_url, provider.needs_key) {
            (Some(url), false) => assert_eq!(empty.endpoint(provider).unwrap().base_url(), url),
            (None, false) => {
                let error = empty.endpoint(provider).unwrap_err().to_string();
                assert!(error.contains(provider.base_url_variable), "{error}");
            }
            (_, true) => {
                let error = empty.endpoint(provider).unwrap_err().to_string();
                assert!(error.contains(provider.key_variable), "{error}");
            }
        }
        if provider.account.is_some() {
            let account = empty.account_url(provider).unwrap();
            assert!(account.scheme() == "https" && account.path().len() > 1, "{account}");
        }
    }
}

#[test]
fn the_documentation_lists_every_provider_as_the_table_does() {
    let (running, settings) = (document("docs/running.md"), document("docs/configuration.md"));
    let access = document("docs/access.md");
    for provider in PROVIDERS.iter().copied() {
        let needs = if provider.needs.is_empty() { " ".to_owned() } else { format!(" {} ", provider.needs) };
        let row = format!("| `{provider}/NAME` | {} |{needs}|\n", provider.description);
        assert!(running.contains(&row), "docs/running.md, \"Models\", lacks this line:\n{row}");
        for variable in variables(provider) {
            let row = settings.lines().find(|line| {
                line.split('|').nth(1).is_some_and(|names| names.contains(&format!("`{variable}`")))
            });
            assert!(row.is_some(), "docs/configuration.md lacks {variable}");
        }
        let shown_default = provider.default_base_url.map_or("none".to_owned(), |url| format!("`{url}`"));
        let row = format!("| `{}`", provider.base_url_variable);
        let row = settings.lines().find(|line| line.starts_with(&row)).unwrap();
        assert!(row.contains(&format!("| {shown_default} |")), "{row}");
        if provider.account.is_some() {
            let row = format!("| {} | `GET {{", provider.display_name);
            assert!(
                access.contains(&row),
                "docs/access.md lacks how a key of {provider} is confirmed: {row}"
            );
        }
    }
    let rows = running.lines().filter(|line| line.starts_with("| `") && line.contains("/NAME` |"));
    assert_eq!(
        rows.count(),
        PROVIDERS.len(),
        "docs/running.md lists a provider that the table does not have"
    );
}

#[test]
fn an_entry_counts_as_a_language_model_where_nothing_else_is_listed() {
    let is_language_model =
        |provider: &Provider| provider.listed_model(r#"{"id":"bare"}"#).unwrap().is_language_model;
    assert!(!is_language_model(&CHUTES));
    assert!(is_language_model(&LMSTUDIO));
    assert!(CHUTES.listed_model(r#"{"id":"m","max_model_len":1}"#).unwrap().is_language_model);
}
