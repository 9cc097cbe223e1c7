//! Creation of runs from orders.

use bench_domain::{RunId, RunSpec};
use bench_state::{Creation, Idempotency, RunWithBenchmarks};

use crate::creator::FIRST_GENERATION;
use crate::order::{idempotency_name, no_effect_warning};
use crate::settings::unused_settings;
use crate::{FoundModel, KeptModels, Order, OrderWarning, Orderer, Orders, ResolvedOrder, RunError};

/// Run of an order.
#[derive(Debug, Clone, PartialEq)]
pub struct CreatedRun {
    /// The run itself.
    pub run: RunWithBenchmarks,
    /// True if this order created the run; false if an earlier order with the same idempotency key did.
    pub is_new: bool,
    /// Names in the order that aren't benchmarks. They were left out.
    pub ignored: Vec<String>,
    /// Fields of the order that were ignored.
    pub warnings: Vec<OrderWarning>,
}

/// Order whose idempotency key was looked up.
#[derive(Debug)]
pub enum OrderLookup {
    /// An earlier order with the same key created this run.
    Existing(Box<CreatedRun>),
    /// No run exists yet.
    New(Box<NewOrder>),
}

/// Order without a run.
#[derive(Debug)]
pub struct NewOrder {
    order: Order,
    /// Caller that orders.
    pub orderer: Orderer,
    /// Model of the order.
    pub found: FoundModel,
    idempotency: Option<Idempotency>,
}

impl Orders {
    /// Creates a run and queues it for any caller. Checking access is up to the caller of this function.
    ///
    /// The caller's key is stored with the run, in one write. If the message can't be sent, the run stays queued and
    /// reconciliation sends it.
    ///
    /// # Errors
    /// Returns the problem with the order; then nothing was created.
    pub async fn create(&self, order: Order, orderer: Orderer) -> Result<CreatedRun, RunError> {
        let found = self.find_model(&order, Some(&orderer)).await?;
        match self.look_up_order(order, orderer, found).await? {
            OrderLookup::Existing(created) => Ok(*created),
            OrderLookup::New(ready) => self.create_run(*ready).await,
        }
    }

    /// Checks whether an earlier order with the same idempotency key created a run.
    ///
    /// # Errors
    /// If that order was a different one, or its run was deleted.
    pub async fn look_up_order(
        &self,
        order: Order,
        orderer: Orderer,
        found: FoundModel,
    ) -> Result<OrderLookup, RunError> {
        let idempotency = order.idempotency_key.as_ref().map(|key| Idempotency {
            owner: idempotency_name(&orderer.owner),
            key: key.clone(),
            digest: order.digest(),
        });
        if let Some(idempotency) = &idempotency
            && let Some(earlier) = self.runs.existing_run(idempotency).await?
        {
            let created = CreatedRun { warnings: order.warnings, ..earlier };
            return Ok(OrderLookup::Existing(Box::new(created)));
        }
        Ok(OrderLookup::New(Box::new(NewOrder { order, orderer, found, idempotency })))
    }

    /// Creates the run of an order and queues it.
    ///
    /// # Errors
    /// Same as [`create`](Self::create).
    pub async fn create_run(&self, ready: NewOrder) -> Result<CreatedRun, RunError> {
        let NewOrder { mut order, orderer, found, idempotency } = ready;
        let mut warnings = std::mem::take(&mut order.warnings);
        let (generation, limits) = (order.generation.clone(), order.limits);
        let (wants_judge, is_asked) = (order.judge.is_some(), found.source.is_remote());
        let wants_user = order.user.is_some();
        let ResolvedOrder { template, ignored, keys } =
            self.template(order, &orderer, found, KeptModels::default()).await?;
        if !is_asked {
            warnings.extend(unused_settings(&generation, limits));
        }
        if wants_judge && template.judge.is_none() {
            warnings.push(no_effect_warning("judge", "none of the benchmarks is judged by a model"));
        }
        if wants_user && template.user.is_none() {
            warnings.push(no_effect_warning("user_model", "no model simulates users in this run"));
        }
        self.runs.check_samples(&orderer.owner, &template)?;
        self.runs.count_order(&orderer.owner).await?;
        let auth = orderer.auth_for(&template.model);
        let mut spec = RunSpec {
            id: RunId::random(),
            template,
            rejudges: None,
            owner: orderer.owner.clone(),
            auth,
            session: None,
            schedule: None,
            software: self.runs.config.software.clone(),
            created_at: bench_clock::now(),
        };
        spec.session = orderer.session.filter(|_| spec.uses_session());
        let sealed = keys.seal(&self.runs.credentials, spec.id, FIRST_GENERATION).await?;
        match self.runs.write(&spec, &ignored, idempotency.as_ref(), sealed).await? {
            Creation::Done => Ok(CreatedRun { warnings, ..self.runs.announce(&spec, ignored).await? }),
            Creation::Limited(reached) => Err(self.runs.too_many_open(&spec.owner, reached)),
            Creation::KeyTaken => self.runs.concurrently_created_run(idempotency.as_ref()).await,
        }
    }
}

impl crate::RunCreator {
    /// Sends a new run to the planner and returns it.
    pub(crate) async fn announce(
        &self,
        spec: &RunSpec,
        ignored: Vec<String>,
    ) -> Result<CreatedRun, RunError> {
        let run = self.state.run_with_benchmarks(spec.id).await?;
        let run = run.ok_or_else(|| RunError::Internal(format!("run {} is gone", spec.id)))?;
        self.send_to_planner(spec.id, run.run.generation).await;
        tracing::info!(run.id = %spec.id, model = %spec.model.qualified(), "Created run {}", spec.id);
        Ok(CreatedRun { run, is_new: true, ignored, warnings: Vec::new() })
    }

    /// Returns the run that was created with this key, if any.
    pub(crate) async fn existing_run(
        &self,
        idempotency: &Idempotency,
    ) -> Result<Option<CreatedRun>, RunError> {
        let Some((run, digest)) = self.state.run_for_key(idempotency).await? else { return Ok(None) };
        if digest != idempotency.digest {
            return Err(RunError::KeyReused);
        }
        let run = self.state.run_with_benchmarks(run).await?.ok_or(RunError::EarlierRunDeleted)?;
        Ok(Some(CreatedRun { run, is_new: false, ignored: Vec::new(), warnings: Vec::new() }))
    }

    /// Returns the run of an identical concurrent order that was faster.
    pub(crate) async fn concurrently_created_run(
        &self,
        idempotency: Option<&Idempotency>,
    ) -> Result<CreatedRun, RunError> {
        let earlier = match idempotency {
            Some(idempotency) => self.existing_run(idempotency).await?,
            None => None,
        };
        earlier.ok_or(RunError::NotCreated)
    }
}
