//! Keys that cannot be printed.

use std::fmt;

use zeroize::Zeroizing;

/// What stands where a key was.
pub const MASK: &str = "***";

/// A key of a caller or of the operator, such as a provider's. It prints as `***`, has no serialised form and is overwritten when it is dropped.
///
/// What the HTTP client makes of it for a request is a copy in that client's buffers, which are not
/// overwritten.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// A key, without the space around it; `None` when nothing is left.
    pub fn new(text: impl Into<String>) -> Option<Self> {
        let text = Zeroizing::new(text.into());
        let trimmed = text.trim();
        match trimmed.len() {
            0 => None,
            all if all == text.len() => Some(Self(text)),
            _ => Some(Self(Zeroizing::new(trimmed.to_owned()))),
        }
    }

    /// The key itself, for the one place that sends it.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// `text` with every occurrence of the key replaced by `***`.
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
    fn nothing_is_no_key() {
        assert!(Secret::new("").is_none());
        assert!(Secret::new(" \t").is_none());
    }
}
