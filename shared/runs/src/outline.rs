//! Outlines of orders that aren't placed, for estimates.

use bench_benchmarks::{Benchmark, Options};
use bench_domain::BenchmarkName;
use bench_domain::run::DatasetChoice;

use crate::benchmarks::select;
use crate::judge::is_judged;
use crate::settings::unused_settings;
use crate::user::has_user;
use crate::{FoundModel, Order, OrderWarning, Orderer, Orders, RunError, options, protocols};

/// Order as far as it can be resolved without a key, a provider or a dataset.
#[derive(Clone)]
pub struct OrderOutline {
    /// Model of the order.
    pub found: FoundModel,
    /// Benchmarks of the run, in its order.
    pub benchmarks: Vec<OutlinedBenchmark>,
    /// Judge of the benchmarks that need one; `None` if no benchmark does, or none is known.
    pub judge: Option<FoundModel>,
    /// User simulator of the benchmarks that need one; `None` if no benchmark does, or no model is asked.
    pub user: Option<FoundModel>,
    /// Names in the order that aren't benchmarks.
    pub ignored: Vec<String>,
    /// Fields of the order that were ignored.
    pub warnings: Vec<OrderWarning>,
    /// The order.
    pub order: Order,
}

/// Benchmark of an outlined order.
#[derive(Clone)]
pub struct OutlinedBenchmark {
    /// Name of the benchmark.
    pub name: BenchmarkName,
    /// Benchmark with the ordered protocol and options.
    pub benchmark: &'static dyn Benchmark,
    /// Options that differ from the defaults.
    pub options: Options,
    /// Source of the items.
    pub dataset: DatasetChoice,
    /// True if a model judges the answers.
    pub is_judged: bool,
}

impl Orders {
    /// Resolves an order without placing it. Asks no provider, and needs neither keys nor datasets.
    ///
    /// # Errors
    /// Returns the problem with the order.
    pub async fn outline(&self, mut order: Order, orderer: &Orderer) -> Result<OrderOutline, RunError> {
        let found = self.find_model_offline(&order).await?;
        order.protocols = protocols::by_own_names(order.protocols);
        order.options = protocols::by_own_names(order.options);
        self.check_settings(&order.generation, &found, orderer)?;
        let has_judge = self.has_judge(&order, &found);
        let (names, ignored) = match self.select_benchmarks(
            &order,
            orderer.standing,
            has_judge,
            has_user(&order, &found.model),
        )? {
            // An order that names none is refused if nothing can be run; an estimate has nothing to refuse.
            (names, ignored) if names.is_empty() => (select(None)?.0, ignored),
            selected => selected,
        };
        let protocols = protocols::resolve_protocols(&order.protocols, &names)?;
        let options = options::resolve_options(&order.options, &order.protocols, &names)?;
        options::refuse_second_agent(&options, found.source)?;
        let with_protocol = names.iter().map(|name| (name.clone(), protocols.get(name).cloned()));
        self.check_merged_settings(&order.generation, &found, with_protocol)?;
        let mut benchmarks = Vec::with_capacity(names.len());
        for name in names {
            let protocol = protocols.get(&name).map(String::as_str);
            let options = options.get(&name).cloned().unwrap_or_default();
            let Some(benchmark) = configured(&name, protocol, &options) else { continue };
            let dataset = match order.trusted.datasets.get(&name) {
                Some(choice) => choice.clone(),
                None if order.demo => DatasetChoice::Demo,
                None => DatasetChoice::Hub,
            };
            let is_judged = is_judged(&name, protocol);
            benchmarks.push(OutlinedBenchmark { name, benchmark, options, dataset, is_judged });
        }
        let judge = match benchmarks.iter().any(|benchmark| benchmark.is_judged) {
            true => self.find_judge_offline(order.judge.as_ref(), &found.model).await?,
            false => None,
        };
        let conversation = benchmarks.iter().find(|benchmark| benchmark.benchmark.dialogue().is_some());
        let user = match conversation {
            Some(one) => self.find_user_offline(order.user.as_ref(), &found.model, &one.name).await?,
            None => None,
        };
        let mut warnings = std::mem::take(&mut order.warnings);
        if !found.source.is_remote() {
            warnings.extend(unused_settings(&order.generation, order.limits));
        }
        Ok(OrderOutline { found, benchmarks, judge, user, ignored, warnings, order })
    }
}

fn configured(
    name: &BenchmarkName,
    protocol: Option<&str>,
    options: &Options,
) -> Option<&'static dyn Benchmark> {
    let benchmark = bench_benchmarks::find(name.as_str())?;
    let benchmark = bench_benchmarks::with_protocol(benchmark, protocol).ok()?;
    Some(benchmark.with_options(options).ok().flatten().unwrap_or(benchmark))
}
