//! Labels of runs on the command line: name, tags, notes and visibility.

use bench_domain::labels::{self, parse_tags};
use bench_domain::{RunLabels, Visibility};
use clap::Args;
use serde_json::{Map, Value, json};

use crate::exit::Problem;

/// Labels of new runs.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct LabelArgs {
    /// Name of the run, for lists; `bench runs edit` changes it, tags and notes later
    #[arg(long, help_heading = "Labels", value_name = "TEXT", value_parser = parse_name)]
    name: Option<String>,
    /// Tag of the run, for lists; repeat for several
    #[arg(long, help_heading = "Labels", env = "BENCH_TAG", value_name = "TAG", value_delimiter = ',',
        value_parser = parse_tag)]
    tag: Vec<String>,
    /// Notes about the run
    #[arg(long, help_heading = "Labels", value_name = "TEXT", value_parser = parse_notes)]
    note: Option<String>,
    /// Visibility of the run to other callers of a server: `public`, `unlisted` or `private` [default: public]
    #[arg(long, help_heading = "Labels", value_name = "WHO", value_parser = parse_visibility)]
    visibility: Option<Visibility>,
}

impl LabelArgs {
    /// Returns the labels.
    pub(crate) fn labels(&self) -> anyhow::Result<RunLabels> {
        let given = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
        let tags = parse_tags(&self.tag).map_err(|error| Problem::usage(format!("--tag: {error}")))?;
        let visibility = self.visibility.unwrap_or_default();
        Ok(RunLabels { name: given(&self.name), tags, notes: given(&self.note), visibility })
    }
}

/// Returns the labels as fields of an order, without those that are missing.
pub(crate) fn order_fields(labels: &RunLabels) -> Map<String, Value> {
    let RunLabels { name, tags, notes, visibility } = labels;
    let tags = (!tags.is_empty()).then_some(tags);
    // Servers of older versions don't know the field.
    let visibility = (!visibility.is_public()).then_some(visibility);
    let fields = [
        ("name", json!(name)),
        ("tags", json!(tags)),
        ("notes", json!(notes)),
        ("visibility", json!(visibility)),
    ];
    let fields = fields.into_iter().filter(|(_, value)| !value.is_null());
    fields.map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Parses the name of a run. A blank text is an empty name.
pub(crate) fn parse_name(text: &str) -> Result<String, String> {
    labels::parse_name(text).map(Option::unwrap_or_default).map_err(|error| error.to_string())
}

/// Parses a tag.
pub(crate) fn parse_tag(text: &str) -> Result<String, String> {
    labels::parse_tag(text).map_err(|error| error.to_string())
}

/// Parses a visibility.
pub(crate) fn parse_visibility(text: &str) -> Result<Visibility, String> {
    text.parse::<Visibility>().map_err(|error| error.to_string())
}

/// Parses notes. A blank text is empty notes.
pub(crate) fn parse_notes(text: &str) -> Result<String, String> {
    labels::parse_notes(text).map(Option::unwrap_or_default).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use clap::{Command, FromArgMatches};

    use super::*;

    fn labels(args: &[&str]) -> anyhow::Result<RunLabels> {
        let command = LabelArgs::augment_args(Command::new("run"));
        let matches = command.try_get_matches_from([&["run"], args].concat())?;
        LabelArgs::from_arg_matches(&matches)?.labels()
    }

    #[test]
    fn labels_are_read_and_sent() {
        let given = ["--name", " a b ", "--tag", "x,y/1", "--tag", "x", "--note", "one\ntwo\n"];
        let expected = json!({ "name": "a b", "tags": ["x", "y/1"], "notes": "one\ntwo" });
        assert_eq!(Value::Object(order_fields(&labels(&given).unwrap())), expected);
        assert!(order_fields(&labels(&[]).unwrap()).is_empty());
    }

    #[test]
    fn labels_that_a_run_cannot_have_are_refused() {
        let many: Vec<String> = (0..17).map(|n| n.to_string()).collect();
        for (args, part) in [
            (["--name", "a\nb"], "one line"),
            (["--tag", "two words"], "is not a tag"),
            (["--tag", "a,,b"], "is not a tag"),
            (["--tag", &many.join(",")], "16 tags at most"),
            (["--note", "\u{1b}[2J"], "control characters"),
        ] {
            let error = labels(&args).unwrap_err().to_string();
            assert!(error.contains(part), "{part}: {error}");
        }
    }
}
