//! Identifiers of sessions of signed-in users.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::InvalidId;

/// Length in characters of a session cookie's value: 32 bytes in base64url without padding.
pub const SESSION_COOKIE_CHARS: usize = 43;

/// Id of a session: the SHA-256 digest of its cookie's value, in hex. The value itself is never stored, and can't be
/// derived from the id.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SessionId(String);

impl SessionId {
    /// Returns the id of the session with this cookie value; `None` if no server issues such values.
    pub fn from_cookie(value: &str) -> Option<Self> {
        let is_plausible = value.len() == SESSION_COOKIE_CHARS
            && value.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
        is_plausible.then(|| Self(hex::encode(Sha256::digest(value))))
    }

    /// Returns the id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for SessionId {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<Self, InvalidId> {
        let is_digest =
            text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        if is_digest {
            Ok(Self(text.to_owned()))
        } else {
            Err(InvalidId::new("session id", text, "it must be 64 lowercase hex digits"))
        }
    }
}

impl TryFrom<String> for SessionId {
    type Error = InvalidId;

    fn try_from(text: String) -> Result<Self, InvalidId> {
        text.parse()
    }
}

impl From<SessionId> for String {
    fn from(id: SessionId) -> Self {
        id.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_digests_of_well_formed_cookies() {
        let value = "A-_z0".to_owned() + &"b".repeat(SESSION_COOKIE_CHARS - 5);
        let id = SessionId::from_cookie(&value).unwrap();
        assert_eq!(id.as_str(), hex::encode(Sha256::digest(&value)));
        assert_eq!(id.as_str().parse::<SessionId>().unwrap(), id);
        for bad in ["", "short", &value[1..], &format!("{value}x"), &value.replace('A', " ")] {
            assert_eq!(SessionId::from_cookie(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn stored_ids_are_checked() {
        let id = SessionId::from_cookie(&"b".repeat(SESSION_COOKIE_CHARS)).unwrap();
        let json = serde_json::to_string(&id).unwrap();
        assert_eq!(serde_json::from_str::<SessionId>(&json).unwrap(), id);
        for bad in ["\"\"", "\"ABC\"", &json.to_uppercase(), "1"] {
            assert!(serde_json::from_str::<SessionId>(bad).is_err(), "{bad}");
        }
    }
}
