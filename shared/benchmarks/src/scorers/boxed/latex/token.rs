//! Tokens of LaTeX expressions.

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token {
    Digit(char),
    Letter(char),
    /// `d` followed by a variable.
    Differential(String),
    /// Command name without its backslash.
    Command(String),
    /// Any other meaningful character, including `\{` and `\}`.
    Mark(&'static str),
    /// One or more `'`.
    Quotes(usize),
    /// Character that isn't valid in an expression.
    Unknown,
}

const MARKS: [&str; 18] =
    ["+", "-", "*", "/", "(", ")", "{", "}", "[", "]", "|", "_", "^", ":", "=", "<", ">", "!"];

/// Commands that only affect typesetting or spacing.
const SKIPPED: [&str; 16] = [
    "thinspace",
    "medspace",
    "thickspace",
    "quad",
    "qquad",
    "negthinspace",
    "negmedspace",
    "negthickspace",
    "left",
    "right",
    "vrule",
    "vcenter",
    "vbox",
    "vskip",
    "vspace",
    "hfil",
];

fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\n')
}

fn letters(text: &str) -> &str {
    text.get(..text.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(text.len())).unwrap_or_default()
}

pub(super) fn tokens(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let after = rest.get(c.len_utf8()..).unwrap_or_default();
        let (token, used) = match c {
            _ if is_blank(c) => (None, 1),
            '0'..='9' => (Some(Token::Digit(c)), 1),
            'd' => differential(after)
                .map_or((Some(Token::Letter(c)), 1), |(token, used)| (Some(token), used + 1)),
            'a'..='z' | 'A'..='Z' => (Some(Token::Letter(c)), 1),
            '\'' => {
                let count = rest.bytes().take_while(|&byte| byte == b'\'').count();
                (Some(Token::Quotes(count)), count)
            }
            '\\' => command(after),
            ',' => (Some(Token::Mark(",")), 1),
            '.' => (Some(Token::Mark(".")), 1),
            _ => match MARKS.iter().find(|mark| rest.starts_with(**mark)) {
                Some(mark) => (Some(Token::Mark(mark)), 1),
                None => (Some(Token::Unknown), c.len_utf8()),
            },
        };
        tokens.extend(token);
        rest = rest.get(used..).unwrap_or_default();
    }
    tokens
}

/// Reads the rest of a differential after its `d`. Returns its token and length.
fn differential(after: &str) -> Option<(Token, usize)> {
    let variable = after.trim_start_matches(is_blank);
    let blanks = after.len() - variable.len();
    if let Some(name) = variable.strip_prefix('\\').map(letters).filter(|name| !name.is_empty()) {
        return Some((Token::Differential(name.to_owned()), blanks + 1 + name.len()));
    }
    let letter = variable.chars().next().filter(char::is_ascii_alphabetic)?;
    Some((Token::Differential(letter.to_string()), blanks + 1))
}

/// Reads a backslash and the text after it. Returns the token and the length of both.
fn command(after: &str) -> (Option<Token>, usize) {
    let name = letters(after);
    if name.is_empty() {
        return match after.chars().next() {
            Some(',' | ':' | ';' | '!' | '*' | '-' | '.' | '/' | '"' | '(' | '=') => (None, 2),
            Some('{') => (Some(Token::Mark("\\{")), 2),
            Some('}') => (Some(Token::Mark("\\}")), 2),
            _ => (Some(Token::Unknown), 1),
        };
    }
    let bar_follows = after.get(name.len()..).is_some_and(|rest| rest.starts_with('|'));
    match name {
        "left" if bar_follows => (Some(Token::Mark("\\left|")), 6),
        "right" if bar_follows => (Some(Token::Mark("\\right|")), 7),
        "limits" => (Some(Token::Command(name.to_owned())), 7),
        _ if SKIPPED.contains(&name) => (None, name.len() + 1),
        _ => (Some(Token::Command(name.to_owned())), name.len() + 1),
    }
}
