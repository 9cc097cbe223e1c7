//! Parses numbers in LaTeX expressions.

use num_bigint::BigInt;

use super::node::Node;
use super::parser::Parser;
use super::token::Token;
use crate::python;
use crate::scorers::boxed::number::{Number, Rational, rational_to_f64};

impl Parser<'_> {
    /// Parses digits, possibly separated by whitespace, with commas before groups of three and one decimal point.
    pub(super) fn number(&mut self) -> Option<Node> {
        let mut whole = self.digits();
        let mut ends = vec![(self.at, whole.len())];
        loop {
            let after = self.tokens.get(self.at + 1..).unwrap_or_default();
            let group = after.get(..3).unwrap_or(after);
            let is_group = group.len() == 3 && group.iter().all(|token| matches!(token, Token::Digit(_)));
            if !(self.next_is(",") && is_group) {
                // SymPy's parser looks ahead for a group before it continues without one.
                let first_other = group.iter().find(|token| !matches!(token, Token::Digit(_)));
                self.failed |= self.next_is(",") && first_other == Some(&Token::Unknown);
                break;
            }
            self.at += 1;
            for _ in 0..3 {
                whole.extend(self.digit());
            }
            ends.push((self.at, whole.len()));
        }
        if self.next_is(".") && !self.digit_at(self.at + 1) {
            // A point without decimals doesn't belong to a number. SymPy's parser then reads the digits separately, as
            // a product, and stops before the digit next to the point.
            self.failed |= self.tokens.get(self.at + 1) == Some(&Token::Unknown);
            ends.pop();
            match ends.last() {
                Some(&(at, length)) => {
                    self.at = at;
                    whole.truncate(length);
                }
                None if self.bare_argument => {
                    self.failed = true;
                    return None;
                }
                None if whole.len() > 1 => {
                    self.at = self.at + 1 - whole.len();
                    whole.truncate(1);
                }
                None => return None,
            }
        }
        // SymPy parses the digits with a function that rejects leading zeros.
        let leading_zeros =
            whole.len() > 1 && whole.starts_with('0') && whole.bytes().any(|digit| digit != b'0');
        let value = Rational::from_integer(python::parse_int(&whole)?);
        if !self.accept(".") {
            self.failed |= leading_zeros;
            return Some(Node::Number(Number::Exact(value)));
        }
        let mut decimals = self.digits();
        if self.next_is(".") && self.digit_at(self.at + 1) && decimals.len() > 1 {
            self.at = self.at + 1 - decimals.len();
            decimals.truncate(1);
        }
        let scale = BigInt::from(10).pow(u32::try_from(decimals.len()).ok()?);
        let value = value + Rational::new(python::parse_int(&decimals)?, scale);
        Some(Node::Number(Number::from(rational_to_f64(&value))))
    }

    fn digits(&mut self) -> String {
        std::iter::from_fn(|| self.digit()).collect()
    }

    fn digit_at(&self, at: usize) -> bool {
        matches!(self.tokens.get(at), Some(Token::Digit(_)))
    }
}
