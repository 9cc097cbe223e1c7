//! Samples that a requeue repeats.

use bench_domain::RunId;
use clap::Args;
use serde_json::Value;

use super::budget::BudgetArgs;
use crate::client::Client;
use crate::episodes::{self, Episode};
use crate::exit::Problem;
use crate::views::Run;

#[derive(Debug, Clone, Default, Args)]
pub(crate) struct RepeatedArgs {
    /// Repeat only samples that ended as infrastructure-errors; allowed for runs that succeeded, too
    #[arg(long)]
    pub(crate) errors: bool,
    /// Of the samples that have ended, repeat only one of the item with this id, which must have no grade; allowed for runs
    /// that succeeded, too
    #[arg(long, value_name = "ID", conflicts_with = "errors")]
    item: Option<String>,
    /// Number of the sample among those of its item, from 1 [default: the only one without a grade]
    #[arg(long, value_name = "N", requires = "item", value_parser = clap::value_parser!(u32).range(1..))]
    sample: Option<u32>,
    /// Benchmark of the item, if several benchmarks of the run have an item with this id
    #[arg(long, value_name = "NAME", requires = "item")]
    benchmark: Option<String>,
}

/// Samples that a requeue repeats: all without a grade, only infrastructure-errors, or one.
#[derive(Debug, Clone, Default)]
pub(crate) struct Repeated {
    /// True if only infrastructure-errors are repeated.
    pub(crate) errors: bool,
    /// The only sample.
    pub(crate) only: Option<Episode>,
}

impl RepeatedArgs {
    /// Finds the samples that are meant.
    ///
    /// # Errors
    /// If no sample or several are meant, or the one that is meant was graded.
    pub(crate) async fn find(&self, client: &Client, run: &Run, id: RunId) -> anyhow::Result<Repeated> {
        let Some(item) = &self.item else { return Ok(Repeated { errors: self.errors, only: None }) };
        let mut found = Vec::new();
        for benchmark in &run.benchmarks {
            let name = benchmark.benchmark_name.as_str();
            if self.benchmark.as_deref().is_none_or(|meant| meant == name) {
                found.extend(episodes::samples(client, id, name).await?);
            }
        }
        choose(found, item, self.sample, id).map(|only| Repeated { errors: false, only: Some(only) })
    }
}

impl Repeated {
    /// Builds the body of a requeue request, or returns `None` if it would be empty.
    pub(crate) fn body(&self, budget: BudgetArgs) -> Option<Value> {
        let mut body = budget.body().and_then(|body| body.as_object().cloned()).unwrap_or_default();
        if let Some(only) = &self.only {
            body.insert("benchmark".to_owned(), only.benchmark.as_str().into());
            body.insert("position".to_owned(), only.position.into());
            body.insert("sample".to_owned(), only.sample.into());
        } else if self.errors {
            body.insert("errors".to_owned(), true.into());
        }
        (!body.is_empty()).then_some(Value::Object(body))
    }

    /// Describes the samples after the word *Repeating*.
    pub(crate) fn shown(&self) -> String {
        match &self.only {
            Some(only) => format!("sample {} of `{}`", only.number(), only.task()),
            None if self.errors => "the infrastructure-errors".to_owned(),
            None => "the missing samples".to_owned(),
        }
    }
}

/// Returns the one sample of an item that is meant.
fn choose(found: Vec<Episode>, item: &str, sample: Option<u32>, run: RunId) -> anyhow::Result<Episode> {
    let of_item: Vec<Episode> = found.into_iter().filter(|one| one.is_of_item(item)).collect();
    let meant = |one: &&Episode| match sample {
        Some(number) => one.number() == number,
        None => one.score.is_none(),
    };
    let list = format!("`bench runs {run} --items` lists the samples");
    match of_item.iter().filter(meant).collect::<Vec<_>>().as_slice() {
        [one] if one.score.is_some() => {
            let why = format!(
                "sample {} of `{item}` was graded, and only samples without a grade are repeated",
                one.number()
            );
            Err(Problem::usage(why).hint("order another run to ask again for a graded answer").into())
        }
        [one] => Ok((*one).clone()),
        [] if of_item.is_empty() => {
            Err(Problem::usage(format!("--item: the run has no item `{item}`")).hint(list).into())
        }
        [] => {
            let why = match sample {
                Some(number) => format!("--sample: `{item}` has no sample {number}"),
                None => format!(
                    "all samples of `{item}` were graded, and only samples without a grade are repeated"
                ),
            };
            Err(Problem::usage(why).hint(list).into())
        }
        several => {
            let named: Vec<String> =
                several.iter().map(|one| format!("{} of {}", one.number(), one.benchmark)).collect();
            Err(Problem::usage(format!("several samples of `{item}` are meant: {}", named.join(", ")))
                .hint("name one with --sample, and --benchmark if several benchmarks have it")
                .into())
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn episode(item: &str, sample: u32, score: Option<f64>) -> Episode {
        let fields = json!({ "id": "x", "item_id": item, "position": 7, "sample": sample, "score": score });
        let mut episode: Episode = serde_json::from_value(fields).unwrap();
        episode.benchmark = "code_lab".to_owned();
        episode
    }

    #[test]
    fn one_sample_without_a_grade_is_chosen() {
        let all = || {
            vec![
                episode("a", 0, Some(0.0)),
                episode("a", 1, None),
                episode("b", 0, None),
                episode("b", 1, None),
                episode("c", 0, Some(1.0)),
            ]
        };
        let run = RunId::random();
        let chosen = |item: &str, sample| choose(all(), item, sample, run);
        let only = Repeated { errors: false, only: Some(chosen("a", None).unwrap()) };
        assert_eq!(
            only.body(BudgetArgs::default()),
            Some(json!({ "benchmark": "code_lab", "position": 7, "sample": 1 }))
        );
        assert_eq!(only.shown(), "sample 2 of `a`");
        assert_eq!(chosen("b", Some(2)).unwrap().sample, 1);
        for (item, sample, part) in [
            ("a", Some(1), "sample 1 of `a` was graded"),
            ("c", None, "all samples of `c` were graded"),
            ("b", None, "several samples of `b` are meant: 1 of code_lab, 2 of code_lab"),
            ("b", Some(3), "`b` has no sample 3"),
            ("d", None, "the run has no item `d`"),
        ] {
            let why = chosen(item, sample).unwrap_err().to_string();
            assert!(why.contains(part), "{why}");
        }
        assert_eq!(Repeated::default().body(BudgetArgs::default()), None);
    }
}
