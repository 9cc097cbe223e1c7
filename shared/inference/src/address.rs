//! Addresses that paths are appended to.

use reqwest::Url;

/// Reads an address that paths are appended to; the slash at its end does not matter.
pub(crate) fn parse_base(text: &str) -> Result<Url, &'static str> {
    let url = Url::parse(text.trim()).map_err(|_| "it must be like https://host/v1")?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err("it must start with http:// or https://");
    }
    if url.host_str().is_none_or(str::is_empty) {
        return Err("it names no host");
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("it must not contain a user or password");
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err("it must not contain ? or #");
    }
    Ok(url)
}

/// Address of a path below `base`, by its segments. A slash within a segment is encoded.
pub(crate) fn join<'a>(base: &Url, segments: impl IntoIterator<Item = &'a str>) -> Option<Url> {
    let mut url = base.clone();
    url.path_segments_mut().ok()?.pop_if_empty().extend(segments);
    Some(url)
}
