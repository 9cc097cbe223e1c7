//! Digest of a JSON text that doesn't depend on the order of object members.
//!
//! A retry with the same idempotency token may list its members in another order, since clients
//! keep them in hash maps.

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

/// Returns the digest of `json`. It is stable within one process only.
pub(crate) fn json_digest(json: &[u8]) -> Result<u64, serde_json::Error> {
    serde_json::from_slice::<Digest>(json).map(|digest| digest.0)
}

struct Digest(u64);

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(DigestVisitor)
    }
}

fn digest(value: impl Hash) -> Digest {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    Digest(hasher.finish())
}

struct DigestVisitor;

impl<'de> Visitor<'de> for DigestVisitor {
    type Value = Digest;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Digest, E> {
        Ok(digest((1_u8, value)))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Digest, E> {
        Ok(digest((2_u8, i128::from(value))))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Digest, E> {
        Ok(digest((2_u8, i128::from(value))))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Digest, E> {
        Ok(digest((3_u8, value.to_bits())))
    }

    fn visit_str<E>(self, value: &str) -> Result<Digest, E> {
        Ok(digest((4_u8, value)))
    }

    fn visit_unit<E>(self) -> Result<Digest, E> {
        Ok(digest(5_u8))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Digest, A::Error> {
        let mut hasher = DefaultHasher::new();
        6_u8.hash(&mut hasher);
        while let Some(Digest(item)) = items.next_element()? {
            item.hash(&mut hasher);
        }
        Ok(Digest(hasher.finish()))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Digest, A::Error> {
        let mut sum = 0_u64;
        while let Some((Digest(key), Digest(value))) = members.next_entry::<Digest, Digest>()? {
            sum = sum.wrapping_add(digest((key, value)).0);
        }
        Ok(digest((7_u8, sum)))
    }
}

#[cfg(test)]
mod tests {
    use super::json_digest;

    #[test]
    fn member_order_does_not_matter_and_everything_else_does() {
        let of = |json: &str| json_digest(json.as_bytes()).unwrap();
        assert_eq!(of(r#"{"a":{"x":1,"y":[1,2]},"b":null}"#), of(r#"{ "b":null,"a":{"y":[1,2],"x":1} }"#));
        for other in [
            r#"{"a":{"x":1,"y":[2,1]},"b":null}"#,
            r#"{"a":{"x":"1","y":[1,2]},"b":null}"#,
            r#"{"b":{"x":1,"y":[1,2]},"a":null}"#,
            r#"{"a":{"x":1,"y":[1,2],"b":null}}"#,
            r#"{"a":{"x":1,"y":[1,2]},"b":false}"#,
        ] {
            assert_ne!(of(r#"{"a":{"x":1,"y":[1,2]},"b":null}"#), of(other), "{other}");
        }
        assert!(json_digest(b"{").is_err());
    }
}
