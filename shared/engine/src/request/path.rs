//! Path of a request: version and parts.

use crate::refusal::Refusal;

/// Maximum length of a path, in characters.
const PATH_CHARS_MAX: usize = 1024;

/// A path of the engine's API that can be read in only one way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ApiPath<'a> {
    /// Version prefix with its slash, such as `/v1.41`, or nothing.
    pub(crate) version: &'a str,
    /// Parts of the path after the version. None is empty, `.` or `..`.
    pub(crate) parts: Vec<&'a str>,
}

impl<'a> ApiPath<'a> {
    /// Parses a path. Encoded characters, empty parts and dots as parts are refused, not decoded: no name in the
    /// engine's API needs them.
    pub(crate) fn parse(path: &'a str) -> Result<Self, Refusal> {
        let refuse = || Refusal::Path { path: path.chars().take(PATH_CHARS_MAX).collect() };
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_.:@/-".contains(&byte);
        if path.len() > PATH_CHARS_MAX || !path.bytes().all(is_allowed) {
            return Err(refuse());
        }
        let rest = path.strip_prefix('/').ok_or_else(refuse)?;
        let mut parts: Vec<_> = rest.split('/').collect();
        if parts.iter().any(|part| matches!(*part, "" | "." | "..")) {
            return Err(refuse());
        }
        let mut version = "";
        if is_version(parts[0]) {
            version = &path[..=parts[0].len()];
            parts.remove(0);
        }
        Ok(Self { version, parts })
    }
}

/// Returns true for version prefixes of Docker's API, such as `v1.41`. Podman's own API has others.
fn is_version(part: &str) -> bool {
    let minor = part.strip_prefix("v1.").unwrap_or_default();
    matches!(minor.len(), 1..=2) && minor.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_separated() {
        let parsed = |path| ApiPath::parse(path).map(|path| (path.version.to_owned(), path.parts.join("|")));
        let cases = [
            ("/_ping", "", "_ping"),
            ("/v1.41/containers/json", "/v1.41", "containers|json"),
            ("/images/localhost/bench/s1/x:1/json", "", "images|localhost|bench|s1|x:1|json"),
            ("/v4.0.0/libpod/info", "", "v4.0.0|libpod|info"),
            ("/v1.x/info", "", "v1.x|info"),
            ("/v1.41", "/v1.41", ""),
        ];
        for (path, version, parts) in cases {
            assert_eq!(parsed(path).unwrap(), (version.to_owned(), parts.to_owned()), "{path}");
        }
    }

    #[test]
    fn ambiguous_paths_are_refused() {
        for path in [
            "",
            "/",
            "containers/json",
            "//containers/json",
            "/containers//json",
            "/containers/json/",
            "/containers/../plugins",
            "/containers/./json",
            "/containers/%2e%2e/plugins",
            "/containers%2fjson",
            "/containers/a%00/json",
            "/containers\\json",
            "/containers/json;x",
            "/containers/é/json",
            "http://host/containers/json",
        ] {
            assert!(ApiPath::parse(path).is_err(), "{path}");
        }
        assert!(ApiPath::parse(&"/a".repeat(1000)).is_err());
    }
}
