//! Files of a container that the report of its episode keeps.

use std::collections::BTreeMap;

use bench_domain::{EpisodeLog, EpisodeReport, json_text_bytes};
use bench_environments::{FetchedFile, FetchedFiles, SHORTENED_LOG_BYTES, SkipReason};

use crate::phases::Keeping;
use crate::program::Program;
use crate::stop::{Phase, Stop};
use crate::stored::{LOGS_BYTES_MAX, is_text, log_of};

/// Name of the log that lists the files that were left out, and its maximum size in bytes.
const LEFT_OUT_LOG: &str = "left-out.txt";
const LEFT_OUT_BYTES_MAX: usize = 64 << 10;
/// Maximum number of logs of a folder.
const LOGS_MAX: usize = 1_000;
/// Maximum length of a log's name, in bytes. Requests for logs have it in their address.
const NAME_BYTES_MAX: usize = 255;

/// Lines about files of one folder that were left out, up to a size.
#[derive(Debug)]
struct LeftOut {
    lines: String,
    bytes_max: usize,
    /// Number of files that no line is about.
    more: usize,
}

impl LeftOut {
    const fn new(bytes_max: usize) -> Self {
        Self { lines: String::new(), bytes_max, more: 0 }
    }

    fn note(&mut self, name: &str, why: &str) {
        let shown = &name[..name.floor_char_boundary(NAME_BYTES_MAX)];
        let cut = if shown.len() < name.len() { "…" } else { "" };
        let line = format!("{shown}{cut}: {why}\n");
        match self.lines.len() + line.len() <= self.bytes_max {
            true => self.lines.push_str(&line),
            false => self.more += 1,
        }
    }

    fn text(mut self, folder: &str) -> String {
        if self.more > 0 {
            self.lines.push_str(&format!("{folder}: {} more\n", self.more));
        }
        self.lines
    }
}

/// Reads files that were fetched, and adds them to the report, each folder with a fair share of the room. What is left out is
/// listed in a log of its own.
pub(crate) async fn collect(
    program: &mut Program<'_>,
    report: &mut EpisodeReport,
    keepings: &[Keeping],
) -> Result<(), Stop> {
    let mut room =
        report.logs.iter().fold(LOGS_BYTES_MAX, |room, log| room.saturating_sub(json_text_bytes(&log.text)));
    let mut ordered: Vec<(usize, &Keeping)> = keepings.iter().enumerate().collect();
    // The output of tests explains the grade, so it has the first choice.
    ordered.sort_by_key(|(_, keeping)| !keeping.folder.ends_with("verifier"));
    let mut left_out = String::new();
    let mut kept: Vec<(usize, Vec<EpisodeLog>)> = Vec::new();
    for (done, (at, keeping)) in ordered.into_iter().enumerate() {
        let copied =
            program.run(&keeping.environment, &keeping.operation, &keeping.fetch, Phase::Agent).await;
        let fetched = match copied {
            Ok(Some(fetched)) => fetched,
            Ok(None) => continue,
            Err(Stop::Exception(exception, _)) => {
                let why: String = exception.message.chars().take(NAME_BYTES_MAX).collect();
                left_out.push_str(&format!("{}: could not be copied: {why}\n", keeping.folder));
                continue;
            }
            Err(stop) => return Err(stop),
        };
        let left = keepings.len() - done;
        let mut lines = LeftOut::new(LEFT_OUT_BYTES_MAX.saturating_sub(left_out.len()) / left);
        let logs = shared_out(keeping, fetched, room / left, &mut lines);
        left_out.push_str(&lines.text(&keeping.folder));
        room = logs.iter().fold(room, |room, log| room.saturating_sub(json_text_bytes(&log.text)));
        kept.push((at, logs));
    }
    // Where names differ in case only, downloads give the first one its own name: that of what the task names.
    kept.sort_by_key(|(at, _)| (is_for_all_artifacts(&keepings[*at].folder), *at));
    drop_shadows(keepings, &mut kept, &mut left_out);
    report.logs.extend(kept.into_iter().flat_map(|(_, logs)| logs));
    if !left_out.is_empty() {
        report.logs.extend(log_of(LEFT_OUT_LOG, left_out.as_bytes(), LEFT_OUT_BYTES_MAX));
    }
    Ok(())
}

/// Returns true for the folder of artifacts that no task has to name.
fn is_for_all_artifacts(folder: &str) -> bool {
    folder == "artifacts" || folder.ends_with("/artifacts")
}

/// Drops logs whose names those of a deeper folder have, too: what a task names as an artifact isn't displaced by what an agent
/// puts at the same name into the folder for all artifacts.
fn drop_shadows(keepings: &[Keeping], kept: &mut [(usize, Vec<EpisodeLog>)], left_out: &mut String) {
    let depth = |at: usize| keepings[at].folder.len();
    let mut owners: BTreeMap<String, usize> = BTreeMap::new();
    for (at, logs) in kept.iter() {
        for log in logs {
            let owner = owners.entry(log.name.clone()).or_insert(*at);
            if depth(*at) > depth(*owner) {
                *owner = *at;
            }
        }
    }
    for (at, logs) in kept {
        logs.retain(|log| {
            let is_kept = owners.get(&log.name) == Some(at);
            if !is_kept {
                left_out.push_str(&format!("{}: an artifact of the task has the same name\n", log.name));
            }
            is_kept
        });
    }
}

/// Returns the logs of a folder's files, in the order of the files: all that are small, and as much of each large one as has room.
/// Adds lines about the others to `left_out`.
fn shared_out(
    keeping: &Keeping,
    fetched: FetchedFiles,
    room: usize,
    left_out: &mut LeftOut,
) -> Vec<EpisodeLog> {
    let name_of = |path: &str| match path {
        "" => keeping.folder.clone(),
        path => format!("{}/{path}", keeping.folder),
    };
    let mut note = |path: &str, why: &str| left_out.note(&name_of(path), why);
    for skipped in fetched.skipped.iter().filter(|file| !keeping.is_excluded(&file.path)) {
        match (skipped.why, skipped.bytes) {
            (SkipReason::TooLong, Some(bytes)) => {
                note(&skipped.path, &format!("{bytes} bytes, too large to be copied"))
            }
            (SkipReason::TooLong, None) => note(&skipped.path, "too large to be copied"),
            (SkipReason::NotAFile, _) => {
                note(&skipped.path, "not a regular file, or its name has unusual characters")
            }
        }
    }
    let mut files: Vec<(usize, FetchedFile)> = Vec::new();
    for (at, file) in fetched.files.into_iter().enumerate() {
        match is_text(&file.bytes) {
            _ if keeping.is_excluded(&file.path) => {}
            _ if name_of(&file.path).len() > NAME_BYTES_MAX => note(&file.path, "its name is too long"),
            true => files.push((at, file)),
            false => note(&file.path, &format!("{} bytes, not a text", file.bytes.len())),
        }
    }
    // What is looked for is kept however many others there are.
    let is_first = |file: &FetchedFile| keeping.fetch.first.contains(&file.path);
    files.sort_by_key(|(_, file)| (!is_first(file), file.bytes.len()));
    for (_, file) in files.drain(files.len().min(LOGS_MAX)..) {
        note(&file.path, &format!("the folder has more than {LOGS_MAX} files"));
    }
    files.sort_by_key(|(_, file)| file.bytes.len());
    let (mut room, mut left) = (room, files.len());
    let mut logs = Vec::new();
    for (at, file) in files {
        match log_of(&name_of(&file.path), &file.bytes, room / left) {
            Some(log) => {
                room -= json_text_bytes(&log.text).min(room);
                let log = match file.omitted {
                    0 => log,
                    // It was shortened when it was copied, and perhaps again here.
                    omitted => EpisodeLog {
                        bytes: omitted + SHORTENED_LOG_BYTES,
                        omitted: omitted + log.omitted,
                        ..log
                    },
                };
                logs.push((at, log));
            }
            None => note(&file.path, &format!("{} bytes, no room left", file.bytes.len())),
        }
        left -= 1;
    }
    if fetched.is_cut {
        note("", "has more files than can be copied");
    }
    logs.sort_by_key(|(at, _)| *at);
    logs.into_iter().map(|(_, log)| log).collect()
}

#[cfg(test)]
mod tests {
    use bench_environments::{Environment, FetchFiles, Labels, SkippedFile};

    use super::*;

    fn keeping(exclude: &[&str]) -> Keeping {
        Keeping {
            environment: Environment {
                name: "bench-e-1".parse().unwrap(),
                labels: Labels { owner: "o".to_owned(), run: "r".to_owned(), sample: "s".to_owned() },
                content_hash: "0".repeat(64),
            },
            operation: "keep".to_owned(),
            fetch: FetchFiles::new("c", "/logs/agent"),
            folder: "agent".to_owned(),
            exclude: exclude.iter().map(|&pattern| pattern.to_owned()).collect(),
        }
    }

    fn file(path: &str, bytes: Vec<u8>) -> FetchedFile {
        FetchedFile { path: path.to_owned(), is_executable: false, bytes, omitted: 0 }
    }

    #[test]
    fn large_files_displace_no_small_ones() {
        let files = vec![
            file("a.bin", vec![b'a'; 1 << 20]),
            file("b.bin", vec![b'b'; 1 << 20]),
            file("image", vec![0; 10]),
            file("secret", b"x".to_vec()),
            file("terminus_2.pane", b"$ ls".to_vec()),
        ];
        let why = SkipReason::TooLong;
        let skipped = vec![SkippedFile { path: "huge".to_owned(), why, bytes: Some(99) }];
        let fetched = FetchedFiles { files, skipped, is_cut: true };
        let mut left_out = LeftOut::new(1_000);
        let logs = shared_out(&keeping(&["secret"]), fetched, 1 << 20, &mut left_out);
        let left_out = left_out.text("agent");
        let names: Vec<&str> = logs.iter().map(|log| log.name.as_str()).collect();
        assert_eq!(names, ["agent/a.bin", "agent/b.bin", "agent/terminus_2.pane"]);
        assert_eq!(logs[2].text, "$ ls");
        assert!(
            logs[..2].iter().all(|log| log.omitted > 0 && log.text.len() > 100_000),
            "{:?}",
            logs[0].omitted
        );
        assert!(logs.iter().map(|log| json_text_bytes(&log.text)).sum::<usize>() <= 1 << 20);
        for line in [
            "agent/huge: 99 bytes, too large to be copied",
            "agent/image: 10 bytes, not a text",
            "agent: has more files than can be copied",
        ] {
            assert!(left_out.lines().any(|found| found == line), "{left_out}");
        }
        assert!(!left_out.contains("secret"));
    }

    #[test]
    fn what_is_left_out_of_a_log_twice_is_counted_twice() {
        let long =
            FetchedFile { omitted: 1_000_000, ..file("a.log", vec![b'a'; SHORTENED_LOG_BYTES as usize]) };
        let fetched = FetchedFiles { files: vec![long], ..FetchedFiles::default() };
        let logs = shared_out(&keeping(&[]), fetched, 100_000, &mut LeftOut::new(0));
        let in_the_text = logs[0].text.matches('a').count() as u64;
        assert_eq!(logs[0].bytes, 1_000_000 + SHORTENED_LOG_BYTES);
        assert!(in_the_text + logs[0].omitted <= logs[0].bytes + 10, "{in_the_text} {}", logs[0].omitted);
        assert!(in_the_text + logs[0].omitted >= logs[0].bytes, "{in_the_text} {}", logs[0].omitted);
    }

    #[test]
    fn files_without_room_are_listed() {
        let fetched = FetchedFiles { files: vec![file("a", vec![b'a'; 10_000])], ..FetchedFiles::default() };
        let mut left_out = LeftOut::new(50);
        assert!(shared_out(&keeping(&[]), fetched.clone(), 10, &mut left_out).is_empty());
        assert!(shared_out(&keeping(&[]), fetched, 10, &mut left_out).is_empty());
        assert_eq!(left_out.text("agent"), "agent/a: 10000 bytes, no room left\nagent: 1 more\n");
    }

    #[test]
    fn of_very_many_files_those_that_are_looked_for_are_kept() {
        let mut files: Vec<FetchedFile> =
            (0..LOGS_MAX + 5).map(|number| file(&number.to_string(), b"x".to_vec())).collect();
        files.push(file("reward.txt", vec![b'1'; 100]));
        let fetched = FetchedFiles { files, ..FetchedFiles::default() };
        let mut keeping = keeping(&[]);
        keeping.fetch.first = vec!["reward.txt".to_owned()];
        let mut left_out = LeftOut::new(1_000);
        let logs = shared_out(&keeping, fetched, 1 << 20, &mut left_out);
        assert_eq!((logs.len(), logs.last().unwrap().name.as_str()), (LOGS_MAX, "agent/reward.txt"));
        assert_eq!(left_out.lines.lines().count() + left_out.more, 6);
    }

    #[test]
    fn names_that_no_request_can_have_are_left_out() {
        let long = format!("{}/é", "x".repeat(300));
        let fetched = FetchedFiles { files: vec![file(&long, b"text".to_vec())], ..FetchedFiles::default() };
        let mut left_out = LeftOut::new(1_000);
        assert!(shared_out(&keeping(&[]), fetched, 1_000, &mut left_out).is_empty());
        assert_eq!(
            left_out.text("agent"),
            format!("agent/{}…: its name is too long\n", "x".repeat(NAME_BYTES_MAX - 6))
        );
    }

    #[test]
    fn an_artifact_of_the_task_is_not_displaced() {
        let log = |name: &str, text: &str| EpisodeLog {
            name: name.to_owned(),
            text: text.to_owned(),
            bytes: 1,
            omitted: 0,
        };
        let all = Keeping { folder: "artifacts".to_owned(), ..keeping(&[]) };
        let declared = Keeping { folder: "artifacts/app".to_owned(), ..keeping(&[]) };
        let logs = |text: &str| {
            vec![log("artifacts/app/out.txt", text), log(&format!("artifacts/app/{text}"), text)]
        };
        for order in [[&all, &declared], [&declared, &all]] {
            let keepings: Vec<Keeping> = order.into_iter().cloned().collect();
            let mut kept: Vec<_> = keepings
                .iter()
                .enumerate()
                .map(|(at, keeping)| (at, logs(keeping.folder.split('/').next_back().unwrap())))
                .collect();
            let mut left_out = String::new();
            drop_shadows(&keepings, &mut kept, &mut left_out);
            let texts: Vec<&str> = kept
                .iter()
                .flat_map(|(_, logs)| logs)
                .filter(|log| log.name.ends_with("out.txt"))
                .map(|log| log.text.as_str())
                .collect();
            assert_eq!((texts, kept[0].1.len() + kept[1].1.len()), (vec!["app"], 3));
            assert_eq!(left_out, "artifacts/app/out.txt: an artifact of the task has the same name\n");
        }
    }
}
