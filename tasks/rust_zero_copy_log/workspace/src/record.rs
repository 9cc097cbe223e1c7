//! Records and their fields.

/// A record of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Number of the line in which the record begins.
    pub line: usize,
    pub fields: Vec<Field>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    pub key: String,
    pub value: Value,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// The field is a key only.
    Flag,
    Text(String),
}

impl Record {
    /// Returns the value of a key; `true` for a flag.
    pub fn get(&self, key: &str) -> Option<&str> {
        let field = self.fields.iter().find(|field| field.key == key)?;
        match &field.value {
            Value::Flag => Some("true"),
            Value::Text(text) => Some(text),
        }
    }
}
