//! YAML with line numbers. Aliases count as copies of their values, so they can't make small files large.

use std::collections::BTreeMap;

use saphyr_parser::{Event, Parser, ScalarStyle, Span};

use super::{Budget, Node, Table, Value};
use crate::refusal::{FormatProblem, Refusal};

/// Key that merges the entries of other tables into its own.
const MERGE_KEY: &str = "<<";

/// Parses a file with one YAML document. An empty file is null.
pub(super) fn parse(file: &str, text: &str) -> Result<Node, Refusal> {
    let mut loader =
        Loader { file, budget: Budget::default(), open: Vec::new(), anchors: BTreeMap::new(), root: None };
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| {
            let cause = error.info().to_owned();
            syntax(file, line_of(error.marker().line()), cause)
        })?;
        loader.take(event, span)?;
    }
    Ok(loader.root.unwrap_or(Node { line: 1, value: Value::Null }))
}

fn syntax(file: &str, line: u32, cause: String) -> Refusal {
    Refusal::line(file, line, FormatProblem::Syntax { language: "YAML", cause })
}

fn line_of(line: usize) -> u32 {
    u32::try_from(line.max(1)).unwrap_or(u32::MAX)
}

/// List or table whose end hasn't come yet.
struct Open {
    line: u32,
    anchor: usize,
    content: Content,
}

enum Content {
    List(Vec<Node>),
    Table { entries: Table, merged: Vec<Node>, key: Option<(u32, String)> },
}

struct Loader<'a> {
    file: &'a str,
    budget: Budget,
    open: Vec<Open>,
    /// Values by anchor, each with the number of values and levels in it.
    anchors: BTreeMap<usize, (Node, usize, usize)>,
    root: Option<Node>,
}

impl Loader<'_> {
    fn take(&mut self, event: Event<'_>, span: Span) -> Result<(), Refusal> {
        let line = line_of(span.start.line());
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                let tag =
                    tag.as_deref().filter(|tag| tag.is_yaml_core_schema()).map(|tag| tag.suffix.as_str());
                let is_text = style != ScalarStyle::Plain || tag == Some("str");
                let value = if is_text { Value::Text(text.into_owned()) } else { resolve(&text) };
                self.budget.take(self.file, line, 1, self.open.len() + 1)?;
                self.add(Node { line, value }, anchor)
            }
            Event::SequenceStart(anchor, _) => self.start(line, anchor, Content::List(Vec::new())),
            Event::MappingStart(anchor, _) => {
                let content = Content::Table { entries: Table::new(), merged: Vec::new(), key: None };
                self.start(line, anchor, content)
            }
            Event::SequenceEnd | Event::MappingEnd => self.end(),
            Event::Alias(anchor) => {
                let Some((node, values, levels)) = self.anchors.get(&anchor).cloned() else {
                    return Err(syntax(self.file, line, "an alias is part of its own value".to_owned()));
                };
                self.budget.take(self.file, line, values, self.open.len() + levels)?;
                self.add(Node { line, ..node }, 0)
            }
            Event::DocumentStart(_) if self.root.is_some() => {
                Err(syntax(self.file, line, "there is more than one document; keep one".to_owned()))
            }
            _ => Ok(()),
        }
    }

    fn start(&mut self, line: u32, anchor: usize, content: Content) -> Result<(), Refusal> {
        self.budget.take(self.file, line, 1, self.open.len() + 1)?;
        self.open.push(Open { line, anchor, content });
        Ok(())
    }

    fn end(&mut self) -> Result<(), Refusal> {
        let Some(open) = self.open.pop() else { return Ok(()) };
        let value = match open.content {
            Content::List(nodes) => Value::List(nodes),
            Content::Table { mut entries, merged, .. } => {
                for other in merged {
                    self.merge(&mut entries, other)?;
                }
                Value::Table(entries)
            }
        };
        self.add(Node { line: open.line, value }, open.anchor)
    }

    /// Adds the entries of a merged table, or of a list of tables, that the table doesn't have itself.
    fn merge(&self, entries: &mut Table, other: Node) -> Result<(), Refusal> {
        let tables = match other.value {
            Value::List(nodes) => nodes,
            _ => vec![other],
        };
        for node in tables {
            let Value::Table(table) = node.value else {
                return Err(syntax(
                    self.file,
                    node.line,
                    "`<<` merges something other than a table".to_owned(),
                ));
            };
            for (key, value) in table {
                entries.entry(key).or_insert(value);
            }
        }
        Ok(())
    }

    fn add(&mut self, node: Node, anchor: usize) -> Result<(), Refusal> {
        if anchor != 0 {
            let (values, levels) = measure(&node.value);
            // The copy counts as well.
            self.budget.take(self.file, node.line, values, 0)?;
            self.anchors.insert(anchor, (node.clone(), values, levels));
        }
        let Some(open) = self.open.last_mut() else {
            self.root = Some(node);
            return Ok(());
        };
        match &mut open.content {
            Content::List(nodes) => nodes.push(node),
            Content::Table { entries, merged, key } => match key.take() {
                None => {
                    let name = match node.value {
                        Value::Text(text) => text,
                        Value::Null => String::new(),
                        Value::Bool(value) => value.to_string(),
                        Value::Integer(value) => value.to_string(),
                        Value::Float(value) => value.to_string(),
                        Value::List(_) | Value::Table(_) => {
                            return Err(syntax(
                                self.file,
                                node.line,
                                "a key is a list or a table".to_owned(),
                            ));
                        }
                    };
                    *key = Some((node.line, name));
                }
                Some((_, name)) if name == MERGE_KEY => merged.push(node),
                Some((line, name)) => {
                    if entries.contains_key(&name) {
                        return Err(Refusal::line(
                            self.file,
                            line,
                            FormatProblem::DuplicateKey { key: name },
                        ));
                    }
                    entries.insert(name, (line, node));
                }
            },
        }
        Ok(())
    }
}

/// Counts values and levels. The depth of values is bounded before.
fn measure(value: &Value) -> (usize, usize) {
    let sum = |(values, levels): (usize, usize), node: &Node| {
        let (inner, inner_levels) = measure(&node.value);
        (values + inner, levels.max(inner_levels + 1))
    };
    match value {
        Value::List(nodes) => nodes.iter().fold((1, 1), sum),
        Value::Table(table) => table.values().map(|(_, node)| node).fold((1, 1), sum),
        _ => (1, 1),
    }
}

/// Returns the value of a plain scalar by the core schema of YAML 1.2.
fn resolve(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Null,
        "true" | "True" | "TRUE" => return Value::Bool(true),
        "false" | "False" | "FALSE" => return Value::Bool(false),
        ".inf" | ".Inf" | ".INF" | "+.inf" => return Value::Float(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => return Value::Float(f64::NEG_INFINITY),
        ".nan" | ".NaN" | ".NAN" => return Value::Float(f64::NAN),
        _ => {}
    }
    let prefixed =
        |prefix, radix| text.strip_prefix(prefix).and_then(|digits| i64::from_str_radix(digits, radix).ok());
    if let Some(value) = text.parse().ok().or_else(|| prefixed("0x", 16)).or_else(|| prefixed("0o", 8)) {
        return Value::Integer(value);
    }
    let is_number = text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E'))
        && text.bytes().any(|byte| byte.is_ascii_digit());
    match text.parse() {
        Ok(value) if is_number => Value::Float(value),
        _ => Value::Text(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Node, Refusal> {
        Node::parse_yaml("task.yaml", text.as_bytes())
    }

    #[test]
    fn values_have_types_and_lines() {
        let node =
            read("a: 1\nb:\n  - x\n  - '2'\n  - 1.5\nc: {d: true, e: ~}\nf: |\n  text\n  more\n").unwrap();
        let json = serde_json::json!({"a": 1, "b": ["x", "2", 1.5], "c": {"d": true, "e": null}, "f": "text\nmore\n"});
        assert_eq!(node.value.to_json(), json);
        assert_eq!(node.find_line(&["b", "1"]), 4);
        assert_eq!(node.find_line(&["c", "e"]), 6);
        assert_eq!(read("").unwrap().value, Value::Null);
        assert_eq!(read("a: 1.2.3").unwrap().value.to_json()["a"], "1.2.3");
    }

    #[test]
    fn aliases_and_merges_are_expanded() {
        let node = read("base: &b {x: 1, y: 2}\none: {<<: *b, y: 3}\ntwo:\n  <<: [*b, {z: 4}]\n").unwrap();
        let json = node.value.to_json();
        assert_eq!(json["one"], serde_json::json!({"x": 1, "y": 3}));
        assert_eq!(json["two"], serde_json::json!({"x": 1, "y": 2, "z": 4}));
    }

    #[test]
    fn bad_documents_are_refused() {
        for (text, code) in [
            ("a: [1", "invalid_syntax"),
            ("a: 1\na: 2", "duplicate_key"),
            ("a: 1\n---\nb: 2", "invalid_syntax"),
            ("? [1, 2]\n: 3", "invalid_syntax"),
            ("a: *missing", "invalid_syntax"),
            ("a: &x [*x]", "invalid_syntax"),
            ("a: {<<: 3}", "invalid_syntax"),
        ] {
            assert_eq!(read(text).unwrap_err().code(), code, "{text}");
        }
    }

    #[test]
    fn bombs_are_refused() {
        let mut laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..12 {
            let aliases = vec![format!("*a{}", level - 1); 10].join(", ");
            laughs += &format!("a{level}: &a{level} [{aliases}]\n");
        }
        assert_eq!(read(&laughs).unwrap_err().code(), "too_complex");
        for text in ["[".repeat(100_000), "- ".repeat(10_000), "{a: ".repeat(200)] {
            let code = read(&text).unwrap_err().code();
            assert!(matches!(code, "too_complex" | "invalid_syntax"), "{code}");
        }
    }

    #[test]
    fn any_text_ends_in_a_value_or_a_refusal() {
        proptest::proptest!(|(text in r#"[a-c:\[\]{},&*<#|>!'"\- \n\t0-9~]{0,80}"#)| {
            let _ = read(&text);
            let _ = Node::parse_toml("t", text.as_bytes());
        });
    }
}
