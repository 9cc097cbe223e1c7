//! `requirements.txt`: packages with exact versions, with or without digests.

use std::collections::BTreeMap;

use super::{Dependencies, PackageManager, Place, Unfixed};

/// Name of the file.
pub(super) const REQUIREMENTS: &str = "requirements.txt";
/// Maximum number of characters of a line in a message.
const SHOWN_MAX: usize = 100;

/// A package with its version.
struct Pin {
    /// Name in the form in which pip compares names.
    name: String,
    version: String,
    /// Condition under which it's installed.
    marker: Option<String>,
    /// Name, extras, version and marker, as pip reads them.
    package: String,
    hashes: Vec<String>,
}

impl Pin {
    /// Returns true if both are for the same package, and may apply to the same environment.
    fn is_for_same(&self, other: &Self) -> bool {
        let is_always = self.marker.is_none() || other.marker.is_none();
        self.name == other.name && (is_always || self.marker == other.marker)
    }
}

/// Reads a list of requirements. Returns `None` if it names none.
pub(super) fn read(place: &Place<'_>) -> Result<Option<Dependencies>, Unfixed> {
    let mut pins: Vec<Pin> = Vec::new();
    for line in logical_lines(place.text()?) {
        let shown: String = line.chars().take(SHOWN_MAX).collect();
        let pin = pin(&line).ok_or_else(|| {
            place.unfixed(format!("`{shown}` is no `NAME==VERSION`, with or without `--hash=sha256:DIGEST`"))
        })?;
        match pins.iter().find(|earlier| earlier.is_for_same(&pin)) {
            Some(same) if same.package == pin.package && same.hashes == pin.hashes => continue,
            Some(same) if same.version != pin.version => {
                let (one, other) = (&same.package, &pin.package);
                return Err(place.unfixed(format!("it has both `{one}` and `{other}`; keep one of them")));
            }
            Some(same) if same.package == pin.package => {
                return Err(place.unfixed(format!(
                    "`{}` is there twice with different digests; put all of them in one line",
                    pin.package
                )));
            }
            _ => pins.push(pin),
        }
    }
    let with_hashes = pins.iter().filter(|pin| !pin.hashes.is_empty()).count();
    if pins.is_empty() {
        return Ok(None);
    }
    if with_hashes > 0 && with_hashes < pins.len() {
        return Err(place.unfixed("some packages have a `--hash` and others don't; give all or none"));
    }
    let mut text = String::new();
    for Pin { package, hashes, .. } in &pins {
        text.push_str(package);
        for hash in hashes {
            text.push_str(" --hash=");
            text.push_str(hash);
        }
        text.push('\n');
    }
    let files = BTreeMap::from([(REQUIREMENTS.to_owned(), text.clone().into_bytes())]);
    let read = Dependencies::new(PackageManager::Pip, place, files, &[text.as_bytes()]);
    Ok(Some(Dependencies { has_digests: with_hashes > 0, ..read }))
}

/// Returns lines without comments, joined where a backslash continues them.
fn logical_lines(text: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut open = String::new();
    for line in text.lines() {
        let line = if line.trim_start().starts_with('#') { "" } else { line };
        let line = line.split_once(" #").map_or(line, |(line, _)| line).trim();
        if let Some(part) = line.strip_suffix('\\') {
            open.push_str(part);
            open.push(' ');
            continue;
        }
        open.push_str(line);
        lines.push(std::mem::take(&mut open).trim().to_owned());
    }
    lines.push(open.trim().to_owned());
    lines.retain(|line| !line.is_empty());
    lines
}

fn pin(line: &str) -> Option<Pin> {
    let (requirement, options) = match line.split_once("--") {
        Some((requirement, options)) => (requirement.trim(), format!("--{options}")),
        None => (line, String::new()),
    };
    let (package, marker) = match requirement.split_once(';') {
        Some((package, marker)) => (package.trim(), Some(marker.trim())),
        None => (requirement, None),
    };
    let (name, version) = package.split_once("==")?;
    let (name, version) = (name.trim(), version.trim());
    let (bare, extras) = match name.split_once('[') {
        Some((bare, extras)) => (bare.trim(), Some(extras.strip_suffix(']')?)),
        None => (name, None),
    };
    let is_plain = |text: &str, more: &str| {
        text.starts_with(|c: char| c.is_ascii_alphanumeric())
            && text.chars().all(|c| c.is_ascii_alphanumeric() || more.contains(c))
    };
    let is_marker = |text: &str| {
        !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || " ._<>=!'\"()".contains(c))
    };
    let is_valid = is_plain(bare, "._-")
        && is_plain(version, ".!+_-")
        && extras.is_none_or(|extras| is_plain(extras, "._-, "))
        && marker.is_none_or(is_marker);
    if !is_valid {
        return None;
    }
    let mut hashes = Vec::new();
    let mut words = options.split_whitespace();
    while let Some(word) = words.next() {
        let hash = match word {
            "--hash" => words.next()?,
            word => word.strip_prefix("--hash=")?,
        };
        let digest = hash.strip_prefix("sha256:")?;
        if digest.len() != 64 || !digest.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        hashes.push(hash.to_owned());
    }
    hashes.sort();
    let extras = extras.map(|extras| format!("[{extras}]")).unwrap_or_default();
    let condition = marker.map(|marker| format!("; {marker}")).unwrap_or_default();
    Some(Pin {
        name: comparable(bare),
        version: version.to_owned(),
        marker: marker.map(str::to_owned),
        package: format!("{bare}{extras}=={version}{condition}"),
        hashes,
    })
}

/// Returns a name in lower case, with `-` for each run of `-`, `_` and `.`.
fn comparable(name: &str) -> String {
    let parts = name.split(['-', '_', '.']).filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join("-").to_ascii_lowercase()
}
