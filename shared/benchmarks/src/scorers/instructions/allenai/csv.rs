//! Reads records of comma-separated text as Python's `csv.reader` does.
//!
//! `csv.reader` is more lenient than other readers: text after a closing quote belongs to the field, a quote inside an
//! unquoted field is an ordinary character, an empty line is a record without fields, and an open quote ends at the end
//! of the text.

/// Python's `csv.field_size_limit` in characters. A longer field is an error.
const FIELD_CHARS_MAX: usize = 131_072;

/// Error for a text that `csv.reader` rejects.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum CsvError {
    /// A carriage return outside quotes is followed by something other than a line end.
    #[error("a line ends in the middle of a bare field")]
    StrayLineEnd,
    /// A field exceeds the size limit.
    #[error("a field is longer than {FIELD_CHARS_MAX} characters")]
    FieldTooLong,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    RecordStart,
    FieldStart,
    Bare,
    Quoted,
    /// After a quote inside a quoted field, which either ends the field or is the first of two.
    QuoteSeen,
    LineEnd,
}

struct Reader {
    separator: char,
    state: State,
    field: String,
    field_chars: usize,
    record: Vec<String>,
}

impl Reader {
    fn end_field(&mut self, next: State) {
        self.record.push(std::mem::take(&mut self.field));
        self.field_chars = 0;
        self.state = next;
    }

    fn add(&mut self, c: char, next: State) -> Result<(), CsvError> {
        if self.field_chars == FIELD_CHARS_MAX {
            return Err(CsvError::FieldTooLong);
        }
        self.field.push(c);
        self.field_chars += 1;
        self.state = next;
        Ok(())
    }

    fn character(&mut self, c: char) -> Result<(), CsvError> {
        let ends_line = matches!(c, '\n' | '\r');
        match self.state {
            State::RecordStart if ends_line => self.state = State::LineEnd,
            State::FieldStart | State::Bare | State::QuoteSeen if ends_line => self.end_field(State::LineEnd),
            State::LineEnd if ends_line => {}
            State::LineEnd => return Err(CsvError::StrayLineEnd),
            State::Quoted if c == '"' => self.state = State::QuoteSeen,
            State::QuoteSeen if c == '"' => self.add(c, State::Quoted)?,
            State::Quoted => self.add(c, State::Quoted)?,
            _ if c == self.separator => self.end_field(State::FieldStart),
            State::RecordStart | State::FieldStart if c == '"' => self.state = State::Quoted,
            _ => self.add(c, State::Bare)?,
        }
        Ok(())
    }

    /// Processes the end of a line. Returns true if it is also the end of a record.
    fn line_end(&mut self) -> bool {
        match self.state {
            State::RecordStart => {}
            State::LineEnd => self.state = State::RecordStart,
            State::Quoted => return false,
            State::FieldStart | State::Bare | State::QuoteSeen => self.end_field(State::RecordStart),
        }
        true
    }
}

/// Returns the records, at most `records_max` of them.
pub(super) fn records(text: &str, separator: char, records_max: usize) -> Result<Vec<Vec<String>>, CsvError> {
    let mut reader = Reader {
        separator,
        state: State::RecordStart,
        field: String::new(),
        field_chars: 0,
        record: Vec::new(),
    };
    let mut records = Vec::new();
    for line in text.split_inclusive('\n') {
        line.chars().try_for_each(|c| reader.character(c))?;
        if reader.line_end() {
            records.push(std::mem::take(&mut reader.record));
            if records.len() == records_max {
                return Ok(records);
            }
        }
    }
    if reader.state == State::Quoted {
        reader.end_field(State::RecordStart);
        records.push(reader.record);
    }
    Ok(records)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_and_records() {
        for (text, expected) in [
            ("a,b\nc,d", vec![vec!["a", "b"], vec!["c", "d"]]),
            ("a,\"b,\n\"\"c\"\"\"\r\nd", vec![vec!["a", "b,\n\"c\""], vec!["d"]]),
            ("a\n\nb\n", vec![vec!["a"], vec![], vec!["b"]]),
            (" \"a\",b\"c\"", vec![vec![" \"a\"", "b\"c\""]]),
            ("\"a\"b\"c,d", vec![vec!["ab\"c", "d"]]),
            ("a,\"b\n", vec![vec!["a", "b\n"]]),
            ("a,", vec![vec!["a", ""]]),
            ("a\r\r\n", vec![vec!["a"]]),
            ("\"\"", vec![vec![""]]),
            ("\"", vec![vec![""]]),
            ("", vec![]),
        ] {
            assert_eq!(records(text, ',', 9).unwrap(), expected, "{text:?}");
        }
        assert_eq!(records("a\tb,c", '\t', 9).unwrap(), [["a", "b,c"]]);
        assert_eq!(records("a\nb\nc", ',', 2).unwrap().len(), 2);
    }

    #[test]
    fn texts_that_python_rejects() {
        assert_eq!(records("a\rb", ',', 9), Err(CsvError::StrayLineEnd));
        assert_eq!(records("\ra", ',', 9), Err(CsvError::StrayLineEnd));
        let long = "é".repeat(FIELD_CHARS_MAX);
        assert_eq!(records(&long, ',', 9).unwrap().len(), 1);
        assert_eq!(records(&(long + "x"), ',', 9), Err(CsvError::FieldTooLong));
    }
}
