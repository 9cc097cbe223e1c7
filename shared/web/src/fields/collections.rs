//! Lists, objects and choices.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::FieldReader;

impl FieldReader {
    /// Reads an optional list of texts.
    pub fn maybe_texts(&mut self, name: &str, entries_max: usize, chars_max: usize) -> Option<Vec<String>> {
        let value = self.present(name)?;
        let Value::Array(entries) = value else {
            self.problem("list_type", name, "Input should be a valid list", value, None);
            return None;
        };
        if entries.len() > entries_max {
            let msg = format!("List should have at most {entries_max} items");
            let ctx = json!({ "max_length": entries_max, "actual_length": entries.len() });
            self.problem("too_long", name, msg, Value::Null, Some(ctx));
            return None;
        }
        let mut texts = Vec::with_capacity(entries.len());
        for (index, entry) in entries.into_iter().enumerate() {
            let place = [name.into(), index.into()];
            match entry {
                Value::String(text) if text.chars().count() <= chars_max => texts.push(text),
                Value::String(text) => {
                    let msg = format!("String should have at most {chars_max} characters");
                    let ctx = json!({ "max_length": chars_max });
                    self.problem_at("string_too_long", &place, msg, Value::String(text), Some(ctx));
                }
                other => {
                    self.problem_at("string_type", &place, "Input should be a valid string", other, None);
                }
            }
        }
        Some(texts)
    }

    /// Reads an optional list of names: texts, and whole numbers in their written form.
    pub fn maybe_names(&mut self, name: &str, entries_max: usize, chars_max: usize) -> Option<Vec<String>> {
        if let Some(Value::Array(entries)) = self.fields.get_mut(name) {
            for entry in entries.iter_mut().filter(|entry| entry.is_u64()) {
                *entry = Value::String(entry.to_string());
            }
        }
        self.maybe_texts(name, entries_max, chars_max)
    }

    /// Returns the texts in a list, without reading the field: whatever is wrong with it is noted when it is read.
    pub fn peek_texts(&self, name: &str) -> Vec<String> {
        let entries = self.fields.get(name).and_then(Value::as_array);
        entries.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    }

    /// Returns the object of a field without reading it, an empty one if the field is missing or null; `None` if it is
    /// something else, which is noted when it is read.
    pub fn peek_object(&self, name: &str) -> Option<Map<String, Value>> {
        match self.fields.get(name) {
            None | Some(Value::Null) => Some(Map::new()),
            Some(Value::Object(object)) => Some(object.clone()),
            Some(_) => None,
        }
    }

    /// Sets a field that follows from others, as if it had been sent.
    pub fn set(&mut self, name: &str, value: Value) {
        self.fields.insert(name.to_owned(), value);
    }

    /// Reads an optional object.
    pub fn maybe_object(&mut self, name: &str) -> Option<Map<String, Value>> {
        match self.present(name)? {
            Value::Object(fields) => Some(fields),
            other => {
                self.problem("dict_type", name, "Input should be a valid dictionary", other, None);
                None
            }
        }
    }

    /// Reads an optional object with a limited number of entries.
    fn maybe_entries(&mut self, name: &str, entries_max: usize) -> Option<Map<String, Value>> {
        let entries = self.maybe_object(name)?;
        if entries.len() <= entries_max {
            return Some(entries);
        }
        let msg = format!("Dictionary should have at most {entries_max} items");
        let ctx = json!({ "max_length": entries_max, "actual_length": entries.len() });
        self.problem("too_long", name, msg, Value::Null, Some(ctx));
        None
    }

    /// Reads an optional object of texts.
    pub fn maybe_text_map(
        &mut self,
        name: &str,
        entries_max: usize,
        chars_max: usize,
    ) -> Option<BTreeMap<String, String>> {
        let entries = self.maybe_entries(name, entries_max)?;
        self.within(name, |inner| {
            let texts = entries.into_iter().map(|(entry, value)| {
                let text = inner.check_text(&entry, value, chars_max)?;
                Some((entry, text))
            });
            texts.collect::<Vec<_>>().into_iter().flatten().collect()
        })
    }

    /// Reads an optional object of settings: texts, and numbers and Booleans in their written form.
    pub fn maybe_settings(
        &mut self,
        name: &str,
        entries_max: usize,
        chars_max: usize,
    ) -> Option<BTreeMap<String, String>> {
        let entries = self.maybe_entries(name, entries_max)?;
        self.within(name, |inner| {
            let mut settings = BTreeMap::new();
            for (entry, value) in entries {
                let value = match value {
                    Value::Null => continue,
                    Value::Bool(_) | Value::Number(_) => Value::String(value.to_string()),
                    Value::String(_) => value,
                    other => {
                        let msg = "Input should be a string, a number or a boolean";
                        inner.problem("string_type", &entry, msg, other, None);
                        continue;
                    }
                };
                let text = inner.check_text(&entry, value, chars_max);
                settings.extend(text.map(|text| (entry, text)));
            }
            settings
        })
    }

    /// Reads an optional text that must be one of a few.
    pub fn maybe_choice<T>(
        &mut self,
        name: &str,
        expected: &str,
        read: impl Fn(&str) -> Option<T>,
    ) -> Option<T> {
        let text = self.maybe_text(name, usize::MAX)?;
        let choice = read(&text);
        if choice.is_none() {
            let ctx = Some(json!({ "expected": expected }));
            self.problem("enum", name, format!("Input should be {expected}"), Value::String(text), ctx);
        }
        choice
    }
}
