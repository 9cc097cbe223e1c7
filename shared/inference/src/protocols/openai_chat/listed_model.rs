//! Parses an entry of the list of models.

use bench_domain::Price;
use serde_json::Value;

use crate::listed_model::{CatalogModel, per_million, slug, text};

/// Parses an entry of `GET /models`. It counts as a language model if it has a price or a token limit.
pub(super) fn listed_model(json: &str) -> Option<CatalogModel> {
    let item: Value = serde_json::from_str(json).ok()?;
    let slug = ["id", "model", "slug", "name"].into_iter().find_map(|field| slug(item.get(field)))?;
    let tokens = |paths: &[&str]| {
        let found = paths.iter().find_map(|path| item.pointer(path)?.as_u64());
        found.filter(|tokens| *tokens > 0)
    };
    let context_length = tokens(&["/max_model_len", "/context_length", "/max_context_length"]);
    let max_output = tokens(&["/max_output_length", "/top_provider/max_completion_tokens"]);
    let price = price(&item);
    Some(CatalogModel {
        name: text(item.get("name")).unwrap_or_else(|| slug.clone()),
        slug,
        chute_id: text(item.get("chute_id")),
        tagline: text(item.get("tagline")),
        user: text(item.get("owned_by")),
        logo: text(item.get("logo")),
        instance_count: 0,
        is_language_model: context_length.is_some() || max_output.is_some() || price.is_some(),
        price,
        context_length,
        max_output,
    })
}

/// Chutes reports dollars per million tokens as numbers, OpenRouter dollars per token as strings.
fn price(item: &Value) -> Option<Price> {
    let pair = (item.pointer("/pricing/prompt"), item.pointer("/pricing/completion"));
    let per_token = |value: Option<&Value>| value?.as_str()?.trim().parse::<f64>().ok();
    match (per_token(pair.0), per_token(pair.1)) {
        (Some(input), Some(output)) => Price::new(round_price(input * 1e6), round_price(output * 1e6)),
        _ => per_million(item.pointer("/price/input/usd"), item.pointer("/price/output/usd"))
            .or_else(|| per_million(pair.0, pair.1)),
    }
}

/// Removes the rounding error of a multiplication by a million.
fn round_price(price: f64) -> f64 {
    (price * 1e6).round() / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gateway_entries_show_limits_and_prices() {
        let chutes = listed_model(
            r#"{"id":"a/b","chute_id":"c","max_model_len":4096,"max_output_length":512,
                "pricing":{"prompt":0.3,"completion":1.2}}"#,
        )
        .unwrap();
        assert_eq!((chutes.context_length, chutes.max_output), (Some(4096), Some(512)));
        let price = Price { input_per_million_usd: 0.3, output_per_million_usd: 1.2 };
        assert_eq!((chutes.price, chutes.is_language_model), (Some(price), true));
        let router = listed_model(
            r#"{"id":"a/b","name":"A: B","context_length":8192,"top_provider":{"max_completion_tokens":100},
                "pricing":{"prompt":"0.0000003","completion":"0.0000012"}}"#,
        )
        .unwrap();
        assert_eq!((router.price, router.name.as_str(), router.max_output), (Some(price), "A: B", Some(100)));
        let auto = r#"{"id":"openrouter/auto","pricing":{"prompt":"-1","completion":"-1"}}"#;
        assert_eq!(listed_model(auto).unwrap().price, None);
        for (prompt, completion) in [("NaN", "0"), ("inf", "0"), ("0", "-0.000001"), ("5", "0"), ("x", "y")] {
            let odd =
                format!(r#"{{"id":"m","pricing":{{"prompt":"{prompt}","completion":"{completion}"}}}}"#);
            assert_eq!(listed_model(&odd).unwrap().price, None, "{odd}");
        }
        assert!(!listed_model(r#"{"id":"image"}"#).unwrap().is_language_model);
    }
}
