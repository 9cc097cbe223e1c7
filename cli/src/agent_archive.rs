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

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_folder_is_packed_as_the_server_reads_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        fs::write(path.join(AGENT_FILE), "name = \"tiny\"\nversion = \"1\"\nrun = \"x\"\n").unwrap();
        fs::create_dir(path.join("lib")).unwrap();
        fs::write(path.join("lib/go.sh"), "true\n").unwrap();
        let agent = read(path).unwrap();
        let on_server = CustomAgent::read(Cursor::new(&agent.bytes)).unwrap();
        assert_eq!((agent.model.as_str(), agent.content_hash), ("custom/tiny@1", on_server.hash.to_string()));
        assert_eq!(agent.bytes, read(path).unwrap().bytes);
    }

    #[test]
    fn large_folders_and_links_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        fs::write(path.join(AGENT_FILE), "name = \"tiny\"\nrun = \"x\"\n").unwrap();
        let error = || read(path).unwrap_err().to_string();
        let large = fs::File::create(path.join("large")).unwrap();
        large.set_len(AGENT_BYTES_MAX + 1).unwrap();
        assert!(
            error().contains("the agent") && error().contains("has more than 16777216 bytes"),
            "{}",
            error()
        );
        // Bytes that don't get smaller.
        let noise: Vec<u8> = (0..5_u32 << 18)
            .flat_map(|at| at.wrapping_mul(2_654_435_761).rotate_left(at % 31).to_le_bytes())
            .collect();
        fs::write(path.join("large"), noise).unwrap();
        assert!(error().contains("4194304 bytes as a ZIP archive"), "{}", error());
        fs::remove_file(path.join("large")).unwrap();
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink("/etc/passwd", path.join("link")).unwrap();
            assert!(error().contains("is a link"), "{}", error());
        }
    }
}
