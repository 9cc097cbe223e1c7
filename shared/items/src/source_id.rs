//! The dataset's own id of an item.

use serde_json::Value;

use crate::item::Row;
use crate::layout::Layout;

/// Maximum length of an id in characters. Longer texts are not used as ids, because users can neither order nor list
/// them.
pub const SOURCE_ID_CHARS_MAX: usize = 255;
/// Floats from this value on can't represent every integer.
const INTEGER_MAX: f64 = 9_007_199_254_740_992.0;

/// Returns the dataset's own id of an item: the first of the layout's [`Layout::id_columns`] that holds a text or a
/// whole number.
pub fn source_id(layout: &dyn Layout, row: &Row) -> Option<String> {
    let id = layout.id_columns().iter().find_map(|column| parse_id(row.get(*column)?))?;
    (id.chars().count() <= SOURCE_ID_CHARS_MAX).then_some(id)
}

fn parse_id(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.trim()).filter(|text| !text.is_empty()).map(str::to_owned),
        Value::Number(number) => match number.as_f64() {
            // Parquet readers return integer columns with missing values as floats.
            Some(float) if number.is_f64() => {
                (float.fract() == 0.0 && float.abs() < INTEGER_MAX).then(|| format!("{float:.0}"))
            }
            _ => Some(number.to_string()),
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn texts_and_whole_numbers_are_ids() {
        for (value, expected) in [
            (json!(" rec01 "), Some("rec01")),
            (json!("070"), Some("070")),
            (json!(70), Some("70")),
            (json!(-1), Some("-1")),
            (json!(18_446_744_073_709_551_615_u64), Some("18446744073709551615")),
            (json!(70.0), Some("70")),
            (json!(1e300), None),
            (json!(0.5), None),
            (json!(" "), None),
            (json!(null), None),
            (json!(true), None),
            (json!(["70"]), None),
        ] {
            assert_eq!(parse_id(&value).as_deref(), expected, "{value}");
        }
    }
}
