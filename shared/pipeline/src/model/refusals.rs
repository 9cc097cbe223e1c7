//! Handles requests that a provider refuses for a reason that all requests share, such as a setting that the
//! model doesn't support.
//!
//! A refused request is never sent again unchanged: its sample ends after one refusal. If the first samples
//! of a run all get the same refusal, the run is stopped, since the others would get it, too.
//!
//! Each process counts the refusals that it gets. Counts of several processes add up in the state, which is
//! written and read only while a provider refuses and has answered nothing. Once the provider has answered a
//! request of the run, a refusal concerns one sample only. Before a run is stopped, this process waits for
//! its requests in flight and sends no new ones, since refusals arrive sooner than answers.
//!
//! A run that is requeued or resumed starts over: earlier answers and refusals say nothing about what the
//! provider accepts now.

use bench_domain::sample::backoff;
use bench_domain::{Code, ModelRole, Timestamp, Verdict};
use bench_inference::{Failure, FailureKind, GaveUpBy};
use bench_state::Shards;

use crate::Pipeline;
use crate::context::{ClaimedSample, Conclusion, ModelClient, REFUSED_SAMPLES};
use crate::error::PipelineError;

impl Pipeline {
    /// Ends a sample whose request was refused, and stops the run if its first samples were all refused.
    pub(super) async fn handle_refusal(
        &self,
        claimed: &ClaimedSample,
        client: &ModelClient,
        failure: &Failure,
    ) -> Result<(), PipelineError> {
        let now = bench_clock::now();
        if failure.gave_up_by == GaveUpBy::Provider
            && let Some(digest) = client.refusals.note_refusal(&claimed.sample, failure, now)
        {
            let since = claimed.run.resumption.map_or(Timestamp::default(), |resumption| resumption.at);
            let stage = client.role.stage();
            let noted = self.state.note_refusal(stage, &claimed.sample, since, &digest, now).await?;
            client.refusals.update_shared_count(&digest, noted);
            self.stop_if_refused(claimed, client).await?;
        }
        let why = client.role.explain(&failure.cause);
        self.end(claimed, Verdict::ungraded(client.role.code(failure.code()), why)).await
    }

    /// Returns the reason not to send a request now: none, a wait while the provider has only refused so far,
    /// or the end of the run.
    pub(super) async fn send_blocked(
        &self,
        claimed: &ClaimedSample,
        client: &ModelClient,
    ) -> Result<Option<SendBlocked>, PipelineError> {
        let refusals = &client.refusals;
        if refusals.conclusion(refused_samples(claimed), bench_clock::now()) == Conclusion::Nothing {
            return Ok(None);
        }
        if self.stop_if_refused(claimed, client).await? {
            return Ok(Some(SendBlocked::RunOver));
        }
        if refusals.is_answered() {
            return Ok(None);
        }
        let waits = claimed.record.history.waits;
        Ok(Some(SendBlocked::Wait(Failure {
            kind: FailureKind::RateLimited,
            status: None,
            cause: "the provider has refused all requests so far, and some are under way".to_owned(),
            request_id: None,
            retry_after: Some(backoff(waits.saturating_add(1))),
            gave_up_by: GaveUpBy::Runner,
            usage: None,
        })))
    }

    /// Stops the run if all known requests of it were refused alike. Returns true if the run is over.
    async fn stop_if_refused(
        &self,
        claimed: &ClaimedSample,
        client: &ModelClient,
    ) -> Result<bool, PipelineError> {
        let conclusion = client.refusals.conclusion(refused_samples(claimed), bench_clock::now());
        let Conclusion::AllRefused { cause, samples } = conclusion else { return Ok(false) };
        if self.has_answers(claimed, client.role).await? {
            client.refusals.note_answer();
            return Ok(false);
        }
        let who = match client.role {
            ModelRole::Model => "the provider",
            ModelRole::Judge => "the judge's provider",
            ModelRole::UserModel => "the user model's provider",
        };
        let hint = hint(&cause, client.role);
        let alike = match samples {
            1 => format!("{who} refused the only sample"),
            _ => format!("{who} refused the first {samples} samples alike"),
        };
        let why = format!("{alike}: {cause}; {hint}");
        self.close_run(claimed, Code::AllRequestsRejected, &why).await?;
        Ok(true)
    }

    /// Returns true if a request of this run in this role was answered since the run was ordered or last
    /// requeued or resumed, as far as its counters show. Every answer of a provider counts some tokens,
    /// estimated ones if necessary. A grade alone proves nothing, since it may come from an earlier answer.
    async fn has_answers(&self, claimed: &ClaimedSample, role: ModelRole) -> Result<bool, PipelineError> {
        let run = claimed.sample.run;
        let Some(found) = self.state.run_with_benchmarks(run).await? else { return Ok(false) };
        let shards: Vec<Shards> = found.benchmarks.iter().filter_map(Shards::from_benchmark).collect();
        let count = self.state.run_count(run, &shards).await?;
        let before = found.run.resumption;
        Ok(match role {
            ModelRole::Model => count.spent().total() > before.map_or(0, |before| before.answer_tokens),
            ModelRole::Judge => count.judge_spent().total() > before.map_or(0, |before| before.judge_tokens),
            ModelRole::UserModel => {
                count.user_spent().total() > before.map_or(0, |before| before.user_tokens)
            }
        })
    }
}

impl ModelClient {
    /// Returns a hint for a model that the provider doesn't have.
    pub(super) fn model_hint(&self, failure: &Failure) -> Option<String> {
        let is_refused =
            failure.gave_up_by == GaveUpBy::Provider && matches!(failure.status, Some(400 | 404 | 422));
        (is_refused && names_model(&failure.cause.to_lowercase())).then(|| model_hint(self.role.label()))
    }
}

/// Returns the number of samples that must be refused alike. Lower than the constant only if the run has
/// fewer samples.
fn refused_samples(claimed: &ClaimedSample) -> u64 {
    claimed.run.samples().unwrap_or(REFUSED_SAMPLES).clamp(1, REFUSED_SAMPLES)
}

/// Reason why a request isn't sent.
pub(super) enum SendBlocked {
    /// The request has to wait.
    Wait(Failure),
    /// The run is over.
    RunOver,
}

/// Returns a hint on how to resolve a refusal.
fn hint(cause: &str, role: ModelRole) -> String {
    let cause = cause.to_lowercase();
    let names = |words: &[&str]| words.iter().any(|word| cause.contains(word));
    let (is_model, label) = (role == ModelRole::Model, role.label());
    let quoted =
        |name: &str| ["`", "'", "\""].iter().any(|mark| cause.contains(&format!("{mark}{name}{mark}")));
    if names(&["temperature"]) {
        return match role {
            ModelRole::Model => {
                "start a new run with `--omit temperature`, which leaves the temperature to the provider, or with one that \
                 the model takes, such as `--temperature 1`"
                    .to_owned()
            }
            ModelRole::Judge => "start a new run with a temperature that the judge takes, such as `--judge-temperature 1`".to_owned(),
            ModelRole::UserModel => {
                "start a new run with a temperature that the user model takes, such as `--user-temperature 1`".to_owned()
            }
        };
    }
    let names_max_tokens = names(&["max_tokens", "max_completion_tokens", "max tokens", "maximum tokens"]);
    if names(&["max_completion_tokens"]) && is_model {
        "start a new run with a `--max-tokens` that the model takes, or choose the name of the field with \
         `--max-tokens-field`"
            .to_owned()
    } else if names_max_tokens && is_model {
        "start a new run with a `--max-tokens` that the model takes".to_owned()
    } else if names_max_tokens && role == ModelRole::Judge {
        "start a new run with a `--judge-max-tokens` that the judge takes".to_owned()
    } else if is_model && names(&["top_p"]) {
        "start a new run with `--omit top_p`, or with a `--top-p` that the model takes".to_owned()
    } else if is_model && quoted("stop") {
        "start a new run with `--omit stop`, or with other texts for `--stop`".to_owned()
    } else if role == ModelRole::Judge && names(&["seed"]) {
        "start a new run without `--judge-seed`".to_owned()
    } else if names_model(&cause) {
        model_hint(label)
    } else {
        format!(
            "start a new run with settings that the {label} takes, or resume this one once it takes these"
        )
    }
}

/// Returns true if a refusal, in lowercase, is about the name of the model.
fn names_model(cause: &str) -> bool {
    let missing =
        ["not found", "not_found", "unknown", "not exist", "not a valid model", "invalid model", "no such"];
    cause.contains("model") && missing.iter().any(|words| cause.contains(words))
}

fn model_hint(role: &str) -> String {
    format!("check the name of the {role}: `bench models` lists what the provider offers")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_name_what_was_refused() {
        let hint_for = |text| hint(text, ModelRole::Model);
        let temperature = hint_for("temperature is not supported with this model");
        assert!(temperature.contains("`--omit temperature`") && temperature.contains("`--temperature 1`"));
        assert!(hint_for("top_p: out of range").contains("`--omit top_p`"));
        assert!(hint_for("Unsupported parameter: 'stop'").contains("`--omit stop`"));
        assert!(hint_for("Use 'max_completion_tokens' instead").contains("`--max-tokens-field`"));
        assert!(hint_for("Unsupported value: max_tokens").contains("`--max-tokens`"));
        assert!(hint_for("model a/b does not exist").contains("`bench models`"));
        assert!(hint_for("no").contains("resume this one"));
        assert!(hint("temperature: no", ModelRole::Judge).contains("`--judge-temperature 1`"));
        assert!(hint("seed: no", ModelRole::Judge).contains("`--judge-seed`"));
        let of_user = hint("temperature: only 1 is supported", ModelRole::UserModel);
        assert!(of_user.contains("`--user-temperature 1`") && !of_user.contains("--omit"), "{of_user}");
        assert!(hint("max_tokens: no", ModelRole::UserModel).contains("resume this one"));
        // The command separates the advice from the error at the last semicolon.
        for cause in [
            "temperature",
            "max_completion_tokens",
            "max_tokens",
            "top_p",
            "'stop'",
            "seed",
            "unknown model",
            "",
        ] {
            for role in ModelRole::ALL {
                assert!(!hint(cause, role).contains(';'), "{cause}");
            }
        }
    }
}
