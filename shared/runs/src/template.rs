//! Resolution of an order to a run template.

use bench_domain::run::{JudgeSpec, UserSpec};
use bench_domain::{BenchmarkName, RunTemplate};

use crate::benchmarks::{filter_known, select};
use crate::judge::{FoundJudge, JudgedRun, is_judged};
use crate::order::ResolvedFields;
use crate::user::{FoundUser, SimulatedRun, has_user, is_conversation};
use crate::{CallerKeys, FoundModel, Order, Orderer, Orders, RunError, Standing, options, protocols};

/// Resolved order.
#[derive(Debug, Clone)]
pub struct ResolvedOrder {
    /// Everything of its run that doesn't depend on the time of creation.
    pub template: RunTemplate,
    /// Names in the order that aren't benchmarks.
    pub ignored: Vec<String>,
    /// Caller's own keys that it uses.
    pub keys: CallerKeys,
}

/// Models of an earlier order that a changed one keeps. Their keys are already stored.
#[derive(Debug, Clone, Default)]
pub struct KeptModels {
    /// Judge.
    pub judge: Option<JudgeSpec>,
    /// User model.
    pub user: Option<UserSpec>,
}

impl Orders {
    /// Returns true if judged benchmarks have a judge: the one that the order names, or the default one.
    pub(crate) fn has_judge(&self, order: &Order, found: &FoundModel) -> bool {
        order.judge.as_ref().is_some_and(|judge| judge.model.is_some())
            || self.has_default_judge(&found.model)
    }

    /// Returns the benchmarks of an order, and the names that aren't benchmarks. An order that names none has all that
    /// this server and caller can run.
    pub(crate) fn select_benchmarks(
        &self,
        order: &Order,
        standing: Standing,
        has_judge: bool,
        has_user: bool,
    ) -> Result<(Vec<BenchmarkName>, Vec<String>), RunError> {
        let (mut benchmarks, ignored) = select(order.benchmarks.as_deref())?;
        if filter_known(order.benchmarks.as_deref(), &benchmarks).is_none() {
            // If the order names no benchmarks, it leaves out datasets whose terms the operator hasn't accepted.
            benchmarks.retain(|name| self.check_dataset(order, name).is_ok() && standing.may_order(name));
            if !has_user {
                benchmarks.retain(|name| !is_conversation(name));
            }
            if !has_judge {
                // It also leaves out benchmarks that need a judge if there is none.
                let protocol =
                    |name: &BenchmarkName| order.protocols.get(name.as_str()).map(|name| name.trim());
                benchmarks.retain(|name| !is_judged(name, protocol(name)));
            }
        }
        Ok((benchmarks, ignored))
    }

    /// Resolves an order. If a judge or a user model is needed, that in `kept` is used without a lookup.
    ///
    /// # Errors
    /// Returns the problem with the order, or with something that isn't available at present.
    pub async fn template(
        &self,
        mut order: Order,
        orderer: &Orderer,
        found: FoundModel,
        kept: KeptModels,
    ) -> Result<ResolvedOrder, RunError> {
        order.protocols = protocols::by_own_names(order.protocols);
        order.options = protocols::by_own_names(order.options);
        self.check_settings(&order.generation, &found, orderer)?;
        self.check_available(&found, orderer).await?;
        let has_judge = kept.judge.is_some() || self.has_judge(&order, &found);
        let has_user = kept.user.is_some() || has_user(&order, &found.model);
        let (benchmarks, ignored) = self.select_benchmarks(&order, orderer.standing, has_judge, has_user)?;
        orderer.standing.check_benchmarks(&benchmarks)?;
        let protocols = protocols::resolve_protocols(&order.protocols, &benchmarks)?;
        let with_protocol = benchmarks.iter().map(|name| (name.clone(), protocols.get(name).cloned()));
        self.check_merged_settings(&order.generation, &found, with_protocol)?;
        let mut options = options::resolve_options(&order.options, &order.protocols, &benchmarks)?;
        options::refuse_second_agent(&options, found.source)?;
        options::name_agents(&mut options, &benchmarks, &protocols, found.source);
        let datasets = self.dataset_choices(&order, &benchmarks)?;
        let price = self.price_for(&order, &found, orderer).await?;
        let judged = benchmarks.iter().find(|name| is_judged(name, protocols.get(*name).map(String::as_str)));
        let judge = match (judged, kept.judge) {
            (None, _) => None,
            (Some(_), Some(spec)) => Some(FoundJudge { spec, key: None }),
            (Some(benchmark), None) => {
                let base_url = order.trusted.judge_base_url.as_deref();
                let run = JudgedRun { model: &found.model, benchmark, budget: order.budget, base_url };
                Some(self.find_judge(order.judge.as_ref(), run, orderer).await?)
            }
        };
        let user = match (benchmarks.iter().find(|name| is_conversation(name)), kept.user) {
            (None, _) => None,
            (Some(_), Some(spec)) if found.model.is_asked() => Some(FoundUser { spec, key: None }),
            (Some(benchmark), _) => {
                let base_url = order.trusted.user_base_url.as_deref();
                let run = SimulatedRun { model: &found.model, benchmark, budget: order.budget, base_url };
                self.find_user(order.user.as_ref(), run, orderer).await?
            }
        };
        let (judge, judge_key) = judge.map(|judge| (judge.spec, judge.key)).unzip();
        let (user, user_key) = user.map(|user| (user.spec, user.key)).unzip();
        let keys =
            CallerKeys { own: orderer.api_key.clone(), judge: judge_key.flatten(), user: user_key.flatten() };
        let resolved = ResolvedFields {
            model: found.model,
            selected_benchmarks: filter_known(order.benchmarks.as_deref(), &benchmarks),
            benchmarks,
            datasets,
            protocols,
            options,
            judge,
            user,
            coverage_min: order.trusted.coverage_min.unwrap_or(self.config.coverage_min),
            price,
        };
        let template = order.into_template(resolved);
        Ok(ResolvedOrder { template, ignored, keys })
    }
}
