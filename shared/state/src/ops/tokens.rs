//! Tokens of answers per hour.

use std::time::Duration;

use aws_sdk_dynamodb::error::SdkError;
use bench_domain::Timestamp;

use super::HOUR_US;
use crate::attributes::{Reader, number, text};
use crate::client::expires_at;
use crate::keys::{OPS_TOKENS, key};
use crate::{State, StateError};

/// Maximum number of hours that can be requested: a week.
pub const TOKEN_HOURS_MAX: u32 = 168;
/// Seconds that an hour's sum is kept after its first write.
const FORGET_AFTER_S: i64 = (TOKEN_HOURS_MAX as i64 + 24) * 3_600;
/// Maximum duration of a write.
const WRITE_TIMEOUT: Duration = Duration::from_secs(2);

/// Tokens of prompts and of answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TokenSum {
    /// Tokens of prompts.
    pub input_tokens: u64,
    /// Tokens of answers.
    pub output_tokens: u64,
}

impl TokenSum {
    /// Returns the sum of both.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            input_tokens: self.input_tokens.saturating_add(other.input_tokens),
            output_tokens: self.output_tokens.saturating_add(other.output_tokens),
        }
    }
}

fn hour_sort(hour: i64) -> String {
    format!("{hour:010}")
}

impl State {
    /// Adds tokens to the sum of the hour of `at`.
    ///
    /// # Errors
    /// If nothing was written; the tokens can be added again. A write without a response counts as done: the sums are
    /// only displayed, and may miss tokens but never count them twice.
    pub async fn add_tokens(&self, at: Timestamp, tokens: TokenSum) -> Result<(), StateError> {
        let write = self
            .once
            .update_item()
            .table_name(&self.table)
            .set_key(Some(key(OPS_TOKENS, hour_sort(at.as_micros().div_euclid(HOUR_US)))))
            .update_expression("ADD input_tokens :input, output_tokens :output SET expires_at = :expires")
            .expression_attribute_values(":input", number(tokens.input_tokens))
            .expression_attribute_values(":output", number(tokens.output_tokens))
            .expression_attribute_values(":expires", number(expires_at(at, FORGET_AFTER_S)))
            .send();
        match tokio::time::timeout(WRITE_TIMEOUT, write).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) => match &error {
                SdkError::ServiceError(service) if service.raw().status().as_u16() < 500 => {
                    Err(StateError::sdk("add tokens", error))
                }
                SdkError::ConstructionFailure(_) => Err(StateError::sdk("add tokens", error)),
                _ => {
                    tracing::debug!(%error, "Whether tokens were added is not known");
                    Ok(())
                }
            },
            Err(_) => Ok(()),
        }
    }

    /// Returns the tokens of the last `hours` hours, including the hour of `now`. They are whole hours, so the sum
    /// reaches back up to one hour further than requested. `hours` is limited to [`TOKEN_HOURS_MAX`].
    pub async fn tokens_by_hour(
        &self,
        now: Timestamp,
        hours: u32,
    ) -> Result<Vec<(Timestamp, TokenSum)>, StateError> {
        let this_hour = now.as_micros().div_euclid(HOUR_US);
        let first = this_hour - i64::from(hours.clamp(1, TOKEN_HOURS_MAX));
        let mut pages = self
            .client
            .query()
            .table_name(&self.table)
            .key_condition_expression("pk = :tokens AND sk BETWEEN :first AND :last")
            .expression_attribute_values(":tokens", text(OPS_TOKENS))
            .expression_attribute_values(":first", text(hour_sort(first)))
            .expression_attribute_values(":last", text(hour_sort(this_hour)))
            .into_paginator()
            .items()
            .send();
        let mut sums = Vec::new();
        while let Some(record) = pages.next().await {
            let record = record.map_err(|error| StateError::sdk("read the sums of tokens", error))?;
            let reader = Reader::new(&record);
            let hour: i64 = reader.text("sk")?.parse().map_err(|e| StateError::damaged(reader.key(), e))?;
            let sum = TokenSum {
                input_tokens: reader.number_or("input_tokens", 0)?,
                output_tokens: reader.number_or("output_tokens", 0)?,
            };
            sums.push((Timestamp::from_micros(hour.saturating_mul(HOUR_US)), sum));
        }
        Ok(sums)
    }
}
