//! Placement of orders, in this process or at a server.

use std::collections::{BTreeMap, HashSet};

use anyhow::Context;
use bench_benchmarks::Benchmark;
use bench_datasets::PreparedDataset;
use bench_domain::run::{DatasetChoice, Owner};
use bench_domain::{BenchmarkName, Code, RunId, Secret};
use bench_inference::ModelSource;
use bench_items::{ItemNames, NameProblems};
use bench_runs::{Order, Orderer, TrustedSettings};
use bench_stack::{Hold, OwnEndpoint, Stack};
use serde_json::{Map, Value, json};

use super::models::{Model, Responses, ThinkingLevel};
use super::order::Plan;
use super::{responses, tasks};
use crate::client::{Client, Listing};
use crate::code_archive;
use crate::commands::order_settings::OrderSettings;
use crate::commands::{labels, warn_of_ignored};
use crate::episodes::CODE_LAB;
use crate::exit::{Problem, is_wrong_usage, plain};
use crate::helper_keys::HelperKeys;
use crate::progress::DatasetProgress;
use crate::views::Run;
use crate::{output, show};

/// Number of digits of a file's digest to show.
const DIGEST_CHARS: usize = 12;

impl Plan {
    /// Fails before a run is made if a dataset lacks items that were named.
    fn check_items(&self, benchmark: &dyn Benchmark, dataset: &PreparedDataset) -> anyhow::Result<()> {
        if self.items.is_empty() {
            return Ok(());
        }
        let names = ItemNames::new(&dataset.index.items);
        let mut problems = NameProblems::default();
        for item in &self.items {
            if let Err(error) = names.find(item) {
                problems.add(item, 1, &error);
            }
        }
        if problems.is_empty() {
            return Ok(());
        }
        let description = problems.describe_items(self.items.len() as u64, benchmark.name());
        let problem =
            Problem::usage(format!("--item: {description}; its items are from {}", dataset.used.id));
        Err(problem.hint_if(problems.hint(benchmark)).into())
    }

    /// Imports the dataset files that were given, and checks that they and the rows of this program have the named items.
    pub(super) async fn import_files(
        &self,
        stack: &Stack,
        progress: &DatasetProgress,
    ) -> anyhow::Result<BTreeMap<BenchmarkName, DatasetChoice>> {
        let mut datasets = BTreeMap::new();
        for (name, file) in &self.datasets {
            let benchmark = self.configured(name.as_str())?;
            let packed = if name.as_str() == CODE_LAB { code_archive::as_dataset(file)? } else { None };
            let file = packed.as_ref().map_or(file.as_path(), |packed| packed.path.as_path());
            let prepared = stack.library.import_local(benchmark, file, progress).await?;
            let revision = prepared.used.revision.clone();
            self.check_items(benchmark, &prepared)?;
            if let Some(beside) = beside(&prepared) {
                output::note(&format!("{name}: items from {}, with {beside}", prepared.used.id));
            }
            datasets.insert(name.clone(), DatasetChoice::Local { revision });
        }
        if !self.items.is_empty() {
            for name in &self.benchmarks {
                let benchmark = self.configured(name)?;
                let is_known = self.demo || benchmark.spec().is_bundled();
                if !is_known || datasets.keys().any(|given| given.as_str() == name) {
                    continue;
                }
                let prepared = stack.library.prepare(benchmark, &DatasetChoice::Demo, progress).await?;
                self.check_items(benchmark, &prepared)?;
            }
        }
        Ok(datasets)
    }

    /// Prepares the datasets of the benchmarks with this process's variables, before another process plans the runs. It
    /// reports a dataset that can't be prepared, so failures are left to it.
    async fn prepare_datasets(
        &self,
        stack: &Stack,
        imported: &BTreeMap<BenchmarkName, DatasetChoice>,
        progress: &DatasetProgress,
    ) {
        for name in &self.benchmarks {
            let Ok(benchmark) = self.configured(name) else { continue };
            let choice = self.dataset_choice(name, imported);
            if let Err(error) = stack.library.prepare(benchmark, &choice, progress).await {
                tracing::debug!(%error, benchmark = name, "A dataset can't be prepared");
            }
        }
    }

    /// Orders the runs in this process, after importing files. The holds keep the runs open until they are watched.
    pub(super) async fn order_in_process(
        &self,
        client: &Client,
        stack: &Stack,
        key: Option<Secret>,
        helper_keys: HelperKeys,
        progress: &DatasetProgress,
    ) -> anyhow::Result<(Vec<RunId>, Vec<Hold>)> {
        client.add_agent_of_order(self.agent.as_ref()).await?;
        let mut datasets = self.import_files(stack, progress).await?;
        let mut task_ids: Vec<u64> = Vec::new();
        if !self.tasks.is_empty() {
            let stored = tasks::store(client, &self.tasks, Listing::ForRun).await?;
            task_ids.extend(stored.iter().map(|task| task.id));
            datasets.extend([tasks::dataset(stack, &stored, &self.options).await?]);
        }
        if stack.owner().is_some() {
            self.prepare_datasets(stack, &datasets, progress).await;
        }
        responses::check(self, stack, &datasets, progress).await?;
        let HelperKeys { judge: judge_key, user: user_key } = helper_keys;
        let local = Orderer { judge_key, user_key, ..Orderer::local() };
        let orderer = Orderer { owner: Owner::Local, api_key: key, ..local.clone() };
        let mut runs = Vec::with_capacity(self.models.len());
        let mut holds = Vec::with_capacity(self.models.len());
        for model in &self.models {
            let replay_key = match &model.replay {
                None => None,
                Some(Responses { text, .. }) => {
                    let object = format!("uploads/{}.json.zst", RunId::random());
                    stack.blobs.put_json(&object, text).await?;
                    Some(object)
                }
            };
            let is_remote = model.is_remote();
            let own = endpoint_to_send(stack, model.source, self.base_url.as_deref());
            let judge_source = self.judge.named.as_ref().and_then(|judge| judge.source);
            let own_judge = endpoint_to_send(stack, judge_source, self.judge_base_url.as_deref());
            let user_source = self.user.named.as_ref().and_then(|user| user.source);
            let own_user = endpoint_to_send(stack, user_source, self.user_base_url.as_deref());
            let mut order = Order {
                model: model.name.clone(),
                subset: self.subset.clone(),
                benchmarks: Some(self.benchmarks.clone()),
                items: self.items.clone(),
                demo: self.demo,
                budget: self.budget.budget(),
                protocols: self.protocols.clone(),
                options: self.options.clone(),
                judge: self.judge.order(),
                user: self.user.order(),
                labels: self.labels.clone(),
                trusted: TrustedSettings {
                    base_url: self
                        .base_url
                        .clone()
                        .filter(|_| is_remote)
                        .or(own.as_ref().and_then(|own| own.base_url.clone())),
                    judge_base_url: self
                        .judge_base_url
                        .clone()
                        .or(own_judge.as_ref().and_then(|own| own.base_url.clone())),
                    user_base_url: self
                        .user_base_url
                        .clone()
                        .or(own_user.as_ref().and_then(|own| own.base_url.clone())),
                    replay_key,
                    datasets: datasets.clone(),
                    coverage_min: None,
                    price: self.price.filter(|_| is_remote),
                },
                ..Order::default()
            };
            self.settings_of(model).set_in(&mut order);
            // The key is for a provider. Other answer sources take none.
            let orderer = if is_remote { &orderer } else { &local };
            let orderer = Orderer {
                api_key: orderer.api_key.clone().or(own.and_then(|own| own.key)),
                judge_key: orderer.judge_key.clone().or(own_judge.and_then(|own| own.key)),
                user_key: orderer.user_key.clone().or(own_user.and_then(|own| own.key)),
                ..orderer.clone()
            };
            let created = stack.orders.create(order, orderer).await;
            let created = created.map_err(|error| {
                let message = format!("{}: {}", model.name, plain(&error.to_string()));
                match error.code() {
                    // On this machine, users can fix these themselves: they set the variable or the file.
                    Code::ProviderNotConfigured | Code::DatasetUnavailable => Problem::usage(message),
                    code if is_wrong_usage(code) => Problem::usage(message),
                    _ => Problem::failure(message),
                }
            })?;
            let run = created.run.run.spec.id;
            stack.api.state.note_task_order(&task_ids, run).await?;
            // Another process starts to work on the run when this one watches it, and not if an order fails.
            holds.extend(stack.hold(&[run], 0).await);
            output::note(&format!(
                "Run {run}: {} on {}",
                model.shown(),
                show::benchmark_names(self.benchmarks.iter().map(String::as_str))
            ));
            runs.push(run);
        }
        Ok((runs, holds))
    }

    /// Orders the runs at a server. If `own_key` is true, the server uses the caller's key at the provider.
    pub(super) async fn order_at_server(&self, client: &Client, own_key: bool) -> anyhow::Result<Vec<RunId>> {
        client.add_agent_of_order(self.agent.as_ref()).await?;
        let path = if own_key { "/api/runs/api" } else { "/api/runs" };
        let benchmarks = match self.benchmarks.is_empty() {
            true => preselected(client).await?,
            false => self.benchmarks.clone(),
        };
        let stored = match self.tasks.is_empty() {
            true => Vec::new(),
            false => tasks::store(client, &self.tasks, Listing::ForRun).await?,
        };
        let ids: Vec<String> = stored.iter().map(|task| task.id.to_string()).collect();
        let mut runs = Vec::with_capacity(self.models.len());
        for model in &self.models {
            let created: Value = client
                .post(path, Some(&self.body(model, &benchmarks, &ids)))
                .await
                .context(model.name.clone())?;
            warn_of_ignored(&created);
            let created: Run = serde_json::from_value(created).context("unexpected answer of the server")?;
            let run: RunId =
                created.id.parse().context("unexpected answer of the server: it names no run")?;
            let at = client.address().unwrap_or_default();
            let named = created
                .benchmarks
                .iter()
                .map(crate::views::Benchmark::listed_name)
                .collect::<Vec<_>>()
                .join(", ");
            output::note(&format!("Run {run} at {at}: {} on {named}", created.leveled_model()));
            runs.push(run);
        }
        Ok(runs)
    }

    /// Returns the settings of a model's run.
    fn settings_of(&self, model: &Model) -> OrderSettings {
        let (effort, budget) = match model.level {
            None => return self.settings.clone(),
            Some(ThinkingLevel::Base) => (None, None),
            Some(ThinkingLevel::Effort(effort)) => (Some(effort), None),
            Some(ThinkingLevel::Budget(tokens)) => (None, Some(tokens)),
        };
        OrderSettings { reasoning_effort: effort, thinking_budget: budget, ..self.settings.clone() }
    }

    fn body(&self, model: &Model, benchmarks: &[String], tasks: &[String]) -> Value {
        let mut body = Map::new();
        // What stands in the place of a model is named with its source.
        let id = if model.source == Some(ModelSource::Custom) { &model.name } else { &model.slug };
        body.insert("model_id".into(), json!(id));
        body.insert("selected_benchmarks".into(), json!(benchmarks));
        let mut optional = |name: &str, value: Value| {
            if !matches!(&value, Value::Null | Value::Bool(false)) && value != json!([]) {
                body.insert(name.to_owned(), value);
            }
        };
        optional("provider", json!(model.source.map(ModelSource::as_str)));
        // Without a subset, a server takes all items. It warns about a share that another setting overrides.
        optional("subset_pct", json!((self.subset.pct != 100).then_some(self.subset.pct)));
        optional("subset_count", json!(self.subset.count));
        optional("subset_seed", json!(self.subset.seed));
        optional("items", json!(self.items));
        optional("tasks", json!(tasks));
        optional("demo", json!(self.demo));
        optional("protocols", json!((!self.protocols.is_empty()).then_some(&self.protocols)));
        optional("benchmark_options", json!((!self.options.is_empty()).then_some(&self.options)));
        optional("judge", json!(self.judge.body()));
        optional("user_model", json!(self.user.body()));
        optional("budget_usd", json!(self.budget.budget_usd));
        optional("budget_tokens", json!(self.budget.budget_tokens));
        body.extend(self.settings_of(model).fields());
        body.extend(labels::order_fields(&self.labels));
        Value::Object(body)
    }
}

/// Returns the address and key of a source that the process that works on the run doesn't have in its variables. The key
/// in a variable isn't for an address that the user `gave`.
pub(crate) fn endpoint_to_send(
    stack: &Stack,
    source: Option<ModelSource>,
    gave: Option<&str>,
) -> Option<OwnEndpoint> {
    let provider = source.filter(|_| gave.is_none()).and_then(ModelSource::provider)?;
    // A missing setting was reported before, unless it is given for this run alone.
    stack.own_endpoint(provider).unwrap_or_default()
}

/// Describes the files that were imported beside the items, each with the start of its digest.
fn beside(dataset: &PreparedDataset) -> Option<String> {
    let taken: HashSet<&str> = dataset.used.attachments.values().map(|file| file.sha256.as_str()).collect();
    let files = dataset.index.files.iter().filter(|file| taken.contains(file.sha256.as_str()));
    let named = files.map(|file| {
        format!("{} (SHA-256 {}…)", file.name, file.sha256.get(..DIGEST_CHARS).unwrap_or(&file.sha256))
    });
    Some(named.collect::<Vec<_>>().join(", ")).filter(|named| !named.is_empty())
}

/// Returns the benchmarks that run when none is named.
pub(crate) async fn preselected(client: &Client) -> anyhow::Result<Vec<String>> {
    let answer: Value = client.get("/api/benchmarks").await?;
    let all = answer.get("benchmarks").and_then(Value::as_array).into_iter().flatten();
    let is_preselected = |benchmark: &&Value| benchmark.get("default_selected") == Some(&Value::Bool(true));
    let names = all.filter(is_preselected).filter_map(|benchmark| benchmark.get("name")?.as_str());
    Ok(names.map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use bench_domain::{RunLabels, Subset};

    use super::*;
    use crate::commands::judge::JudgeArgs;
    use crate::commands::order_settings::everything;
    use crate::commands::run::budget::BudgetArgs;
    use crate::commands::user_model::UserModelArgs;

    #[test]
    fn every_field_of_an_order_is_sent() {
        let judge = JudgeArgs { judge_model: Some("oracle".into()), ..JudgeArgs::default() };
        let user = UserModelArgs { user_model: Some("openrouter/u".into()), ..UserModelArgs::default() };
        let all = Plan {
            models: Vec::new(),
            benchmarks: Vec::new(),
            items: vec!["#1".into()],
            subset: Subset { pct: 50, count: Some(5), seed: Some("s".into()) },
            settings: everything(),
            base_url: None,
            datasets: Vec::new(),
            tasks: Vec::new(),
            agent: None,
            demo: true,
            budget: BudgetArgs { budget_usd: Some(1.0), budget_tokens: Some(1) },
            price: None,
            protocols: BTreeMap::from([("a".into(), "b".into())]),
            options: BTreeMap::from([("a".into(), BTreeMap::new())]),
            judge: judge.judge(true).unwrap(),
            judge_base_url: None,
            user: user.user(true).unwrap(),
            user_base_url: None,
            labels: RunLabels {
                name: Some("n".into()),
                tags: vec!["t".into()],
                notes: Some("n".into()),
                visibility: bench_domain::Visibility::Private,
            },
        };
        let model = Model {
            name: "chutes/a/b".into(),
            source: ModelSource::from_name("chutes"),
            slug: "a/b".into(),
            replay: None,
            level: None,
        };
        let body = all.body(&model, &["mmlu_pro".to_owned()], &[]);
        let sent: BTreeSet<String> = body.as_object().unwrap().keys().cloned().collect();
        let order = &bench_api::document()["components"]["schemas"]["Order"]["properties"];
        let mut documented: BTreeSet<String> = order.as_object().unwrap().keys().cloned().collect();
        assert!(documented.remove("config"), "it is for programs");
        for field in ["tasks", "agent", "agent_options"] {
            assert!(documented.remove(field), "it is for terminal tasks");
        }
        assert_eq!(sent, documented);
        // A server finds a custom agent by its content, so the name says only that it is one.
        let custom = Model {
            name: "custom/mine@1".into(),
            source: Some(ModelSource::Custom),
            slug: "mine@1".into(),
            replay: None,
            level: None,
        };
        assert_eq!(all.body(&custom, &[], &[])["model_id"], "custom/mine@1");
    }
}
