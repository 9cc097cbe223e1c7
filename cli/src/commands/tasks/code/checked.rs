//! Result of a programming task's check, as it is printed.

use bench_code_tasks::Proof;
use serde_json::{Value, json};

use crate::format;

/// Result of a task's check.
pub(super) struct Checked {
    pub(super) name: String,
    /// Reasons why the task isn't proven.
    pub(super) problems: Vec<String>,
    /// Reason why it can't be run on this machine.
    pub(super) not_runnable: Option<String>,
    pub(super) proof: Option<Proof>,
    /// Number of wrong solutions that weren't run, since the recorded proof has them.
    pub(super) wrong_left_out: usize,
    /// Number of cheats that were tried.
    pub(super) cheats: usize,
    /// Time of the reference's build and tests, the longest of all repetitions, in seconds.
    pub(super) seconds: f64,
}

impl Checked {
    pub(super) fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            problems: Vec::new(),
            not_runnable: None,
            proof: None,
            wrong_left_out: 0,
            cheats: 0,
            seconds: 0.0,
        }
    }

    pub(super) fn is_proven(&self) -> bool {
        self.problems.is_empty() && self.not_runnable.is_none()
    }

    pub(super) fn line(&self) -> String {
        if let Some(why) = &self.not_runnable {
            return format!("{}: {why}", self.name);
        }
        let Some(proof) = self.proof.as_ref().filter(|_| self.is_proven()) else {
            return format!("{}: NOT proven", self.name);
        };
        let repeats = if proof.repeats > 1 { format!(" {} times", proof.repeats) } else { String::new() };
        let cheats = if self.cheats > 0 {
            format!(", {} earn nothing", format::plural(self.cheats as u64, "cheat"))
        } else {
            String::new()
        };
        let wrong = match self.wrong_left_out {
            0 => format::plural(proof.wrong.len() as u64, "wrong solution"),
            left_out => {
                let all = format::plural((proof.wrong.len() + left_out) as u64, "wrong solution");
                format!("{} of {all}", proof.wrong.len())
            }
        };
        format!(
            "{}: proven; the reference passes {}{repeats} in {:.1} s, {wrong} fail as named{cheats}",
            self.name,
            format::plural(proof.tests.len() as u64, "test"),
            self.seconds,
        )
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "task": self.name, "proven": self.is_proven(), "not_runnable": self.not_runnable, "reasons": self.problems,
            "tests": self.proof.as_ref().map(|proof| &proof.tests), "seconds": self.seconds, "cheats": self.cheats,
            "wrong": self.proof.as_ref().map(|proof| proof.wrong.keys().collect::<Vec<_>>()),
        })
    }
}
