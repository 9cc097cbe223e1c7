//! `bench runs edit`: changes the labels of runs.

use bench_domain::Visibility;
use clap::Args;
use serde_json::{Map, Value, json};

use super::exists_here;
use crate::commands::labels::{parse_name, parse_notes, parse_tag, parse_visibility};
use crate::commands::{Api, ApiArgs};
use crate::exit::{ExitStatus, Problem};
use crate::output;
use crate::run_ref::RunRef;
use crate::views::Run;

pub(super) const EXAMPLES: &str = "\
Examples:
  bench runs edit RUN --name 'baseline, 4 shots' --tag exp-7
  bench runs edit RUN --tag good --untag to-check --note 'see the law items'
  bench runs edit RUN --note ''            removes the notes
  bench runs edit RUN --visibility private
  bench runs edit RUN1 RUN2 RUN3 --tag exp-7

Name, tags and notes are for lists and people. They can be changed at any time,
like the visibility, and are not part of scores, exports and archives.";

#[derive(Debug, Args)]
pub(super) struct EditArgs {
    /// Runs to change; `bench runs` lists them
    #[arg(required = true, value_name = "RUN")]
    runs: Vec<RunRef>,
    /// New name; an empty text removes the name
    #[arg(long, value_name = "TEXT", value_parser = parse_name)]
    name: Option<String>,
    /// Tag to add; repeat for several
    #[arg(long, value_name = "TAG", value_delimiter = ',', value_parser = parse_tag)]
    tag: Vec<String>,
    /// Tag to remove; repeat for several
    #[arg(long, value_name = "TAG", value_delimiter = ',', value_parser = parse_tag)]
    untag: Vec<String>,
    /// New notes, instead of the earlier ones; an empty text removes them
    #[arg(long, value_name = "TEXT", value_parser = parse_notes)]
    note: Option<String>,
    /// New visibility to other callers of a server: public, unlisted (in no list) or private
    #[arg(long, value_name = "WHO", value_parser = parse_visibility)]
    visibility: Option<Visibility>,
    #[command(flatten)]
    api: ApiArgs,
}

impl EditArgs {
    /// Builds the request body of the change.
    fn body(&self) -> anyhow::Result<Value> {
        let text = |text: &String| if text.is_empty() { Value::Null } else { json!(text) };
        let tags = |tags: &Vec<String>| (!tags.is_empty()).then(|| json!(tags));
        let fields = [
            ("name", self.name.as_ref().map(text)),
            ("add_tags", tags(&self.tag)),
            ("remove_tags", tags(&self.untag)),
            ("notes", self.note.as_ref().map(text)),
            ("visibility", self.visibility.map(|visibility| json!(visibility))),
        ];
        let given = fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
        let given: Map<String, Value> = given.collect();
        if given.is_empty() {
            return Err(Problem::usage("no change was given")
                .hint("give --name, --tag, --untag, --note or --visibility")
                .into());
        }
        Ok(Value::Object(given))
    }
}

pub(super) async fn run(args: EditArgs) -> anyhow::Result<ExitStatus> {
    let body = args.body()?;
    if let (Some(first), false) = (args.runs.first(), exists_here(&args.api)?) {
        return Err(first.missing().into());
    }
    let api = Api::open(&args.api.server, &args.api.data).await?;
    let mut changed: Vec<Run> = Vec::new();
    let mut result = Ok(());
    for run in &args.runs {
        let answer = async {
            let id = run.resolve(&api.client).await?;
            api.client.patch(&format!("/api/runs/{id}"), &body).await
        };
        match answer.await {
            Ok(run) => changed.push(run),
            Err(error) => {
                result = Err(error.context(format!("run {run}")));
                break;
            }
        }
    }
    api.close().await;
    if args.api.json {
        let labels = changed
            .iter()
            .map(|run| json!({ "id": run.id, "name": run.name, "tags": run.tags, "notes": run.notes, "visibility": run.visibility }));
        output::json(&labels.collect::<Vec<_>>())?;
    } else {
        changed.iter().try_for_each(|run| output::print(&description(run, args.visibility)))?;
    }
    result.map(|()| ExitStatus::Success)
}

/// Describes a changed run, one label per line. Runs are public unless a line says otherwise, or the visibility was changed.
fn description(run: &Run, changed: Option<Visibility>) -> String {
    let mut lines = vec![format!("Changed run {}", run.id)];
    let public =
        changed.filter(|_| run.visibility.is_public()).map(|shown| ("visibility", shown.to_string()));
    for (name, value) in run.labels().chain(public) {
        lines.push(format!("  {:<7}{}", format!("{name}: "), value.replace('\n', "\n         ")));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use clap::{Command, FromArgMatches};

    use super::*;

    fn body(args: &[&str]) -> Value {
        let command = EditArgs::augment_args(Command::new("edit"));
        let all = [&["edit", "3f2b8c1e-7d4a-4f60-9b1e-0a5c6d7e8f90"], args].concat();
        let matches = command.try_get_matches_from(all).unwrap();
        EditArgs::from_arg_matches(&matches).unwrap().body().unwrap_or_default()
    }

    #[test]
    fn only_what_is_given_is_sent() {
        assert_eq!(body(&["--name", " a "]), json!({ "name": "a" }));
        assert_eq!(body(&["--name", "", "--note", " \n"]), json!({ "name": null, "notes": null }));
        assert_eq!(
            body(&["--tag", "a,b", "--tag", "c", "--untag", "d", "--note", "one\ntwo"]),
            json!({ "add_tags": ["a", "b", "c"], "remove_tags": ["d"], "notes": "one\ntwo" })
        );
        assert_eq!(body(&["--visibility", "private"]), json!({ "visibility": "private" }));
        assert_eq!(body(&[]), Value::Null);
    }

    #[test]
    fn a_changed_run_is_described_with_its_labels() {
        let described = |labels: Value, changed| {
            let mut run = json!({
                "id": "3f2b8c1e", "status": "queued", "model_slug": "m", "provider": "chutes",
                "created_at": "2026-01-02T03:04:05Z", "benchmarks": [],
            });
            run.as_object_mut().unwrap().extend(labels.as_object().unwrap().clone());
            description(&serde_json::from_value(run).unwrap(), changed)
        };
        let run = |labels| described(labels, None);
        assert_eq!(run(json!({})), "Changed run 3f2b8c1e", "as a server of an older version answers");
        assert_eq!(run(json!({ "visibility": "public" })), "Changed run 3f2b8c1e");
        let shown = described(json!({ "visibility": "public" }), Some(Visibility::Public));
        assert_eq!(shown, "Changed run 3f2b8c1e\n  visibility: public");
        let hidden = run(json!({ "visibility": "unlisted" }));
        assert_eq!(hidden, "Changed run 3f2b8c1e\n  visibility: unlisted");
        assert_eq!(
            run(json!({ "name": "a b", "tags": ["x", "y"], "notes": "one\ntwo" })),
            "Changed run 3f2b8c1e\n  name:  a b\n  tags:  x, y\n  notes: one\n         two"
        );
    }
}
