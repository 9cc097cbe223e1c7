//! `bench models`.

use bench_domain::budget::dollars;
use clap::Args;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::client::{ServerArgs, encode};
use crate::data_dir::DataArgs;
use crate::exit::ExitStatus;
use crate::table::{Column, Table};
use crate::{format, output};

pub(crate) const EXAMPLES: &str = "\
Examples:
  bench models
      models of the last sync, and the oracle
  bench models --sync
      downloads the public list of the provider first
  bench models --search deepseek --json";

#[derive(Debug, Args)]
pub(crate) struct ModelsArgs {
    /// List only models whose name contains this text
    #[arg(long, value_name = "TEXT")]
    search: Option<String>,
    /// List only models of this provider
    #[arg(long, value_name = "NAME")]
    provider: Option<String>,
    /// Maximum number of models to list
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=500))]
    limit: u32,
    /// Download the public list of the provider first
    #[arg(long)]
    sync: bool,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    data: DataArgs,
    /// Print JSON
    #[arg(long, help_heading = None)]
    json: bool,
}

#[derive(Debug, Serialize, Deserialize)]
struct Model {
    id: String,
    slug: String,
    name: String,
    provider: String,
    #[serde(default)]
    tagline: Option<String>,
    #[serde(default)]
    instance_count: i64,
    #[serde(default)]
    input_per_million_usd: Option<f64>,
    #[serde(default)]
    output_per_million_usd: Option<f64>,
    #[serde(flatten)]
    other: serde_json::Map<String, Value>,
}

#[derive(Debug, Deserialize)]
struct Models {
    models: Vec<Model>,
    total: u64,
}

pub(crate) async fn run(args: ModelsArgs) -> anyhow::Result<ExitStatus> {
    let api = super::Api::open(&args.server, &args.data).await?;
    let result = show_models(&api, &args).await;
    api.close().await;
    result.map(|()| ExitStatus::Success)
}

/// Formats the price of a million tokens as `--price` takes it, or `-` if it is unknown.
fn price(model: &Model) -> String {
    match (model.input_per_million_usd, model.output_per_million_usd) {
        (Some(input), Some(output)) => format!("{}, {}", dollars(input), dollars(output)),
        _ => "-".to_owned(),
    }
}

fn table(models: &[Model]) -> Table {
    let mut table = Table::new([
        Column::path("model"),
        Column::number("instances").drop_as(1),
        Column::number("USD per million tokens in, out"),
        Column::preview("about").drop_as(2),
    ]);
    for model in models {
        let name = match model.provider.as_str() {
            provider if provider == model.slug => provider.to_owned(),
            provider => format!("{provider}/{}", model.slug),
        };
        let about = model.tagline.as_ref().filter(|about| !about.is_empty()).unwrap_or(&model.name);
        let about = about.split_whitespace().collect::<Vec<_>>().join(" ");
        table.row([name, model.instance_count.to_string(), price(model), about]);
    }
    table
}

async fn show_models(api: &super::Api, args: &ModelsArgs) -> anyhow::Result<()> {
    if args.sync {
        let answer: Value = api.client.post("/api/admin/sync-models", None).await?;
        if let Some(message) = answer.get("message").and_then(Value::as_str) {
            output::note(message);
        }
    }
    let mut path = format!("/api/models?limit={}", args.limit);
    for (name, value) in [("search", &args.search), ("provider", &args.provider)] {
        if let Some(value) = value {
            path.push_str(&format!("&{name}={}", encode(value)));
        }
    }
    let answer: Models = api.client.get(&path).await?;
    if args.json {
        return output::json(&answer.models);
    }
    output::print_table(&table(&answer.models))?;
    let shown = answer.models.len() as u64;
    if answer.total > shown {
        output::note(&format!(
            "{} of {}; see --search and --limit",
            format::count(shown),
            format::plural(answer.total, "model")
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn screen_of_models() {
        let models: Vec<Model> = serde_json::from_value(serde_json::json!([
            { "id": "1", "slug": "deepseek-ai/DeepSeek-V3-0324", "name": "DeepSeek V3", "provider": "chutes",
                "tagline": "A mixture-of-experts model with 671 billion parameters, 37 billion of which are active",
                "instance_count": 12, "input_per_million_usd": 0.24, "output_per_million_usd": 0.84 },
            { "id": "2", "slug": "oracle", "name": "The dataset's own answers", "provider": "oracle" },
            { "id": "3", "slug": "Qwen/Qwen3-235B-A22B-Instruct-2507", "name": "Qwen3 235B", "provider": "chutes" },
        ]))
        .unwrap();
        crate::screen_tests::check("models", |layout| table(&models).render(layout));
    }
}
