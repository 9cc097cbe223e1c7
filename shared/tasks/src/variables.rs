//! Check of the variables that an order gives to its tasks.

use std::collections::BTreeSet;

use bench_domain::similar::most_similar;
use bench_state::TaskRecord;
use futures_util::{StreamExt, TryStreamExt, stream};

use crate::check::CheckedTask;
use crate::error::TaskError;
use crate::store::{TaskStore, facts_key};

/// Number of objects to read at once.
const READS_AT_ONCE: usize = 16;
/// Maximum number of variables that a refusal names.
const SHOWN_MAX: usize = 20;

impl TaskStore {
    /// Checks that each of the variables is one that any of the tasks asks for. Tasks that an older version checked may ask
    /// for any.
    ///
    /// # Errors
    /// [`TaskError::UnknownVariable`] with the first other variable, or if the facts about a task can't be read.
    pub async fn check_variables(&self, tasks: &[TaskRecord], given: &[String]) -> Result<(), TaskError> {
        if given.is_empty() {
            return Ok(());
        }
        // The futures are collected first: a borrowing closure would make this future not `Send`.
        let reads: Vec<_> = tasks.iter().map(|task| self.variables(task)).collect();
        let all: Vec<Option<Vec<String>>> = stream::iter(reads).buffered(READS_AT_ONCE).try_collect().await?;
        match all.into_iter().collect::<Option<Vec<_>>>() {
            Some(all) => check(given, &all.into_iter().flatten().collect()),
            None => Ok(()),
        }
    }

    /// Returns the variables that a task asks for; `None` if they aren't known.
    async fn variables(&self, task: &TaskRecord) -> Result<Option<Vec<String>>, TaskError> {
        let facts: Option<CheckedTask> = self.blobs.get_json(&facts_key(&task.facts.content_hash)).await?;
        Ok(facts.and_then(|facts| facts.variables))
    }
}

fn check(given: &[String], known: &BTreeSet<String>) -> Result<(), TaskError> {
    let Some(unknown) = given.iter().find(|name| !known.contains(*name)) else { return Ok(()) };
    let advice = match most_similar(unknown, known.iter().map(String::as_str)) {
        Some(meant) => format!("did you mean `env.{meant}`?"),
        None if known.is_empty() => "they ask for no variables".to_owned(),
        None => {
            let shown: Vec<String> = known.iter().take(SHOWN_MAX).map(|name| format!("`{name}`")).collect();
            let more = if known.len() > SHOWN_MAX { " and others" } else { "" };
            format!("they ask for {}{more}", shown.join(", "))
        }
    };
    Err(TaskError::UnknownVariable { name: unknown.clone(), advice })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_that_may_be_meant_is_named() {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let refused = |given: &[&str], known: &[&str]| {
            let checked = check(&names(given), &names(known).into_iter().collect());
            checked.err().map(|error| error.to_string())
        };
        assert_eq!(refused(&["NEEDED"], &["NEEDED", "OTHER"]), None);
        for (known, advice) in [
            (vec!["NEEDED", "OTHER"], "did you mean `env.NEEDED`?"),
            (vec!["OTHER", "A"], "they ask for `A`, `OTHER`"),
            (vec![], "they ask for no variables"),
        ] {
            let expected =
                format!("unknown option `env.NEDED`: none of the tasks asks for this variable; {advice}");
            assert_eq!(refused(&["NEDED"], &known), Some(expected));
        }
    }
}
