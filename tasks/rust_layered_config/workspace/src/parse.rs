//! Parsing of files into statements.

use std::rc::Rc;

use crate::cursor::Cursor;
use crate::error::{ConfigError, ErrorKind, Place};
use crate::value::Value;

/// A statement of a file.
#[derive(Debug)]
pub enum Statement {
    /// `[PATH]`
    Section { path: String },
    /// `PATH = VALUE`
    Assignment { place: Place, path: String, value: Value },
}

/// Parses a file's text, one statement after another, and passes them to `take`.
pub fn parse(file: Rc<str>, text: &str, mut take: impl FnMut(Statement) -> Result<(), ConfigError>) -> Result<(), ConfigError> {
    let mut cursor = Cursor::new(file, text);
    loop {
        cursor.skip_lines();
        if cursor.rest().is_empty() {
            return Ok(());
        }
        let statement = statement(&mut cursor)?;
        cursor.skip_comment();
        if !cursor.is_at_line_end() {
            return Err(cursor.unexpected("the end of the line"));
        }
        take(statement)?;
    }
}

fn statement(cursor: &mut Cursor) -> Result<Statement, ConfigError> {
    let place = cursor.place();
    if cursor.eat('[') {
        cursor.skip_blanks();
        let path = path(cursor)?;
        cursor.skip_blanks();
        if !cursor.eat(']') {
            return Err(cursor.unexpected("`]`"));
        }
        return Ok(Statement::Section { path });
    }
    let path = path(cursor)?;
    cursor.skip_blanks();
    if !cursor.eat('=') {
        return Err(cursor.unexpected("`=`"));
    }
    cursor.skip_blanks();
    let value = value(cursor, false)?;
    Ok(Statement::Assignment { place, path, value })
}

/// Parses names with dots between.
fn path(cursor: &mut Cursor) -> Result<String, ConfigError> {
    let mut path = String::new();
    loop {
        match cursor.peek() {
            Some(first) if first.is_ascii_alphabetic() || first == '_' => {}
            _ => return Err(cursor.unexpected("a name")),
        }
        while let Some(next) = cursor.peek().filter(|next| next.is_ascii_alphanumeric() || matches!(next, '_' | '-')) {
            path.push(next);
            cursor.next();
        }
        if !cursor.eat('.') {
            return Ok(path);
        }
        path.push('.');
    }
}

fn value(cursor: &mut Cursor, is_in_list: bool) -> Result<Value, ConfigError> {
    match cursor.peek() {
        Some('[') => list(cursor),
        Some('"') => quoted(cursor).map(Value::String),
        Some('\'') => raw(cursor).map(Value::String),
        _ => bare(cursor, is_in_list),
    }
}

fn list(cursor: &mut Cursor) -> Result<Value, ConfigError> {
    cursor.next();
    let mut values = Vec::new();
    loop {
        cursor.skip_lines();
        if cursor.eat(']') {
            return Ok(Value::List(values));
        }
        values.push(value(cursor, true)?);
        cursor.skip_lines();
        if !cursor.eat(',') && cursor.peek() != Some(']') {
            return Err(cursor.unexpected("`,` or `]`"));
        }
    }
}

fn quoted(cursor: &mut Cursor) -> Result<String, ConfigError> {
    cursor.next();
    let mut text = String::new();
    loop {
        if cursor.is_at_line_end() {
            return Err(cursor.unexpected("`\"`"));
        }
        if cursor.eat('"') {
            return Ok(text);
        }
        if cursor.peek() == Some('\\') {
            text.push(escape(cursor)?);
        } else {
            text.extend(cursor.next());
        }
    }
}

fn escape(cursor: &mut Cursor) -> Result<char, ConfigError> {
    let place = cursor.place();
    let wrong = |message: &str| ConfigError::at(ErrorKind::Escape, place.clone(), message);
    cursor.next();
    match cursor.peek() {
        Some(same @ ('\\' | '"')) => {
            cursor.next();
            Ok(same)
        }
        Some('n') => {
            cursor.next();
            Ok('\n')
        }
        Some('t') => {
            cursor.next();
            Ok('\t')
        }
        Some('u') => {
            cursor.next();
            let digits: String = match cursor.rest().strip_prefix('{').and_then(|rest| rest.split_once('}')) {
                Some((digits, _)) => digits.to_owned(),
                None => return Err(wrong("`\\u` needs hexadecimal digits in braces")),
            };
            if !(1..=6).contains(&digits.len()) || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                return Err(wrong("`\\u` needs 1 to 6 hexadecimal digits"));
            }
            for _ in 0..digits.len() + 2 {
                cursor.next();
            }
            let code = u32::from_str_radix(&digits, 16).unwrap_or(u32::MAX);
            char::from_u32(code).ok_or_else(|| wrong("this is no Unicode scalar value"))
        }
        _ => Err(wrong("unknown escape")),
    }
}

fn raw(cursor: &mut Cursor) -> Result<String, ConfigError> {
    cursor.next();
    let mut text = String::new();
    loop {
        if cursor.is_at_line_end() {
            return Err(cursor.unexpected("`'`"));
        }
        if cursor.eat('\'') {
            return Ok(text);
        }
        text.extend(cursor.next());
    }
}

fn bare(cursor: &mut Cursor, is_in_list: bool) -> Result<Value, ConfigError> {
    let mut text = String::new();
    while !cursor.is_at_line_end() {
        match cursor.peek() {
            Some('#') => break,
            Some(',' | ']') if is_in_list => break,
            Some('"' | '\'') => return Err(cursor.unexpected("bare text")),
            Some('[') if is_in_list => return Err(cursor.unexpected("bare text")),
            _ => text.extend(cursor.next()),
        }
    }
    let text = text.trim_end_matches([' ', '\t']);
    if text.is_empty() {
        return Err(cursor.unexpected("a value"));
    }
    Ok(Value::of_bare(text))
}
