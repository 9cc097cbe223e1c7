//! Tokenizes Rust sources without comments, precisely enough to find paths.

use std::iter::Peekable;
use std::str::Chars;

/// A token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token {
    /// An identifier or a keyword.
    Word(String),
    /// A punctuation character other than a bracket.
    Sign(char),
    /// Content of a string literal, including its escapes.
    Text(String),
    /// Opening bracket and the tokens up to the closing one.
    Group(char, Vec<Token>),
}

/// Returns the tokens of a source. Leaves out numbers, characters and lifetimes.
pub(super) fn tokens(source: &str) -> Vec<Token> {
    let mut chars = source.chars().peekable();
    let tokens = group(&mut chars, None);
    assert_eq!(chars.next(), None, "a closing bracket without an opening one");
    tokens
}

/// Reads up to the closing bracket or the end.
fn group(chars: &mut Peekable<Chars<'_>>, close: Option<char>) -> Vec<Token> {
    let mut tokens = Vec::new();
    loop {
        let Some(c) = chars.peek().copied() else {
            assert_eq!(close, None, "a bracket without an end");
            return tokens;
        };
        if matches!(c, ')' | ']' | '}') {
            if close == Some(c) {
                chars.next();
            }
            return tokens;
        }
        chars.next();
        match c {
            '(' => tokens.push(Token::Group(c, group(chars, Some(')')))),
            '[' => tokens.push(Token::Group(c, group(chars, Some(']')))),
            '{' => tokens.push(Token::Group(c, group(chars, Some('}')))),
            '/' if chars.peek() == Some(&'/') => while chars.next().is_some_and(|c| c != '\n') {},
            '/' if chars.peek() == Some(&'*') => skip_comment(chars),
            '"' => tokens.push(Token::Text(text(chars))),
            '\'' => skip_character_or_lifetime(chars),
            c if c.is_alphabetic() || c == '_' => {
                let word = format!("{c}{}", take_word(chars));
                match (word.as_str(), chars.peek()) {
                    ("r" | "br" | "cr", Some('"' | '#')) => tokens.push(raw(chars)),
                    ("b" | "c", Some('"')) => {
                        chars.next();
                        tokens.push(Token::Text(text(chars)));
                    }
                    ("b", Some('\'')) => {
                        chars.next();
                        skip_character_or_lifetime(chars);
                    }
                    _ => tokens.push(Token::Word(word)),
                }
            }
            c if c.is_ascii_digit() => drop(take_word(chars)),
            c if c.is_whitespace() => {}
            c => tokens.push(Token::Sign(c)),
        }
    }
}

/// Takes the characters that can continue a word or number.
fn take_word(chars: &mut Peekable<Chars<'_>>) -> String {
    let mut word = String::new();
    while let Some(c) = chars.next_if(|c| c.is_alphanumeric() || *c == '_') {
        word.push(c);
    }
    word
}

/// Skips a block comment, which may contain nested comments.
fn skip_comment(chars: &mut Peekable<Chars<'_>>) {
    let (mut depth, mut last) = (1, ' ');
    chars.next();
    while depth > 0 {
        let c = chars.next().unwrap();
        last = match (last, c) {
            ('/', '*') => {
                depth += 1;
                ' '
            }
            ('*', '/') => {
                depth -= 1;
                ' '
            }
            _ => c,
        };
    }
}

fn text(chars: &mut Peekable<Chars<'_>>) -> String {
    let mut text = String::new();
    loop {
        match chars.next().unwrap() {
            '"' => return text,
            '\\' => text.extend(['\\', chars.next().unwrap()]),
            c => text.push(c),
        }
    }
}

/// Reads the rest of a raw string or a raw identifier, after its `r`.
fn raw(chars: &mut Peekable<Chars<'_>>) -> Token {
    let mut hashes = 0;
    while chars.next_if_eq(&'#').is_some() {
        hashes += 1;
    }
    if chars.next_if_eq(&'"').is_none() {
        return Token::Word(take_word(chars));
    }
    let end = format!("\"{}", "#".repeat(hashes));
    let mut text = String::new();
    while !text.ends_with(&end) {
        text.push(chars.next().unwrap());
    }
    text.truncate(text.len() - end.len());
    Token::Text(text)
}

fn skip_character_or_lifetime(chars: &mut Peekable<Chars<'_>>) {
    match chars.next() {
        Some('\\') => {
            // The escaped character may be a quotation mark.
            chars.next();
            while chars.next().is_some_and(|c| c != '\'') {}
        }
        Some(c) if c.is_alphanumeric() || c == '_' => {
            let rest = take_word(chars);
            if rest.is_empty() {
                chars.next_if_eq(&'\'');
            }
        }
        _ => drop(chars.next()),
    }
}

#[test]
fn strings_comments_and_lifetimes_hide_nothing() {
    let source = r##"a::<'b, 'static>("c // \" d", 'e', '\'', '"', b'f', '\u{1f600}', r#"g " h"#, b"i", r"j\", 1.5e3_f64)
        // k ' "
        /* l /* m */ n */ r#type 'o: { p!['"'] }"##;
    let word = |text: &str| Token::Word(text.to_owned());
    let text = |text: &str| Token::Text(text.to_owned());
    let flat =
        |tokens: &[Token]| tokens.iter().filter(|token| !matches!(token, Token::Sign(_))).cloned().collect();
    let found = tokens(source);
    let outer: Vec<Token> = flat(&found);
    let [a, Token::Group('(', inner), keyword, Token::Group('{', body)] = outer.as_slice() else {
        panic!("{outer:?}");
    };
    assert_eq!((a, keyword), (&word("a"), &word("type")));
    let inner: Vec<Token> = flat(inner);
    assert_eq!(inner, [text(r#"c // \" d"#), text("g \" h"), text("i"), text("j\\")]);
    assert_eq!(*body, [word("p"), Token::Sign('!'), Token::Group('[', Vec::new())]);
}
