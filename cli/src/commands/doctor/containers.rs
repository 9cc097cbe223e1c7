//! Container engines: their programs and the sockets that answer.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use futures_util::future::join;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::process::Command;

use super::Settings;
use super::finding::{Check, Finding, with_timeout};

/// Maximum time for an engine's program to print its version, and for its socket to answer.
const LIMIT: Duration = Duration::from_secs(5);
/// Maximum number of bytes to read from a socket.
const ANSWER_BYTES_MAX: u64 = 1024;
/// Request that checks whether an engine is alive, in the API that Docker and Podman share.
const PING: &[u8] = b"GET /_ping HTTP/1.0\r\nHost: localhost\r\n\r\n";
/// Reason why a missing engine is no problem for most runs.
const NOT_NEEDED: &str = "only terminal tasks need one";

/// State of an engine.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct Engine {
    name: &'static str,
    /// Version of its program; `None` if the program is missing.
    version: Option<String>,
    /// A socket that answers, or the reason why the first one doesn't.
    socket: Option<Result<PathBuf, String>>,
}

pub(super) async fn check(settings: &Settings) -> Vec<Finding> {
    let run_dir = settings.var("XDG_RUNTIME_DIR").map(PathBuf::from);
    let named = |variable: &str| {
        let address = settings.var(variable)?;
        address.trim().strip_prefix("unix://").map(PathBuf::from)
    };
    let below = |path: &str| run_dir.as_ref().map(|dir| dir.join(path));
    let podman =
        [named("CONTAINER_HOST"), below("podman/podman.sock"), Some("/run/podman/podman.sock".into())];
    let docker = [named("DOCKER_HOST"), Some("/var/run/docker.sock".into()), below("docker.sock")];
    let (podman, docker) = join(engine("podman", &podman), engine("docker", &docker)).await;
    vec![finding(&[podman, docker])]
}

async fn engine(name: &'static str, sockets: &[Option<PathBuf>]) -> Engine {
    let mut socket = None;
    for path in sockets.iter().flatten() {
        let answer = with_timeout(LIMIT, ping(path))
            .await
            .unwrap_or_else(|| Err(format!("{}: no answer", path.display())));
        let answers = answer.is_ok();
        // The first path is the most specific one.
        if answers || socket.is_none() {
            socket = Some(answer.map(|()| path.clone()));
        }
        if answers {
            break;
        }
    }
    Engine { name, version: version(name).await, socket }
}

/// Returns the version of an engine's program, or `None` if the program is missing or prints no version.
async fn version(program: &str) -> Option<String> {
    let mut command = Command::new(program);
    command.arg("--version").stdin(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    let output = with_timeout(LIMIT, command.output()).await?.ok()?;
    version_in(&String::from_utf8_lossy(&output.stdout))
}

/// Returns the first word that begins with a digit: `podman version 5.4.0`, `Docker version 28.2.2, build e6534b4`.
fn version_in(text: &str) -> Option<String> {
    let word = text.split_whitespace().find(|word| word.starts_with(|c: char| c.is_ascii_digit()))?;
    Some(word.trim_end_matches(',').chars().take(40).collect())
}

async fn ping(socket: &Path) -> Result<(), String> {
    let asked = async {
        let mut stream = UnixStream::connect(socket).await?;
        stream.write_all(PING).await?;
        let mut answer = Vec::new();
        stream.take(ANSWER_BYTES_MAX).read_to_end(&mut answer).await?;
        Ok::<_, std::io::Error>(answer)
    };
    let path = socket.display();
    match asked.await {
        Ok(answer) if answer.starts_with(b"HTTP/1.") && answer.get(9..12) == Some(b"200") => Ok(()),
        Ok(_) => Err(format!("{path} isn't the socket of an engine")),
        Err(error) if error.kind() == ErrorKind::NotFound => Err(format!("no socket at {path}")),
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            Err(format!("{path}: permission denied"))
        }
        Err(error) => Err(format!("{path}: {error}")),
    }
}

fn finding(engines: &[Engine]) -> Finding {
    let check = Check::new("container-engine", "container engine");
    let name = |engine: &Engine| match &engine.version {
        Some(version) => format!("{} {version}", engine.name),
        None => engine.name.to_owned(),
    };
    let answering = engines.iter().find_map(|engine| Some((engine, engine.socket.as_ref()?.as_ref().ok()?)));
    if let Some((engine, socket)) = answering {
        return check.ok(format!("{} at {}", name(engine), socket.display()));
    }
    let Some(engine) = engines.iter().find(|engine| engine.version.is_some()) else {
        let fix = format!("install Podman or Docker once a benchmark needs containers; {NOT_NEEDED}");
        return check.not_set_up("neither podman nor docker is installed", fix);
    };
    let why = match &engine.socket {
        Some(Err(why)) => why.as_str(),
        _ => "no answer",
    };
    let fix = match engine.name {
        "podman" => "`systemctl --user enable --now podman.socket` lets it answer",
        _ if why.contains("permission denied") => "add your user to the group `docker`, then log in again",
        _ => "`sudo systemctl enable --now docker` starts it",
    };
    check.not_set_up(format!("{}: {why}", name(engine)), format!("{fix}; {NOT_NEEDED}"))
}

#[cfg(test)]
mod tests {
    use tokio::net::UnixListener;

    use super::*;
    use crate::commands::doctor::finding::Status;

    #[test]
    fn versions_are_read_as_engines_print_them() {
        for (text, version) in [
            ("podman version 5.4.0\n", Some("5.4.0")),
            ("Docker version 28.2.2, build e6534b4", Some("28.2.2")),
            ("podman version 4.9.3-dev\n", Some("4.9.3-dev")),
            ("usage: docker", None),
            ("", None),
        ] {
            assert_eq!(version_in(text).as_deref(), version, "{text}");
        }
    }

    #[tokio::test]
    async fn only_an_engine_that_answers_is_ok() {
        let place = tempfile::tempdir().unwrap();
        let (good, odd) = (place.path().join("good.sock"), place.path().join("odd.sock"));
        for (path, answer) in [(&good, "HTTP/1.1 200 OK\r\n\r\nOK"), (&odd, "SSH-2.0-OpenSSH\r\n")] {
            let listener = UnixListener::bind(path).unwrap();
            tokio::spawn(async move {
                while let Ok((mut stream, _)) = listener.accept().await {
                    let mut asked = [0; 64];
                    let _ = stream.read(&mut asked).await;
                    let _ = stream.write_all(answer.as_bytes()).await;
                }
            });
        }
        assert_eq!(ping(&good).await, Ok(()));
        assert!(ping(&odd).await.unwrap_err().contains("isn't the socket of an engine"));
        let missing = place.path().join("none.sock");
        assert!(ping(&missing).await.unwrap_err().contains("no socket at "));

        let engine = engine("no-such-engine", &[None, Some(missing.clone()), Some(good.clone())]).await;
        assert_eq!(engine.version, None);
        assert_eq!(engine.socket, Some(Ok(good)));
        let finding = finding(&[Engine::default(), engine]);
        assert_eq!(finding.status, Status::Ok);
        assert!(finding.fact.starts_with("no-such-engine at "), "{}", finding.fact);
    }

    #[test]
    fn an_engine_that_is_missing_or_silent_is_not_set_up() {
        let none = finding(&[Engine { name: "podman", ..Engine::default() }]);
        assert_eq!(
            (none.status, none.fact.as_str()),
            (Status::NotSetUp, "neither podman nor docker is installed")
        );
        for (name, why, fix) in [
            ("podman", "no socket at /x", "podman.socket"),
            ("docker", "/x: permission denied", "group `docker`"),
            ("docker", "/x: Connection refused", "systemctl"),
        ] {
            let silent = Engine { name, version: Some("5.4".into()), socket: Some(Err(why.into())) };
            let finding = finding(&[silent]);
            assert_eq!(finding.status, Status::NotSetUp);
            assert_eq!(finding.fact, format!("{name} 5.4: {why}"));
            let found = finding.fix.unwrap();
            assert!(found.contains(fix) && found.ends_with(NOT_NEEDED), "{found}");
        }
    }
}
