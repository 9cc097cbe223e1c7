//! Templates of messages, in the notation of Python's `str.format`.

/// Error in a template.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// A brace has no partner.
    #[error("template `{name}` has a single `{brace}` at byte {at}: double it if it belongs to the text")]
    Brace {
        /// Name of the template.
        name: &'static str,
        /// The brace.
        brace: char,
        /// Place in bytes.
        at: usize,
    },
    /// A field isn't known.
    #[error("template `{name}` has the unknown field `{{{field}}}`; its fields are {known}")]
    Field {
        /// Name of the template.
        name: &'static str,
        /// The field, cut to 50 characters.
        field: String,
        /// Fields of the template.
        known: String,
    },
    /// A required field is missing.
    #[error("template `{name}` lacks the field `{{{field}}}`")]
    Missing {
        /// Name of the template.
        name: &'static str,
        /// The field.
        field: &'static str,
    },
}

/// Text with fields, such as `{instruction}`; doubled braces stand for braces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Template {
    pieces: Vec<Piece>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    Field(&'static str),
}

impl Template {
    /// Parses a template that has each of the fields at least once.
    pub(crate) fn new(
        name: &'static str,
        text: &str,
        fields: &[&'static str],
    ) -> Result<Self, TemplateError> {
        let mut pieces = Vec::new();
        let mut plain = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}']) {
            let (before, from) = rest.split_at(at);
            plain.push_str(before);
            let place = text.len() - from.len();
            if let Some(after) = from.strip_prefix("{{") {
                plain.push('{');
                rest = after;
            } else if let Some(after) = from.strip_prefix("}}") {
                plain.push('}');
                rest = after;
            } else if let Some((field, after)) = from.strip_prefix('{').and_then(|rest| rest.split_once('}'))
            {
                let Some(known) = fields.iter().find(|known| **known == field) else {
                    let known: Vec<_> = fields.iter().map(|field| format!("`{{{field}}}`")).collect();
                    let field = field.chars().take(50).collect();
                    return Err(TemplateError::Field { name, field, known: known.join(", ") });
                };
                pieces.push(Piece::Text(std::mem::take(&mut plain)));
                pieces.push(Piece::Field(known));
                rest = after;
            } else {
                let brace = if from.starts_with('{') { '{' } else { '}' };
                return Err(TemplateError::Brace { name, brace, at: place });
            }
        }
        plain.push_str(rest);
        pieces.push(Piece::Text(plain));
        match fields.iter().find(|field| !pieces.contains(&Piece::Field(field))) {
            Some(field) => Err(TemplateError::Missing { name, field }),
            None => Ok(Self { pieces }),
        }
    }

    /// Fills in the fields. A field without a value is left out.
    pub(crate) fn fill(&self, values: &[(&str, &str)]) -> String {
        let value =
            |field: &str| values.iter().find(|(name, _)| *name == field).map_or("", |(_, value)| value);
        let pieces = self.pieces.iter().map(|piece| match piece {
            Piece::Text(text) => text.as_str(),
            Piece::Field(field) => value(field),
        });
        pieces.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_filled_in_and_braces_unescaped() {
        let template = Template::new("t", "{{\"a\": {a}}} {b}", &["a", "b"]).unwrap();
        assert_eq!(template.fill(&[("a", "{b}"), ("b", "2")]), "{\"a\": {b}} 2");
    }

    #[test]
    fn mistakes_are_named() {
        for (text, message) in [
            ("{a} }", "template `t` has a single `}` at byte 4: double it if it belongs to the text"),
            ("{a} {", "template `t` has a single `{` at byte 4: double it if it belongs to the text"),
            ("{c}", "template `t` has the unknown field `{c}`; its fields are `{a}`"),
            ("", "template `t` lacks the field `{a}`"),
        ] {
            assert_eq!(Template::new("t", text, &["a"]).unwrap_err().to_string(), message);
        }
    }
}
