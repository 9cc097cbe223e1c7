//! Drives agents with scripted replies: each turn is repeated from its saved state, as after a kill.

use std::collections::BTreeMap;
use std::io::{Cursor, Write as _};
use std::path::Path;
use std::time::Duration;

use bench_agents::{ModelReply, Part, Seen, Usage};
use bench_domain::{Agent, AgentRecord, EpisodeReport, EpisodeState};
use bench_episodes::{Advance, Episode, EpisodeTask, ModelAnswer, TaskFiles, Thinker};
use bench_terminal_tasks::{AdmissionLimits, TreeLimits};
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use crate::support::{FREE, World, labels};

/// Image of this machine's own shell and terminal.
pub(crate) const DOCKERFILE: &str = "FROM scratch\nCOPY root /\nRUN [\"/bin/busybox\", \"--install\", \"-s\", \"/bin\"]\n\
    RUN mkdir -p /tmp /root /etc /app /run && chmod 1777 /tmp\nENV PATH=/bin\nWORKDIR /app\n";
/// Programs of the image, with the libraries that they load.
const PROGRAMS: [&str; 2] = ["tmux", "bash"];
const LOCALE: &str = "/usr/lib/locale/C.utf8";

/// Reply of a model that waits for its terminal.
const WAIT: &str =
    r#"{"analysis":"a","plan":"p","commands":[{"keystrokes":"","duration":1.0}],"task_complete":false}"#;

/// End of an episode, with everything that was said.
pub(crate) struct Thought {
    pub(crate) report: EpisodeReport,
    pub(crate) thinker: Thinker,
    /// Bytes of all records.
    pub(crate) stored_bytes: usize,
}

impl Thought {
    /// Returns the messages to the model. Messages after [`WAIT`] belong to those before it.
    pub(crate) fn messages(&self) -> Vec<String> {
        let (mut messages, mut has_waited) = (Vec::<String>::new(), false);
        for part in self.thinker.transcript.parts() {
            match part {
                Part::Reply(reply) => has_waited = reply.text == WAIT,
                Part::Message(message) => match messages.last_mut().filter(|_| has_waited) {
                    Some(last) => last.push_str(&message.text),
                    None => messages.push(message.text.clone()),
                },
                _ => {}
            }
        }
        messages
    }

    pub(crate) fn end(&self) -> &str {
        &self.report.steps[0].agent.as_ref().unwrap().end
    }
}

impl World {
    /// Runs an episode whose model replies these texts, one after the other. Each advance happens twice from the same
    /// checkpoint, and only the second one is saved.
    pub(crate) async fn think(
        &self,
        task: &[(&str, &str)],
        agent: Agent,
        options: &[(&str, &str)],
        replies: &[String],
    ) -> Thought {
        let replies: Vec<_> = replies.iter().map(|text| (text.clone(), "")).collect();
        self.think_until(task, agent, options, &replies).await
    }

    /// The same for a model that uses a terminal. After each reply it waits until a message contains a text, however slow the
    /// machine is.
    pub(crate) async fn think_until(
        &self,
        task: &[(&str, &str)],
        agent: Agent,
        options: &[(&str, &str)],
        replies: &[(String, &str)],
    ) -> Thought {
        let files = terminal_files(task);
        let nonce = uuid::Uuid::new_v4().simple().to_string();
        let (labels, variables) = (labels(&nonce), BTreeMap::new());
        let options: BTreeMap<String, String> =
            options.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let mut records: Vec<String> = Vec::new();
        let mut saved = serde_json::to_string(&EpisodeState::new(1, nonce.as_str())).unwrap();
        let (mut answer, mut asked, mut awaited) = (None, 0, "");
        let until = tokio::time::Instant::now() + Duration::from_secs(600);
        loop {
            assert!(tokio::time::Instant::now() < until, "the episode does not end: {saved}");
            assert!(saved.len() < 64_000, "the checkpoint has {} bytes", saved.len());
            let mut thinker = Thinker::new(options.clone(), BTreeMap::new());
            for record in &records {
                thinker.add(&serde_json::from_str::<AgentRecord>(record).unwrap()).unwrap();
            }
            thinker.answer.clone_from(&answer);
            let about = EpisodeTask {
                custom: None,
                files: &files,
                agent,
                thinker: Some(&thinker),
                variables: &variables,
                labels: &labels,
            };
            let episode =
                Episode { sandy: self.sandy(), sandbox: self.sandbox(), task: about, places_wanted: &FREE };
            let advance = async || {
                let mut state: EpisodeState = serde_json::from_str(&saved).unwrap();
                let advanced = episode.advance(&mut state, Duration::from_secs(5)).await;
                (state, advanced)
            };
            let (_, lost) = advance().await;
            if let Advance::Ended(report) = lost {
                let stored_bytes = records.iter().map(String::len).sum();
                return Thought { report: *report, thinker, stored_bytes };
            }
            let (mut state, advanced) = advance().await;
            match advanced {
                Advance::Waiting(wait) => tokio::time::sleep(wait.min(Duration::from_millis(300))).await,
                Advance::Asks(request) => {
                    let seen = request.prompt.messages.last().map_or("", |message| message.content.as_str());
                    let text = if seen.contains(awaited) {
                        let next = replies.get(asked);
                        let (text, next) = next.unwrap_or_else(|| panic!("question {asked} has no reply"));
                        (asked, awaited) = (asked + 1, next);
                        text.clone()
                    } else {
                        WAIT.to_owned()
                    };
                    let usage = Usage { input_tokens: 10, output_tokens: 5, ..Usage::default() };
                    let reply = ModelReply { text, usage, latency_ms: 100, ..ModelReply::default() };
                    let paid = bench_domain::Usage::counted(10, 5, 0);
                    answer = Some(ModelAnswer { step: request.step, seen: Seen::Reply(reply), paid });
                }
                Advance::Stepped(record) => {
                    if let Advance::Stepped(lost) = &lost {
                        assert_eq!(lost.parts, record.parts, "a repeated step differs");
                    }
                    records.push(serde_json::to_string(&record).unwrap());
                    state.agent = Some(record.progress);
                }
                Advance::Failed(error) => panic!("{error}"),
                other @ (Advance::Worked(..)
                | Advance::Delayed(..)
                | Advance::Changed(..)
                | Advance::Verified(_)) => panic!("not of a terminal task: {other:?}"),
                // Between the two calls, the last operation has ended.
                Advance::Ended(report) => {
                    let stored_bytes = records.iter().map(String::len).sum();
                    return Thought { report: *report, thinker, stored_bytes };
                }
            }
            saved = serde_json::to_string(&state).unwrap();
        }
    }
}

impl World {
    /// Runs an episode of an agent that asks no model, in the image of this machine's terminal.
    pub(crate) async fn in_terminal(&self, task: &[(&str, &str)], agent: Agent) -> EpisodeReport {
        self.run_files(&terminal_files(task), agent, Duration::from_secs(20)).await.unwrap()
    }
}

/// Reads a task of these files, with this machine's shell and terminal for its image.
fn terminal_files(task: &[(&str, &str)]) -> TaskFiles {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    let mut add = |path: &str, bytes: &[u8], mode: u32| {
        zip.start_file(path, SimpleFileOptions::default().unix_permissions(mode)).unwrap();
        zip.write_all(bytes).unwrap();
    };
    let mut folder = String::new();
    for (path, text) in task {
        add(path, text.as_bytes(), 0o644);
        if let Some(found) = path.strip_suffix("Dockerfile") {
            folder = format!("{found}root");
        }
    }
    let read = |path: &str| {
        std::fs::read(path)
            .unwrap_or_else(|error| panic!("these tests need tmux, bash and busybox-static: {path}: {error}"))
    };
    let busybox = ["/bin/busybox", "/usr/bin/busybox"].iter().find(|path| Path::new(path).exists());
    add(&format!("{folder}/bin/busybox"), &read(busybox.unwrap_or(&"/bin/busybox")), 0o755);
    let mut libraries = std::collections::BTreeSet::new();
    for program in PROGRAMS {
        let path = format!("/usr/bin/{program}");
        add(&format!("{folder}/bin/{program}"), &read(&path), 0o755);
        let loaded = std::process::Command::new("ldd").arg(&path).output().unwrap();
        let loaded = String::from_utf8(loaded.stdout).unwrap();
        libraries.extend(loaded.split_whitespace().filter(|word| word.starts_with('/')).map(str::to_owned));
    }
    for library in libraries {
        add(&format!("{folder}{library}"), &read(&library), 0o755);
    }
    for name in ["tmux-256color", "screen", "screen-256color", "xterm-256color"] {
        let found = ["/lib/terminfo", "/usr/share/terminfo"]
            .iter()
            .find_map(|folder| std::fs::read(format!("{folder}/{}/{name}", &name[..1])).ok());
        if let Some(terminal) = found {
            add(&format!("{folder}/usr/share/terminfo/{}/{name}", &name[..1]), &terminal, 0o644);
        }
    }
    for entry in std::fs::read_dir(LOCALE).into_iter().flatten().flatten() {
        if entry.file_type().unwrap().is_file() {
            let name = entry.file_name().into_string().unwrap();
            add(&format!("{folder}{LOCALE}/{name}"), &std::fs::read(entry.path()).unwrap(), 0o644);
        }
    }
    let archive = zip.finish().unwrap().into_inner();
    TaskFiles::read(&archive, TreeLimits::default(), &AdmissionLimits::default()).unwrap()
}
