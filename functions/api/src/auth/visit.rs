//! Requests of browsers on their way through a sign-in.

use std::borrow::Cow;

use bench_web::ApiError;
use http::request::Parts;

use super::{CALLBACK, cookies};
use crate::Api;
use crate::sign_in::SignIn;

/// Request to a route that browsers are sent to.
pub(super) struct Visit<'a> {
    pub(super) sign_in: &'a SignIn,
    /// Address of this server's pages, without a slash at its end.
    pub(super) page_url: String,
    query: &'a str,
}

impl<'a> Visit<'a> {
    /// Creates the visit of a request.
    ///
    /// # Errors
    /// 501 if the server has no sign-in.
    pub(super) fn new(api: &'a Api, parts: &'a Parts) -> Result<Self, ApiError> {
        let sign_in = api.sign_in()?;
        let page_url = sign_in.page_url(&parts.headers, &api.config.server)?;
        Ok(Self { sign_in, page_url, query: parts.uri.query().unwrap_or_default() })
    }

    /// Returns the first parameter of this name.
    pub(super) fn parameter(&self, name: &str) -> Option<Cow<'a, str>> {
        form_urlencoded::parse(self.query.as_bytes())
            .find_map(|(found, value)| (found == name).then_some(value))
    }

    /// Returns true if cookies are for encrypted connections only.
    pub(super) fn is_secure(&self) -> bool {
        cookies::is_secure(&self.page_url)
    }

    /// Returns the address to which the provider sends the browser back.
    pub(super) fn callback_url(&self) -> String {
        format!("{}{CALLBACK}", self.page_url)
    }
}
