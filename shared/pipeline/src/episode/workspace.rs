//! Items whose files an agent changes in a sandbox.

use std::time::Duration;

use bench_agents::{BashCommand, CommandResult};
use bench_benchmarks::{ItemProblem, WorkspaceChange, WorkspaceCommand, WorkspaceError, WorkspaceProtocol};
use bench_domain::{EpisodeException, EpisodeLog, EpisodeReport, JobReport, JobSpec};
use bench_episodes::{CHANGE_TOO_LARGE, Workspace};
use bench_items::Item;

/// Log that lists the files which aren't part of the agent's change.
const LEFT_OUT_LOG: &str = "agent/left-out.txt";

/// Files of an item, with the protocol by which the agent changes them.
pub(super) struct ItemWorkspace<'a> {
    pub(super) protocol: &'static dyn WorkspaceProtocol,
    pub(super) instruction: String,
    item: &'a Item,
}

impl<'a> ItemWorkspace<'a> {
    pub(super) fn new(protocol: &'static dyn WorkspaceProtocol, item: &'a Item) -> Result<Self, ItemProblem> {
        Ok(Self { protocol, instruction: protocol.instruction(item)?, item })
    }

    /// Computes the change, and adds to the report what isn't part of it.
    pub(super) fn take_change(&self, collected: &JobReport, report: &mut EpisodeReport) -> Option<String> {
        let WorkspaceChange { reply, left_out } = match self.protocol.change(self.item, collected) {
            Ok(change) => change,
            Err(error @ (WorkspaceError::TooLarge(_) | WorkspaceError::Unreadable(_))) => {
                let (name, message) = (CHANGE_TOO_LARGE.to_owned(), error.to_string());
                report.exception = Some(EpisodeException { name, message });
                return None;
            }
        };
        if !left_out.is_empty() {
            let (name, bytes) = (LEFT_OUT_LOG.to_owned(), left_out.len() as u64);
            report.logs.push(EpisodeLog { name, text: left_out, bytes, omitted: 0 });
        }
        Some(reply)
    }
}

impl Workspace for ItemWorkspace<'_> {
    fn layout(&self) -> Result<JobSpec, String> {
        self.protocol.layout(self.item).map_err(|problem| problem.to_string())
    }

    fn folder(&self, report: &JobReport) -> Option<String> {
        self.protocol.folder(report)
    }

    fn command(&self, command: &BashCommand, time_limit: Duration) -> Result<JobSpec, String> {
        let command = WorkspaceCommand {
            script: command.script.replace('\0', ""),
            time_limit,
            output_bytes_max: command.output_bytes_max,
        };
        self.protocol.command(self.item, &command).map_err(|problem| problem.to_string())
    }

    fn result(&self, report: &JobReport) -> (CommandResult, u64) {
        let end = self.protocol.command_end(report);
        let result = CommandResult {
            exit_code: end.exit_code,
            is_timed_out: end.is_timed_out,
            output: end.output,
            omitted_bytes: end.omitted_bytes,
        };
        // The command may have changed either number.
        (result, end.elapsed_ms.max(report.elapsed_ms.unwrap_or_default()))
    }

    fn collection(&self) -> Result<JobSpec, String> {
        self.protocol.collection(self.item).map_err(|problem| problem.to_string())
    }

    fn is_collected(&self, report: &JobReport) -> bool {
        !matches!(self.protocol.change(self.item, report), Err(WorkspaceError::Unreadable(_)))
    }
}
