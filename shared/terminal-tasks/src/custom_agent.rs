//! Custom agents: a folder with `agent.toml`, an optional install script and other files, packed as a ZIP archive.
//!
//! Unlike keys of `task.toml`, unknown keys are refused: the format is this program's own, and no other version writes it.

use std::collections::BTreeMap;
use std::io::{Cursor, Read, Seek};
use std::time::Duration;

use crate::archive::Archive;
use crate::node::{Fields, Node};
use crate::refusal::{AgentProblem, ArchiveProblem, Refusal};
use crate::tree::{ContentHash, Mode, TreeBuilder, TreeLimits};
use crate::variables::{Template, Variables};

/// Configuration file of an agent.
pub const AGENT_FILE: &str = "agent.toml";
/// Maximum size of an agent's archive, in bytes: 4 MiB, which fits into any request.
pub const AGENT_ARCHIVE_BYTES_MAX: u64 = 4 << 20;
/// Maximum size of an agent's files, in bytes: 16 MiB.
pub const AGENT_BYTES_MAX: u64 = 16 << 20;
/// Maximum number of files and folders of an agent.
const ENTRIES_MAX: usize = 1_000;
const LIMITS: TreeLimits =
    TreeLimits { entries_max: ENTRIES_MAX, file_bytes_max: AGENT_BYTES_MAX, task_bytes_max: AGENT_BYTES_MAX };
/// Maximum length of a name or a version, in characters.
const NAME_CHARS_MAX: usize = 64;
/// Maximum length of the run command, in bytes.
const RUN_BYTES_MAX: usize = 8 << 10;
/// Time limit of an install script whose agent states none, as in Harbor.
const INSTALL_TIMEOUT: Duration = Duration::from_secs(360);
/// Maximum time limit of an install script.
const INSTALL_TIMEOUT_MAX: Duration = Duration::from_secs(3_600);
/// Maximum number of variables, length of a name and length of a value in bytes.
const VARIABLES_MAX: usize = 100;
const VARIABLE_BYTES_MAX: usize = 64;
const VALUE_BYTES_MAX: usize = 4 << 10;
/// Keys of `agent.toml`.
const KEYS: [&str; 6] = ["name", "version", "run", "install", "install_timeout_sec", "env"];
const KNOWN: &str = "`name`, `version`, `run`, `install`, `install_timeout_sec` and `env`";

/// File of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentFile {
    /// Path in the agent's folder.
    pub path: String,
    /// True if it has a bit for execution, or its name ends with `.sh`.
    pub is_executable: bool,
    /// Content.
    pub bytes: Vec<u8>,
}

/// Agent that its user wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CustomAgent {
    /// Name: 1 to 64 characters of `a-z0-9._-`.
    pub name: String,
    /// Version; `None` for none.
    pub version: Option<String>,
    /// Shell command that works on a task.
    pub run: String,
    /// Path of the install script in the folder; `None` for none.
    pub install: Option<String>,
    /// Time limit of the install script.
    pub install_timeout: Duration,
    /// Variables of both.
    pub env: Variables,
    /// Files in byte order of their paths, `agent.toml` among them.
    pub files: Vec<AgentFile>,
    /// Digest of the files, computed as that of a task's files.
    pub hash: ContentHash,
}

impl CustomAgent {
    /// Reads an agent in a ZIP archive. Its folder may be the only one at the top of the archive.
    ///
    /// # Errors
    /// If the archive is unsafe or damaged, the files are too many or too large, or `agent.toml` is missing or invalid.
    pub fn read(archive: impl Read + Seek) -> Result<Self, Refusal> {
        let files = read_files(archive)?;
        let folder = find_folder(&files)?;
        let files = into_folder(files, &folder)?;
        let mut tree = TreeBuilder::new(LIMITS);
        for (path, file) in &files {
            let path = crate::TaskPath::new(path).map_err(|problem| Refusal::file(path, problem))?;
            let mode = if file.is_executable { 0o755 } else { 0o644 };
            tree.add(&path, Some(mode), &mut file.bytes.as_slice())?;
        }
        let hash = tree.finish().content_hash();
        let config = files.get(AGENT_FILE).ok_or_else(|| Refusal::whole(AgentProblem::NoAgent))?;
        let node = Node::parse_toml(AGENT_FILE, &config.bytes)?;
        let root = Fields::root(AGENT_FILE, &node)?;
        refuse_unknown(&root)?;
        Ok(Self {
            name: name(&root)?,
            version: version(&root)?,
            run: run(&root)?,
            install: install(&root, &files)?,
            install_timeout: install_timeout(&root)?,
            env: env(&root)?,
            hash,
            files: files.into_values().collect(),
        })
    }

    /// Returns the name with the version, if there is one: `NAME` or `NAME@VERSION`.
    pub fn title(&self) -> String {
        match &self.version {
            Some(version) => format!("{}@{version}", self.name),
            None => self.name.clone(),
        }
    }
}

/// Reads all files of an archive by their paths in it.
fn read_files(mut archive: impl Read + Seek) -> Result<BTreeMap<String, AgentFile>, Refusal> {
    let too_large = |bytes_max, packed| Refusal::whole(AgentProblem::TooLarge { bytes_max, packed });
    let mut bytes = Vec::new();
    let read = archive.by_ref().take(AGENT_ARCHIVE_BYTES_MAX + 1).read_to_end(&mut bytes);
    read.map_err(|error| Refusal::whole(ArchiveProblem::Unreadable { cause: error.to_string() }))?;
    if bytes.len() as u64 > AGENT_ARCHIVE_BYTES_MAX {
        return Err(too_large(AGENT_ARCHIVE_BYTES_MAX, true));
    }
    let mut archive = Archive::open(Cursor::new(bytes), ENTRIES_MAX)?;
    let (mut files, mut left) = (BTreeMap::new(), AGENT_BYTES_MAX);
    archive.read(&mut |file, content| {
        let mut bytes = Vec::new();
        content.take(left + 1).read_to_end(&mut bytes).map_err(|error| {
            Refusal::file(file.path.as_str(), ArchiveProblem::Unreadable { cause: error.to_string() })
        })?;
        left = left.checked_sub(bytes.len() as u64).ok_or_else(|| too_large(AGENT_BYTES_MAX, false))?;
        let path = file.path.as_str().to_owned();
        let is_executable = Mode::new(&file.path, file.unix_mode) == Mode::Executable;
        files.insert(path.clone(), AgentFile { path, is_executable, bytes });
        Ok(())
    })?;
    Ok(files)
}

/// Returns the folder of the agent: empty for the root, otherwise a folder at the top.
fn find_folder(files: &BTreeMap<String, AgentFile>) -> Result<String, Refusal> {
    if files.contains_key(AGENT_FILE) {
        return Ok(String::new());
    }
    let is_top = |path: &&String| path.matches('/').count() == 1 && path.ends_with(&format!("/{AGENT_FILE}"));
    let found = files.keys().find(is_top).and_then(|path| path.split_once('/'));
    found.map(|(folder, _)| folder.to_owned()).ok_or_else(|| Refusal::whole(AgentProblem::NoAgent))
}

/// Removes the folder from all paths.
fn into_folder(
    files: BTreeMap<String, AgentFile>,
    folder: &str,
) -> Result<BTreeMap<String, AgentFile>, Refusal> {
    if folder.is_empty() {
        return Ok(files);
    }
    let files = files.into_iter().map(|(path, file)| {
        let inner = path.strip_prefix(folder).and_then(|rest| rest.strip_prefix('/')).map(str::to_owned);
        let outside =
            || Refusal::file(path.as_str(), AgentProblem::OutsideAgent { folder: folder.to_owned() });
        let inner = inner.ok_or_else(outside)?;
        Ok((inner.clone(), AgentFile { path: inner, ..file }))
    });
    files.collect()
}

fn refuse_unknown(root: &Fields<'_>) -> Result<(), Refusal> {
    match root.keys().filter(|key| !KEYS.contains(key)).min_by_key(|key| root.line(key)) {
        Some(key) => Err(root.refuse(key, AgentProblem::UnknownKey { key: key.to_owned(), known: KNOWN })),
        None => Ok(()),
    }
}

fn name(root: &Fields<'_>) -> Result<String, Refusal> {
    let name = root.required_text("name")?;
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"._-".contains(&byte);
    let is_valid =
        matches!(name.len(), 1..=NAME_CHARS_MAX) && !name.starts_with('.') && name.bytes().all(is_plain);
    match is_valid {
        true => Ok(name.to_owned()),
        false => Err(root.invalid(
            "name",
            name,
            "1 to 64 characters of `a-z`, `0-9`, `.`, `_` and `-`, the first of them not `.`",
        )),
    }
}

fn version(root: &Fields<'_>) -> Result<Option<String>, Refusal> {
    let Some(version) = root.text("version")? else { return Ok(None) };
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._+-".contains(&byte);
    match matches!(version.len(), 1..=NAME_CHARS_MAX) && version.bytes().all(is_plain) {
        true => Ok(Some(version.to_owned())),
        false => Err(root.invalid(
            "version",
            version,
            "1 to 64 characters: letters, digits, `.`, `_`, `+` and `-`",
        )),
    }
}

fn run(root: &Fields<'_>) -> Result<String, Refusal> {
    let run = root.required_text("run")?;
    if run.trim().is_empty() || run.len() > RUN_BYTES_MAX || run.contains('\0') {
        return Err(root.invalid("run", run, "a shell command of at most 8 KiB without NUL characters"));
    }
    Ok(run.to_owned())
}

fn install(root: &Fields<'_>, files: &BTreeMap<String, AgentFile>) -> Result<Option<String>, Refusal> {
    let Some(path) = root.text("install")? else { return Ok(None) };
    let inner = path.strip_prefix("./").unwrap_or(path);
    match files.contains_key(inner) {
        true => Ok(Some(inner.to_owned())),
        false => Err(root.refuse("install", AgentProblem::NoInstallScript { path: path.to_owned() })),
    }
}

fn install_timeout(root: &Fields<'_>) -> Result<Duration, Refusal> {
    const KEY: &str = "install_timeout_sec";
    match root.time_limit(KEY)? {
        None => Ok(INSTALL_TIMEOUT),
        Some(limit) if limit <= INSTALL_TIMEOUT_MAX => Ok(limit),
        Some(limit) => Err(root.invalid(
            KEY,
            limit.as_secs_f64().to_string(),
            "a number of seconds above 0 and up to 3600",
        )),
    }
}

fn env(root: &Fields<'_>) -> Result<Variables, Refusal> {
    let Some(table) = root.table("env")? else { return Ok(Variables::default()) };
    let mut variables = Variables::default();
    for name in table.keys() {
        let is_name = |name: &str| {
            matches!(name.len(), 1..=VARIABLE_BYTES_MAX)
                && !name.starts_with(|first: char| first.is_ascii_digit())
                && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        };
        if !is_name(name) {
            const EXPECTED: &str = "a name of up to 64 letters, digits and `_` that begins with no digit";
            return Err(table.invalid(name, name, EXPECTED));
        }
        let value = table.required_text(name)?;
        if value.contains('\0') || value.len() > VALUE_BYTES_MAX {
            return Err(table.invalid(name, value, "a text of at most 4 KiB without NUL characters"));
        }
        variables.0.insert(name.to_owned(), Template::parse(value));
    }
    if variables.0.len() > VARIABLES_MAX {
        return Err(root.invalid("env", variables.0.len().to_string(), "a table of at most 100 variables"));
    }
    Ok(variables)
}

#[cfg(test)]
mod tests;
