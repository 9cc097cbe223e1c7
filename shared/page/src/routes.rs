//! Paths that answer with the page: `frontend-static/routes.json`.
//!
//! Clients that ask for HTML get the page at every address outside of the API. Where the page has no view, it says so.
//!
//! The file also has test cases, for this module and for the CloudFront Function `PageRoutes` of `template.yaml`.

use std::sync::LazyLock;

use http::{HeaderMap, header};
use serde::Deserialize;

/// Start of the paths of all files.
pub const FILES: &str = "/page/";

/// Table of page routes.
pub(crate) const TABLE: &str = include_str!("../../../frontend-static/routes.json");

#[derive(Default, Deserialize)]
struct Table {
    api: Vec<String>,
    routes: Vec<String>,
}

/// Answer to a GET request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer<'a> {
    /// The page's `index.html`.
    Page,
    /// The page's `index.html` for an address that has no view.
    Missing,
    /// A file of the page, by its name in the folder. It may be missing.
    File(&'a str),
    /// The answer of the API, which may have no such path.
    Api,
}

/// Chooses the answer to a GET request.
pub fn answer<'a>(path: &'a str, headers: &HeaderMap) -> Answer<'a> {
    if let Some(name) = path.strip_prefix(FILES) {
        return Answer::File(name);
    }
    if !asks_for_html(headers) {
        Answer::Api
    } else if is_page_route(path) {
        Answer::Page
    } else if api_paths().iter().any(|start| path.starts_with(start)) {
        Answer::Api
    } else {
        Answer::Missing
    }
}

/// Returns the page routes. A segment in braces stands for any segment that isn't empty.
pub fn page_routes() -> &'static [String] {
    &table().routes
}

/// Returns the starts of paths that only the API answers. Paths that begin with two slashes belong to it, too: in a browser
/// they would be addresses of other hosts.
pub fn api_paths() -> &'static [String] {
    &table().api
}

fn table() -> &'static Table {
    static PARSED: LazyLock<Table> = LazyLock::new(|| {
        // A test reads the table, which is compiled in.
        serde_json::from_str(TABLE).unwrap_or_default()
    });
    &PARSED
}

fn is_page_route(path: &str) -> bool {
    page_routes().iter().any(|route| {
        let (mut wanted, mut given) = (route.split('/'), path.split('/'));
        loop {
            match (wanted.next(), given.next()) {
                (None, None) => return true,
                (Some(wanted), Some(given)) if wanted.starts_with('{') => {
                    if given.is_empty() {
                        return false;
                    }
                }
                (wanted, given) if wanted == given => {}
                _ => return false,
            }
        }
    })
}

/// Returns true if a client names HTML among the types that it accepts. `*/*` isn't enough: scripts send it.
fn asks_for_html(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT).into_iter();
    accepted.filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(',')).any(|accepted| {
        let mut parts = accepted.split(';').map(|part| part.trim().to_ascii_lowercase());
        let kind = parts.next().unwrap_or_default();
        matches!(kind.as_str(), "text/html" | "application/xhtml+xml") && !parts.any(|part| is_refusal(&part))
    })
}

/// Returns true for the weight zero: `q=0`, `q=0.0` and so on.
fn is_refusal(parameter: &str) -> bool {
    let weight = parameter.strip_prefix("q=0").map(|rest| rest.strip_prefix('.').unwrap_or(rest));
    weight.is_some_and(|digits| digits.bytes().all(|digit| digit == b'0'))
}
