//! Parses a Python pattern and rewrites it for the `regex` crate.

use std::fmt::Write as _;

use super::{PatternError, stand_in};
use crate::python;

/// Characters of `\s`, in class syntax.
const SPACE: &str =
    r"\t-\r\x1c-\x20\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}";
/// Characters of `\w`, in class syntax.
const WORD: &str = r"\p{L}\p{N}_";
/// Characters of `\d`, in class syntax.
const DIGIT: &str = r"\p{Nd}";
/// Characters that Python treats as equal to `i` case-insensitively.
const I_LIKE: [char; 4] = ['i', 'I', '\u{130}', '\u{131}'];
/// Maximum nesting depth of groups.
const DEPTH_MAX: u32 = 100;

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Flags {
    pub(super) ignore_case: bool,
    multi_line: bool,
    pub(super) dot_all: bool,
}

/// Kind of atom, which decides whether it can be repeated.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Atom {
    Repeatable,
    Position,
}

pub(super) struct Parser<'p> {
    rest: std::str::Chars<'p>,
    /// Rewritten pattern.
    pub(super) out: String,
    pub(super) flags: Flags,
    pub(super) has_boundary: bool,
    pub(super) has_end: bool,
}

impl<'p> Parser<'p> {
    pub(super) fn new(python: &'p str) -> Self {
        Self {
            rest: python.chars(),
            out: String::with_capacity(python.len() * 2),
            flags: Flags::default(),
            has_boundary: python.contains(r"\b") || python.contains(r"\B"),
            has_end: false,
        }
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.rest.clone().next()
    }

    fn eat(&mut self, text: &str) -> bool {
        let Some(after) = self.rest.as_str().strip_prefix(text) else { return false };
        self.rest = after.chars();
        true
    }

    pub(super) fn global_flags(&mut self) -> Result<(), PatternError> {
        while let Some((flags, after)) =
            self.rest.as_str().strip_prefix("(?").and_then(|text| text.split_once(')'))
        {
            if flags.is_empty() || !flags.chars().all(|c| "aiLmsux".contains(c)) {
                break;
            }
            for flag in flags.chars() {
                match flag {
                    'i' => self.flags.ignore_case = true,
                    'm' => self.flags.multi_line = true,
                    's' => self.flags.dot_all = true,
                    'u' => {}
                    _ => return Err(PatternError::Unsupported("the flags a, L or x")),
                }
            }
            self.rest = after.chars();
        }
        Ok(())
    }

    pub(super) fn alternation(&mut self, depth: u32) -> Result<(), PatternError> {
        if depth > DEPTH_MAX {
            return Err(PatternError::TooLarge);
        }
        loop {
            while !matches!(self.peek(), None | Some('|' | ')')) {
                self.quantified_atom(depth)?;
            }
            if !self.eat("|") {
                return Ok(());
            }
            self.out.push('|');
        }
    }

    /// Parses an atom with its quantifier.
    fn quantified_atom(&mut self, depth: u32) -> Result<(), PatternError> {
        let start = self.out.len();
        let atom = self.atom(depth)?;
        let Some(times) = self.quantifier()? else { return Ok(()) };
        if atom == Atom::Position {
            return Err(PatternError::Syntax("nothing to repeat"));
        }
        // The atom gets its own group, because one character of the Python pattern may become more than one item.
        self.out.insert_str(start, "(?:");
        self.out.push(')');
        self.out.push_str(&times);
        if self.eat("?") {
            self.out.push('?');
        } else if self.eat("+") {
            // If nothing follows, backtracking never happens, so a greedy quantifier is equivalent.
            let rest = self.rest.as_str();
            if !(rest.is_empty() || rest == r"\b") {
                return Err(PatternError::Unsupported("possessive repetition"));
            }
        }
        if self.quantifier()?.is_some() {
            return Err(PatternError::Syntax("multiple repeat"));
        }
        Ok(())
    }

    fn quantifier(&mut self) -> Result<Option<String>, PatternError> {
        for (mark, times) in [("*", "*"), ("+", "+"), ("?", "?")] {
            if self.eat(mark) {
                return Ok(Some(times.to_owned()));
            }
        }
        let Some((bounds, after)) =
            self.rest.as_str().strip_prefix('{').and_then(|text| text.split_once('}'))
        else {
            return Ok(None);
        };
        let (low, high) = match bounds.split_once(',') {
            Some((low, high)) => (low, Some(high)),
            None => (bounds, None),
        };
        let is_number = |text: &str| text.chars().all(|c| c.is_ascii_digit());
        // Other text in braces is literal.
        if !is_number(low) || !high.is_none_or(is_number) || bounds.is_empty() {
            return Ok(None);
        }
        let number = |text: &str| text.parse::<u32>().map_err(|_| PatternError::TooLarge);
        let least = if low.is_empty() { 0 } else { number(low)? };
        let times = match high {
            None => format!("{{{least}}}"),
            Some("") => format!("{{{least},}}"),
            Some(high) if number(high)? < least => {
                return Err(PatternError::Syntax("min repeat greater than max repeat"));
            }
            Some(high) => format!("{{{least},{}}}", number(high)?),
        };
        self.rest = after.chars();
        Ok(Some(times))
    }

    fn atom(&mut self, depth: u32) -> Result<Atom, PatternError> {
        let Some(c) = self.rest.next() else { return Ok(Atom::Position) };
        match c {
            '.' => self.out.push_str(if self.flags.dot_all { "(?s:.)" } else { r"[^\n]" }),
            '^' => {
                self.out.push_str(if self.flags.multi_line { "(?m:^)" } else { r"\A" });
                return Ok(Atom::Position);
            }
            '$' => {
                if self.flags.multi_line {
                    self.out.push_str("(?m:$)");
                } else {
                    self.has_end = true;
                    self.out.push_str(r"\z");
                }
                return Ok(Atom::Position);
            }
            '(' => self.group(depth)?,
            '[' => self.class()?,
            '\\' => return self.escape(),
            '*' | '+' | '?' => return Err(PatternError::Syntax("nothing to repeat")),
            c => self.literal(c),
        }
        Ok(Atom::Repeatable)
    }

    fn group(&mut self, depth: u32) -> Result<(), PatternError> {
        let flags = self.flags;
        if self.eat("?") {
            if self.eat(":") {
            } else if self.eat("P<") {
                let Some((name, after)) = self.rest.as_str().split_once('>') else {
                    return Err(PatternError::Syntax("missing >, unterminated name"));
                };
                if name.is_empty() || !name.chars().all(python::is_word) {
                    return Err(PatternError::Syntax("bad character in group name"));
                }
                self.rest = after.chars();
            } else {
                self.scoped_flags()?;
            }
        }
        self.out.push_str(if self.flags.ignore_case { "(?i:" } else { "(?-i:" });
        self.alternation(depth + 1)?;
        if !self.eat(")") {
            return Err(PatternError::Syntax("missing ), unterminated subpattern"));
        }
        self.out.push(')');
        self.flags = flags;
        Ok(())
    }

    /// Parses the flags of `(?i-m:…)` up to and including the colon.
    fn scoped_flags(&mut self) -> Result<(), PatternError> {
        let mut on = true;
        loop {
            match self.rest.next() {
                Some('i') => self.flags.ignore_case = on,
                Some('m') => self.flags.multi_line = on,
                Some('s') => self.flags.dot_all = on,
                Some('-') if on => on = false,
                Some(':') => return Ok(()),
                Some('=' | '!' | '<') => return Err(PatternError::Unsupported("look-around")),
                Some('P' | '(') => return Err(PatternError::Unsupported("a reference to a group")),
                Some('>') => return Err(PatternError::Unsupported("an atomic group")),
                Some('#') => return Err(PatternError::Unsupported("a comment")),
                _ => return Err(PatternError::Syntax("unknown extension")),
            }
        }
    }

    fn literal(&mut self, c: char) {
        if self.flags.ignore_case && I_LIKE.contains(&c) {
            self.out.push_str("[iI\u{130}\u{131}]");
        } else {
            self.push_escaped(c);
        }
    }

    fn push_escaped(&mut self, c: char) {
        if c.is_ascii_alphanumeric() {
            self.out.push(c);
        } else {
            let c = if self.has_boundary { stand_in(c) } else { c };
            // Writing to a string can't fail.
            let _ = write!(self.out, r"\x{{{:x}}}", c as u32);
        }
    }

    /// Parses the text after a backslash outside a class.
    fn escape(&mut self) -> Result<Atom, PatternError> {
        match self.peek() {
            Some(mark @ ('b' | 'B' | 'A' | 'Z')) => {
                self.rest.next();
                self.out.push_str(match mark {
                    'b' => r"\b",
                    'B' => r"\B",
                    'A' => r"\A",
                    _ => r"\z",
                });
                return Ok(Atom::Position);
            }
            Some('1'..='9') => return Err(PatternError::Unsupported("a reference to a group")),
            _ => {}
        }
        match self.common_escape()? {
            EscapeMeaning::Character(c) => self.literal(c),
            EscapeMeaning::Class { items, negated } => {
                self.out.push_str(if negated { "(?-i:[^" } else { "(?-i:[" });
                self.out.push_str(items);
                self.out.push_str("])");
            }
        }
        Ok(Atom::Repeatable)
    }

    /// Parses an escape that means the same inside and outside a class.
    fn common_escape(&mut self) -> Result<EscapeMeaning, PatternError> {
        let Some(c) = self.rest.next() else {
            return Err(PatternError::Syntax("bad escape (end of pattern)"));
        };
        let class = |items, negated| Ok(EscapeMeaning::Class { items, negated });
        Ok(EscapeMeaning::Character(match c {
            'w' => return class(WORD, false),
            'W' => return class(WORD, true),
            's' => return class(SPACE, false),
            'S' => return class(SPACE, true),
            'd' => return class(DIGIT, false),
            'D' => return class(DIGIT, true),
            'a' => '\u{7}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\u{b}',
            'x' => self.hex(2)?,
            'u' => self.hex(4)?,
            'U' => self.hex(8)?,
            '0' => {
                let mut code = 0;
                for _ in 0..2 {
                    let Some(digit) = self.peek().and_then(|c| c.to_digit(8)) else { break };
                    self.rest.next();
                    code = code * 8 + digit;
                }
                char::from_u32(code).unwrap_or('\0')
            }
            'N' => return Err(PatternError::Unsupported("a character by its name")),
            c if c.is_ascii_alphanumeric() => return Err(PatternError::Syntax("bad escape")),
            c => c,
        }))
    }

    fn hex(&mut self, digits: usize) -> Result<char, PatternError> {
        let text =
            self.rest.as_str().get(..digits).filter(|text| text.bytes().all(|b| b.is_ascii_hexdigit()));
        let code = text.and_then(|text| u32::from_str_radix(text, 16).ok());
        let c = code.and_then(char::from_u32).ok_or(PatternError::Syntax("incomplete escape"))?;
        self.eat_bytes(digits);
        Ok(c)
    }

    fn eat_bytes(&mut self, count: usize) {
        self.rest = self.rest.as_str().get(count..).unwrap_or_default().chars();
    }

    /// Parses a class after its opening bracket.
    fn class(&mut self) -> Result<(), PatternError> {
        let unterminated = PatternError::Syntax("unterminated character set");
        self.out.push('[');
        if self.eat("^") {
            self.out.push('^');
        }
        let mut has_i = false;
        let mut is_first = true;
        loop {
            let low = match self.rest.next().ok_or_else(|| unterminated.clone())? {
                ']' if !is_first => break,
                '\\' => self.class_escape()?,
                c => Some(c),
            };
            is_first = false;
            // A hyphen before the closing bracket is literal.
            let is_range = self.peek() == Some('-') && !self.rest.as_str().starts_with("-]");
            let Some(low) = low else {
                if is_range {
                    return Err(PatternError::Syntax("bad character range"));
                }
                continue;
            };
            let mut high = low;
            if is_range {
                self.rest.next();
                high = match self.rest.next().ok_or_else(|| unterminated.clone())? {
                    '\\' => self.class_escape()?,
                    c => Some(c),
                }
                .filter(|&high| low <= high)
                .ok_or(PatternError::Syntax("bad character range"))?;
            }
            self.push_escaped(low);
            if high != low {
                self.out.push('-');
                self.push_escaped(high);
            }
            has_i |= I_LIKE.iter().any(|c| (low..=high).contains(c));
        }
        if has_i && self.flags.ignore_case {
            self.out.extend(I_LIKE);
        }
        self.out.push(']');
        Ok(())
    }

    /// Parses an escape inside a class. Returns a character, or `None` after writing a class.
    fn class_escape(&mut self) -> Result<Option<char>, PatternError> {
        if self.eat("b") {
            return Ok(Some('\u{8}'));
        }
        match self.common_escape()? {
            EscapeMeaning::Character(c) => Ok(Some(c)),
            EscapeMeaning::Class { items, negated } => {
                self.out.push_str(if negated { "[^" } else { "[" });
                self.out.push_str(items);
                self.out.push(']');
                Ok(None)
            }
        }
    }
}

/// Meaning of an escape sequence.
enum EscapeMeaning {
    Character(char),
    Class { items: &'static str, negated: bool },
}
