//! Tokens of a Python text.

/// Kind of token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Name or keyword.
    Name,
    Number,
    /// String literal with its prefix and quotes.
    Text,
    Operator,
    /// End of a logical line.
    Newline,
    Indent,
    Dedent,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Token<'a> {
    pub(super) kind: Kind,
    pub(super) text: &'a str,
}

/// Operators, longest first.
const OPERATORS: [&str; 47] = [
    "**=", "//=", ">>=", "<<=", "...", "!=", "->", ":=", "+=", "-=", "*=", "/=", "%=", "@=", "&=", "|=",
    "^=", "==", "<=", ">=", "<<", ">>", "**", "//", "+", "-", "*", "/", "%", "@", "&", "|", "^", "~", "<",
    ">", "(", ")", "[", "]", "{", "}", ",", ":", ".", ";", "=",
];

/// Width of a tab at the start of a line.
const TAB: usize = 8;

/// Returns all tokens; `None` if the text is not Python.
pub(super) fn tokens(text: &str) -> Option<Vec<Token<'_>>> {
    let mut tokens: Vec<Token<'_>> = Vec::new();
    let mut indents = vec![0];
    let mut open = 0_usize;
    let mut rest = text;
    let mut line_start = true;
    while !rest.is_empty() {
        if line_start && open == 0 {
            let blanks = rest.len() - rest.trim_start_matches([' ', '\t', '\u{c}']).len();
            let (blanks, after) = rest.split_at(blanks);
            rest = after;
            line_start = false;
            if matches!(rest.chars().next(), None | Some('\n' | '\r' | '#')) {
                // Line without a statement.
                rest = rest.trim_start_matches(|c| c != '\n');
                rest = rest.strip_prefix('\n').unwrap_or(rest);
                line_start = true;
                continue;
            }
            let width = blanks.chars().fold(0, |width, c| match c {
                '\t' => (width / TAB + 1) * TAB,
                '\u{c}' => 0,
                _ => width + 1,
            });
            if width > *indents.last()? {
                indents.push(width);
                tokens.push(Token { kind: Kind::Indent, text: "" });
            }
            while width < *indents.last()? {
                indents.pop();
                tokens.push(Token { kind: Kind::Dedent, text: "" });
            }
            if width != *indents.last()? {
                return None;
            }
        }
        let c = rest.chars().next()?;
        if c == '\n' {
            rest = rest.get(1..)?;
            if open == 0 {
                tokens.push(Token { kind: Kind::Newline, text: "" });
                line_start = true;
            }
            continue;
        }
        if matches!(c, ' ' | '\t' | '\r' | '\u{c}') {
            rest = rest.get(1..)?;
            continue;
        }
        if c == '#' {
            rest = rest.trim_start_matches(|c| c != '\n');
            continue;
        }
        if c == '\\' {
            let after = rest.get(1..)?;
            rest = after.strip_prefix("\r\n").or_else(|| after.strip_prefix('\n'))?;
            continue;
        }
        let (kind, length) = token(rest)?;
        let (token, after) = rest.split_at_checked(length)?;
        match token {
            "(" | "[" | "{" => open += 1,
            ")" | "]" | "}" => open = open.checked_sub(1)?,
            _ => {}
        }
        tokens.push(Token { kind, text: token });
        rest = after;
    }
    if open > 0 {
        return None;
    }
    if !matches!(tokens.last().map(|token| token.kind), None | Some(Kind::Newline | Kind::Dedent)) {
        tokens.push(Token { kind: Kind::Newline, text: "" });
    }
    tokens.extend(indents.iter().skip(1).map(|_| Token { kind: Kind::Dedent, text: "" }));
    Some(tokens)
}

/// Returns kind and length in bytes of the first token.
fn token(text: &str) -> Option<(Kind, usize)> {
    let is_word = |c: char| c == '_' || c.is_alphanumeric();
    let first = text.chars().next()?;
    if let Some(length) = literal(text) {
        return Some((Kind::Text, length));
    }
    let after_dot = text.strip_prefix('.').and_then(|after| after.chars().next());
    if first.is_ascii_digit() || after_dot.is_some_and(|c| c.is_ascii_digit()) {
        let mut length = 0;
        let mut previous = ' ';
        let radix = matches!(text.get(..2), Some("0x" | "0X" | "0b" | "0B" | "0o" | "0O"));
        for c in text.chars() {
            let exponent_sign = matches!(c, '+' | '-') && matches!(previous, 'e' | 'E') && !radix;
            let first_dot = c == '.' && !text.get(..length).is_some_and(|before| before.contains('.'));
            if !(is_word(c) || first_dot || exponent_sign) {
                break;
            }
            length += c.len_utf8();
            previous = c;
        }
        return Some((Kind::Number, length));
    }
    if is_word(first) {
        return Some((Kind::Name, text.find(|c| !is_word(c)).unwrap_or(text.len())));
    }
    let operator = OPERATORS.iter().find(|operator| text.starts_with(**operator))?;
    Some((Kind::Operator, operator.len()))
}

/// Returns the length of the string literal at the start, including its prefix.
fn literal(text: &str) -> Option<usize> {
    let prefix = text.bytes().take(3).position(|b| matches!(b, b'\'' | b'"'))?;
    let (letters, quoted) = text.split_at(prefix);
    let known = ["", "r", "b", "u", "f", "br", "rb", "fr", "rf"];
    if letters.len() > 2 || !known.contains(&letters.to_ascii_lowercase().as_str()) {
        return None;
    }
    let quote = ["\"\"\"", "'''", "\"", "'"].into_iter().find(|quote| quoted.starts_with(quote))?;
    let mut at = quote.len();
    loop {
        let rest = quoted.get(at..)?;
        if rest.starts_with(quote) {
            return Some(prefix + at + quote.len());
        }
        let c = rest.chars().next()?;
        at += c.len_utf8();
        if c == '\\' {
            at += rest.chars().nth(1)?.len_utf8();
        } else if c == '\n' && quote.len() == 1 {
            return None;
        }
    }
}
