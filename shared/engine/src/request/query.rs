//! Query parameters: only known ones, each at most once.

use crate::refusal::Refusal;

/// Maximum length of a query, in bytes.
const QUERY_BYTES_MAX: usize = 64 << 10;

/// Decoded query parameters of a request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Query {
    pairs: Vec<(String, String)>,
}

impl Query {
    /// Parses a query. Only parameters named in `known` are accepted; those that end with `*` may be repeated.
    pub(crate) fn parse(query: Option<&str>, known: &[&str]) -> Result<Self, Refusal> {
        let query = query.unwrap_or_default();
        let refuse = |name: &str| {
            let names: Vec<_> =
                known.iter().map(|name| format!("`{}`", name.trim_end_matches('*'))).collect();
            let allowed = if names.is_empty() { "none".to_owned() } else { names.join(", ") + ", each once" };
            Refusal::Query { name: name.chars().take(100).collect(), allowed }
        };
        // Go programs of different ages read `;` differently.
        if query.len() > QUERY_BYTES_MAX || query.contains(';') {
            return Err(refuse(";"));
        }
        let mut parsed = Self::default();
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            let is_repeatable = known.iter().any(|known| known.strip_suffix('*') == Some(&*name));
            let is_known = is_repeatable || known.contains(&&*name);
            if !is_known || (!is_repeatable && parsed.get(&name).is_some()) {
                return Err(refuse(&name));
            }
            parsed.pairs.push((name.into_owned(), value.into_owned()));
        }
        Ok(parsed)
    }

    /// Returns the first value of a parameter.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.get_all(name).next()
    }

    /// Returns all values of a parameter.
    pub(crate) fn get_all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.pairs.iter().filter(move |(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// Returns true if the parameter is set to anything but false.
    pub(crate) fn is_set(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| !matches!(value, "" | "0" | "false" | "False"))
    }

    /// Replaces all values of a parameter by one.
    pub(crate) fn set(&mut self, name: &str, value: impl Into<String>) {
        self.remove(name);
        self.pairs.push((name.to_owned(), value.into()));
    }

    /// Removes a parameter.
    pub(crate) fn remove(&mut self, name: &str) {
        self.pairs.retain(|(key, _)| key != name);
    }

    /// Returns the query with its `?`, or nothing.
    pub(crate) fn encode(&self) -> String {
        if self.pairs.is_empty() {
            return String::new();
        }
        let mut query = form_urlencoded::Serializer::new("?".to_owned());
        for (name, value) in &self.pairs {
            query.append_pair(name, value);
        }
        // A serializer that starts with text separates the first pair from it.
        query.finish().replacen("?&", "?", 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_and_repeated_parameters_are_refused() {
        let known = ["force", "t*"];
        assert_eq!(Query::parse(Some("t=a%20b&t=c&force=1"), &known).unwrap().encode(), "?t=a+b&t=c&force=1");
        assert_eq!(Query::parse(None, &known).unwrap().encode(), "");
        for query in ["Force=1", "force=1&force=0", "link=1", "force=1;link=1", "%66orce=1&force=1", "=1"] {
            assert!(Query::parse(Some(query), &known).is_err(), "{query}");
        }
    }

    #[test]
    fn set_replaces_all_values() {
        let mut query = Query::parse(Some("t=a&t=b"), &["t*"]).unwrap();
        query.set("t", "c");
        assert_eq!(query.encode(), "?t=c");
        assert!(!Query::parse(Some("v=0"), &["v"]).unwrap().is_set("v"));
    }
}
