//! Secrets of one attempt to sign in.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bench_domain::Secret;
use ring::digest::{SHA256, digest};
use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};

use crate::SignInError;

/// Seconds from the start of an attempt until it's void.
pub const ATTEMPT_SECONDS: i64 = 600;
/// Number of random bytes of a state.
const STATE_BYTES: usize = 16;
/// Number of random bytes of the browser's secret.
const SECRET_BYTES: usize = 32;
/// Length of a state in characters.
const STATE_CHARS: usize = 22;
/// Length of the browser's secret in characters.
const SECRET_CHARS: usize = 43;
/// Number of characters of the state in the cookie's name, so that two attempts of a browser have different cookies.
const NAME_CHARS: usize = 8;

/// One attempt to sign in: a state, which passes through the provider, and a secret that only the browser has. The PKCE verifier
/// and the nonce follow from both, so the server needs to store neither.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    state: String,
    secret: Secret,
}

impl Attempt {
    /// Creates an attempt with random secrets.
    ///
    /// # Errors
    /// If the system provides no random numbers.
    pub fn new() -> Result<Self, SignInError> {
        let secret = Secret::new(random_text(SECRET_BYTES)?).ok_or(SignInError::Server)?;
        Ok(Self { state: random_text(STATE_BYTES)?, secret })
    }

    /// Returns the attempt with this state and the secret from the browser's cookie; `None` if no server issues such texts.
    pub fn from_parts(state: &str, secret: &str) -> Option<Self> {
        let is_well_formed = is_text_of(state, STATE_CHARS) && is_text_of(secret, SECRET_CHARS);
        let secret = Secret::new(secret).filter(|_| is_well_formed)?;
        Some(Self { state: state.to_owned(), secret })
    }

    /// Returns the state.
    pub fn state(&self) -> &str {
        &self.state
    }

    /// Returns the browser's secret.
    pub const fn secret(&self) -> &Secret {
        &self.secret
    }

    /// Returns the name of the cookie with the browser's secret, for an attempt with this state; `None` for a text that can't be
    /// a state.
    pub fn cookie_name(state: &str) -> Option<String> {
        let start = state.get(..NAME_CHARS).filter(|_| is_text_of(state, STATE_CHARS))?;
        Some(format!("bench_sign_in_{start}"))
    }

    /// Returns the digest of the state, in hex.
    pub fn state_digest(&self) -> String {
        hex::encode(digest(&SHA256, self.state.as_bytes()))
    }

    /// Returns the digest of the browser's secret, in hex.
    pub fn secret_digest(&self) -> String {
        hex::encode(digest(&SHA256, self.secret.expose().as_bytes()))
    }

    /// Returns the PKCE verifier.
    pub fn verifier(&self) -> Secret {
        // 43 characters, so it's never empty.
        Secret::new(self.derive("verifier")).unwrap_or_else(|| self.secret.clone())
    }

    /// Returns the PKCE challenge for `S256`.
    pub fn challenge(&self) -> String {
        URL_SAFE_NO_PAD.encode(digest(&SHA256, self.verifier().expose().as_bytes()))
    }

    /// Returns the nonce, which the ID token repeats.
    pub fn nonce(&self) -> String {
        self.derive("nonce")
    }

    fn derive(&self, purpose: &str) -> String {
        let key = hmac::Key::new(hmac::HMAC_SHA256, self.secret.expose().as_bytes());
        URL_SAFE_NO_PAD.encode(hmac::sign(&key, format!("{purpose} {}", self.state).as_bytes()))
    }
}

/// Generates a random cookie value for a session.
///
/// # Errors
/// If the system provides no random numbers.
pub fn session_cookie() -> Result<String, SignInError> {
    random_text(SECRET_BYTES)
}

fn random_text(bytes: usize) -> Result<String, SignInError> {
    let mut random = vec![0; bytes];
    SystemRandom::new().fill(&mut random).map_err(|_| SignInError::Server)?;
    Ok(URL_SAFE_NO_PAD.encode(random))
}

fn is_text_of(text: &str, chars: usize) -> bool {
    text.len() == chars
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}

#[cfg(test)]
mod tests {
    use bench_domain::SessionId;

    use super::*;

    #[test]
    fn an_attempt_comes_back_from_its_state_and_cookie() {
        let attempt = Attempt::new().unwrap();
        let back = Attempt::from_parts(attempt.state(), attempt.secret().expose()).unwrap();
        assert_eq!((back.verifier(), back.nonce()), (attempt.verifier(), attempt.nonce()));
        assert_eq!(attempt.verifier().expose().len(), 43);
        assert_eq!(
            Attempt::cookie_name(attempt.state()).unwrap(),
            format!("bench_sign_in_{}", &attempt.state()[..8])
        );
        assert!(!format!("{attempt:?}").contains(attempt.secret().expose()));
    }

    #[test]
    fn attempts_differ_by_state_and_by_browser() {
        let (one, other) = (Attempt::new().unwrap(), Attempt::new().unwrap());
        let mixed = Attempt::from_parts(one.state(), other.secret().expose()).unwrap();
        for (left, right) in [(&one, &other), (&one, &mixed), (&other, &mixed)] {
            assert_ne!(left.nonce(), right.nonce());
            assert_ne!(left.challenge(), right.challenge());
        }
        assert_ne!(one.nonce(), one.verifier().expose());
    }

    #[test]
    fn damaged_texts_are_no_attempt() {
        let attempt = Attempt::new().unwrap();
        let (state, secret) = (attempt.state(), attempt.secret().expose());
        for (state, secret) in [("", secret), (state, ""), (&state[1..], secret), (state, &secret[1..])] {
            assert_eq!(Attempt::from_parts(state, secret), None);
        }
        assert_eq!(Attempt::cookie_name("é=; x"), None);
        assert!(SessionId::from_cookie(&session_cookie().unwrap()).is_some());
    }
}
