//! Patterns of file names as dataset cards have them: `*`, `**`, `?` and `[…]`.

/// Whether a path within a repository matches.
pub(super) fn matches(pattern: &str, path: &str) -> bool {
    let pattern: Vec<&str> = pattern.trim_start_matches("./").split('/').collect();
    let path: Vec<&str> = path.split('/').collect();
    folders(&pattern, &path)
}

/// Walks with one way back, to the last `**`: the time is bounded by the product of the lengths.
fn folders(pattern: &[&str], path: &[&str]) -> bool {
    wildcard(pattern, path, |p| *p == "**", |p, name| names(p, name))
}

fn names(pattern: &str, name: &str) -> bool {
    let pattern = tokens(pattern);
    let name: Vec<char> = name.chars().collect();
    wildcard(&pattern, &name, |token| *token == Token::Any, |token, c| token.matches(*c))
}

#[derive(Debug, PartialEq)]
enum Token {
    Any,
    One,
    Char(char),
    Class { negated: bool, ranges: Vec<(char, char)> },
}

impl Token {
    fn matches(&self, c: char) -> bool {
        match self {
            Self::Any | Self::One => true,
            Self::Char(own) => *own == c,
            Self::Class { negated, ranges } => ranges.iter().any(|(a, b)| (*a..=*b).contains(&c)) != *negated,
        }
    }
}

fn tokens(pattern: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut rest = pattern;
    while let Some(c) = rest.chars().next() {
        rest = rest.get(c.len_utf8()..).unwrap_or_default();
        tokens.push(match c {
            '*' => Token::Any,
            '?' => Token::One,
            '[' => match class(rest) {
                Some((token, after)) => {
                    rest = after;
                    token
                }
                None => Token::Char('['),
            },
            c => Token::Char(c),
        });
    }
    tokens
}

/// What follows an opening bracket, up to the closing one.
fn class(rest: &str) -> Option<(Token, &str)> {
    let negated = rest.starts_with(['!', '^']);
    let body = if negated { rest.get(1..)? } else { rest };
    // A closing bracket right after the opening one is a member.
    let end = body.char_indices().skip(1).find(|(_, c)| *c == ']')?.0;
    let (members, after) = (body.get(..end)?, body.get(end + 1..)?);
    let members: Vec<char> = members.chars().collect();
    let mut ranges = Vec::new();
    let mut members = members.as_slice();
    loop {
        members = match members {
            [] => break,
            [a, '-', b, rest @ ..] => {
                ranges.push((*a, *b));
                rest
            }
            [a, rest @ ..] => {
                ranges.push((*a, *a));
                rest
            }
        };
    }
    Some((Token::Class { negated, ranges }, after))
}

fn wildcard<P, T>(
    pattern: &[P],
    text: &[T],
    is_any: impl Fn(&P) -> bool,
    one: impl Fn(&P, &T) -> bool,
) -> bool {
    let (mut p, mut t) = (0, 0);
    let mut back: Option<(usize, usize)> = None;
    while let Some(element) = text.get(t) {
        match pattern.get(p) {
            Some(any) if is_any(any) => {
                back = Some((p, t));
                p += 1;
            }
            Some(token) if one(token, element) => {
                p += 1;
                t += 1;
            }
            _ => match &mut back {
                Some((from, taken)) => {
                    *taken += 1;
                    (p, t) = (*from + 1, *taken);
                }
                None => return false,
            },
        }
    }
    pattern.get(p..).unwrap_or_default().iter().all(is_any)
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn patterns_of_dataset_cards() {
        for (pattern, path, expected) in [
            ("data/test-*", "data/test-00000-of-00001.parquet", true),
            ("data/test-*", "data/test/0.parquet", false),
            ("data/**", "data/a/b.parquet", true),
            ("**/test.jsonl", "test.jsonl", true),
            ("**/test.jsonl", "a/b/test.jsonl", true),
            ("**/test.jsonl", "a/b/contest.jsonl", false),
            ("./a.jsonl", "a.jsonl", true),
            ("aime2025-I.jsonl", "aime2025-II.jsonl", false),
            ("*.jsonl", "x.jsonl", true),
            ("*.jsonl", "d/x.jsonl", false),
            ("part-[0-9]?.json", "part-07.json", true),
            ("part-[!0-9].json", "part-7.json", false),
            ("a[b", "a[b", true),
            ("*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", false),
            ("", "", true),
            ("**", "a/b/c", true),
        ] {
            assert_eq!(matches(pattern, path), expected, "{pattern} {path}");
        }
    }
}
