//! An order with everything looked up that it means.

use bench_domain::run::JudgeSpec;
use bench_domain::{BenchmarkName, RunTemplate, Secret};

use crate::benchmarks::{select, selected};
use crate::judge::{FoundJudge, JudgedRun, is_judged};
use crate::order::Resolved;
use crate::{FoundModel, Order, Orderer, Orders, RunError, options, protocols};

/// What an order comes to.
#[derive(Debug, Clone)]
pub struct Ordered {
    /// Everything of its run that does not depend on when it is made.
    pub template: RunTemplate,
    /// The names in the order that are no benchmarks.
    pub ignored: Vec<String>,
    /// The caller's own key for the judge, if that is to be used.
    pub judge_key: Option<Secret>,
}

impl Orders {
    /// What an order comes to. A judge that was found before is kept, where one is needed.
    ///
    /// # Errors
    /// What is wrong with the order, or that it cannot be had at present.
    pub async fn template(
        &self,
        order: Order,
        orderer: &Orderer,
        found: FoundModel,
        kept: Option<JudgeSpec>,
    ) -> Result<Ordered, RunError> {
        self.check_available(&found, orderer).await?;
        let (mut benchmarks, ignored) = select(order.benchmarks.as_deref())?;
        if selected(order.benchmarks.as_deref(), &benchmarks).is_none() {
            // Nobody asked for a dataset whose terms the operator has not accepted.
            benchmarks
                .retain(|name| self.can_be_had(&order, name).is_ok() && orderer.standing.may_order(name));
            let names_judge = order.judge.as_ref().is_some_and(|judge| judge.model.is_some());
            if !(names_judge || kept.is_some() || self.has_default_judge(&found.model)) {
                // Nor for what only a judge could grade.
                let protocol =
                    |name: &BenchmarkName| order.protocols.get(name.as_str()).map(|name| name.trim());
                benchmarks.retain(|name| !is_judged(name, protocol(name)));
            }
        }
        orderer.standing.check_gated(&benchmarks)?;
        let protocols = protocols::chosen(&order.protocols, &benchmarks)?;
        let options = options::chosen(&order.options, &order.protocols, &benchmarks)?;
        let datasets = self.dataset_choices(&order, &benchmarks)?;
        let price = self.price_for(&order, &found, orderer).await?;
        let judged = benchmarks.iter().find(|name| is_judged(name, protocols.get(*name).map(String::as_str)));
        let judge = match (judged, kept) {
            (None, _) => None,
            (Some(_), Some(spec)) => Some(FoundJudge { spec, key: None }),
            (Some(benchmark), None) => {
                let base_url = order.trusted.judge_base_url.as_deref();
                let run = JudgedRun { model: &found.model, benchmark, budget: order.budget, base_url };
                Some(self.find_judge(order.judge.as_ref(), run, orderer).await?)
            }
        };
        let (judge, judge_key) = judge.map(|judge| (judge.spec, judge.key)).unzip();
        let resolved = Resolved {
            model: found.model,
            selected_benchmarks: selected(order.benchmarks.as_deref(), &benchmarks),
            benchmarks,
            datasets,
            protocols,
            options,
            judge,
            coverage_min: order.trusted.coverage_min.unwrap_or(self.config.coverage_min),
            price,
        };
        let template = order.into_template(resolved);
        Ok(Ordered { template, ignored, judge_key: judge_key.flatten() })
    }
}
