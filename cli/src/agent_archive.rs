//! Custom agents on this machine's disk, as archives for the store of agents.

use std::fs::{self, File};
use std::io::{Cursor, Read};
use std::path::Path;

use anyhow::Context;
use bench_terminal_tasks::{AGENT_ARCHIVE_BYTES_MAX, AGENT_BYTES_MAX, AGENT_FILE, CustomAgent, Refusal};

use crate::exit::Problem;
use crate::task_archive::{Packed, pack};

/// Beginning of messages about a folder that `--agent-folder` names.
const FOLDER_OPTION: &str = "--agent-folder: ";

/// A custom agent to upload.
#[derive(Debug)]
pub(crate) struct AgentArchive {
    /// Content hash of its files.
    pub(crate) content_hash: String,
    /// Name, as in its `agent.toml`.
    pub(crate) name: String,
    /// Version, if it states one.
    pub(crate) version: Option<String>,
    /// Name in runs, in the place of a model: `custom/NAME@VERSION`.
    pub(crate) model: String,
    /// Variables of the order that it needs, without a default.
    pub(crate) required_variables: Vec<String>,
    /// Number of files.
    pub(crate) files: u64,
    /// Size of the files in bytes.
    pub(crate) expanded_bytes: u64,
    /// The ZIP archive.
    pub(crate) bytes: Vec<u8>,
}

impl AgentArchive {
    /// Reads the agent in an archive.
    fn new(bytes: Vec<u8>) -> Result<Self, Refusal> {
        let agent = CustomAgent::read(Cursor::new(&bytes))?;
        Ok(Self {
            content_hash: agent.hash.to_string(),
            model: format!("custom/{}", agent.title()),
            required_variables: agent.env.required().map(str::to_owned).collect(),
            files: agent.files.len() as u64,
            expanded_bytes: agent.files.iter().map(|file| file.bytes.len() as u64).sum(),
            name: agent.name,
            version: agent.version,
            bytes,
        })
    }
}

/// Reads the agent in the folder that `--agent-folder` names.
///
/// # Errors
/// Names file and line of an agent that isn't accepted.
pub(crate) fn read_folder(folder: &Path) -> anyhow::Result<AgentArchive> {
    let shown = folder.display();
    if !folder.is_dir() {
        return Err(Problem::usage(format!("{FOLDER_OPTION}`{shown}` is not a folder")).into());
    }
    let refused =
        |refusal| Problem::usage(format!("{FOLDER_OPTION}`{shown}` was not accepted: {refusal}")).into();
    AgentArchive::new(pack_agent(folder, FOLDER_OPTION)?).map_err(refused)
}

/// Reads an agent: a folder or a ZIP archive.
///
/// # Errors
/// Names file and line of an agent that isn't accepted.
pub(crate) fn read(path: &Path) -> anyhow::Result<AgentArchive> {
    let shown = path.display();
    let metadata = fs::metadata(path)
        .map_err(|error| Problem::usage(format!("could not read the agent `{shown}`: {error}")))?;
    let bytes = if metadata.is_file() {
        let file = File::open(path).with_context(|| format!("could not read `{shown}`"))?;
        let mut bytes = Vec::new();
        // An archive that is too large is refused by its size.
        let read = file.take(AGENT_ARCHIVE_BYTES_MAX + 1).read_to_end(&mut bytes);
        read.with_context(|| format!("could not read `{shown}`"))?;
        bytes
    } else {
        pack_agent(path, "")?
    };
    let refused =
        |refusal| Problem::failure(format!("the agent `{shown}` was not accepted: {refusal}")).into();
    AgentArchive::new(bytes).map_err(refused)
}

/// Packs the folder of an agent. Messages begin with `option`.
fn pack_agent(folder: &Path, option: &str) -> anyhow::Result<Vec<u8>> {
    let shown = folder.display();
    if !folder.join(AGENT_FILE).is_file() {
        return Err(Problem::usage(format!("{option}`{shown}` has no file `{AGENT_FILE}`"))
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
    pack(&resolved, folder, &packed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_packed_as_the_server_reads_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        fs::write(path.join(AGENT_FILE), "name = \"tiny\"\nversion = \"1\"\nrun = \"x\"\n").unwrap();
        fs::create_dir(path.join("lib")).unwrap();
        fs::write(path.join("lib/go.sh"), "true\n").unwrap();
        let agent = read_folder(path).unwrap();
        let on_server = CustomAgent::read(Cursor::new(&agent.bytes)).unwrap();
        assert_eq!(
            (agent.model.as_str(), agent.content_hash.clone()),
            ("custom/tiny@1", on_server.hash.to_string())
        );
        assert_eq!(agent.bytes, read(path).unwrap().bytes);
        // An archive of it, as from a download, is the same agent.
        let archive = folder.path().join("tiny.zip");
        fs::write(&archive, &agent.bytes).unwrap();
        assert_eq!(read(&archive).unwrap().content_hash, agent.content_hash);
        assert!(read_folder(&archive).is_err());
    }

    #[test]
    fn large_folders_and_links_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        fs::write(path.join(AGENT_FILE), "name = \"tiny\"\nrun = \"x\"\n").unwrap();
        let error = || read_folder(path).unwrap_err().to_string();
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
        fs::rename(path.join("large"), path.join("large.zip")).unwrap();
        let refused = read(&path.join("large.zip")).unwrap_err().to_string();
        assert!(
            refused.contains("large.zip` was not accepted: ") && refused.contains("4194304"),
            "{refused}"
        );
        fs::remove_file(path.join("large.zip")).unwrap();
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink("/etc/passwd", path.join("link")).unwrap();
            assert!(error().contains("is a link"), "{}", error());
        }
    }
}
