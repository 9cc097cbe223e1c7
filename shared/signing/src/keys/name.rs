//! Lookup of keys by the names that users type.

use super::PublicKey;

/// Minimum number of fingerprint digits that name a key.
const FINGERPRINT_CHARS_MIN: usize = 8;

/// Reasons for which a name doesn't identify exactly one key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyNameError {
    /// No key has this name.
    #[error(
        "no key is named `{0}`; give the whole key, or {FINGERPRINT_CHARS_MIN} or more digits of its fingerprint"
    )]
    Unknown(String),
    /// Several fingerprints start with these digits.
    #[error("`{0}` names several keys; give more digits of the fingerprint")]
    Ambiguous(String),
}

/// Returns the key among `keys` that `name` identifies: by the key itself, its fingerprint, or at least the first 8
/// digits of that.
///
/// # Errors
/// Returns [`KeyNameError`] if no key matches, or more than one.
pub fn find_key(keys: impl IntoIterator<Item = PublicKey>, name: &str) -> Result<PublicKey, KeyNameError> {
    let name = name.trim();
    if let Ok(wanted) = PublicKey::parse(name) {
        let found = keys.into_iter().find(|key| *key == wanted);
        return found.ok_or_else(|| KeyNameError::Unknown(name.to_owned()));
    }
    find_by_fingerprint(keys.into_iter().map(|key| (key.fingerprint(), key)), name)
}

fn find_by_fingerprint<T: PartialEq>(
    keys: impl Iterator<Item = (String, T)>,
    start: &str,
) -> Result<T, KeyNameError> {
    let digits = start.to_lowercase();
    let mut named = keys.filter(|(key, _)| digits.len() >= FINGERPRINT_CHARS_MIN && key.starts_with(&digits));
    let (_, found) = named.next().ok_or_else(|| KeyNameError::Unknown(start.to_owned()))?;
    match named.any(|(_, other)| other != found) {
        true => Err(KeyNameError::Ambiguous(start.to_owned())),
        false => Ok(found),
    }
}

#[cfg(test)]
mod tests {
    use super::super::SigningKey;
    use super::*;

    #[test]
    fn a_key_is_found_by_itself_and_by_the_start_of_its_fingerprint() {
        let keys: Vec<_> = (0..3).map(|_| SigningKey::generate().unwrap().public_key()).collect();
        let find = |name: &str| find_key(keys.iter().copied(), name);
        let fingerprint = keys[1].fingerprint();
        for name in [keys[1].to_base64(), fingerprint.clone(), fingerprint[..8].to_uppercase()] {
            assert_eq!(find(&name), Ok(keys[1]), "{name}");
        }
        for name in ["", &fingerprint[..7], "00000000zz", &format!("{fingerprint}0")] {
            assert!(matches!(find(name), Err(KeyNameError::Unknown(_))), "{name}");
        }
    }

    #[test]
    fn a_start_that_several_fingerprints_have_names_none() {
        let keys = [("0123456789", 1), ("012345678f", 2), ("0123456789", 1)];
        let find = |start| find_by_fingerprint(keys.iter().map(|(key, n)| ((*key).to_owned(), *n)), start);
        assert_eq!(find("01234567"), Err(KeyNameError::Ambiguous("01234567".to_owned())));
        assert_eq!(find("0123456789"), Ok(1), "the same key twice is one key");
        assert_eq!(find("012345678F"), Ok(2));
    }
}
