//! Canonical JSON from anything that implements `Serialize`. The data model is mapped as in `serde_json`, except that
//! non-finite numbers are rejected instead of becoming `null`.

use serde::ser::{self, Serialize};

use super::{CANONICAL_DEPTH_MAX, CanonicalError, Members, number, string, text};

/// Markers of `serde_json` for values that are already JSON text: `RawValue`, and numbers in its arbitrary precision
/// mode.
const JSON_TEXT_TOKENS: [&str; 2] = ["$serde_json::private::RawValue", "$serde_json::private::Number"];

impl ser::Error for CanonicalError {
    fn custom<T: std::fmt::Display>(message: T) -> Self {
        Self::Serialize(message.to_string())
    }
}

/// Appends one value to `out`.
pub(super) struct Serializer<'a> {
    out: &'a mut Vec<u8>,
    depth: usize,
}

impl<'a> Serializer<'a> {
    pub(super) fn new(out: &'a mut Vec<u8>) -> Self {
        Self { out, depth: 0 }
    }

    fn integer(self, value: impl std::fmt::Display) -> Result<(), CanonicalError> {
        self.out.extend_from_slice(value.to_string().as_bytes());
        Ok(())
    }

    fn array(self) -> Result<Array<'a>, CanonicalError> {
        let depth = enter_level(self.depth)?;
        self.out.push(b'[');
        Ok(Array { out: self.out, depth, is_empty: true, closing: "]" })
    }

    fn object(self) -> Result<Object<'a>, CanonicalError> {
        let depth = enter_level(self.depth)?;
        Ok(Object { out: self.out, depth, members: Members::default(), key: None, in_variant: false })
    }

    /// Opens `{"variant":`, which must be closed with `}` after the content.
    fn variant(&mut self, variant: &str) -> Result<(), CanonicalError> {
        self.depth = enter_level(self.depth)?;
        self.out.push(b'{');
        string::write(self.out, variant);
        self.out.push(b':');
        Ok(())
    }
}

fn enter_level(depth: usize) -> Result<usize, CanonicalError> {
    if depth >= CANONICAL_DEPTH_MAX { Err(CanonicalError::TooDeep) } else { Ok(depth + 1) }
}

impl<'a> ser::Serializer for Serializer<'a> {
    type Ok = ();
    type Error = CanonicalError;
    type SerializeSeq = Array<'a>;
    type SerializeTuple = Array<'a>;
    type SerializeTupleStruct = Array<'a>;
    type SerializeTupleVariant = Array<'a>;
    type SerializeMap = Object<'a>;
    type SerializeStruct = Struct<'a>;
    type SerializeStructVariant = Object<'a>;

    fn serialize_bool(self, value: bool) -> Result<(), CanonicalError> {
        self.integer(value)
    }
    fn serialize_i8(self, value: i8) -> Result<(), CanonicalError> {
        self.integer(value)
    }
    fn serialize_i16(self, value: i16) -> Result<(), CanonicalError> {
        self.integer(value)
    }
    fn serialize_i32(self, value: i32) -> Result<(), CanonicalError> {
        self.integer(value)
    }
    fn serialize_i64(self, value: i64) -> Result<(), CanonicalError> {
        self.integer(value)
    }
    fn serialize_i128(self, value: i128) -> Result<(), CanonicalError> {
        self.integer(value)
    }
    fn serialize_u8(self, value: u8) -> Result<(), CanonicalError> {
        self.integer(value)
    }
    fn serialize_u16(self, value: u16) -> Result<(), CanonicalError> {
        self.integer(value)
    }
    fn serialize_u32(self, value: u32) -> Result<(), CanonicalError> {
        self.integer(value)
    }
    fn serialize_u64(self, value: u64) -> Result<(), CanonicalError> {
        self.integer(value)
    }
    fn serialize_u128(self, value: u128) -> Result<(), CanonicalError> {
        self.integer(value)
    }
    fn serialize_f32(self, value: f32) -> Result<(), CanonicalError> {
        number::write_float(self.out, f64::from(value))
    }
    fn serialize_f64(self, value: f64) -> Result<(), CanonicalError> {
        number::write_float(self.out, value)
    }
    fn serialize_char(self, value: char) -> Result<(), CanonicalError> {
        self.serialize_str(value.encode_utf8(&mut [0; 4]))
    }
    fn serialize_str(self, value: &str) -> Result<(), CanonicalError> {
        string::write(self.out, value);
        Ok(())
    }
    fn serialize_bytes(self, value: &[u8]) -> Result<(), CanonicalError> {
        value.serialize(self)
    }
    fn serialize_none(self) -> Result<(), CanonicalError> {
        self.serialize_unit()
    }
    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), CanonicalError> {
        value.serialize(self)
    }
    fn serialize_unit(self) -> Result<(), CanonicalError> {
        self.integer("null")
    }
    fn serialize_unit_struct(self, _name: &'static str) -> Result<(), CanonicalError> {
        self.serialize_unit()
    }
    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
    ) -> Result<(), CanonicalError> {
        self.serialize_str(variant)
    }
    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _name: &'static str,
        value: &T,
    ) -> Result<(), CanonicalError> {
        value.serialize(self)
    }
    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        mut self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), CanonicalError> {
        self.variant(variant)?;
        value.serialize(Serializer { out: &mut *self.out, depth: self.depth })?;
        self.out.push(b'}');
        Ok(())
    }
    fn serialize_seq(self, _len: Option<usize>) -> Result<Array<'a>, CanonicalError> {
        self.array()
    }
    fn serialize_tuple(self, _len: usize) -> Result<Array<'a>, CanonicalError> {
        self.array()
    }
    fn serialize_tuple_struct(self, _: &'static str, _len: usize) -> Result<Array<'a>, CanonicalError> {
        self.array()
    }
    fn serialize_tuple_variant(
        mut self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _len: usize,
    ) -> Result<Array<'a>, CanonicalError> {
        self.variant(variant)?;
        Ok(Array { closing: "]}", ..self.array()? })
    }
    fn serialize_map(self, _len: Option<usize>) -> Result<Object<'a>, CanonicalError> {
        self.object()
    }
    fn serialize_struct(self, name: &'static str, _len: usize) -> Result<Struct<'a>, CanonicalError> {
        if JSON_TEXT_TOKENS.contains(&name) {
            Ok(Struct::JsonText(self))
        } else {
            Ok(Struct::Object(self.object()?))
        }
    }
    fn serialize_struct_variant(
        mut self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _len: usize,
    ) -> Result<Object<'a>, CanonicalError> {
        self.variant(variant)?;
        Ok(Object { in_variant: true, ..self.object()? })
    }
}

pub(super) struct Array<'a> {
    out: &'a mut Vec<u8>,
    depth: usize,
    is_empty: bool,
    closing: &'static str,
}

impl Array<'_> {
    fn push<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), CanonicalError> {
        if !std::mem::replace(&mut self.is_empty, false) {
            self.out.push(b',');
        }
        value.serialize(Serializer { out: &mut *self.out, depth: self.depth })
    }

    fn close(self) -> Result<(), CanonicalError> {
        self.out.extend_from_slice(self.closing.as_bytes());
        Ok(())
    }
}

impl ser::SerializeSeq for Array<'_> {
    type Ok = ();
    type Error = CanonicalError;
    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), CanonicalError> {
        self.push(value)
    }
    fn end(self) -> Result<(), CanonicalError> {
        self.close()
    }
}

impl ser::SerializeTuple for Array<'_> {
    type Ok = ();
    type Error = CanonicalError;
    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), CanonicalError> {
        self.push(value)
    }
    fn end(self) -> Result<(), CanonicalError> {
        self.close()
    }
}

impl ser::SerializeTupleStruct for Array<'_> {
    type Ok = ();
    type Error = CanonicalError;
    fn serialize_field<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), CanonicalError> {
        self.push(value)
    }
    fn end(self) -> Result<(), CanonicalError> {
        self.close()
    }
}

impl ser::SerializeTupleVariant for Array<'_> {
    type Ok = ();
    type Error = CanonicalError;
    fn serialize_field<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), CanonicalError> {
        self.push(value)
    }
    fn end(self) -> Result<(), CanonicalError> {
        self.close()
    }
}

pub(super) struct Object<'a> {
    out: &'a mut Vec<u8>,
    depth: usize,
    members: Members,
    key: Option<String>,
    /// Inside `{"variant":…}`.
    in_variant: bool,
}

impl Object<'_> {
    fn push<T: Serialize + ?Sized>(&mut self, key: String, value: &T) -> Result<(), CanonicalError> {
        let mut text = Vec::new();
        value.serialize(Serializer { out: &mut text, depth: self.depth })?;
        self.members.push(key, text);
        Ok(())
    }

    fn close(self) -> Result<(), CanonicalError> {
        self.members.write(self.out)?;
        if self.in_variant {
            self.out.push(b'}');
        }
        Ok(())
    }
}

impl ser::SerializeMap for Object<'_> {
    type Ok = ();
    type Error = CanonicalError;
    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), CanonicalError> {
        self.key = Some(key_text(key)?);
        Ok(())
    }
    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), CanonicalError> {
        let key = self.key.take().ok_or(CanonicalError::Misuse("a value in an object needs a key"))?;
        self.push(key, value)
    }
    fn end(self) -> Result<(), CanonicalError> {
        self.close()
    }
}

impl ser::SerializeStructVariant for Object<'_> {
    type Ok = ();
    type Error = CanonicalError;
    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        key: &'static str,
        value: &T,
    ) -> Result<(), CanonicalError> {
        self.push(key.to_owned(), value)
    }
    fn end(self) -> Result<(), CanonicalError> {
        self.close()
    }
}

pub(super) enum Struct<'a> {
    Object(Object<'a>),
    JsonText(Serializer<'a>),
}

impl ser::SerializeStruct for Struct<'_> {
    type Ok = ();
    type Error = CanonicalError;
    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        key: &'static str,
        value: &T,
    ) -> Result<(), CanonicalError> {
        match self {
            Self::Object(object) => object.push(key.to_owned(), value),
            Self::JsonText(serializer) => {
                // The only field is the JSON text, which is serialized as a JSON string and parsed back here.
                let quoted = super::to_vec(value)?;
                let text: String = serde_json::from_slice(&quoted)
                    .map_err(|error| CanonicalError::Serialize(error.to_string()))?;
                text::canonicalize_into(&text, serializer.out)
            }
        }
    }
    fn end(self) -> Result<(), CanonicalError> {
        match self {
            Self::Object(object) => object.close(),
            Self::JsonText(_) => Ok(()),
        }
    }
}

/// Returns the text of a key: strings unchanged, integers and booleans as printed.
fn key_text<T: Serialize + ?Sized>(key: &T) -> Result<String, CanonicalError> {
    let text = super::to_string(key)?;
    match text.as_bytes().first() {
        Some(b'"') if !text.contains('\\') => Ok(text.trim_matches('"').to_owned()),
        Some(b'"') => {
            serde_json::from_str(&text).map_err(|error| CanonicalError::Serialize(error.to_string()))
        }
        Some(b'-' | b'0'..=b'9') if !text.contains(['.', 'e']) => Ok(text),
        Some(b't' | b'f') => Ok(text),
        _ => Err(CanonicalError::KeyNotText),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, HashMap};

    use serde::Serialize;
    use serde_json::value::RawValue;

    use super::super::{CanonicalError, canonicalize, to_string, to_writer};

    #[derive(Serialize)]
    enum Shape {
        Unit,
        One(u8),
        Two(u8, f32),
        Named { z: u8, a: u8 },
    }

    #[derive(Serialize)]
    struct Everything {
        z: Option<u8>,
        shapes: Vec<Shape>,
        huge: (u128, i128),
        by_number: BTreeMap<u64, char>,
        by_flag: HashMap<bool, ()>,
        #[serde(rename = "É")]
        raw: Box<RawValue>,
        a: f64,
    }

    #[test]
    fn maps_the_data_model_as_serde_json_does() {
        let value = Everything {
            z: None,
            shapes: vec![Shape::Unit, Shape::One(1), Shape::Two(2, 0.5), Shape::Named { z: 1, a: 2 }],
            huge: (u128::MAX, i128::MIN),
            by_number: BTreeMap::from([(9, 'é'), (10, 'x')]),
            by_flag: HashMap::from([(true, ()), (false, ())]),
            raw: RawValue::from_string(r#"{"b": 18446744073709551616, "a": 1.0}"#.into()).unwrap(),
            a: 1.0,
        };
        let text = to_string(&value).unwrap();
        assert_eq!(
            text,
            concat!(
                r#"{"a":1.0,"by_flag":{"false":null,"true":null},"by_number":{"10":"x","9":"\u00e9"},"#,
                r#""huge":[340282366920938463463374607431768211455,-170141183460469231731687303715884105728],"#,
                r#""shapes":["Unit",{"One":1},{"Two":[2,0.5]},{"Named":{"a":2,"z":1}}],"#,
                r#""z":null,"\u00c9":{"a":1.0,"b":18446744073709551616}}"#
            )
        );
        assert_eq!(canonicalize(&serde_json::to_string(&value).unwrap()).unwrap(), text);
    }

    #[test]
    fn keys_of_maps_are_texts_like_others() {
        let keys = ["", "\"", "\"\"", "\\", "a\"b", "\u{7f}", "é", "\n", "plain"];
        let map: BTreeMap<&str, &str> = keys.into_iter().map(|key| (key, key)).collect();
        let parsed = canonicalize(&serde_json::to_string(&map).unwrap()).unwrap();
        assert_eq!(to_string(&map).unwrap(), parsed);
    }

    #[test]
    fn values_without_canonical_text_are_refused() {
        assert!(matches!(to_string(&[f64::NAN]), Err(CanonicalError::NonFinite)));
        assert!(matches!(to_string(&f32::INFINITY), Err(CanonicalError::NonFinite)));
        assert!(matches!(to_string(&HashMap::from([(None::<u8>, 1)])), Err(CanonicalError::KeyNotText)));
        let mut deep = serde_json::Value::Null;
        for _ in 0..=super::CANONICAL_DEPTH_MAX {
            deep = serde_json::Value::Array(vec![deep]);
        }
        assert!(matches!(to_string(&deep), Err(CanonicalError::TooDeep)));
        let mut out = Vec::new();
        assert!(to_writer(&mut out, &[1.0, f64::NAN]).is_err());
        assert!(out.is_empty(), "nothing is written before everything is known to be good");
    }
}
