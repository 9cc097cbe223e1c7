//! Settings of a schedule on the command line.

use std::path::PathBuf;

use bench_domain::{Agent, Visibility};
use bench_inference::{ModelName, ModelSource};
use bench_runs::{NO_MODEL, TERMINAL_TASKS};
use clap::Args;
use serde_json::{Map, Value, json};

use super::Schedule;
use super::unset::{self, Setting, parse_setting};
use crate::agent_archive::{self, AgentArchive};
use crate::client::{Client, Listing};
use crate::commands::judge::{JudgeArgs, parse_protocols};
use crate::commands::labels::{parse_notes, parse_tag, parse_visibility};
use crate::commands::options::parse_options;
use crate::commands::order_settings::OrderSettings;
use crate::commands::run::budget::BudgetArgs;
use crate::commands::run::{preselected, tasks};
use crate::commands::user_model::UserModelArgs;
use crate::commands::{ApiArgs, find_benchmark};
use crate::exit::Problem;
use crate::task_archive;

/// Makes a schedule.
#[derive(Debug, Args)]
pub(super) struct AddArgs {
    /// Name of the schedule and of its runs
    #[arg(long, value_name = "TEXT")]
    name: String,
    /// Planned times: minute, hour, day of month, month, day of week, such as '30 2 * * *'
    #[arg(long, value_name = "CRON")]
    cron: String,
    /// Add the schedule without enabling it
    #[arg(long)]
    disabled: bool,
    /// Address to call if a run is worse than the one before, fails, takes too long or doesn't start
    #[arg(long, env = "BENCH_WEBHOOK_URL", value_name = "URL")]
    webhook_url: Option<String>,
    #[command(flatten)]
    order: ScheduleOrderArgs,
    #[command(flatten)]
    api: ApiArgs,
}

/// Changes a schedule.
#[derive(Debug, Args)]
pub(super) struct EditArgs {
    /// Name or id of the schedule, or at least 4 of the id's first characters
    schedule: String,
    /// New name of the schedule and of its later runs
    #[arg(long, value_name = "TEXT")]
    name: Option<String>,
    /// Planned times: minute, hour, day of month, month, day of week, such as '30 2 * * *'
    #[arg(long, value_name = "CRON")]
    cron: Option<String>,
    // No variable: an edit changes only what the command line gives.
    /// Address to call if a run is worse than the one before, fails, takes too long or doesn't start
    #[arg(long, value_name = "URL")]
    webhook_url: Option<String>,
    /// Remove the webhook
    #[arg(long, conflicts_with = "webhook_url")]
    no_webhook: bool,
    /// Remove the budget
    #[arg(long, conflicts_with_all = ["budget_usd", "budget_tokens"])]
    no_budget: bool,
    /// Remove all tags
    #[arg(long, conflicts_with = "tag")]
    no_tags: bool,
    /// Option whose setting goes back to its default, such as temperature or subset-count; repeat for several
    #[arg(long, value_name = "OPTION", value_delimiter = ',', value_parser = parse_setting)]
    unset: Vec<Setting>,
    #[command(flatten)]
    order: ScheduleOrderArgs,
    #[command(flatten)]
    api: ApiArgs,
}

/// Order of the runs.
#[derive(Debug, Args)]
struct ScheduleOrderArgs {
    /// Time zone of the planned times, such as Europe/Berlin [default for new schedules: that of this machine, else UTC]
    #[arg(long, value_name = "ZONE")]
    time_zone: Option<String>,
    /// Model to run, as for `bench run`
    #[arg(long, short, value_name = "MODEL")]
    model: Option<String>,
    /// Benchmark to run; repeat for several [default for new schedules: those marked as default in `bench benchmarks`]
    #[arg(long, short, value_name = "NAME", value_delimiter = ',')]
    benchmark: Vec<String>,
    /// Terminal task to run: a folder, a folder of tasks, a ZIP archive, or the id or name of a stored task; repeat for
    /// several. An edit replaces all earlier tasks
    #[arg(long, value_name = "PATH|TASK", conflicts_with_all = ["benchmark", "item", "demo"])]
    task: Vec<PathBuf>,
    /// Agent that works on the terminal tasks, as for `bench run`. An edit removes the options of the earlier agent
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// Option of the agent, such as max_turns=50; repeat for several. An edit keeps earlier ones of other names. The agent
    /// `custom` has `content_hash`, of an uploaded agent; `bench agents show AGENT` prints it
    #[arg(long, value_name = "NAME=VALUE")]
    agent_option: Vec<String>,
    /// Folder of the agent `custom`, as for `bench run`; it is uploaded now, and later changes of the folder have no effect
    #[arg(long, value_name = "DIR")]
    agent_folder: Option<PathBuf>,
    /// Run only this item, given by the dataset's own id, such as its question_id, or by the index of its row, from 0, as
    /// '#12'; repeat for several
    #[arg(long, value_name = "ID")]
    item: Vec<String>,
    /// Percentage of each benchmark's items to run, 1 to 100
    #[arg(long, value_name = "P", conflicts_with = "subset_count",
        value_parser = clap::value_parser!(u32).range(1..=100))]
    subset_pct: Option<u32>,
    /// Number of items to run of each benchmark, which --seed selects
    #[arg(long, visible_alias = "limit", value_name = "N", value_parser = clap::value_parser!(u64).range(1..=2_147_483_647))]
    subset_count: Option<u64>,
    /// Seed of the subset: the same seed selects the same items [default: the schedule's id]
    #[arg(long, value_name = "TEXT")]
    seed: Option<String>,
    #[command(flatten)]
    settings: OrderSettings,
    /// Protocol of a benchmark instead of its default one; repeat for several benchmarks. The name is optional if only
    /// one --benchmark is given
    #[arg(long, help_heading = None, value_name = "[NAME=]PROTOCOL", value_delimiter = ',')]
    protocol: Vec<String>,
    /// Setting of one benchmark, as listed by `bench benchmarks NAME`; repeat for several. An edit replaces all earlier
    /// settings, and keeps the agent. The benchmark is optional if only one --benchmark is given
    #[arg(long, help_heading = None, value_name = "[BENCHMARK.]NAME=VALUE")]
    option: Vec<String>,
    #[command(flatten)]
    judge: JudgeArgs,
    #[command(flatten)]
    user: UserModelArgs,
    /// Run the demo items that are bundled with this program; their scores say nothing about the real benchmark
    #[arg(long, help_heading = None)]
    demo: bool,
    #[command(flatten)]
    budget: BudgetArgs,
    /// Tag of the runs, for lists; repeat for several. An edit replaces all earlier tags
    #[arg(long, help_heading = "Labels", value_name = "TAG", value_delimiter = ',', value_parser = parse_tag)]
    tag: Vec<String>,
    /// Notes about the runs; in an edit, an empty text removes them
    #[arg(long, help_heading = "Labels", value_name = "TEXT", value_parser = parse_notes)]
    note: Option<String>,
    /// Visibility of the schedule and its runs to other callers of a server: public, unlisted or private
    #[arg(long, help_heading = "Labels", value_name = "WHO", value_parser = parse_visibility)]
    visibility: Option<Visibility>,
}

impl ScheduleOrderArgs {
    /// Returns the given fields, with `files` those of the agent `custom`. `earlier` has the benchmarks of a schedule that is
    /// changed. Rejects benchmarks that are unknown on this machine; a server may have others.
    fn fields(
        &self,
        remote: bool,
        files: Option<&AgentArchive>,
        earlier: &[String],
    ) -> anyhow::Result<Map<String, Value>> {
        let mut fields = Map::new();
        let mut given = |name: &str, value: Option<Value>| {
            fields.extend(value.map(|value| (name.to_owned(), value)));
        };
        if let Some(model) = self.model.as_deref() {
            let (provider, model) = model_of(model)?;
            given("provider", Some(json!(provider)));
            given("model_id", Some(json!(model)));
        }
        given("time_zone", self.time_zone.as_ref().map(|zone| json!(zone)));
        let benchmarks = self.benchmarks(remote)?;
        if self.task.is_empty() && !earlier.iter().any(|name| name == TERMINAL_TASKS) {
            tasks::refuse_without_tasks(&benchmarks)?;
        }
        given("selected_benchmarks", (!benchmarks.is_empty()).then(|| json!(benchmarks)));
        let mut agent_options = tasks::parse_options(&self.agent_option)?;
        let mut agent = self.agent.as_deref();
        if let Some(files) = files {
            if self.model.is_some() {
                return Err(Problem::usage(NO_MODEL).into());
            }
            tasks::add_content(&mut agent_options, agent, files)?;
            agent = Some(Agent::Custom.as_str());
        }
        given("agent", agent.map(|agent| json!(agent)));
        given("agent_options", (!agent_options.is_empty()).then(|| json!(agent_options)));
        given("items", (!self.item.is_empty()).then(|| json!(self.item)));
        given("subset_pct", self.subset_pct.map(|pct| json!(pct)));
        // A share replaces a number.
        given("subset_count", self.subset_pct.map(|_| Value::Null));
        given("subset_count", self.subset_count.map(|count| json!(count)));
        given("subset_seed", self.seed.as_ref().map(|seed| json!(seed)));
        given("demo", self.demo.then_some(json!(true)));
        let benchmarks = if benchmarks.is_empty() { earlier.to_vec() } else { benchmarks };
        let protocols = parse_protocols(&self.protocol, &benchmarks, true)?;
        given("protocols", (!protocols.is_empty()).then(|| json!(protocols)));
        let with_options = if self.task.is_empty() { benchmarks } else { vec![TERMINAL_TASKS.to_owned()] };
        let options = parse_options(&self.option, &with_options, &protocols, true)?;
        given("benchmark_options", (!options.is_empty()).then(|| json!(options)));
        given("judge", self.judge.judge(true)?.body());
        given("user_model", self.user.user(true)?.body());
        given("tags", (!self.tag.is_empty()).then(|| json!(self.tag)));
        given("notes", self.note.as_ref().map(|note| json!(note)));
        given("visibility", self.visibility.map(|visibility| json!(visibility)));
        given("budget_usd", self.budget.budget_usd.map(|usd| json!(usd)));
        given("budget_tokens", self.budget.budget_tokens.map(|tokens| json!(tokens)));
        self.settings.check()?;
        fields.extend(self.settings.fields());
        Ok(fields)
    }

    /// Reads the files of the agent `custom`, if a folder was given.
    fn agent_files(&self) -> anyhow::Result<Option<AgentArchive>> {
        self.agent_folder.as_deref().map(agent_archive::read_folder).transpose()
    }

    /// Stores the given tasks that aren't stored yet, and names them in the fields.
    async fn add_tasks(&self, client: &Client, fields: &mut Map<String, Value>) -> anyhow::Result<()> {
        if self.task.is_empty() {
            return Ok(());
        }
        let stored = tasks::store(client, &task_archive::read_given(&self.task)?, Listing::Listed).await?;
        let ids: Vec<String> = stored.iter().map(|task| task.id.to_string()).collect();
        fields.insert("tasks".to_owned(), json!(ids));
        fields.insert("selected_benchmarks".to_owned(), json!([TERMINAL_TASKS]));
        Ok(())
    }

    /// Returns the names of the benchmarks. A server may have further ones.
    fn benchmarks(&self, remote: bool) -> anyhow::Result<Vec<String>> {
        let own_name = |name: &String| match find_benchmark(name) {
            Ok(benchmark) => Ok(benchmark.name().to_owned()),
            Err(_) if remote => Ok(name.clone()),
            Err(error) => Err(error),
        };
        self.benchmark.iter().map(own_name).collect()
    }
}

fn webhook(url: Option<&str>) -> Option<Value> {
    url.map(str::trim).filter(|url| !url.is_empty()).map(|url| json!(url))
}

/// Splits a model into provider and name. A server also accepts models by id and by slug.
fn model_of(given: &str) -> anyhow::Result<(Option<&'static str>, String)> {
    match ModelName::parse(given) {
        Ok(name) if name.source == ModelSource::Replay => {
            Err(Problem::usage("stored responses can't be scheduled: each run would give the same result")
                .into())
        }
        Ok(name) => Ok((Some(name.source.as_str()), name.slug)),
        Err(_) => Ok((None, given.trim().to_owned())),
    }
}

impl AddArgs {
    pub(super) const fn api(&self) -> &ApiArgs {
        &self.api
    }

    /// Builds the request body of a new schedule.
    pub(super) async fn body(&self, client: &Client) -> anyhow::Result<Value> {
        let files = self.order.agent_files()?;
        let mut fields = self.order.fields(self.api.server.server().is_some(), files.as_ref(), &[])?;
        // The server refuses unknown agents.
        if self.order.model.is_none() && fields.get("agent").is_none_or(asks_model) {
            let hint = match self.order.task.is_empty() {
                true => "give one with --model",
                false if self.order.agent.is_some() => "the agent asks one: give it with --model",
                false => "give --model for the agent terminus-2, or --agent oracle, nop or custom",
            };
            return Err(Problem::usage("no model was given").hint(hint).into());
        }
        self.order.add_tasks(client, &mut fields).await?;
        client.add_agent_of_order(files.as_ref()).await?;
        if self.order.benchmark.is_empty() && self.order.task.is_empty() {
            fields.insert("selected_benchmarks".to_owned(), json!(preselected(client).await?));
        }
        if let Some(judge) = self.order.judge.judge_or_variable(true)?.body() {
            fields.insert("judge".to_owned(), judge);
        }
        if let Some(user) = self.order.user.user_or_variable(true)?.body() {
            fields.insert("user_model".to_owned(), user);
        }
        fields.entry("time_zone").or_insert_with(|| json!(zone_here()));
        fields.insert("name".to_owned(), json!(self.name));
        fields.insert("cron".to_owned(), json!(self.cron));
        fields.insert("enabled".to_owned(), json!(!self.disabled));
        fields.insert("webhook_url".to_owned(), webhook(self.webhook_url.as_deref()).unwrap_or_default());
        Ok(Value::Object(fields))
    }
}

impl EditArgs {
    pub(super) const fn api(&self) -> &ApiArgs {
        &self.api
    }

    pub(super) fn schedule(&self) -> &str {
        &self.schedule
    }

    /// Builds the request body of a change of a schedule.
    pub(super) async fn body(&self, client: &Client, before: &Schedule) -> anyhow::Result<Value> {
        let files = self.order.agent_files()?;
        let remote = self.api.server.server().is_some();
        let mut fields = self.order.fields(remote, files.as_ref(), &before.benchmarks)?;
        let has_model = self.order.model.is_some() || Agent::in_place_of_model(&before.model).is_none();
        if !has_model && fields.get("agent").is_some_and(asks_model) {
            return Err(Problem::usage("no model was given, and the schedule has none")
                .hint("give the model that the agent asks with --model")
                .into());
        }
        let has_other_benchmark = self.order.task.is_empty() && fields.contains_key("selected_benchmarks");
        if has_other_benchmark && !before.tasks.is_empty() {
            // The tasks are the items of the benchmark that the schedule had.
            fields.insert("tasks".to_owned(), json!([]));
        }
        self.order.add_tasks(client, &mut fields).await?;
        client.add_agent_of_order(files.as_ref()).await?;
        fields.extend(self.name.as_ref().map(|name| ("name".to_owned(), json!(name))));
        fields.extend(self.cron.as_ref().map(|cron| ("cron".to_owned(), json!(cron))));
        let webhook = if self.no_webhook { Some(Value::Null) } else { webhook(self.webhook_url.as_deref()) };
        fields.extend(webhook.map(|webhook| ("webhook_url".to_owned(), webhook)));
        if self.no_budget {
            fields.extend(["budget_usd", "budget_tokens"].map(|name| (name.to_owned(), Value::Null)));
        }
        if self.no_tags {
            fields.insert("tags".to_owned(), Value::Null);
        }
        unset::remove(&self.unset, &mut fields)?;
        if fields.is_empty() {
            return Err(Problem::usage("no change was given")
                .hint("`bench schedules edit --help` lists what can be changed")
                .into());
        }
        Ok(Value::Object(fields))
    }
}

/// Returns true if an agent's name is that of one that asks a model. The server refuses unknown agents.
fn asks_model(agent: &Value) -> bool {
    let agent = agent.as_str().unwrap_or_default().parse::<Agent>();
    agent.is_ok_and(|agent| agent.asks_model())
}

/// Returns the name of this machine's time zone, or UTC.
fn zone_here() -> String {
    let zone = jiff::tz::TimeZone::try_system().ok();
    zone.as_ref().and_then(|zone| zone.iana_name()).unwrap_or("UTC").to_owned()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::commands::order_settings::everything;

    #[test]
    fn every_field_of_an_order_can_be_given() {
        let protocol = bench_benchmarks::find("mmlu_pro").unwrap().metadata().protocol_name;
        let text = |text: &str| Some(text.to_owned());
        let all = ScheduleOrderArgs {
            time_zone: text("UTC"),
            model: text("chutes/a/b"),
            benchmark: vec!["mmlu_pro".into()],
            task: Vec::new(),
            agent: text("bash"),
            agent_option: vec!["max_turns=3".into()],
            agent_folder: None,
            item: vec!["#1".into()],
            subset_pct: Some(50),
            subset_count: Some(5),
            seed: text("s"),
            // The command line refuses settings that exclude each other.
            settings: OrderSettings { reasoning_effort: None, omit: Vec::new(), ..everything() },
            protocol: vec![protocol.into()],
            option: vec!["a=b".into()],
            judge: JudgeArgs { judge_model: text("oracle"), ..JudgeArgs::default() },
            user: UserModelArgs { user_model: text("openrouter/u"), ..UserModelArgs::default() },
            demo: true,
            budget: BudgetArgs { budget_usd: Some(1.0), budget_tokens: Some(1) },
            tag: vec!["t".into()],
            note: text("n"),
            visibility: Some(Visibility::Private),
        };
        let given: BTreeSet<String> =
            all.fields(true, None, &[]).unwrap().into_iter().map(|(name, _)| name).collect();
        let order = &bench_api::document()["components"]["schemas"]["Order"]["properties"];
        let mut documented: BTreeSet<String> = order.as_object().unwrap().keys().cloned().collect();
        assert!(documented.remove("config"), "it is for programs");
        assert!(documented.remove("name") && documented.insert("time_zone".into()), "they are a schedule's");
        assert!(documented.remove("tasks"), "they are stored before");
        for other in ["reasoning_effort", "omit"] {
            assert!(documented.remove(other), "it excludes another setting");
        }
        assert_eq!(given, documented);
    }

    #[test]
    fn models_are_named_as_in_a_run() {
        assert_eq!(model_of("chutes/a/b").unwrap(), (Some("chutes"), "a/b".to_owned()));
        assert_eq!(model_of("oracle").unwrap(), (Some("oracle"), "oracle".to_owned()));
        assert_eq!(model_of("some-slug").unwrap(), (None, "some-slug".to_owned()));
        assert!(model_of("replay:x.jsonl").is_err());
    }
}
