//! Images that a sandbox may use and name.

use crate::refusal::Refusal;

/// Maximum length of a reference to an image, in characters.
const REFERENCE_CHARS_MAX: usize = 512;

/// Images that a sandbox may use and name.
///
/// Prefixes are compared with full names: `debian:bookworm` is `docker.io/library/debian:bookworm`, and `me/app` is
/// `docker.io/me/app`. Images that a sandbox built itself are always available to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageRules {
    /// Prefixes of full names that the sandbox may run, build on and pull.
    pub usable: Vec<String>,
    /// Prefixes of full names that the sandbox may give to its own images. They must not be usable by others who
    /// don't trust this sandbox.
    pub own: Vec<String>,
    /// Keep the sandbox's images when it stops, for reuse.
    pub keep: bool,
}

impl ImageRules {
    /// Creates the default rules: images of Docker Hub, and own images under `localhost/bench/SANDBOX/`.
    #[must_use]
    pub fn of_sandbox(sandbox: &str) -> Self {
        Self {
            usable: vec!["docker.io/".to_owned()],
            own: vec![format!("localhost/bench/{sandbox}/")],
            keep: false,
        }
    }

    /// Returns true if the sandbox may use the image by this name, whoever built it.
    pub(crate) fn is_usable(&self, reference: &str) -> bool {
        let name = full_name(reference);
        name.is_some_and(|name| self.usable.iter().chain(&self.own).any(|prefix| name.starts_with(prefix)))
    }

    /// Returns true if the name is one that the sandbox may give to its images.
    pub(crate) fn is_own(&self, reference: &str) -> bool {
        full_name(reference).is_some_and(|name| self.own.iter().any(|prefix| name.starts_with(prefix)))
    }

    /// Creates the refusal of an image that the sandbox may not use.
    pub(crate) fn refuse_use(&self, image: &str) -> Refusal {
        let names: Vec<_> =
            self.usable.iter().chain(&self.own).map(|prefix| format!("`{prefix}…`")).collect();
        let allowed = format!("images that this sandbox built, and {}", names.join(", "));
        Refusal::Image { image: image.to_owned(), allowed }
    }

    /// Checks a name that the sandbox gives to an image.
    pub(crate) fn check_own(&self, reference: &str) -> Result<(), Refusal> {
        if self.is_own(reference) {
            return Ok(());
        }
        let names: Vec<_> = self.own.iter().map(|prefix| format!("`{prefix}…`")).collect();
        let allowed = format!("names for images of its own: {}", names.join(", "));
        Err(Refusal::Image { image: reference.to_owned(), allowed })
    }
}

/// Returns the full name of an image with its tag or digest.
pub(crate) fn tagged_name(reference: &str) -> Option<String> {
    let name = full_name(reference)?;
    let has_tag = name.contains('@') || name.rsplit('/').next().is_some_and(|last| last.contains(':'));
    Some(if has_tag { name } else { format!("{name}:latest") })
}

/// Returns the full name of an image, with its registry and the default namespace; `None` if it isn't a name.
pub(crate) fn full_name(reference: &str) -> Option<String> {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-/:@".contains(&byte);
    let has_empty_part =
        reference.split('/').any(|part| part.is_empty() || part.chars().all(|character| character == '.'));
    if reference.len() > REFERENCE_CHARS_MAX || has_empty_part || !reference.bytes().all(is_allowed) {
        return None;
    }
    let is_id = |text: &str| text.len() >= 12 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if reference.starts_with("sha256:") || is_id(reference) {
        return None;
    }
    let name = match reference.split_once('/') {
        None => format!("docker.io/library/{reference}"),
        Some((host, rest)) if host == "docker.io" || host == "index.docker.io" => {
            let namespace = if rest.contains('/') { "" } else { "library/" };
            format!("docker.io/{namespace}{rest}")
        }
        Some((host, _)) if host == "localhost" || host.contains(['.', ':']) => reference.to_owned(),
        Some(_) => format!("docker.io/{reference}"),
    };
    Some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_compared_in_full() {
        let rules = ImageRules::of_sandbox("s1");
        for usable in
            ["debian", "debian:bookworm", "docker.io/me/app:1", "me/app@sha256:00", "localhost/bench/s1/x"]
        {
            assert!(rules.is_usable(usable), "{usable}");
        }
        for refused in [
            "localhost/bench/s2/x",
            "localhost/bench/s1/../s2/x",
            "localhost/bench/s1//x",
            "10.0.0.1:5000/x",
            "registry.example/debian",
            "sha256:0123",
            "0123456789abcdef",
            "",
            "/debian",
            "debian bookworm",
        ] {
            assert!(!rules.is_usable(refused), "{refused}");
        }
        assert!(rules.is_own("localhost/bench/s1/main:latest"));
        for refused in
            ["debian", "localhost/bench/s1", "localhost/bench/s10/x", "docker.io/localhost/bench/s1/x"]
        {
            assert!(!rules.is_own(refused), "{refused}");
        }
    }
}
