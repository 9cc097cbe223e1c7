//! The signing key as a stored secret: a JSON object whose members are configuration variables.

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::ring::{KeyRing, RingConfig};
use super::{KeyError, KeyNameError, PublicKey, SigningKey, find_key};
use crate::time::whole_seconds;

const PRIVATE: &str = "BENCH_SIGNING_PRIVATE_KEY";
const PUBLIC: &str = "BENCH_SIGNING_PUBLIC_KEY";
const OLD: &str = "BENCH_SIGNING_OLD_PUBLIC_KEYS";
/// Maximum size of a secret in AWS Secrets Manager, in bytes.
const SECRET_BYTES_MAX: usize = 65_536;

/// Errors of a stored secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SecretError {
    /// The secret isn't a JSON object of strings.
    #[error("the secret is not a JSON object of strings")]
    NotAnObject,
    /// The new secret would exceed the maximum size.
    #[error("the secret is longer than {SECRET_BYTES_MAX} bytes")]
    TooLong,
    /// The secret doesn't contain the key to distrust.
    #[error(transparent)]
    Name(#[from] KeyNameError),
    /// The keys in the secret are invalid.
    #[error(transparent)]
    Key(#[from] KeyError),
}

/// Key to distrust, whose signatures then no longer verify.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Distrust<'a> {
    /// No key: signatures of the current key stay valid.
    Nothing,
    /// The current key.
    Current,
    /// The current or an old key, by a name that [`find_key`] accepts.
    Named(&'a str),
}

/// A secret whose key has been rotated. Its `Debug` form doesn't contain the secret.
pub struct RotatedSecret {
    /// The new secret as JSON, with the new private key.
    pub secret: String,
    /// Key that signs from now on.
    pub current: PublicKey,
    /// Key that signed until now.
    pub retired: PublicKey,
    /// Key whose signatures no longer verify.
    pub distrusted: Option<PublicKey>,
}

impl std::fmt::Debug for RotatedSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RotatedSecret").field("current", &self.current).finish_non_exhaustive()
    }
}

/// Replaces the private key in a stored secret. The public half of the previous key joins the old keys with its
/// validity, so that its signatures stay valid. The key that `distrust` selects is left out, and its signatures no
/// longer verify. Other members are unchanged.
///
/// # Errors
/// Returns [`SecretError`]; its text doesn't repeat any part of the secret.
pub fn rotate_secret(
    secret: &str,
    distrust: Distrust<'_>,
    now: Timestamp,
) -> Result<RotatedSecret, SecretError> {
    if secret.len() > SECRET_BYTES_MAX {
        return Err(SecretError::TooLong);
    }
    let mut members: Map<String, Value> =
        serde_json::from_str(secret).map_err(|_| SecretError::NotAnObject)?;
    let text = |name: &str| match members.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(SecretError::NotAnObject),
    };
    let (private, public, old) = (text(PRIVATE)?, text(PUBLIC)?, text(OLD)?);
    if private.as_deref().is_none_or(|key| key.trim().is_empty()) {
        return Err(KeyError::NotConfigured.into());
    }
    // Parse the secret as the server does, so that the server can read the new one.
    let ring = KeyRing::from_config(&RingConfig {
        private_key: private.as_deref(),
        public_key: public.as_deref(),
        old_public_keys: old.as_deref(),
        valid_from: None,
    })?;
    let retired = ring.signing_key()?.public_key();
    let from = ring.current().and_then(|key| key.valid_from);
    let old = ring.retired().iter().map(|key| (key.public_key, key.valid_from, key.valid_until));
    let old: Vec<_> = std::iter::once((retired, from, Some(now))).chain(old).collect();
    let distrusted = match distrust {
        Distrust::Nothing => None,
        Distrust::Current => Some(retired),
        Distrust::Named(name) => Some(find_key(old.iter().map(|(key, ..)| *key), name)?),
    };
    let remaining = old.iter().filter(|(key, ..)| Some(*key) != distrusted);
    let entries: Vec<String> =
        remaining.map(|(key, from, until)| format_entry(*key, *from, *until)).collect();
    let signing = SigningKey::generate()?;
    // The public key is derived from the private key; a stored one would no longer match.
    members.remove(PUBLIC);
    members.insert(PRIVATE.to_owned(), Value::String(hex::encode(signing.0.to_bytes())));
    match entries.is_empty() {
        true => members.remove(OLD),
        false => members.insert(OLD.to_owned(), Value::String(entries.join(","))),
    };
    let secret = serde_json::to_string(&members).map_err(|_| SecretError::NotAnObject)?;
    if secret.len() > SECRET_BYTES_MAX {
        return Err(SecretError::TooLong);
    }
    Ok(RotatedSecret { secret, current: signing.public_key(), retired, distrusted })
}

/// Formats `KEY` or `KEY@FROM/UNTIL`.
fn format_entry(key: PublicKey, from: Option<Timestamp>, until: Option<Timestamp>) -> String {
    let time = |time: Option<Timestamp>| time.map(whole_seconds).unwrap_or_default();
    match (from, until) {
        (None, None) => key.to_base64(),
        (from, until) => format!("{}@{}/{}", key.to_base64(), time(from), time(until)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEED_HEX: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

    fn timestamp(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_767_225_600 + seconds).unwrap()
    }

    fn ring(secret: &str) -> KeyRing {
        let members: Map<String, Value> = serde_json::from_str(secret).unwrap();
        let text = |name: &str| members.get(name).and_then(Value::as_str);
        KeyRing::from_config(&RingConfig {
            private_key: text(PRIVATE),
            public_key: text(PUBLIC),
            old_public_keys: text(OLD),
            valid_from: None,
        })
        .unwrap()
    }

    #[test]
    fn a_rotated_secret_signs_with_a_new_key_and_knows_the_old_ones() {
        let first = format!(r#"{{"BENCH_SIGNING_PRIVATE_KEY":"{SEED_HEX}","OTHER":"stays"}}"#);
        let second = rotate_secret(&first, Distrust::Nothing, timestamp(60)).unwrap();
        let third = rotate_secret(&second.secret, Distrust::Nothing, timestamp(120)).unwrap();
        assert!(third.secret.contains(r#""OTHER":"stays""#));
        assert_eq!(second.retired, ring(&first).signing_key().unwrap().public_key());
        assert_eq!(third.retired, second.current);
        let last = ring(&third.secret);
        assert_eq!(last.signing_key().unwrap().public_key(), third.current);
        let times: Vec<_> =
            last.retired().iter().map(|key| (key.public_key, key.valid_from, key.valid_until)).collect();
        assert_eq!(
            times,
            [
                (second.current, Some(timestamp(60)), Some(timestamp(120))),
                (second.retired, None, Some(timestamp(60)))
            ]
        );
        for (older, signer) in [(&first, second.retired), (&second.secret, second.current)] {
            let signature = ring(older).signing_key().unwrap().sign(b"archive");
            let trusted = last.trusted_keys();
            let by = trusted.iter().find(|key| key.public_key.verifies(b"archive", &signature));
            assert_eq!(by.map(|key| key.public_key), Some(signer));
        }
    }

    #[test]
    fn a_leaked_key_is_not_kept() {
        let first = format!(r#"{{"BENCH_SIGNING_PRIVATE_KEY":"{SEED_HEX}","BENCH_SIGNING_PUBLIC_KEY":""}}"#);
        let second = rotate_secret(&first, Distrust::Nothing, timestamp(60)).unwrap();
        let third = rotate_secret(&second.secret, Distrust::Current, timestamp(120)).unwrap();
        let known: Vec<_> = ring(&third.secret).retired().iter().map(|key| key.public_key).collect();
        assert_eq!(known, [second.retired]);
        // An old key, named by the first digits of its fingerprint.
        let named = Distrust::Named(&second.retired.fingerprint()[..12]);
        let third = rotate_secret(&second.secret, named, timestamp(120)).unwrap();
        assert_eq!(third.distrusted, Some(second.retired));
        let known: Vec<_> = ring(&third.secret).retired().iter().map(|key| key.public_key).collect();
        assert_eq!(known, [second.current]);
        let unknown = rotate_secret(&second.secret, Distrust::Named("00000000"), timestamp(120)).unwrap_err();
        assert!(matches!(unknown, SecretError::Name(KeyNameError::Unknown(_))));
        let alone = rotate_secret(&first, Distrust::Current, timestamp(60)).unwrap();
        assert!(ring(&alone.secret).retired().is_empty() && !alone.secret.contains("PUBLIC_KEY"));
    }

    #[test]
    fn invalid_secrets_are_refused_without_being_repeated() {
        let long = format!(r#"{{"X":"{}"}}"#, "x".repeat(SECRET_BYTES_MAX));
        for (secret, error) in [
            ("", SecretError::NotAnObject),
            ("[]", SecretError::NotAnObject),
            (r#"{"BENCH_SIGNING_PRIVATE_KEY":1}"#, SecretError::NotAnObject),
            ("{}", KeyError::NotConfigured.into()),
            (r#"{"BENCH_SIGNING_PRIVATE_KEY":"hush-hush"}"#, KeyError::InvalidPrivateKey.into()),
            (&long, SecretError::TooLong),
        ] {
            let refused = rotate_secret(secret, Distrust::Nothing, timestamp(0)).unwrap_err();
            assert_eq!(refused, error, "{secret:.40}");
            assert!(!refused.to_string().contains("hush-hush"));
        }
        let rotated =
            rotate_secret(&format!(r#"{{"{PRIVATE}":"{SEED_HEX}"}}"#), Distrust::Nothing, timestamp(0))
                .unwrap();
        let private = &rotated.secret[rotated.secret.len() - 40..];
        assert!(!format!("{rotated:?}").contains(private));
    }
}
