//! Replacement of the parts of an output that differ between machines and runs.

use crate::support::TestDir;

/// Public key in examples.
const EXAMPLE_KEY: &str = "A6EHv/POEL4dcN0Y50vAmWfk1jCbpQ1fHdyGZBJVMbg=";
const UUID: &str = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";

/// Replaces ids, times, digests, keys and paths by words in capitals. What the command line itself contains stays.
pub(super) struct Filter<'a> {
    dir: String,
    run: Option<&'a str>,
    command: &'a str,
}

impl<'a> Filter<'a> {
    pub(super) fn new(dir: &TestDir, run: Option<&'a str>, command: &'a str) -> Self {
        Self { dir: dir.path("").display().to_string(), run, command }
    }

    pub(super) fn apply(&self, text: &str) -> String {
        let text = text.replace(&self.dir, "DIR/").replace(self.dir.trim_end_matches('/'), "DIR");
        let text = text.replace(env!("CARGO_PKG_VERSION"), "VERSION");
        // Rows of a table follow the rule below its header, and have the same gaps between columns.
        let mut rule = String::new();
        let filter = |line: &str| {
            if line.starts_with('─') {
                line.clone_into(&mut rule);
            } else if line.is_empty()
                || rule.chars().zip(line.chars()).any(|(rule, cell)| rule == ' ' && cell != ' ')
            {
                rule.clear();
            }
            self.line(line, !rule.is_empty()) + "\n"
        };
        text.lines().map(filter).collect()
    }

    fn line(&self, line: &str, is_row: bool) -> String {
        // Cells of tables keep their width.
        // Short forms of ids and fingerprints can't be told from other digests without their context.
        let is_key =
            line.contains("signed by:") || line.starts_with("fingerprint ") || is_row && line.contains('=');
        let (mut filtered, mut rest, mut after_date) = (String::new(), line, false);
        while !rest.is_empty() {
            let length = rest.find(|c: char| !is_part(c)).unwrap_or(rest.len());
            let (word, tail) = rest.split_at(length);
            let bare = word.trim_end_matches(['.', ':']);
            let name = match bare {
                bare if bare.is_empty() || self.is_known(bare) => None,
                bare if self.run.is_some_and(|run| run.get(..8) == Some(bare)) => Some("RUN".to_owned()),
                bare if is_key && is_form(bare, "xxxxxxxxxxxx") => Some("DIGEST".to_owned()),
                bare if is_row && is_form(bare, "xxxxxxxx") => Some("ID".to_owned()),
                bare if after_date && is_form(bare, "00:00") => Some("TIME".to_owned()),
                bare => self.name(bare),
            };
            if !bare.is_empty() {
                after_date = name.as_deref() == Some("DATE");
            }
            match name {
                Some(name) if is_row => filtered.push_str(&format!("{name:<0$}", bare.len())),
                Some(name) => filtered.push_str(&name),
                None => filtered.push_str(bare),
            }
            filtered.push_str(word.get(bare.len()..).unwrap_or_default());
            let next = tail.chars().next().map_or(0, char::len_utf8);
            let (between, tail) = tail.split_at(next);
            filtered.push_str(between);
            rest = tail;
        }
        without_speed(if is_row { filtered.trim_end() } else { &filtered })
    }

    /// Returns true if a word is the same on all machines: the command line or an example contains it.
    fn is_known(&self, word: &str) -> bool {
        word == EXAMPLE_KEY || self.command.contains(word)
    }

    /// Returns the words that replace a word, or `None` for a word that stays.
    fn name(&self, word: &str) -> Option<String> {
        let name = match word {
            super::MISSING_RUN => "MISSING",
            word if is_form(word, "0000-00-00") => "DATE",
            word if word.len() >= 20 && is_form(&word[..11], "0000-00-00T") => "TIME",
            word if word.len() == 64 && word.bytes().all(|byte| byte.is_ascii_hexdigit()) => "DIGEST",
            word if word.len() == 44 && word.ends_with('=') => "KEY",
            word if word.len() > 40 && word.starts_with("bra_") => "TOKEN",
            word => return self.file_name(word),
        };
        Some(name.to_owned())
    }

    /// Replaces an id, and the time after it in the name of a file.
    fn file_name(&self, word: &str) -> Option<String> {
        let at = (0..word.len()).find(|at| is_form(word.get(*at..at + 36).unwrap_or_default(), UUID))?;
        let (start, rest) = (word.get(..at)?, word.get(at + 36..)?);
        let id = if word.get(at..at + 36) == self.run { "RUN" } else { "ID" };
        let rest = match rest.get(..16).is_some_and(|time| is_form(time, "_00000000_000000")) {
            true => format!("_TIME{}", rest.get(16..)?),
            false => rest.to_owned(),
        };
        Some(format!("{start}{id}{rest}"))
    }
}

fn is_part(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | ':' | '.' | '+' | '/' | '=' | '_')
}

/// Returns true if a word has this form: `0` stands for a digit, `x` for a hexadecimal digit.
fn is_form(word: &str, form: &str) -> bool {
    word.len() == form.len()
        && word.chars().zip(form.chars()).all(|(c, wanted)| match wanted {
            '0' => c.is_ascii_digit(),
            'x' => c.is_ascii_hexdigit(),
            other => c == other,
        })
}

/// Replaces the speed in the summary of `bench score`.
fn without_speed(line: &str) -> String {
    match (line.rfind(" ("), line.strip_suffix(" per second and core)")) {
        (Some(start), Some(_)) => format!("{} (SPEED)", &line[..start]),
        _ => line.to_owned(),
    }
}

/// Drops lines about the progress of a run (`ifbench (IFEval) (DEMO) 2/5 40.0% …`), which depend on time.
pub(super) fn without_progress(stderr: &str) -> String {
    let is_count = |word: &str| {
        word.split_once('/')
            .is_some_and(|(done, all)| done.parse::<u64>().is_ok() && all.parse::<u64>().is_ok())
    };
    let is_progress = |line: &&str| line.split(' ').skip(1).take(3).any(is_count);
    stderr.lines().filter(|line| !is_progress(line)).map(|line| format!("{line}\n")).collect()
}
