//! Keys that can't be printed.

use std::fmt;

use zeroize::Zeroizing;

/// Placeholder for redacted keys.
pub const MASK: &str = "***";

/// Key of a caller or of the operator, such as a provider's. It prints as `***`, has no serialized form, and is
/// overwritten when dropped.
///
/// Copies that the HTTP client makes for a request are in that client's buffers, which aren't overwritten.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// Creates a key without surrounding whitespace; `None` if it's empty after that.
    pub fn new(text: impl Into<String>) -> Option<Self> {
        let text = Zeroizing::new(text.into());
        let trimmed = text.trim();
        match trimmed.len() {
            0 => None,
            all if all == text.len() => Some(Self(text)),
            _ => Some(Self(Zeroizing::new(trimmed.to_owned()))),
        }
    }

    /// Returns the key itself, for the code that sends it.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Returns `text` with every occurrence of the key replaced by `***`.
    pub fn redact(&self, text: &str) -> String {
        text.replace(self.expose(), MASK)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_never_prints() {
        let key = Secret::new(" cpk_abc\n").unwrap();
        assert_eq!(key.expose(), "cpk_abc");
        assert_eq!(format!("{key} {key:?} {:?}", Some(&key)), "*** *** Some(***)");
        assert_eq!(key.redact("bad key cpk_abc, cpk_abc"), "bad key ***, ***");
    }

    #[test]
    fn an_empty_key_is_none() {
        assert!(Secret::new("").is_none());
        assert!(Secret::new(" \t").is_none());
    }
}
