//! Chutes: an inference gateway, and a platform with a public list of all models and their prices.

use reqwest::Url;
use serde_json::Value;

use super::{Account, AccountAt, Provider, PublicList};
use crate::address::join;
use crate::listed_model::{CatalogModel, per_million, slug, split_list, text};

/// Number of models on one page of the public list.
const PAGE_MODELS: usize = 500;

/// Chutes.
pub static CHUTES: Provider = Provider {
    name: "chutes",
    display_name: "Chutes",
    description: "Chutes",
    needs: "`CHUTES_API_KEY`",
    key_variable: "CHUTES_API_KEY",
    needs_key: true,
    base_url_variable: "CHUTES_API_BASE_URL",
    default_base_url: Some("https://llm.chutes.ai/v1"),
    account: Some(Account { at: AccountAt::PublicList, path: "users/me" }),
    public_list: Some(PublicList {
        base_url_variable: "CHUTES_MODELS_API_URL",
        default_base_url: "https://api.chutes.ai",
        page_models: PAGE_MODELS,
        page,
        split: split_list,
        entry,
    }),
    lists_other_models: true,
    refused_key: Some("Chutes API key is not authorized for this model."),
    ..Provider::DEFAULT
};

fn page(base: &Url, number: usize) -> Option<Url> {
    let mut url = join(base, ["chutes", ""])?;
    url.query_pairs_mut()
        .append_pair("include_public", "true")
        .append_pair("page", &number.to_string())
        .append_pair("limit", &PAGE_MODELS.to_string())
        .append_pair("include_schemas", "false");
    Some(url)
}

/// Parses an entry of the public list, where only models that answer chats have a price.
fn entry(json: &str) -> Option<CatalogModel> {
    let item: Value = serde_json::from_str(json).ok()?;
    let slug = slug(item.get("name"))?;
    let price = item.pointer("/current_estimated_price/per_million_tokens").filter(|price| !price.is_null());
    Some(CatalogModel {
        name: slug.clone(),
        slug,
        chute_id: text(item.get("chute_id")),
        tagline: text(item.get("tagline")),
        user: text(item.pointer("/user/username")),
        logo: text(item.get("logo")),
        instance_count: item
            .get("instances")
            .and_then(Value::as_array)
            .and_then(|instances| u32::try_from(instances.len()).ok())
            .unwrap_or(0),
        is_language_model: price.is_some(),
        price: price.and_then(|price| per_million(price.pointer("/input/usd"), price.pointer("/output/usd"))),
        context_length: None,
        max_output: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use bench_domain::Price;

    #[test]
    fn a_public_entry_is_read_whole() {
        let model = entry(
            r#"{"name":"a/b","chute_id":"c-1","tagline":"t","user":{"username":"u"},"logo":null,
                "instances":[{},{}],"current_estimated_price":{"per_million_tokens":
                {"input":{"usd":0.25,"tao":1},"output":{"usd":1}}}}"#,
        )
        .unwrap();
        assert_eq!(
            model,
            CatalogModel {
                slug: "a/b".into(),
                name: "a/b".into(),
                chute_id: Some("c-1".into()),
                tagline: Some("t".into()),
                user: Some("u".into()),
                instance_count: 2,
                is_language_model: true,
                price: Some(Price { input_per_million_usd: 0.25, output_per_million_usd: 1.0 }),
                ..CatalogModel::default()
            }
        );
    }

    #[test]
    fn invalid_optional_fields_are_ignored() {
        let model =
            entry(r#"{"name":"x","logo":{"a":1},"user":"u","instances":3,"current_estimated_price":{}}"#);
        let expected = CatalogModel { slug: "x".into(), name: "x".into(), ..CatalogModel::default() };
        assert_eq!(model, Some(expected));
        let priced =
            entry(r#"{"name":"x","current_estimated_price":{"per_million_tokens":{"input":{}}}}"#).unwrap();
        assert!(priced.is_language_model && priced.price.is_none());
        for json in ["{}", "3", r#"{"name":""}"#, r#"{"name":7}"#] {
            assert_eq!(entry(json), None, "{json}");
        }
    }
}
