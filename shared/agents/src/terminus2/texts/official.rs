//! Official texts, cut out of files of Harbor 0.25.0.
//!
//! The first message is a template file. All other messages are literals in the agent's program, which is read here as
//! text: the places of the literals are facts about one exact file, so callers check its digest first.

use super::Terminus2Texts;
use crate::terminus2::ReplyFormat;
use crate::texts::TextSource;

/// File of the Harbor wheel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OfficialFile {
    /// Path in the wheel.
    pub path: &'static str,
    /// SHA-256 in hexadecimal.
    pub sha256: &'static str,
}

/// Program of the agent.
pub const OFFICIAL_PROGRAM: OfficialFile = OfficialFile {
    path: "harbor/agents/terminus_2/terminus_2.py",
    sha256: "34ab46005280c50dd63fc075a3fdbb224421d88751bff6f514d23f5e4b2eaf35",
};

/// Error in an official file, which has another digest then.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "lines {first} to {last} of the official program aren't the literals of a message: load the file of harbor 0.25.0"
)]
pub struct OfficialTextError {
    /// First line, from 1.
    first: usize,
    /// Last line.
    last: usize,
}

/// Piece of a message: literals in these lines of the program, or a field of ours.
enum Piece {
    Lines(usize, usize),
    Field(&'static str),
}

use Piece::{Field, Lines};

/// Expressions in literals, and what stands for them in our templates.
const EXPRESSIONS: [(&str, &str); 11] = [
    ("terminal_output", "{terminal_state}"),
    ("self._limit_output_length(terminal_output)", "{terminal_state}"),
    ("current_screen", "{terminal_state}"),
    ("limited_screen", "{terminal_state}"),
    ("feedback", "{feedback}"),
    ("limit_str", "{limit}"),
    ("parse_result.warning", "{warnings}"),
    ("original_instruction", "{instruction}"),
    ("summary_response.content", "{summary}"),
    ("short_llm_response.content", "{summary}"),
    ("self._get_error_response_type()", KIND),
];
/// Mark that is replaced by the kind of reply.
const KIND: &str = "\u{0}";

/// Returns the template of the first message for a format.
pub const fn official_template(format: ReplyFormat) -> OfficialFile {
    match format {
        ReplyFormat::Json => OfficialFile {
            path: "harbor/agents/terminus_2/templates/terminus-json-plain.txt",
            sha256: "89a3dc3a15752b748a99fb907c9251ab31a464e13386583fb48476b078b54a34",
        },
        ReplyFormat::Xml => OfficialFile {
            path: "harbor/agents/terminus_2/templates/terminus-xml-plain.txt",
            sha256: "721c0ada54921cbb7bb9f817f2306c79ff4ba3381d08be7eb97fbeb0d99d298d",
        },
    }
}

impl Terminus2Texts {
    /// Cuts the official texts out of the template ([`official_template`]) and the program ([`OFFICIAL_PROGRAM`]).
    ///
    /// # Errors
    /// If the program isn't that of Harbor 0.25.0. Callers have compared its digest, so this is a mistake of theirs.
    pub fn official(format: ReplyFormat, template: &str, program: &str) -> Result<Self, OfficialTextError> {
        let lines: Vec<_> = program.lines().collect();
        let message = |pieces: &[Piece]| -> Result<String, OfficialTextError> {
            let mut text = String::new();
            for piece in pieces {
                match piece {
                    Field(name) => text.push_str(&format!("{{{name}}}")),
                    Lines(first, last) => {
                        let source = lines.get(first - 1..*last).map(|lines| lines.join("\n"));
                        let found = source.and_then(|source| literals(&source));
                        text.push_str(&found.ok_or(OfficialTextError { first: *first, last: *last })?);
                    }
                }
            }
            Ok(text)
        };
        let (confirmation, kind) = match format {
            ReplyFormat::Json => (Lines(720, 724), "JSON response"),
            ReplyFormat::Xml => (Lines(728, 732), "response"),
        };
        Ok(Self {
            source: TextSource::Official,
            task: template.to_owned(),
            format_error: message(&[Lines(1571, 1573)])?.replace(KIND, kind),
            warnings: message(&[Lines(1634, 1635)])?,
            confirmation: message(&[confirmation])?,
            output_cut: message(&[Lines(1347, 1350)])?,
            cut_warnings: message(&[Lines(1333, 1334)])?,
            unknown_limit: message(&[Lines(1344, 1344)])?,
            summary: message(&[Lines(1021, 1038)])?,
            questions: message(&[Lines(1059, 1072)])?,
            answers: message(&[Lines(1128, 1128), Field("questions")])?,
            hand_over: message(&[Lines(1161, 1161), Field("answers"), Lines(1163, 1166)])?,
            short_summary: message(&[Lines(1263, 1263)])?,
            short_hand_over: message(&[Lines(1269, 1269)])?,
            last_hand_over: message(&[Lines(1280, 1280)])?,
        })
    }
}

/// Returns the text of all string literals of a piece of Python, one after the other, as a template; `None` if there is
/// none, or one that isn't understood.
fn literals(source: &str) -> Option<String> {
    let mut text = String::new();
    let mut rest = source;
    let mut count = 0;
    while let Some(at) = rest.find(['"', '\'']) {
        let is_formatted = rest.get(..at)?.ends_with('f');
        rest = rest.get(at..)?;
        let quote = ["\"\"\"", "\"", "'"].into_iter().find(|quote| rest.starts_with(quote))?;
        rest = literal(rest.strip_prefix(quote)?, quote, is_formatted, &mut text)?;
        count += 1;
    }
    (count > 0).then_some(text)
}

/// Adds the text of a literal whose opening quotes were read. Returns what follows it.
fn literal<'a>(source: &'a str, quote: &str, is_formatted: bool, text: &mut String) -> Option<&'a str> {
    let mut rest = source;
    loop {
        if let Some(after) = rest.strip_prefix(quote) {
            return Some(after);
        }
        let c = rest.chars().next()?;
        let after = rest.get(c.len_utf8()..)?;
        rest = match c {
            '\\' => {
                let escaped = after.chars().next()?;
                text.push(match escaped {
                    'n' => '\n',
                    '"' | '\'' | '\\' => escaped,
                    _ => return None,
                });
                after.get(1..)?
            }
            '{' if is_formatted => {
                let (expression, after) = after.split_once('}')?;
                let (_, field) = EXPRESSIONS.iter().find(|(known, _)| *known == expression)?;
                text.push_str(field);
                after
            }
            '{' | '}' => {
                text.extend([c, c]);
                after
            }
            '\n' if quote.len() == 1 => return None,
            c => {
                text.push(c);
                after
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_become_templates() {
        for (source, expected) in [
            (r#"x = (f"a {feedback}\n" 'it\'s {b}'"#, Some("a {feedback}\nit's {{b}}")),
            ("f\"\"\"two\n lines \"{limit_str}\" \"\"\"", Some("two\n lines \"{limit}\" ")),
            ("x = 1", None),
            (r#"f"{other}""#, None),
            ("\"open", None),
            ("\"open\n\"", None),
            (r#""\x41""#, None),
        ] {
            assert_eq!(literals(source).as_deref(), expected, "{source}");
        }
    }

    #[test]
    fn another_program_is_refused() {
        let error = Terminus2Texts::official(ReplyFormat::Json, "", "print('hello')").unwrap_err();
        assert_eq!(
            error.to_string(),
            "lines 1571 to 1573 of the official program aren't the literals of a message: load the file of harbor 0.25.0"
        );
    }
}
