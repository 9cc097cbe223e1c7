//! Conversion of Parquet values to JSON.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bench_domain::Timestamp;
use parquet::record::Field;
use serde_json::{Map, Value};

/// Converts a value to JSON, and adds its approximate size to `bytes`.
///
/// Decimals, dates and times become text, so that no digit is lost. Bytes become Base64, NaN and
/// infinite numbers null. A map becomes an object if its keys are text, otherwise a list of pairs.
pub(super) fn to_json(field: Field, bytes: &mut usize) -> Result<Value, String> {
    *bytes += size_of::<Value>();
    Ok(match field {
        Field::Null => Value::Null,
        Field::Bool(value) => value.into(),
        Field::Byte(value) => value.into(),
        Field::Short(value) => value.into(),
        Field::Int(value) => value.into(),
        Field::Long(value) => value.into(),
        Field::UByte(value) => value.into(),
        Field::UShort(value) => value.into(),
        Field::UInt(value) => value.into(),
        Field::ULong(value) => value.into(),
        Field::Float16(value) => f64::from(value).into(),
        Field::Float(value) => f64::from(value).into(),
        Field::Double(value) => value.into(),
        Field::Str(value) => {
            *bytes += value.len();
            value.into()
        }
        Field::Bytes(value) => {
            let text = BASE64_STANDARD.encode(value.data());
            *bytes += text.len();
            text.into()
        }
        Field::TimestampMillis(value) => time(value.checked_mul(1_000))?,
        Field::TimestampMicros(value) => time(Some(value))?,
        Field::Decimal(_) | Field::Date(_) | Field::TimeMillis(_) | Field::TimeMicros(_) => {
            field.to_string().into()
        }
        Field::Group(row) => {
            let mut object = Map::new();
            for (name, field) in row.into_columns() {
                *bytes += name.len();
                object.insert(name, to_json(field, bytes)?);
            }
            object.into()
        }
        Field::ListInternal(list) => {
            let elements = list.elements().iter().map(|element| to_json(element.clone(), bytes));
            elements.collect::<Result<Vec<_>, _>>()?.into()
        }
        Field::MapInternal(map) => entries(map.entries(), bytes)?,
    })
}

fn entries(entries: &[(Field, Field)], bytes: &mut usize) -> Result<Value, String> {
    let mut pairs = Vec::with_capacity(entries.len());
    for (key, value) in entries {
        pairs.push((to_json(key.clone(), bytes)?, to_json(value.clone(), bytes)?));
    }
    if pairs.iter().all(|(key, _)| key.is_string()) {
        let name = |key: Value| key.as_str().unwrap_or_default().to_owned();
        return Ok(pairs.into_iter().map(|(key, value)| (name(key), value)).collect::<Map<_, _>>().into());
    }
    Ok(pairs.into_iter().map(|(key, value)| Value::from(vec![key, value])).collect::<Vec<_>>().into())
}

fn time(micros: Option<i64>) -> Result<Value, String> {
    let text =
        micros.map(|micros| (Timestamp::from_micros(micros), Timestamp::from_micros(micros).to_string()));
    match text {
        // The formatter clamps years that it can't write, which would change the time.
        Some((time, text)) if text.parse() == Ok(time) => Ok(text.into()),
        _ => Err("the time is out of range".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(field: Field) -> Value {
        to_json(field, &mut 0).unwrap()
    }

    #[test]
    fn numbers_keep_their_value() {
        assert_eq!(json(Field::Long(i64::MIN)).to_string(), "-9223372036854775808");
        assert_eq!(json(Field::ULong(u64::MAX)).to_string(), "18446744073709551615");
        assert_eq!(json(Field::Double(0.1)).to_string(), "0.1");
        assert_eq!(json(Field::Double(f64::NAN)), Value::Null);
        assert_eq!(json(Field::Float(0.5)).to_string(), "0.5");
    }

    #[test]
    fn times_and_decimals_are_text() {
        assert_eq!(json(Field::TimestampMillis(1_000)), Value::from("1970-01-01T00:00:01Z"));
        assert_eq!(json(Field::TimestampMicros(1)), Value::from("1970-01-01T00:00:00.000001Z"));
        assert!(to_json(Field::TimestampMillis(i64::MAX), &mut 0).is_err());
        assert!(to_json(Field::TimestampMicros(i64::MAX), &mut 0).is_err());
        assert_eq!(json(Field::Date(1)), Value::from("1970-01-02"));
        let decimal = parquet::data_type::Decimal::from_i64(-12_345, 10, 2);
        assert_eq!(json(Field::Decimal(decimal)), Value::from("-123.45"));
    }

    #[test]
    fn bytes_are_base64() {
        let bytes = parquet::data_type::ByteArray::from(vec![0xff, 0x00, 0x10]);
        assert_eq!(json(Field::Bytes(bytes)), Value::from("/wAQ"));
    }
}
