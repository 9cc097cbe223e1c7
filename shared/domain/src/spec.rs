//! Settings of runs and schedules.

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};

use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};

use crate::budget::Prices;
use crate::run::{
    AuthMode, COVERAGE_MIN_DEFAULT, DatasetChoice, ItemNaming, JudgeSpec, ModelRef, Owner, RejudgedRun,
    UserSpec,
};
use crate::{
    BenchmarkName, Budget, Generation, Price, RunId, RunLabels, RunLimits, ScheduleId, SessionId, Subset,
    Timestamp,
};

/// Settings of a run: everything that determines it, fixed at its creation.
///
/// The settings that it shares with other runs of the same order are its template, and can be read from the run itself:
/// `spec.benchmarks` is `spec.template.benchmarks`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct RunSpec {
    /// Id of the run.
    pub id: RunId,
    /// Model, benchmarks, settings and budget.
    #[serde(flatten)]
    pub template: RunTemplate,
    /// Run whose answers are judged again, if this is a rejudge.
    #[serde(default)]
    pub rejudges: Option<RejudgedRun>,
    /// Owner, who may change the run.
    pub owner: Owner,
    /// Owner of the key that pays for the answers.
    pub auth: AuthMode,
    /// Session of a signed-in user whose account pays, for all roles with [`AuthMode::Idp`].
    #[serde(default)]
    pub session: Option<SessionId>,
    /// Schedule that ordered the run, if any.
    #[serde(default)]
    pub schedule: Option<ScheduleId>,
    /// Version of the program that accepted the run.
    pub software: String,
    /// Time of the order.
    pub created_at: Timestamp,
}

/// Model, benchmarks, settings and budget: everything of a [`RunSpec`] that is the same for all runs of a schedule.
///
/// A new field needs a default, so that stored runs and schedules can still be read, and a line in `new`, and in
/// `write_settings` or `write_limits`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct RunTemplate {
    /// Model that is measured.
    pub model: ModelRef,
    /// The benchmarks to run, without duplicates, in order.
    pub benchmarks: Vec<BenchmarkName>,
    /// Benchmark list as the caller gave it; `None` means all.
    #[serde(default)]
    pub selected_benchmarks: Option<Vec<String>>,
    /// Part of each benchmark that is evaluated. A schedule's subset has a seed, so that all its runs have the same
    /// items.
    pub subset: Subset,
    /// If not empty, only these items are evaluated, in dataset order, instead of a subset.
    #[serde(default)]
    pub items: Vec<String>,
    /// Naming of items in `items` and in stored responses.
    #[serde(default)]
    pub item_naming: ItemNaming,
    /// Samples per item; `None` uses the default of each benchmark's protocol.
    #[serde(default)]
    pub samples: Option<u32>,
    /// Generation settings that override the protocol's.
    #[serde(default)]
    pub generation: Generation,
    /// Sources of items, for benchmarks that don't use the default.
    #[serde(default)]
    pub datasets: BTreeMap<BenchmarkName, DatasetChoice>,
    /// Short names of protocols, for benchmarks that don't use the default.
    #[serde(default)]
    pub protocols: BTreeMap<BenchmarkName, String>,
    /// Options by benchmark and name that differ from their defaults.
    #[serde(default)]
    pub options: BTreeMap<BenchmarkName, BTreeMap<String, String>>,
    /// Judge for benchmarks that need one; `None` if none does.
    #[serde(default)]
    pub judge: Option<JudgeSpec>,
    /// User simulator for benchmarks whose items are conversations; `None` if none is one.
    #[serde(default)]
    pub user: Option<UserSpec>,
    /// Free-form JSON of the caller, as text.
    #[serde(default)]
    pub config: Option<String>,
    /// Coverage below which a benchmark has no score, 0 to 1.
    pub coverage_min: f64,
    /// Provider's price at the time of the order.
    #[serde(default)]
    pub price: Option<Price>,
    /// Budget of one run.
    #[serde(default)]
    pub budget: Budget,
    /// Name, tags, notes and visibility, which can be changed at any time. They aren't settings, so a [`RunSpec`] is stored without
    /// them: the run's record has them in an attribute of its own.
    #[serde(default)]
    pub labels: RunLabels,
    /// Limits on requests, answers and failures of one run.
    #[serde(default)]
    pub limits: RunLimits,
}

impl RunSpec {
    /// Returns the prices that are stored with the run.
    pub fn prices(&self) -> Prices {
        Prices {
            answers: self.price,
            judge: self.judge.as_ref().and_then(|judge| judge.price),
            user: self.user.as_ref().and_then(|user| user.price),
        }
    }
}

impl Deref for RunSpec {
    type Target = RunTemplate;

    fn deref(&self) -> &RunTemplate {
        &self.template
    }
}

impl DerefMut for RunSpec {
    fn deref_mut(&mut self) -> &mut RunTemplate {
        &mut self.template
    }
}

impl RunTemplate {
    /// Creates a template with all items of these benchmarks and the settings of their protocols. Callers set other
    /// fields afterwards.
    #[must_use]
    pub fn new(model: ModelRef, benchmarks: Vec<BenchmarkName>) -> Self {
        Self {
            model,
            benchmarks,
            selected_benchmarks: None,
            subset: Subset::default(),
            items: Vec::new(),
            item_naming: ItemNaming::SourceId,
            samples: None,
            generation: Generation::default(),
            datasets: BTreeMap::new(),
            protocols: BTreeMap::new(),
            options: BTreeMap::new(),
            judge: None,
            user: None,
            config: None,
            coverage_min: COVERAGE_MIN_DEFAULT,
            price: None,
            budget: Budget::default(),
            labels: RunLabels::default(),
            limits: RunLimits::default(),
        }
    }

    /// Sets the seed to the given one or, by default, the schedule's id. Without a seed every run would select its own
    /// items, and no two runs could be compared.
    #[must_use]
    pub fn with_fixed_seed(mut self, schedule: ScheduleId) -> Self {
        self.subset.seed.get_or_insert_with(|| schedule.to_string());
        self
    }

    /// Returns the selected items as orders name them: by the dataset's own ids, or by the index of the row after a `#`.
    pub fn item_names(&self) -> Vec<String> {
        match self.item_naming {
            ItemNaming::SourceId => self.items.clone(),
            ItemNaming::RowIndex => self.items.iter().map(|index| format!("#{index}")).collect(),
        }
    }

    /// Returns true if any benchmark uses demo data.
    pub fn is_demo(&self) -> bool {
        self.datasets.values().any(|choice| *choice == DatasetChoice::Demo)
    }

    /// Writes the model, benchmarks and settings.
    fn write_settings<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        // All fields are named: if neither this nor the other function writes a new field, the compiler reports it.
        let Self {
            model,
            benchmarks,
            selected_benchmarks,
            subset,
            items,
            item_naming,
            samples,
            generation,
            datasets,
            protocols,
            options,
            judge,
            user,
            config: _,
            coverage_min: _,
            price: _,
            budget: _,
            labels: _,
            limits: _,
        } = self;
        map.serialize_entry("model", model)?;
        map.serialize_entry("benchmarks", benchmarks)?;
        map.serialize_entry("selected_benchmarks", selected_benchmarks)?;
        map.serialize_entry("subset", subset)?;
        map.serialize_entry("items", items)?;
        map.serialize_entry("item_naming", item_naming)?;
        map.serialize_entry("samples", samples)?;
        map.serialize_entry("generation", generation)?;
        map.serialize_entry("datasets", datasets)?;
        map.serialize_entry("protocols", protocols)?;
        if !options.is_empty() {
            map.serialize_entry("options", options)?;
        }
        map.serialize_entry("judge", judge)?;
        // Left out without one, as in records of older versions.
        if let Some(user) = user {
            map.serialize_entry("user", user)?;
        }
        Ok(())
    }

    /// Writes the limits, and the caller's own data.
    fn write_limits<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        map.serialize_entry("config", &self.config)?;
        map.serialize_entry("coverage_min", &self.coverage_min)?;
        map.serialize_entry("price", &self.price)?;
        map.serialize_entry("budget", &self.budget)?;
        if self.limits.is_set() {
            map.serialize_entry("limits", &self.limits)?;
        }
        Ok(())
    }
}

/// Written by hand instead of derived: stored runs keep the order of their fields, and the template's fields aren't
/// contiguous in it. The labels are left out.
impl Serialize for RunSpec {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("id", &self.id)?;
        self.template.write_settings(&mut map)?;
        map.serialize_entry("rejudges", &self.rejudges)?;
        map.serialize_entry("owner", &self.owner)?;
        map.serialize_entry("auth", &self.auth)?;
        self.template.write_limits(&mut map)?;
        map.serialize_entry("schedule", &self.schedule)?;
        // Left out without one, as in records of older versions.
        if let Some(session) = &self.session {
            map.serialize_entry("session", session)?;
        }
        map.serialize_entry("software", &self.software)?;
        map.serialize_entry("created_at", &self.created_at)?;
        map.end()
    }
}

impl Serialize for RunTemplate {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        self.write_settings(&mut map)?;
        self.write_limits(&mut map)?;
        if !self.labels.is_empty() {
            map.serialize_entry("labels", &self.labels)?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[test]
    fn items_are_named_as_orders_name_them() {
        let items = vec!["12".to_owned(), "#3".to_owned()];
        let run = RunTemplate { items, ..testing::template("a/b", "mmlu_pro") };
        assert_eq!(run.item_names(), ["12", "#3"]);
        let by_row =
            RunTemplate { items: vec!["12".into(), "3".into()], item_naming: ItemNaming::RowIndex, ..run };
        assert_eq!(by_row.item_names(), ["#12", "#3"]);
    }

    #[test]
    fn labels_are_stored_with_schedules_only() {
        let plain = testing::template("a/b", "mmlu_pro");
        let labels = RunLabels { tags: vec!["x".into()], ..RunLabels::default() };
        let labeled = RunTemplate { labels, ..plain.clone() };
        let json = |template: &RunTemplate| serde_json::to_string(template).unwrap();
        assert_eq!(serde_json::from_str::<RunTemplate>(&json(&labeled)).unwrap(), labeled);
        assert!(!json(&plain).contains("labels"), "records without labels keep their bytes");
        let run = RunId::random();
        let json = |template: RunTemplate| serde_json::to_string(&testing::spec(run, template)).unwrap();
        assert_eq!(json(labeled), json(plain));
    }

    #[test]
    fn a_run_with_one_demo_dataset_is_a_demo() {
        let mut run = testing::template("a/b", "mmlu_pro");
        assert!(!run.is_demo());
        run.datasets.insert("aime_2025".parse().unwrap(), DatasetChoice::Hub);
        assert!(!run.is_demo());
        run.datasets.insert("mmlu_pro".parse().unwrap(), DatasetChoice::Demo);
        assert!(run.is_demo());
    }
}
