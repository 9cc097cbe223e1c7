//! Runs as named on the command line, and the short ids that tables show.

use std::fmt;
use std::str::FromStr;

use bench_domain::RunId;

use crate::client::Client;
use crate::exit::Problem;
use crate::format;
use crate::views::{Run, RunsPage};

/// Minimum number of hexadecimal digits that name a run.
const DIGITS_MIN: usize = 4;
/// Number of hexadecimal digits of a whole id.
const DIGITS: usize = 32;
/// Number of hexadecimal digits of ids in tables.
const SHORT_DIGITS: usize = 8;
/// Name of the newest run.
pub(crate) const LATEST: &str = "latest";
/// Number of runs per page.
const PAGE: u64 = 200;
/// Maximum number of runs that a message lists.
const LISTED_MAX: usize = 5;

/// Run as named on the command line: by its id, by the first digits of its id, or as the newest one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RunRef {
    /// The whole id.
    Id(RunId),
    /// The first digits of the id, in lower case without hyphens.
    Prefix(String),
    /// The newest run.
    Latest,
}

impl FromStr for RunRef {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim().to_ascii_lowercase();
        if text == LATEST {
            return Ok(Self::Latest);
        }
        if let Ok(id) = text.parse() {
            return Ok(Self::Id(id));
        }
        let digits = text.replace('-', "");
        let is_prefix =
            (DIGITS_MIN..DIGITS).contains(&digits.len()) && digits.bytes().all(|c| c.is_ascii_hexdigit());
        if is_prefix {
            return Ok(Self::Prefix(digits));
        }
        Err(format!(
            "it must be a run's id, at least the first {DIGITS_MIN} digits of it, or `{LATEST}`; `bench runs` lists the runs"
        ))
    }
}

impl fmt::Display for RunRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Id(id) => id.fmt(f),
            Self::Prefix(digits) => f.write_str(digits),
            Self::Latest => f.write_str(LATEST),
        }
    }
}

impl RunRef {
    /// Finds the run. A whole id needs no request, so the run may not exist.
    ///
    /// # Errors
    /// If there is no such run, or several ids start with the digits.
    pub(crate) async fn resolve(&self, client: &Client) -> anyhow::Result<RunId> {
        let found = match self {
            Self::Id(id) => return Ok(*id),
            Self::Latest => {
                let page: RunsPage = client.get("/api/runs?limit=1").await?;
                page.runs
            }
            Self::Prefix(digits) => starting_with(client, digits).await?,
        };
        match found.as_slice() {
            [] => Err(self.missing().into()),
            [only] => {
                let parsed = only.id.parse();
                parsed
                    .map_err(|_| Problem::failure("unexpected answer of the server: it names no run").into())
            }
            several => Err(self.ambiguous(several).into()),
        }
    }

    /// Reports that the run doesn't exist.
    pub(crate) fn missing(&self) -> Problem {
        match self {
            Self::Latest => {
                Problem::failure("there are no runs yet").hint("`bench run --model oracle --demo` starts one")
            }
            Self::Id(_) | Self::Prefix(_) => {
                Problem::failure(format!("there is no run `{self}`")).hint("`bench runs` lists the runs")
            }
        }
    }

    fn ambiguous(&self, found: &[Run]) -> Problem {
        let short = ShortIds::new(found.iter().map(|run| run.id.as_str()));
        let line = |run: &Run| {
            format!(
                "{} ({}, {} UTC)",
                short.get(&run.id),
                run.leveled_model(),
                format::minute(run.created_at)
            )
        };
        let mut listed = found.iter().take(LISTED_MAX).map(line).collect::<Vec<_>>().join(", ");
        if found.len() > LISTED_MAX {
            listed.push_str(&format!(" and {} more", found.len() - LISTED_MAX));
        }
        Problem::usage(format!("the ids of {} runs start with `{self}`", found.len()))
            .hint(format!("give more digits: {listed}"))
    }
}

/// Returns the runs whose ids start with these digits, newest first.
async fn starting_with(client: &Client, digits: &str) -> anyhow::Result<Vec<Run>> {
    let (mut found, mut offset) = (Vec::new(), 0);
    loop {
        let path = format!("/api/runs?id_prefix={digits}&limit={PAGE}&offset={offset}");
        let page: RunsPage = client.get(&path).await?;
        let read = page.runs.len() as u64;
        offset += read;
        // An older server ignores the prefix and returns all runs.
        found.extend(page.runs.into_iter().filter(|run| run.id.replace('-', "").starts_with(digits)));
        if read == 0 || offset >= page.total {
            return Ok(found);
        }
    }
}

/// Length to which the ids of a list can be shortened without confusing two of them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ShortIds {
    chars: usize,
}

impl ShortIds {
    /// Chooses the length for a list of ids: 8 digits, or more if two of them have these in common.
    pub(crate) fn new<'a>(ids: impl IntoIterator<Item = &'a str>) -> Self {
        let mut ids: Vec<&str> = ids.into_iter().collect();
        ids.sort_unstable();
        ids.dedup();
        // In a sorted list, the ids with most in common are neighbors.
        let common = ids.iter().zip(ids.iter().skip(1)).map(|(one, other)| {
            one.bytes().zip(other.bytes()).take_while(|(one, other)| one == other).count()
        });
        Self { chars: common.max().map_or(SHORT_DIGITS, |common| SHORT_DIGITS.max(common + 1)) }
    }

    /// Returns the short form of an id of the list.
    pub(crate) fn get(self, id: &str) -> String {
        id.chars().take(self.chars).collect::<String>().trim_end_matches('-').to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "3f2b8c1e-7d4a-4f60-9b1e-0a5c6d7e8f90";

    #[test]
    fn runs_are_named_by_id_prefix_or_as_the_latest() {
        assert_eq!(ID.parse(), Ok(RunRef::Id(ID.parse().unwrap())));
        assert_eq!(ID.to_uppercase().replace('-', "").parse(), Ok(RunRef::Id(ID.parse().unwrap())));
        assert_eq!("3F2B".parse(), Ok(RunRef::Prefix("3f2b".into())));
        assert_eq!("3f2b8c1e-7d4".parse(), Ok(RunRef::Prefix("3f2b8c1e7d4".into())));
        assert_eq!(" latest ".parse(), Ok(RunRef::Latest));
        for wrong in ["", "3f2", "newest", "3f2g", "../x", &format!("{ID}0"), "----"] {
            assert!(wrong.parse::<RunRef>().unwrap_err().contains("at least the first 4 digits"), "{wrong}");
        }
    }

    #[test]
    fn short_ids_tell_the_runs_of_a_list_apart() {
        let other = "3f2b8c1e-7d5a-4f60-9b1e-0a5c6d7e8f90";
        assert_eq!(ShortIds::new([ID]).get(ID), "3f2b8c1e");
        assert_eq!(ShortIds::new([ID, ID]).get(ID), "3f2b8c1e");
        let short = ShortIds::new([other, "00000000-0000-4000-8000-000000000000", ID]);
        assert_eq!((short.get(ID).as_str(), short.get(other).as_str()), ("3f2b8c1e-7d4", "3f2b8c1e-7d5"));
        for shown in [short.get(ID), ShortIds::new([ID]).get(ID)] {
            assert!(
                matches!(shown.parse(), Ok(RunRef::Prefix(digits)) if ID.replace('-', "").starts_with(&digits))
            );
        }
    }

    #[test]
    fn an_ambiguous_prefix_lists_its_runs() {
        let run = |id: &str| -> Run {
            serde_json::from_value(serde_json::json!({
                "id": id, "status": "succeeded", "model_slug": "m", "provider": "chutes",
                "created_at": "2026-01-02T03:04:05Z", "benchmarks": [],
            }))
            .unwrap()
        };
        let other = "3f2b0000-7d5a-4f60-9b1e-0a5c6d7e8f90";
        let problem = RunRef::Prefix("3f2b".into()).ambiguous(&[run(ID), run(other)]);
        assert_eq!(problem.to_string(), "the ids of 2 runs start with `3f2b`");
        assert_eq!(
            problem.advice(),
            Some(
                "give more digits: 3f2b8c1e (chutes/m, 2026-01-02 03:04 UTC), 3f2b0000 (chutes/m, 2026-01-02 03:04 UTC)"
            )
        );
        let many: Vec<Run> = (0..9).map(|n| run(&ID.replace("3f2b8", &format!("3f2b{n}")))).collect();
        assert!(RunRef::Prefix("3f2b".into()).ambiguous(&many).advice().unwrap().ends_with(" and 4 more"));
    }
}
