//! Roles of the models that a run asks.

use serde::{Deserialize, Serialize};

use crate::run::{AuthMode, ModelRef};
use crate::{Code, RunSpec, Spending, Stage, Usage};

/// Purpose for which a run asks a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelRole {
    /// Answers of the model that is measured.
    #[default]
    Model,
    /// Replies of the judge.
    Judge,
    /// Messages of the simulated user.
    UserModel,
}

impl ModelRole {
    /// All roles.
    pub const ALL: [Self; 3] = [Self::Model, Self::Judge, Self::UserModel];

    /// Returns the stable name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Model => "model",
            Self::Judge => "judge",
            Self::UserModel => "user_model",
        }
    }

    /// Returns the name in sentences.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Model => "model",
            Self::Judge => "judge",
            Self::UserModel => "user model",
        }
    }

    /// Returns the stage that asks the model in this role.
    pub const fn stage(self) -> Stage {
        match self {
            Self::Model => Stage::Answer,
            Self::Judge => Stage::Judge,
            Self::UserModel => Stage::Episode,
        }
    }

    /// Assigns tokens to this role's part of the spending.
    pub const fn spending(self, usage: Usage) -> Spending {
        match self {
            Self::Model => Spending { answers: usage, judge: Usage::ZERO, user: Usage::ZERO },
            Self::Judge => Spending::judge_only(usage),
            Self::UserModel => Spending::user_only(usage),
        }
    }

    /// Returns the code for a failure of this role's provider. `code` is that of the same failure of the model's provider.
    #[must_use]
    pub const fn code(self, code: Code) -> Code {
        match (self, code) {
            (Self::Judge, code) => code.for_judge(),
            (Self::UserModel, Code::KeyRequired) => Code::UserKeyRequired,
            (Self::Model | Self::UserModel, code) => code,
        }
    }

    /// Adds to a cause that the judge or the user model could not be asked. Returns causes of the measured model unchanged.
    pub fn explain(self, cause: &str) -> String {
        match self {
            Self::Model => cause.to_owned(),
            Self::Judge | Self::UserModel => format!("the {} could not be asked: {cause}", self.label()),
        }
    }
}

impl RunSpec {
    /// Returns the model that the run asks in a role, and whose account pays for it; `None` if it asks none.
    pub fn asked_model(&self, role: ModelRole) -> Option<(&ModelRef, AuthMode)> {
        match role {
            ModelRole::Model => Some((&self.model, self.auth)),
            ModelRole::Judge => self.judge.as_ref().map(|judge| (&judge.model, judge.auth)),
            ModelRole::UserModel => self.user.as_ref().map(|user| (&user.model, user.auth)),
        }
    }

    /// Returns true if a key of the caller pays for the model in this role.
    pub fn uses_callers_key(&self, role: ModelRole) -> bool {
        self.asked_model(role).is_some_and(|(_, auth)| auth == AuthMode::ApiKey)
    }

    /// Returns true if keys of the caller pay for any model.
    pub fn uses_callers_keys(&self) -> bool {
        ModelRole::ALL.into_iter().any(|role| self.uses_callers_key(role))
    }

    /// Returns true if the access token of a signed-in user pays for any model.
    pub fn uses_session(&self) -> bool {
        ModelRole::ALL
            .into_iter()
            .any(|role| self.asked_model(role).is_some_and(|(_, auth)| auth == AuthMode::Idp))
    }

    /// Returns true if the model in this role has the address of the measured one, so that a key for one is for both.
    pub fn shares_provider(&self, role: ModelRole) -> bool {
        self.asked_model(role).is_some_and(|(model, _)| {
            model.provider == self.model.provider && model.base_url == self.model.base_url
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::UserSpec;
    use crate::{Generation, RunId, testing};

    #[test]
    fn stored_names_are_the_stable_ones() {
        for role in ModelRole::ALL {
            assert_eq!(serde_json::to_value(role).unwrap(), role.as_str());
            assert_eq!(role.label().replace(' ', "_"), role.as_str());
        }
    }

    #[test]
    fn keys_of_every_role_are_the_callers_keys() {
        let simulator = testing::model("openrouter/acme/user");
        for auth in [AuthMode::System, AuthMode::Idp, AuthMode::ApiKey] {
            let mut spec = testing::spec(RunId::random(), testing::template("chutes/a/b", "mmlu_pro"));
            assert!(!spec.uses_callers_keys());
            let generation = Generation::default();
            spec.user = Some(UserSpec { model: simulator.clone(), auth, generation, price: None });
            assert_eq!(spec.uses_callers_keys(), auth == AuthMode::ApiKey, "{auth:?}");
        }
    }

    #[test]
    fn a_key_of_the_user_model_has_a_code_of_its_own() {
        let codes = ModelRole::ALL.map(|role| role.code(Code::KeyRequired));
        assert_eq!(codes, [Code::KeyRequired, Code::JudgeKeyRequired, Code::UserKeyRequired]);
        assert_eq!(ModelRole::UserModel.code(Code::RateLimited), Code::RateLimited);
    }
}
