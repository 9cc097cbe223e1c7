//! Sandboxes of the test server: a folder and processes, NOT ISOLATED.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Command;
use tokio::time::{Instant, sleep, timeout};

use super::Options;

/// Maximum number of bytes kept of each output of a command.
const OUTPUT_BYTES_MAX: usize = 4 << 20;
/// Time to wait for background processes to close the output of their command.
const LINGER_TIME: Duration = Duration::from_millis(100);
/// Exit code for a timeout, of `timeout` and of many hosts.
const EXIT_TIMED_OUT: i32 = 124;
/// Maximum number of rounds of killing; each finds what the previous one missed.
const KILL_ROUNDS: u32 = 50;

/// One sandbox. Dropping it ends its processes and removes its files.
pub(super) struct TestSandbox {
    id: String,
    folder: PathBuf,
    vars: BTreeMap<String, String>,
}

/// Result of a command.
pub(super) struct CommandResult {
    pub(super) stdout: String,
    pub(super) stderr: String,
    pub(super) code: i32,
}

impl TestSandbox {
    pub(super) fn new(id: String, root: &Path, options: &Options) -> std::io::Result<Self> {
        let folder = root.join(&id);
        fs::create_dir(&folder)?;
        let path = std::env::var("PATH").unwrap_or_default();
        let first = options.path.as_ref().map(|first| format!("{}:", first.display())).unwrap_or_default();
        let mut vars = BTreeMap::from([
            ("PATH".to_owned(), format!("{first}/usr/bin:/bin:{path}")),
            ("HOME".to_owned(), folder.display().to_string()),
            ("TMPDIR".to_owned(), folder.display().to_string()),
            ("SANDY_SANDBOX_ID".to_owned(), id.clone()),
            ("SANDY_ISOLATION".to_owned(), "none".to_owned()),
        ]);
        if let Some(shared) = &options.shared {
            vars.insert("SANDY_FILES".to_owned(), shared.display().to_string());
        }
        let home = folder.display().to_string();
        vars.extend(options.vars.iter().map(|(name, value)| (name.clone(), value.replace("$HOME", &home))));
        Ok(Self { id, folder, vars })
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Converts a path inside the sandbox: `/workspace` and relative paths are in the folder.
    fn inside(&self, path: &str) -> Option<PathBuf> {
        let relative = path.strip_prefix("/workspace").map_or(path, |rest| rest.trim_start_matches('/'));
        let relative = Path::new(relative);
        let is_inside =
            relative.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
        is_inside.then(|| self.folder.join(relative))
    }

    pub(super) fn write(&self, path: &str, text: &str) -> std::io::Result<()> {
        let path = self.inside(path).ok_or(std::io::ErrorKind::InvalidInput)?;
        if let Some(above) = path.parent() {
            fs::create_dir_all(above)?;
        }
        fs::write(path, text)
    }

    pub(super) async fn run(
        &self,
        command: &str,
        cwd: Option<&str>,
        env: &BTreeMap<String, String>,
        limit: Duration,
    ) -> std::io::Result<CommandResult> {
        let cwd = cwd.map_or(Some(self.folder.clone()), |cwd| self.inside(cwd));
        let mut child = Command::new("bash")
            .args(["-c", command])
            .current_dir(cwd.ok_or(std::io::ErrorKind::InvalidInput)?)
            .env_clear()
            .envs(&self.vars)
            .envs(env)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()?;
        let (mut stdout, mut stderr) = (child.stdout.take(), child.stderr.take());
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let mut streams = Box::pin(async {
            tokio::join!(read(stdout.as_mut(), &mut out), read(stderr.as_mut(), &mut err));
        });
        let until = Instant::now() + limit;
        let mut are_read = false;
        let code = loop {
            tokio::select! {
                ended = child.wait() => {
                    use std::os::unix::process::ExitStatusExt;
                    let ended = ended?;
                    break ended.code().or(ended.signal().map(|signal| 128 + signal)).unwrap_or(-1);
                }
                () = &mut streams, if !are_read => are_read = true,
                () = tokio::time::sleep_until(until) => {
                    if let Some(group) = child.id().and_then(pid) {
                        let _ = kill_process_group(group, Signal::KILL);
                    }
                    break EXIT_TIMED_OUT;
                }
            }
        };
        if !are_read {
            let _ = timeout(LINGER_TIME, &mut streams).await;
        }
        drop(streams);
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Ok(CommandResult { stdout: text(out), stderr: text(err), code })
    }

    /// Returns its processes: those with its id in their environment, and those whose working directory is in its
    /// folder.
    fn processes(&self) -> Vec<Pid> {
        let mark = format!("SANDY_SANDBOX_ID={}", self.id).into_bytes();
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        entries
            .filter_map(|entry| {
                let number = entry.file_name().to_str()?.parse::<u32>().ok()?;
                let vars_text = fs::read(entry.path().join("environ")).ok();
                let is_marked =
                    vars_text.is_some_and(|vars| vars.split(|byte| *byte == 0).any(|var| var == mark));
                let home = fs::read_link(entry.path().join("cwd")).ok();
                let is_at_home = home.is_some_and(|home| home.starts_with(&self.folder));
                if is_marked || is_at_home { pid(number) } else { None }
            })
            .collect()
    }
}

impl Drop for TestSandbox {
    fn drop(&mut self) {
        self.end();
    }
}

impl TestSandbox {
    /// Kills its processes and removes its files.
    pub(super) fn end(&self) {
        for _ in 0..KILL_ROUNDS {
            let left = self.processes();
            if left.is_empty() {
                break;
            }
            for process in left {
                let _ = kill_process(process, Signal::KILL);
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        // A program may have removed the permissions; the server's folder is removed later anyway.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn pid(number: u32) -> Option<Pid> {
    // Killing process group 1 or less would kill everything.
    i32::try_from(number).ok().filter(|number| *number > 1).and_then(Pid::from_raw)
}

/// Reads the whole stream and keeps the beginning.
async fn read(stream: Option<&mut (impl AsyncRead + Unpin)>, kept: &mut Vec<u8>) {
    let Some(stream) = stream else { return };
    let mut piece = vec![0; 64 << 10];
    loop {
        match stream.read(&mut piece).await {
            Ok(0) | Err(_) => return,
            Ok(read) => {
                let room = OUTPUT_BYTES_MAX - kept.len();
                kept.extend_from_slice(piece.get(..read.min(room)).unwrap_or_default());
            }
        }
        // Yield to other tasks.
        if kept.len() == OUTPUT_BYTES_MAX {
            sleep(Duration::ZERO).await;
        }
    }
}
