//! Texts, numbers and flags.

use serde_json::{Value, json};

use super::FieldReader;

impl FieldReader {
    /// Reads a required text of at most `chars_max` characters. Returns `None` if there is a problem.
    pub fn required_text(&mut self, name: &str, chars_max: usize) -> Option<String> {
        self.read_names.insert(name.to_owned());
        match self.fields.get(name).cloned() {
            None => {
                let input = Value::Object(self.fields.clone());
                self.problem("missing", name, "Field required", input, None);
                None
            }
            Some(value) => self.check_text(name, value, chars_max),
        }
    }

    /// Reads a required text of at most `chars_max` characters; empty if there is a problem.
    pub fn text(&mut self, name: &str, chars_max: usize) -> String {
        self.required_text(name, chars_max).unwrap_or_default()
    }

    /// Reads an optional text.
    pub fn maybe_text(&mut self, name: &str, chars_max: usize) -> Option<String> {
        let value = self.present(name)?;
        self.check_text(name, value, chars_max)
    }

    pub(super) fn check_text(&mut self, name: &str, value: Value, chars_max: usize) -> Option<String> {
        let Value::String(text) = value else {
            self.problem("string_type", name, "Input should be a valid string", value, None);
            return None;
        };
        if text.chars().count() > chars_max {
            let msg = format!("String should have at most {chars_max} characters");
            let ctx = json!({ "max_length": chars_max });
            self.problem("string_too_long", name, msg, Value::String(text), Some(ctx));
            return None;
        }
        Some(text)
    }

    /// Reads an integer from `min` to `max`, both included; returns the default if it wasn't sent.
    pub fn integer(&mut self, name: &str, default: u64, min: u64, max: u64) -> u64 {
        self.read_names.insert(name.to_owned());
        match self.fields.get(name).cloned() {
            None => default,
            Some(value) => self.check_unsigned(name, value, min, max).unwrap_or(default),
        }
    }

    /// Reads an optional integer from `min` to `max`, both included.
    pub fn maybe_integer(&mut self, name: &str, min: u64, max: u64) -> Option<u64> {
        let value = self.present(name)?;
        self.check_unsigned(name, value, min, max)
    }

    /// Reads an optional integer that may be negative.
    pub fn maybe_signed(&mut self, name: &str) -> Option<i64> {
        let value = self.present(name)?;
        let number = self.check_integer(name, value, i64::MIN.into(), i64::MAX.into())?;
        i64::try_from(number).ok()
    }

    fn check_unsigned(&mut self, name: &str, value: Value, min: u64, max: u64) -> Option<u64> {
        let number = self.check_integer(name, value, min.into(), max.into())?;
        u64::try_from(number).ok()
    }

    fn check_integer(&mut self, name: &str, value: Value, min: i128, max: i128) -> Option<i128> {
        let number = match lenient_integer(&value) {
            Ok(number) => number,
            Err((kind, msg)) => {
                self.problem(kind, name, msg, value, None);
                return None;
            }
        };
        let bound = |number: i128| match (u64::try_from(number), i64::try_from(number)) {
            (Ok(number), _) => Value::from(number),
            (_, Ok(number)) => Value::from(number),
            _ => Value::Null,
        };
        if number < min {
            let msg = format!("Input should be greater than or equal to {min}");
            self.problem("greater_than_equal", name, msg, value, Some(json!({ "ge": bound(min) })));
            return None;
        }
        if number > max {
            let msg = format!("Input should be less than or equal to {max}");
            self.problem("less_than_equal", name, msg, value, Some(json!({ "le": bound(max) })));
            return None;
        }
        Some(number)
    }

    /// Reads an optional number from `min` to `max`, both included.
    pub fn maybe_number(&mut self, name: &str, min: f64, max: f64) -> Option<f64> {
        let value = self.present(name)?;
        let number = match &value {
            Value::Number(number) => number.as_f64(),
            Value::String(text) => text.trim().parse().ok(),
            _ => None,
        };
        let Some(number) = number.filter(|number| number.is_finite()) else {
            self.problem("float_type", name, "Input should be a valid number", value, None);
            return None;
        };
        if number < min {
            let msg = format!("Input should be greater than or equal to {min}");
            self.problem("greater_than_equal", name, msg, value, Some(json!({ "ge": min })));
            return None;
        }
        if number > max {
            let msg = format!("Input should be less than or equal to {max}");
            self.problem("less_than_equal", name, msg, value, Some(json!({ "le": max })));
            return None;
        }
        Some(number)
    }

    /// Reads a Boolean; false if it wasn't sent.
    pub fn flag(&mut self, name: &str) -> bool {
        self.maybe_flag(name).unwrap_or(false)
    }

    /// Reads an optional Boolean.
    pub fn maybe_flag(&mut self, name: &str) -> Option<bool> {
        let value = self.present(name)?;
        let flag = match &value {
            Value::Bool(flag) => Some(*flag),
            Value::String(text) => match text.trim().to_lowercase().as_str() {
                "true" | "1" | "yes" | "on" => Some(true),
                "false" | "0" | "no" | "off" => Some(false),
                _ => None,
            },
            Value::Number(number) if number.as_u64() == Some(1) => Some(true),
            Value::Number(number) if number.as_u64() == Some(0) => Some(false),
            _ => None,
        };
        if flag.is_none() {
            self.problem("bool_type", name, "Input should be a valid boolean", value, None);
        }
        flag
    }
}

/// Reads an integer from an integer, a float without a fraction, a text of either, or a Boolean. Numbers that
/// don't fit are clamped to the nearest `i128`: every limit is narrower.
fn lenient_integer(value: &Value) -> Result<i128, (&'static str, &'static str)> {
    const FRACTION: (&str, &str) =
        ("int_from_float", "Input should be a valid integer, got a number with a fractional part");
    const PARSING: (&str, &str) =
        ("int_parsing", "Input should be a valid integer, unable to parse string as an integer");
    #[allow(clippy::cast_possible_truncation)] // `as` saturates, which is what is wanted
    let whole = |float: f64| if float.fract() == 0.0 { Ok(float as i128) } else { Err(FRACTION) };
    match value {
        Value::Bool(flag) => Ok(i128::from(*flag)),
        Value::Number(number) => match (number.as_i64(), number.as_u64(), number.as_f64()) {
            (Some(number), _, _) => Ok(number.into()),
            (_, Some(number), _) => Ok(number.into()),
            (_, _, Some(float)) if float.is_finite() => whole(float),
            _ => Err(FRACTION),
        },
        Value::String(text) => {
            let text = text.trim();
            let (sign, digits) = match text.strip_prefix('-') {
                Some(digits) => (-1, digits),
                None => (1, text.strip_prefix('+').unwrap_or(text)),
            };
            let (digits, zeros) = digits.split_once('.').unwrap_or((digits, ""));
            let digits = digits.replace('_', "");
            if digits.is_empty()
                || !digits.bytes().all(|b| b.is_ascii_digit())
                || !zeros.bytes().all(|b| b == b'0')
            {
                return Err(PARSING);
            }
            Ok(sign * digits.parse::<i128>().unwrap_or(i128::MAX))
        }
        _ => Err(("int_type", "Input should be a valid integer")),
    }
}
