//! Base URLs, to which paths are appended.

use reqwest::Url;

/// Parses a base URL. A trailing slash makes no difference.
pub(crate) fn parse_base(text: &str) -> Result<Url, &'static str> {
    let url = Url::parse(text.trim()).map_err(|_| "it must be a URL such as `https://host/v1`")?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err("it must start with http:// or https://");
    }
    if url.host_str().is_none_or(str::is_empty) {
        return Err("it has no host");
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("it must not contain a user or password");
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err("it must not contain ? or #");
    }
    Ok(url)
}

/// Returns the address of a path below `base`, given its segments. A slash within a segment is encoded.
pub(crate) fn join<'a>(base: &Url, segments: impl IntoIterator<Item = &'a str>) -> Option<Url> {
    let mut url = base.clone();
    url.path_segments_mut().ok()?.pop_if_empty().extend(segments);
    Some(url)
}
