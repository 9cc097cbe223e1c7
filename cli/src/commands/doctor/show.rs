//! Output of findings, for people and for programs.

use console::style;
use serde::Serialize;

use super::finding::{Finding, Status};
use crate::table::{Column, Table};
use crate::{VERSION, format, output};

/// Order of fixes and counts.
const BY_URGENCY: [Status; 5] =
    [Status::Problem, Status::Warning, Status::Ok, Status::NotSetUp, Status::Skipped];

/// Output of `--json`.
#[derive(Debug, Serialize)]
pub(super) struct Report<'a> {
    version: &'static str,
    checks: &'a [Finding],
}

impl<'a> Report<'a> {
    pub(super) const fn new(findings: &'a [Finding]) -> Self {
        Self { version: VERSION, checks: findings }
    }
}

pub(super) fn print(findings: &[Finding]) -> anyhow::Result<()> {
    output::print(&format!("bench {VERSION}"))?;
    output::print_table(&table(findings))?;
    for status in BY_URGENCY {
        for finding in findings.iter().filter(|finding| finding.status == status) {
            if let Some(fix) = &finding.fix {
                output::print(&format!("{} {}: {fix}", mark(status), finding.title))?;
            }
        }
    }
    output::print(&summary(findings))
}

fn table(findings: &[Finding]) -> Table {
    let mut table = Table::new([Column::text("check"), Column::text("status"), Column::words("found")]);
    for finding in findings {
        table.row([finding.title.to_string(), finding.status.label().to_owned(), finding.fact.to_string()]);
    }
    table
}

fn mark(status: Status) -> String {
    let text = format!("{}:", status.label());
    let text = style(text).bold();
    match status {
        Status::Problem => text.red(),
        Status::Warning => text.yellow(),
        _ => text.cyan(),
    }
    .to_string()
}

/// Counts the findings by status: `9 ok, 1 warning, 2 not set up`.
fn summary(findings: &[Finding]) -> String {
    let count = |status| findings.iter().filter(|finding| finding.status == status).count() as u64;
    let part = |status: Status| match (status, count(status)) {
        (_, 0) => None,
        (Status::Problem | Status::Warning, number) => Some(format::plural(number, status.label())),
        (_, number) => Some(format!("{number} {}", status.label())),
    };
    BY_URGENCY.into_iter().filter_map(part).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::doctor::finding::Check;

    #[test]
    fn findings_are_counted_by_status() {
        let check = Check::new("a", "A");
        let mut findings = vec![check.ok("x"), check.problem("x", "y"), check.problem("x", "y")];
        assert_eq!(summary(&findings), "2 problems, 1 ok");
        findings.extend([check.warning("x", "y"), check.not_set_up("x", "y"), check.skipped("x")]);
        assert_eq!(summary(&findings), "2 problems, 1 warning, 1 ok, 1 not set up, 1 skipped");
    }

    #[test]
    fn programs_get_stable_names() {
        let findings = [Check::new("hub-token", "hub token").not_set_up("HF_TOKEN is not set", "set it")];
        let json = serde_json::to_value(Report::new(&findings)).unwrap();
        let expected = serde_json::json!([
            {"name": "hub-token", "status": "not-set-up", "fact": "HF_TOKEN is not set", "fix": "set it"}
        ]);
        assert_eq!(json["checks"], expected);
        assert!(json["version"].as_str().unwrap().starts_with(env!("CARGO_PKG_VERSION")));
    }

    #[test]
    fn screen_of_doctor() {
        let (clock, hub) = (Check::new("clock", "clock"), Check::new("hub-token", "hub token"));
        let fix = "set HF_TOKEN to a token of an account that has accepted the terms of the gated datasets";
        let findings = [
            clock.ok("0.2 s behind the hub's, which archives and signatures tolerate"),
            hub.not_set_up("HF_TOKEN is not set", fix),
        ];
        crate::screen_tests::check("doctor", |layout| table(&findings).render(layout));
    }
}
