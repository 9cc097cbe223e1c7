//! Commands of a `<response>` element.

use std::sync::LazyLock;

use regex::Regex;

use super::{ParsedCommand, Warnings, newline_warning};
use crate::python::parse_float;

/// Duration of a command without a usable one, in seconds.
const DURATION_DEFAULT_S: f64 = 1.0;
/// Entities that models write by mistake, and what they mean by them.
const ENTITIES: [(&str, &str); 5] =
    [("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&"), ("&quot;", "\""), ("&apos;", "'")];

/// Reads the elements `keystrokes` of a section.
pub(super) fn read_commands(section: &str, warnings: &mut Warnings) -> Vec<ParsedCommand> {
    let elements: Vec<_> =
        std::iter::successors(next_element(section), |element| next_element(element.after)).collect();
    let mut commands = Vec::with_capacity(elements.len());
    for (index, element) in elements.iter().enumerate() {
        let number = index + 1;
        let duration_s = read_attributes(element.attributes, number, warnings);
        if number < elements.len() && !element.keystrokes.ends_with('\n') {
            warnings.add(newline_warning(number));
        }
        commands.push(ParsedCommand { keystrokes: element.keystrokes.to_owned(), duration_s });
    }
    for (entity, meaning) in ENTITIES {
        if section.contains(entity) {
            warnings.add(format!(
                "Warning: {entity} is read verbatim and not converted to {meaning}. NEVER USE {entity}, unless you want \
                 these exact characters to appear directly in the output."
            ));
        }
    }
    if section.contains("\\r\\n") {
        warnings.add("Warning: \\r\\n line endings are not necessary - use \\n instead for simpler output");
    }
    commands
}

struct Element<'a> {
    attributes: &'a str,
    keystrokes: &'a str,
    after: &'a str,
}

/// Returns the next element. A slash before `>` doesn't close it.
fn next_element(text: &str) -> Option<Element<'_>> {
    let (attributes, content) = text.split_once("<keystrokes")?.1.split_once('>')?;
    let (keystrokes, after) = content.split_once("</keystrokes>")?;
    Some(Element { attributes, keystrokes, after })
}

/// Patterns of attributes, with Python's `\s` and `\w`: four separators are blanks, and combining characters aren't
/// part of words.
struct Patterns {
    unquoted: Regex,
    single_quoted: Regex,
    name: Regex,
    duration: Regex,
}

impl Patterns {
    fn new() -> Option<Self> {
        Some(Self {
            unquoted: Regex::new(r#"([\p{L}\p{N}_]+)[\s\x1c-\x1f]*=[\s\x1c-\x1f]*([^"'\s\x1c-\x1f>]+)"#)
                .ok()?,
            single_quoted: Regex::new(r"([\p{L}\p{N}_]+)[\s\x1c-\x1f]*=[\s\x1c-\x1f]*'([^']*)'").ok()?,
            name: Regex::new(r"([\p{L}\p{N}_]+)[\s\x1c-\x1f]*=").ok()?,
            duration: Regex::new(r#"duration[\s\x1c-\x1f]*=[\s\x1c-\x1f]*["']([^"']*)["']"#).ok()?,
        })
    }
}

/// Returns the duration of a command in seconds, and warns about its attributes.
fn read_attributes(attributes: &str, number: usize, warnings: &mut Warnings) -> f64 {
    static PATTERNS: LazyLock<Option<Patterns>> = LazyLock::new(Patterns::new);
    let Some(patterns) = PATTERNS.as_ref() else { return DURATION_DEFAULT_S };
    for found in patterns.unquoted.captures_iter(attributes) {
        let (name, value) = (&found[1], &found[2]);
        warnings
            .add(format!("Command {number}: Attribute '{name}' value should be quoted: {name}=\"{value}\""));
    }
    for found in patterns.single_quoted.captures_iter(attributes) {
        let (name, value) = (&found[1], &found[2]);
        warnings
            .add(format!("Command {number}: Use double quotes for attribute '{name}': {name}=\"{value}\""));
    }
    for found in patterns.name.captures_iter(attributes) {
        if &found[1] != "duration" {
            warnings.add(format!(
                "Command {number}: Unknown attribute '{}' - known attributes are: duration",
                &found[1]
            ));
        }
    }
    let Some(found) = patterns.duration.captures(attributes) else {
        warnings.add(format!("Command {number}: Missing duration attribute, using default 1.0"));
        return DURATION_DEFAULT_S;
    };
    parse_float(&found[1]).unwrap_or_else(|| {
        warnings.add(format!("Command {number}: Invalid duration value '{}', using default 1.0", &found[1]));
        DURATION_DEFAULT_S
    })
}
