//! Releases of the dataset, and the time window.
//!
//! Six files hold the problems in the order of their publication. Release N consists of the first N files; a slice is
//! one file or several consecutive ones.

use bench_items::{DatasetSpec, DemoData, HubSource, IndexEntry, Part, PartFile};

use super::LiveCodeBench;
use super::row::{self, DATE_TAG};
use crate::options::{OptionError, OptionMetadata, Options};
use crate::scorers::sandbox::GradingMode;

pub(super) const RELEASE: &str = "release";
pub(super) const START_DATE: &str = "start_date";
pub(super) const END_DATE: &str = "end_date";
pub(super) const GRADING: &str = GradingMode::OPTION;

pub(super) static OPTIONS: [OptionMetadata; 4] = [
    OptionMetadata {
        name: RELEASE,
        description: "Which problems: release_v1 to release_v6 (all up to that release), release_latest, one slice v1 to v6, or consecutive slices such as v4_v5. Only the files needed are downloaded.",
        default: "release_latest",
    },
    OptionMetadata {
        name: START_DATE,
        description: "Only problems of contests on or after this day, YYYY-MM-DD.",
        default: "",
    },
    OptionMetadata {
        name: END_DATE,
        description: "Only problems of contests up to this day, YYYY-MM-DD. As in the official program, the limit is the start of that day: contests later that day are left out.",
        default: "",
    },
    OptionMetadata {
        name: GRADING,
        description: "Where outputs are compared with the expected ones: isolated (in a process that the program cannot reach) or official (in the program's own process, as in the official program; a program can forge its pass). Both give the same verdicts on programs that do not attack their grader.",
        default: GradingMode::Isolated.as_str(),
    },
];

/// Number of files.
const FILES_COUNT: u8 = 6;

const fn part(split: &'static str) -> Part {
    Part { config: "default", split }
}

static PARTS: [Part; 6] =
    [part("test"), part("test2"), part("test3"), part("test4"), part("test5"), part("test6")];

const fn file(at: usize, path: &'static str) -> PartFile {
    PartFile { part: PARTS[at], path }
}

pub(super) static FILES: [PartFile; 6] = [
    file(0, "test.jsonl"),
    file(1, "test2.jsonl"),
    file(2, "test3.jsonl"),
    file(3, "test4.jsonl"),
    file(4, "test5.jsonl"),
    file(5, "test6.jsonl"),
];

/// Number of problems in each file.
const PROBLEMS: [u64; 6] = [400, 111, 101, 101, 167, 175];

/// Dataset of the files FIRST to LAST, from 1.
struct Slices<const FIRST: usize, const LAST: usize>;

impl<const FIRST: usize, const LAST: usize> Slices<FIRST, LAST> {
    const PARTS: &'static [Part] = PARTS.split_at(LAST).0.split_at(FIRST - 1).1;

    const SPEC: DatasetSpec = DatasetSpec {
        repository: None,
        sources: &[HubSource {
            id: "livecodebench/code_generation_lite",
            revision: None,
            items: Self::PARTS,
            support: &[],
        }],
        gate: None,
        license: "CC (as the dataset's card names it)",
        items: problems(FIRST, LAST),
        demo: DemoData { items: include_str!("../../data/livecodebench.jsonl"), support: &[] },
    };
}

const fn problems(first: usize, last: usize) -> u64 {
    let (mut at, mut sum) = (first - 1, 0);
    while at < last {
        sum += PROBLEMS[at];
        at += 1;
    }
    sum
}

macro_rules! slices {
    ($(($first:literal, $last:literal, $variant:literal)),* $(,)?) => {
        [$(LiveCodeBench {
            first: $first,
            last: $last,
            variant: $variant,
            spec: &Slices::<$first, $last>::SPEC,
            grading: GradingMode::Isolated,
        }),*]
    };
}

/// All problems. Their stored dataset has no variant suffix.
pub(super) const LATEST: LiveCodeBench = SLICES[0];

/// All selectable parts of the dataset; the first is the whole.
const SLICES: [LiveCodeBench; 21] = slices![
    (1, 6, ""),
    (1, 1, "v1"),
    (1, 2, "v1-v2"),
    (1, 3, "v1-v3"),
    (1, 4, "v1-v4"),
    (1, 5, "v1-v5"),
    (2, 2, "v2"),
    (2, 3, "v2-v3"),
    (2, 4, "v2-v4"),
    (2, 5, "v2-v5"),
    (2, 6, "v2-v6"),
    (3, 3, "v3"),
    (3, 4, "v3-v4"),
    (3, 5, "v3-v5"),
    (3, 6, "v3-v6"),
    (4, 4, "v4"),
    (4, 5, "v4-v5"),
    (4, 6, "v4-v6"),
    (5, 5, "v5"),
    (5, 6, "v5-v6"),
    (6, 6, "v6"),
];

static ISOLATED_SLICES: [LiveCodeBench; SLICES.len()] = SLICES;
static OFFICIAL_SLICES: [LiveCodeBench; SLICES.len()] = with_official_grading(SLICES);

const fn with_official_grading<const N: usize>(mut slices: [LiveCodeBench; N]) -> [LiveCodeBench; N] {
    let mut at = 0;
    while at < N {
        slices[at].grading = GradingMode::Official;
        at += 1;
    }
    slices
}

/// Returns the first and the last file of a release or of slices, by name.
fn file_range(name: &str) -> Option<(u8, u8)> {
    let number = |text: &str| {
        let digits = text.strip_prefix('v').filter(|digits| digits.len() == 1)?;
        digits.parse::<u8>().ok().filter(|number| (1..=FILES_COUNT).contains(number))
    };
    match name.strip_prefix("release_") {
        Some("latest") => Some((1, FILES_COUNT)),
        Some(release) => Some((1, number(release)?)),
        None => match name.split_once('_') {
            None => number(name).map(|slice| (slice, slice)),
            Some((first, last)) => {
                let (first, last) = (number(first)?, number(last)?);
                (first < last).then_some((first, last))
            }
        },
    }
}

/// Returns the benchmark for these options; `None` for the default, which is all problems and isolated grading.
pub(super) fn with_options(options: &Options) -> Result<Option<&'static LiveCodeBench>, OptionError> {
    for (name, value) in options {
        match name.as_str() {
            RELEASE => {}
            START_DATE | END_DATE if value.is_empty() || row::is_day(value) => {}
            START_DATE | END_DATE => {
                return Err(OptionError(format!("option `{name}` must be a day such as 2024-08-01")));
            }
            GRADING if value.is_empty() || GradingMode::from_name(value).is_some() => {}
            GRADING => return Err(OptionError(format!("option `{GRADING}` must be isolated or official"))),
            other => return Err(OptionError::unknown(other, &OPTIONS)),
        }
    }
    if let (Some(start), Some(end)) = (value(options, START_DATE), value(options, END_DATE))
        && start > end
    {
        return Err(OptionError(format!("option `{START_DATE}` is after `{END_DATE}`")));
    }
    let slices = match value(options, GRADING).and_then(GradingMode::from_name) {
        Some(GradingMode::Official) => &OFFICIAL_SLICES,
        _ => &ISOLATED_SLICES,
    };
    let (first, last) = match value(options, RELEASE) {
        None => (1, FILES_COUNT),
        Some(name) => file_range(name).ok_or_else(|| {
            OptionError(format!(
                "option `{RELEASE}` must be release_v1 to release_v{FILES_COUNT}, release_latest, v1 to v{FILES_COUNT}, or slices \
                 such as v4_v5"
            ))
        })?,
    };
    let chosen = slices.iter().find(|slices| (slices.first, slices.last) == (first, last));
    Ok(chosen
        .filter(|chosen| (chosen.first, chosen.last) != (1, FILES_COUNT) || chosen.grading != LATEST.grading))
}

fn value<'a>(options: &'a Options, name: &str) -> Option<&'a str> {
    options.get(name).map(String::as_str).filter(|value| !value.is_empty())
}

/// Returns true if the problem is in the time window. A problem without a date never is, if there is a window.
pub(super) fn selects(options: &Options, item: &IndexEntry) -> bool {
    let (start, end) = (value(options, START_DATE), value(options, END_DATE));
    if start.is_none() && end.is_none() {
        return true;
    }
    let Some(date) = item.tags.get(DATE_TAG) else { return false };
    // A date with a time is longer than the day alone, and so compares as later.
    start.is_none_or(|start| date.as_str() >= start) && end.is_none_or(|end| date.as_str() <= end)
}
