//! Keys in query strings.
//!
//! Old clients send their key as a query parameter, where logs and browsers keep it. A server that accepts such keys
//! takes them out of the address before anything else sees it.

use bench_domain::Secret;
use http::uri::PathAndQuery;
use http::{Uri, uri};

/// Name of the query parameter with the caller's key.
pub const KEY_PARAMETER: &str = "openrouter_api_key";

/// Maximum length of a key in bytes.
const KEY_BYTES_MAX: usize = 4_096;

/// Key in a query string.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QueryKey {
    /// There is no such parameter.
    Missing,
    /// The parameter is empty, as old clients without a key send it.
    Empty,
    /// The key.
    Key(Secret),
    /// The value isn't a key: more than 4,096 bytes, or other characters than visible ASCII.
    Invalid,
}

/// Takes the key out of an address.
pub fn take_query_key(uri: &mut Uri) -> QueryKey {
    let Some(query) = uri.query() else { return QueryKey::Missing };
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('=')).rev();
    let value = pairs.find(|(name, _)| is_key_name(name)).map(|(_, value)| decode(value));
    let has_key = value.is_some() || query.split('&').any(is_key_name);
    if !has_key {
        return QueryKey::Missing;
    }
    let rest = without_query_key(query);
    let path = uri.path();
    let target = if rest.is_empty() { path.to_owned() } else { format!("{path}?{rest}") };
    let mut parts = uri::Parts::from(uri.clone());
    // Both parts come from an address that was valid.
    parts.path_and_query = target.parse::<PathAndQuery>().ok();
    *uri = Uri::from_parts(parts).unwrap_or_default();
    let value = value.unwrap_or_default();
    if value.is_empty() {
        return QueryKey::Empty;
    }
    let is_plausible = value.len() <= KEY_BYTES_MAX && value.iter().all(u8::is_ascii_graphic);
    let text = String::from_utf8(value).ok().filter(|_| is_plausible);
    text.and_then(Secret::new).map_or(QueryKey::Invalid, QueryKey::Key)
}

/// Returns a query string without the parameter for keys.
pub fn without_query_key(query: &str) -> String {
    let kept = query.split('&').filter(|pair| !is_key_name(pair.split('=').next().unwrap_or_default()));
    kept.collect::<Vec<_>>().join("&")
}

fn is_key_name(name: &str) -> bool {
    decode(name) == KEY_PARAMETER.as_bytes()
}

/// Decodes a part of a query string.
fn decode(text: &str) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        let digits = after.get(..2).filter(|_| *byte == b'%');
        let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        let value = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        decoded.push(value.unwrap_or(if *byte == b'+' { b' ' } else { *byte }));
        rest = if value.is_some() { after.get(2..).unwrap_or_default() } else { after };
    }
    decoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_leaves_the_address() {
        for (address, rest, key) in [
            ("/a?openrouter_api_key=sk-1&x=2", "/a?x=2", Some("sk-1")),
            ("/a?x=1&openrouter_api_key=sk%2D1&y=2", "/a?x=1&y=2", Some("sk-1")),
            ("/a?openrouter%5Fapi%5Fkey=sk-1", "/a", Some("sk-1")),
            ("/a?openrouter_api_key=one&openrouter_api_key=two", "/a", Some("two")),
            ("/a?openrouter_api_key=", "/a", None),
            ("/a?openrouter_api_key", "/a", None),
            ("http://h/a?openrouter_api_key=k", "http://h/a", Some("k")),
        ] {
            let mut uri: Uri = address.parse().unwrap();
            let expected = key.map_or(QueryKey::Empty, |key| QueryKey::Key(Secret::new(key).unwrap()));
            assert_eq!(take_query_key(&mut uri), expected, "{address}");
            assert_eq!(uri, rest);
        }
        let mut uri: Uri = "/a?x=1".parse().unwrap();
        assert_eq!(take_query_key(&mut uri), QueryKey::Missing);
        for bad in ["a%20b", "%C3%A9", "%00", "a+b"] {
            let mut uri: Uri = format!("/a?openrouter_api_key={bad}").parse().unwrap();
            assert_eq!(take_query_key(&mut uri), QueryKey::Invalid, "{bad}");
            assert_eq!(uri, "/a");
        }
    }
}
