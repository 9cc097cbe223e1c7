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

/// Places other than registries from which podman takes images if a reference begins with one of them and a colon.
const TRANSPORTS: [&str; 10] = [
    "atomic:",
    "containers-storage:",
    "dir:",
    "docker-archive:",
    "docker-daemon:",
    "oci:",
    "oci-archive:",
    "ostree:",
    "sif:",
    "tarball:",
];

/// Returns the full name of an image, with its registry and the default namespace; `None` if it isn't a name.
pub(crate) fn full_name(reference: &str) -> Option<String> {
    if reference.len() > REFERENCE_CHARS_MAX || TRANSPORTS.iter().any(|start| reference.starts_with(start)) {
        return None;
    }
    if is_image_id(reference) || reference.starts_with("sha256:") {
        return None;
    }
    let (name, digest) =
        reference.split_once('@').map_or((reference, None), |(name, digest)| (name, Some(digest)));
    let is_hex = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if !digest.is_none_or(|digest| digest.strip_prefix("sha256:").is_some_and(is_hex)) {
        return None;
    }
    let is_registry = |host: &str| host == "localhost" || host.contains(['.', ':']);
    let (host, rest) = match name.split_once('/').filter(|(host, _)| is_registry(host)) {
        Some((host, rest)) => (Some(host), rest),
        None => (None, name),
    };
    let (folder, last) = rest.rsplit_once('/').map_or((None, rest), |(folder, last)| (Some(folder), last));
    let (last, tag) = last.split_once(':').map_or((last, None), |(last, tag)| (last, Some(tag)));
    let mut parts = folder.into_iter().flat_map(|folder| folder.split('/')).chain([last]);
    if !host.is_none_or(is_host) || !parts.all(is_part) || !tag.is_none_or(is_tag) {
        return None;
    }
    Some(match host {
        None | Some("docker.io" | "index.docker.io") => {
            let namespace = if rest.contains('/') { "" } else { "library/" };
            let digest = digest.map(|digest| format!("@{digest}")).unwrap_or_default();
            format!("docker.io/{namespace}{rest}{digest}")
        }
        Some(_) => reference.to_owned(),
    })
}

/// Returns true for an image's id, or at least 12 digits of it.
pub(crate) fn is_image_id(text: &str) -> bool {
    let digits = text.strip_prefix("sha256:").unwrap_or(text);
    digits.len() >= 12 && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Returns true for a registry's host with an optional port.
fn is_host(text: &str) -> bool {
    let (host, port) = text.split_once(':').map_or((text, None), |(host, port)| (host, Some(port)));
    let is_name = !host.is_empty()
        && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-".contains(&byte))
        && !host.contains("..");
    is_name && port.is_none_or(|port| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Returns true for a part of a repository's path.
fn is_part(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    text.bytes().next().is_some_and(is_plain)
        && text.bytes().all(|byte| is_plain(byte) || b"._-".contains(&byte))
}

fn is_tag(text: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    text.len() <= 128
        && text.bytes().next().is_some_and(is_word)
        && text.bytes().all(|byte| is_word(byte) || b".-".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_compared_in_full() {
        let rules = ImageRules::of_sandbox("s1");
        for usable in [
            "debian",
            "debian:bookworm",
            "docker.io/me/app:1",
            "me/app@sha256:00",
            "localhost/bench/s1/x",
            "docker:dind",
            "a__b:V1",
        ] {
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
            "Debian",
            "dir:/etc",
            "oci:x/y",
            "docker-archive:/tmp/x.tar",
            "docker-daemon:debian:1",
            "containers-storage:debian",
            "containers-storage:localhost/x:1",
            "debian:",
            "debian:a:b",
            "debian@sha512:00",
            "docker.io/../x",
            "docker.io:5917/x",
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
