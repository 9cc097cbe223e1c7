//! TOML with line numbers.

use toml::Spanned;
use toml::de::{DeInteger, DeTable, DeValue};

use super::{Budget, Node, Table, Value};
use crate::refusal::{FormatProblem, Refusal};

/// Parses a TOML document.
pub(super) fn parse(file: &str, text: &str) -> Result<Node, Refusal> {
    let lines = Lines::new(text);
    let parsed = DeTable::parse(text).map_err(|error| {
        let problem = FormatProblem::Syntax { language: "TOML", cause: error.message().to_owned() };
        match error.span() {
            Some(span) => Refusal::line(file, lines.at(span.start), problem),
            None => Refusal::file(file, problem),
        }
    })?;
    let mut builder = Builder { file, lines, budget: Budget::default() };
    let table = builder.table(parsed.into_inner(), 1)?;
    Ok(Node { line: 1, value: Value::Table(table) })
}

/// Start of each line, in bytes.
struct Lines(Vec<usize>);

impl Lines {
    fn new(text: &str) -> Self {
        Self(std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect())
    }

    fn at(&self, offset: usize) -> u32 {
        u32::try_from(self.0.partition_point(|start| *start <= offset)).unwrap_or(u32::MAX)
    }
}

struct Builder<'a> {
    file: &'a str,
    lines: Lines,
    budget: Budget,
}

impl Builder<'_> {
    fn table(&mut self, table: DeTable<'_>, depth: usize) -> Result<Table, Refusal> {
        let mut entries = Table::new();
        for (key, value) in table {
            let line = self.lines.at(key.span().start);
            entries.insert(key.into_inner().into_owned(), (line, self.node(value, depth)?));
        }
        Ok(entries)
    }

    fn node(&mut self, value: Spanned<DeValue<'_>>, depth: usize) -> Result<Node, Refusal> {
        let line = self.lines.at(value.span().start);
        self.budget.take(self.file, line, 1, depth)?;
        let value = match value.into_inner() {
            DeValue::String(text) => Value::Text(text.into_owned()),
            DeValue::Boolean(value) => Value::Bool(value),
            DeValue::Integer(value) => Value::Integer(self.integer(&value, line)?),
            // The parser has checked the syntax, so only the value of a float is open.
            DeValue::Float(value) => {
                Value::Float(value.as_str().replace('_', "").parse().unwrap_or(f64::NAN))
            }
            DeValue::Datetime(value) => Value::Text(value.to_string()),
            DeValue::Array(values) => Value::List(
                values.into_iter().map(|value| self.node(value, depth + 1)).collect::<Result<_, _>>()?,
            ),
            DeValue::Table(table) => Value::Table(self.table(table, depth + 1)?),
        };
        Ok(Node { line, value })
    }

    fn integer(&self, value: &DeInteger<'_>, line: u32) -> Result<i64, Refusal> {
        let digits = value.as_str().replace('_', "");
        i64::from_str_radix(&digits, value.radix()).map_err(|_| {
            let cause = format!("the integer {digits} has more than 64 bits");
            Refusal::line(self.file, line, FormatProblem::Syntax { language: "TOML", cause })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Node, Refusal> {
        Node::parse_toml("task.toml", text.as_bytes())
    }

    #[test]
    fn values_have_lines() {
        let node =
            read("a = 1\n[b]\nc = [0x1F,\n 1_000.5, true]\nd = \"x\"\n[[e]]\nf = 1979-05-27\n").unwrap();
        assert_eq!(node.find_line(&["b", "c", "1"]), 4);
        assert_eq!(node.find_line(&["b", "d"]), 5);
        assert_eq!(node.find_line(&["e", "0", "f"]), 7);
        assert_eq!(node.find_line(&["b", "missing"]), 2);
        let json =
            serde_json::json!({"a": 1, "b": {"c": [31, 1000.5, true], "d": "x"}, "e": [{"f": "1979-05-27"}]});
        assert_eq!(node.value.to_json(), json);
    }

    #[test]
    fn bad_documents_are_refused_with_their_line() {
        for (text, code, line) in [
            ("a = 1\nb = ", "invalid_syntax", 2),
            ("a = 1\n\na = 2", "invalid_syntax", 3),
            ("a = 99999999999999999999", "invalid_syntax", 1),
            ("a = 'x", "invalid_syntax", 1),
        ] {
            let refusal = read(text).unwrap_err();
            assert_eq!((refusal.code(), refusal.place.unwrap().line), (code, Some(line)), "{text}");
        }
        assert_eq!(Node::parse_toml("t", b"a = '\xff'").unwrap_err().code(), "not_utf8");
        let large = vec![b'#'; super::super::CONFIG_BYTES_MAX + 1];
        assert_eq!(Node::parse_toml("t", &large).unwrap_err().code(), "config_too_large");
    }

    #[test]
    fn depth_and_number_of_values_are_bounded() {
        let deep = [
            format!("a = {}{}", "[".repeat(100_000), "]".repeat(100_000)),
            format!("{}b = 1", "a.".repeat(100_000)),
            format!("[{}b]", "a.".repeat(100_000)),
            format!("a = {}1{}", "{b = ".repeat(60), "}".repeat(60)),
            (0..2000).map(|level| format!("[{}x{level}]\n", "a.".repeat(60))).collect(),
        ];
        for text in deep {
            let code = read(&text).unwrap_err().code();
            assert!(matches!(code, "invalid_syntax" | "too_complex"), "{code}");
        }
        let many = format!("a = [{}]", "1,".repeat(60_000));
        assert_eq!(read(&many).unwrap_err().code(), "too_complex");
    }
}
