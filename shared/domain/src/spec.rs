//! What was ordered: of one run, and of all runs of a schedule.

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};

use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};

use crate::budget::Prices;
use crate::run::{
    AuthMode, COVERAGE_MIN_DEFAULT, DatasetChoice, ItemNaming, JudgeSpec, ModelRef, Owner, Rejudges,
};
use crate::{BenchmarkName, Budget, Generation, Price, RunId, ScheduleId, Subset, Timestamp};

/// What was ordered: everything that determines a run, fixed at its creation.
///
/// What it has in common with other runs of the same order is its template, and can be read from the run itself:
/// `spec.benchmarks` is `spec.template.benchmarks`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct RunSpec {
    /// The run.
    pub id: RunId,
    /// What is run, how, and up to which cost.
    #[serde(flatten)]
    pub template: RunTemplate,
    /// Set when the answers are those of another run, judged again.
    #[serde(default)]
    pub rejudges: Option<Rejudges>,
    /// Who may change the run.
    pub owner: Owner,
    /// Whose key pays for the answers.
    pub auth: AuthMode,
    /// The schedule that ordered it, if one did.
    #[serde(default)]
    pub schedule: Option<ScheduleId>,
    /// Version of the program that accepted the run.
    pub software: String,
    /// When it was ordered.
    pub created_at: Timestamp,
}

/// What is run, how, and up to which cost: everything of a [`RunSpec`] that is the same for all runs of a schedule.
///
/// A new field needs a default, so that stored runs and schedules are still read, and its line in `new`, and in
/// `write_what` or `write_bounds`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct RunTemplate {
    /// Which model is measured.
    pub model: ModelRef,
    /// The benchmarks to run, without duplicates, in order.
    pub benchmarks: Vec<BenchmarkName>,
    /// The list as the caller gave it; `None` means all.
    #[serde(default)]
    pub selected_benchmarks: Option<Vec<String>>,
    /// Which part of each benchmark. A schedule's has its seed set, so that all its runs have the same items.
    pub subset: Subset,
    /// Only these items, in dataset order, instead of a subset. Empty: no such choice.
    #[serde(default)]
    pub items: Vec<String>,
    /// How `items`, and the ids in stored responses, name an item.
    #[serde(default)]
    pub item_naming: ItemNaming,
    /// Samples per item; `None` leaves it to each benchmark's protocol.
    #[serde(default)]
    pub samples: Option<u32>,
    /// Generation settings that replace the protocol's, where set.
    #[serde(default)]
    pub generation: Generation,
    /// Where the items of a benchmark come from, for those with a choice of their own.
    #[serde(default)]
    pub datasets: BTreeMap<BenchmarkName, DatasetChoice>,
    /// The protocol by its short name, for benchmarks whose default one is not wanted.
    #[serde(default)]
    pub protocols: BTreeMap<BenchmarkName, String>,
    /// Settings of a benchmark of its own, by name, for those that are not to have their defaults.
    #[serde(default)]
    pub options: BTreeMap<BenchmarkName, BTreeMap<String, String>>,
    /// Who judges, for benchmarks that need a judge; `None` when none does.
    #[serde(default)]
    pub judge: Option<JudgeSpec>,
    /// Free-form JSON of the caller, as text.
    #[serde(default)]
    pub config: Option<String>,
    /// Coverage below which a benchmark has no score, 0 to 1.
    pub coverage_min: f64,
    /// The provider's price when it was ordered.
    #[serde(default)]
    pub price: Option<Price>,
    /// What the answers of one run may cost before it is stopped.
    #[serde(default)]
    pub budget: Budget,
}

impl RunSpec {
    /// The prices that were noted with the run.
    pub fn prices(&self) -> Prices {
        Prices { answers: self.price, judge: self.judge.as_ref().and_then(|judge| judge.price) }
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
    /// All items of these benchmarks, as their protocols say. What is not said here is left to be set.
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
            config: None,
            coverage_min: COVERAGE_MIN_DEFAULT,
            price: None,
            budget: Budget::default(),
        }
    }

    /// The same with a seed: the given one, else the schedule's id. Without one every run would choose its
    /// own items, and no two could be compared.
    #[must_use]
    pub fn with_fixed_seed(mut self, schedule: ScheduleId) -> Self {
        self.subset.seed.get_or_insert_with(|| schedule.to_string());
        self
    }

    /// Writes what is run and how.
    fn write_what<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        // Named one by one: a new field that neither this nor the other function writes is an error of the compiler.
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
            config: _,
            coverage_min: _,
            price: _,
            budget: _,
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
        map.serialize_entry("judge", judge)
    }

    /// Writes what bounds it, and what the caller keeps with it.
    fn write_bounds<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        map.serialize_entry("config", &self.config)?;
        map.serialize_entry("coverage_min", &self.coverage_min)?;
        map.serialize_entry("price", &self.price)?;
        map.serialize_entry("budget", &self.budget)
    }
}

/// By hand, and not derived: stored runs keep the order of their fields, in which the template is no one piece.
impl Serialize for RunSpec {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("id", &self.id)?;
        self.template.write_what(&mut map)?;
        map.serialize_entry("rejudges", &self.rejudges)?;
        map.serialize_entry("owner", &self.owner)?;
        map.serialize_entry("auth", &self.auth)?;
        self.template.write_bounds(&mut map)?;
        map.serialize_entry("schedule", &self.schedule)?;
        map.serialize_entry("software", &self.software)?;
        map.serialize_entry("created_at", &self.created_at)?;
        map.end()
    }
}

impl Serialize for RunTemplate {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        self.write_what(&mut map)?;
        self.write_bounds(&mut map)?;
        map.end()
    }
}
