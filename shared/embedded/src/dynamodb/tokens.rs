//! Idempotency tokens of transactions. The SDK puts one into every TransactWriteItems, so a
//! repetition after a lost answer must find the first result instead of a failed condition.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

/// How long a token is remembered, as on AWS.
const TOKEN_AGE_MAX: Duration = Duration::from_secs(600);
/// Beyond this the oldest are forgotten early. At 100 transactions a second it is the full age.
const TOKENS_MAX: usize = 65_536;

/// What is known about a token.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Known {
    /// Not seen.
    New,
    /// The same request has been done.
    Done,
    /// Another request has been done under this token.
    Mismatch,
}

/// Tokens of finished transactions. In memory: whoever could repeat a request ends with the process.
#[derive(Debug, Default)]
pub(super) struct Tokens {
    digests: HashMap<String, u64>,
    by_age: VecDeque<(Instant, String)>,
}

impl Tokens {
    pub(super) fn look_up(&mut self, token: &str, digest: u64, now: Instant) -> Known {
        self.forget_old(now);
        match self.digests.get(token) {
            None => Known::New,
            Some(known) if *known == digest => Known::Done,
            Some(_) => Known::Mismatch,
        }
    }

    pub(super) fn remember(&mut self, token: String, digest: u64, now: Instant) {
        self.digests.insert(token.clone(), digest);
        self.by_age.push_back((now, token));
    }

    fn forget_old(&mut self, now: Instant) {
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
        assert_eq!(tokens.look_up("a", 1, start), Known::New);
        tokens.remember("a".to_owned(), 1, start);
        assert_eq!(tokens.look_up("a", 1, start + Duration::from_secs(599)), Known::Done);
        assert_eq!(tokens.look_up("a", 2, start + Duration::from_secs(599)), Known::Mismatch);
        assert_eq!(tokens.look_up("a", 2, start + Duration::from_secs(600)), Known::New);
        assert!(tokens.digests.is_empty());
    }

    #[test]
    fn memory_is_bounded() {
        let mut tokens = Tokens::default();
        let start = Instant::now();
        for n in 0..TOKENS_MAX + 10 {
            let token = n.to_string();
            assert_eq!(tokens.look_up(&token, 0, start), Known::New);
            tokens.remember(token, 0, start);
        }
        assert!(tokens.digests.len() <= TOKENS_MAX);
        assert_eq!(tokens.digests.len(), tokens.by_age.len());
        assert_eq!(tokens.look_up("0", 0, start), Known::New);
    }
}
