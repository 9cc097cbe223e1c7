//! Models that a run asks beside the measured one, judges and user models: found like it, each with a key that pays for it.

use bench_domain::run::{AuthMode, ModelRef};
use bench_domain::{ModelRole, Price, Secret};
use bench_inference::{ModelName, ModelSource};

use crate::{FoundModel, Order, Orderer, Orders, RunError, Standing};

/// Model beside the measured one, with what pays for it.
#[derive(Debug, Clone)]
pub(crate) struct FoundHelper {
    pub(crate) model: ModelRef,
    pub(crate) auth: AuthMode,
    /// Caller's own key, if it pays.
    pub(crate) key: Option<Secret>,
    pub(crate) price: Option<Price>,
}

impl Orders {
    /// Finds a model that a run asks in another role than the measured model, and the key that pays for it.
    ///
    /// The key is the caller's own for this role; otherwise the caller's key, if it is for the same provider; otherwise the
    /// operator's. Callers that may not spend the operator's money can use the operator's key only with models for which
    /// `is_offered` is true.
    ///
    /// # Errors
    /// Those for models, as errors about this role; also if the model needs a key of the caller.
    pub(crate) async fn find_helper(
        &self,
        role: ModelRole,
        order: &Order,
        measured: &ModelRef,
        orderer: &Orderer,
        is_offered: impl Fn(&FoundModel) -> bool,
    ) -> Result<FoundHelper, RunError> {
        let base_url = order.trusted.base_url.as_deref();
        let same = |source: Option<ModelSource>| {
            source.is_some_and(|source| source.as_str() == measured.provider)
                && measured.base_url.as_deref() == base_url
        };
        let key_for = |source: Option<ModelSource>| {
            orderer.key_of(role).or_else(|| orderer.api_key.as_ref().filter(|_| same(source))).cloned()
        };
        let asker = |key| Orderer { api_key: key, judge_key: None, user_key: None, ..orderer.clone() };
        let named = ModelName::parse(&order.model).ok().map(|name| name.source);
        let named = order.provider.as_deref().and_then(ModelSource::from_name).or(named);
        let found = self.find_model(order, Some(&asker(key_for(named)))).await;
        let mut found = found.map_err(|error| error.about(role))?;
        if role == ModelRole::UserModel {
            found = simulating(found)?;
        }
        let is_remote = found.source.is_remote();
        if !is_remote {
            found.model.base_url = None;
        }
        let asker = asker(key_for(Some(found.source)).filter(|_| is_remote));
        let is_paid = asker.api_key.is_some()
            || (self.runs.config.local && !matches!(orderer.standing, Standing::User(_)))
            || asker.auth_for(&found.model) == AuthMode::Idp
            || orderer.standing.spends_operators_money()
            || is_offered(&found);
        if is_remote && !is_paid {
            let name = found.model.qualified();
            return Err(match role {
                ModelRole::UserModel => RunError::UserNeedsKey(name),
                ModelRole::Judge | ModelRole::Model => RunError::JudgeNeedsKey(name),
            });
        }
        self.check_available(&found, &asker).await.map_err(|error| error.about(role))?;
        let price = self.price_for(order, &found, &asker).await.map_err(|error| error.about(role))?;
        let auth = asker.auth_for(&found.model);
        Ok(FoundHelper { model: found.model, auth, key: asker.api_key, price })
    }
}

/// Refuses sources of answers that can't simulate users, since they aren't models.
pub(crate) fn simulating(found: FoundModel) -> Result<FoundModel, RunError> {
    match found.source.is_remote() {
        true => Ok(found),
        false => Err(RunError::NotAUserModel(found.model.qualified())),
    }
}
