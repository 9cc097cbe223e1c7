//! Idempotency tokens of transactions. The SDK adds one to every TransactWriteItems, so a retry
//! after a lost response must find the first result instead of a failed condition.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

/// Time for which a token is remembered, as on AWS.
const TOKEN_AGE_MAX: Duration = Duration::from_secs(600);
/// Maximum number of tokens; the oldest are dropped early above it. It allows the full age at 100
/// transactions per second.
const TOKENS_MAX: usize = 65_536;

/// Status of a token.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum TokenStatus {
    /// The token is new.
    New,
    /// The same request was completed under this token.
    Done,
    /// Another request was completed under this token.
    Mismatch,
}

/// Tokens of completed transactions. They are kept in memory, since clients that could retry end
/// with the process.
#[derive(Debug, Default)]
pub(super) struct Tokens {
    digests: HashMap<String, u64>,
    by_age: VecDeque<(Instant, String)>,
}

impl Tokens {
    pub(super) fn status(&mut self, token: &str, digest: u64, now: Instant) -> TokenStatus {
        self.drop_expired(now);
        match self.digests.get(token) {
            None => TokenStatus::New,
            Some(known) if *known == digest => TokenStatus::Done,
            Some(_) => TokenStatus::Mismatch,
        }
    }

    pub(super) fn remember(&mut self, token: String, digest: u64, now: Instant) {
        self.digests.insert(token.clone(), digest);
        self.by_age.push_back((now, token));
    }

    fn drop_expired(&mut self, now: Instant) {
        while let Some((at, _)) = self.by_age.front() {
            if self.by_age.len() < TOKENS_MAX && now.duration_since(*at) < TOKEN_AGE_MAX {
                return;
            }
            if let Some((_, token)) = self.by_age.pop_front() {
                self.digests.remove(&token);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_known_for_ten_minutes() {
        let mut tokens = Tokens::default();
        let start = Instant::now();
        assert_eq!(tokens.status("a", 1, start), TokenStatus::New);
        tokens.remember("a".to_owned(), 1, start);
        assert_eq!(tokens.status("a", 1, start + Duration::from_secs(599)), TokenStatus::Done);
        assert_eq!(tokens.status("a", 2, start + Duration::from_secs(599)), TokenStatus::Mismatch);
        assert_eq!(tokens.status("a", 2, start + Duration::from_secs(600)), TokenStatus::New);
        assert!(tokens.digests.is_empty());
    }

    #[test]
    fn memory_is_bounded() {
        let mut tokens = Tokens::default();
        let start = Instant::now();
        for n in 0..TOKENS_MAX + 10 {
            let token = n.to_string();
            assert_eq!(tokens.status(&token, 0, start), TokenStatus::New);
            tokens.remember(token, 0, start);
        }
        assert!(tokens.digests.len() <= TOKENS_MAX);
        assert_eq!(tokens.digests.len(), tokens.by_age.len());
        assert_eq!(tokens.status("0", 0, start), TokenStatus::New);
    }
}
