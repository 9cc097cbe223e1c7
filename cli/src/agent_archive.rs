//! Custom agents on this machine's disk, as archives for the store of agents.

use std::io::Cursor;
use std::path::Path;

use anyhow::Context;
use bench_terminal_tasks::{AGENT_BYTES_MAX, AGENT_FILE, CustomAgent};

use crate::exit::Problem;
use crate::task_archive::{Packed, pack};

/// A custom agent to upload.
#[derive(Debug)]
pub(crate) struct AgentArchive {
    /// Content hash of its files.
    pub(crate) content_hash: String,
    /// Name in runs, in the place of a model: `custom/NAME@VERSION`.
    pub(crate) model: String,
    /// The ZIP archive.
    pub(crate) bytes: Vec<u8>,
}

/// Reads the agent in a folder.
///
/// # Errors
/// Names file and line of an agent that isn't accepted.
pub(crate) fn read(folder: &Path) -> anyhow::Result<AgentArchive> {
    let shown = folder.display();
    if !folder.is_dir() {
        return Err(Problem::usage(format!("--agent-folder: `{shown}` is not a folder")).into());
    }
    if !folder.join(AGENT_FILE).is_file() {
        return Err(Problem::usage(format!("--agent-folder: `{shown}` has no file `{AGENT_FILE}`"))
            .hint("a custom agent's folder has it, with `name` and `run`: docs/terminal-tasks.md has an example")
            .into());
    }
    let resolved = folder.canonicalize().with_context(|| format!("could not read `{shown}`"))?;
    let packed = Packed {
        what: "agent",
        prefix: String::new(),
        bytes_max: AGENT_BYTES_MAX,
        advice: "let its install script download large files",
    };
    let bytes = pack(&resolved, folder, &packed)?;
    let agent = CustomAgent::read(Cursor::new(&bytes)).map_err(|refusal| {
        Problem::usage(format!("--agent-folder: `{shown}` was not accepted: {refusal}"))
    })?;
    let (content_hash, model) = (agent.hash.to_string(), format!("custom/{}", agent.title()));
    Ok(AgentArchive { content_hash, model, bytes })
}
