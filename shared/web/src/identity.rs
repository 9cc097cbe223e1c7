//! Identity of a request's sender, as the guard found it.

use axum::extract::FromRequestParts;
use bench_state::SessionRecord;
use bench_state::access::AccessEntry;
use http::request::Parts;
use http::{Extensions, HeaderMap, Method, header};

use bench_domain::{Code, SessionId};

use crate::auth::{Access, Caller};
use crate::{ApiError, server};

/// Name of the cookie of a session.
pub const SESSION_COOKIE: &str = "bench_session";
/// Header in which browsers name the relation of the sending page to this server.
const FETCH_SITE: &str = "sec-fetch-site";

/// Sender of a request. [`crate::Guard`] finds it before the handler runs.
///
/// Explicit credentials count more than a cookie: first `X-Admin-Secret`, then `Authorization`, then the session.
#[derive(Debug, Clone)]
pub struct Identity {
    caller: Result<Caller, ApiError>,
    entry: Option<AccessEntry>,
}

impl Identity {
    pub(crate) const fn new(caller: Result<Caller, ApiError>, entry: Option<AccessEntry>) -> Self {
        Self { caller, entry }
    }

    /// Returns the sender of a request that passed the guard.
    pub fn of(parts: &Parts) -> Self {
        Self::in_extensions(&parts.extensions)
    }

    fn in_extensions(extensions: &Extensions) -> Self {
        extensions.get::<Self>().cloned().unwrap_or_else(|| {
            let mistake = ApiError::internal("a route that needs the sender's identity isn't guarded");
            Self { caller: Err(mistake), entry: None }
        })
    }

    /// Returns the caller.
    ///
    /// # Errors
    /// 401 for a wrong admin secret or an `Authorization` that can't be read.
    pub fn caller(&self) -> Result<&Caller, ApiError> {
        self.caller.as_ref().map_err(Clone::clone)
    }

    /// Returns the caller of a request that needs no credentials: invalid ones count as missing.
    pub fn reader(&self) -> &Caller {
        self.caller.as_ref().unwrap_or(&Caller::Anonymous)
    }

    /// Returns the operator's entry of the caller's access token.
    pub const fn entry(&self) -> Option<&AccessEntry> {
        self.entry.as_ref()
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Identity {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        Ok(Self::of(parts))
    }
}

/// Returns the id of the session that a request's cookie names; `None` without a cookie, with one that this server can't have
/// issued, or with two different ones: a page of a neighboring host can add a cookie of the same name, and the order of cookies
/// doesn't say which of them is this server's.
pub fn session_in(headers: &HeaderMap) -> Option<SessionId> {
    let mut ids = cookies(headers, SESSION_COOKIE).filter_map(SessionId::from_cookie);
    let first = ids.next()?;
    ids.all(|id| id == first).then_some(first)
}

/// Returns the values of the cookies with this name, in the browser's order.
pub fn cookies<'a>(headers: &'a HeaderMap, name: &'a str) -> impl Iterator<Item = &'a str> {
    let lines = headers.get_all(header::COOKIE).into_iter().filter_map(|line| line.to_str().ok());
    let pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.filter(move |(found, _)| *found == name).map(|(_, value)| value)
}

/// Returns the caller with a valid session.
pub(crate) fn user(access: &Access, session: SessionRecord) -> Caller {
    Caller::User {
        is_admin: access.admin_subjects.contains(&session.subject),
        subject: session.subject,
        name: session.name,
        session: session.id,
        has_invoke_scope: session.has_invoke_scope,
        local: access.local,
    }
}

/// Refuses a request that changes something on behalf of a session's user, unless a page of this server sent it: browsers
/// send the cookie with requests of other sites' pages, too.
///
/// # Errors
/// 403 for requests of other pages, and for those that don't name their page.
pub fn refuse_cross_site(access: &Access, method: &Method, headers: &HeaderMap) -> Result<(), ApiError> {
    if matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS) {
        return Ok(());
    }
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let is_same_origin = text(FETCH_SITE).is_some_and(|site| site.eq_ignore_ascii_case("same-origin"));
    let is_own = text(header::ORIGIN.as_str()).is_some_and(|origin| {
        let is_site = access.own_origin.as_deref().is_some_and(|own| own.eq_ignore_ascii_case(origin));
        // On this machine, other layers have checked that the host is a loopback address.
        let host = text(header::HOST.as_str()).filter(|_| access.local);
        let is_host = host.is_some_and(|host| server::origin_names(origin, host));
        is_site || is_host
    });
    if is_same_origin || is_own {
        return Ok(());
    }
    Err(ApiError::new(
        Code::CrossSiteRequest,
        "this request isn't from a page of this server, so the session's cookie doesn't count; programs send a key as \
         `Authorization: Bearer KEY`",
    ))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bench_domain::SESSION_COOKIE_CHARS;
    use bench_state::credentials::OwnerKey;
    use http::HeaderValue;

    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, HeaderValue::from_str(value).unwrap());
        }
        headers
    }

    #[test]
    fn a_session_is_named_by_a_well_formed_cookie() {
        let value = "c".repeat(SESSION_COOKIE_CHARS);
        let id = SessionId::from_cookie(&value);
        let own = format!("bench_session={value}");
        for cookies in [own.clone(), format!("a=1; {own}; b=2"), format!("bench_session=old; {own}")] {
            assert_eq!(session_in(&headers(&[("cookie", &cookies)])), id, "{cookies}");
        }
        assert_eq!(session_in(&headers(&[("cookie", "a=1"), ("cookie", &own)])), id);
        assert_eq!(session_in(&headers(&[("cookie", &own), ("cookie", &own)])), id, "the same value twice");
        let other = format!("bench_session={}", "d".repeat(SESSION_COOKIE_CHARS));
        for cookies in [format!("{other}; {own}"), format!("{own}; {other}")] {
            assert_eq!(session_in(&headers(&[("cookie", &cookies)])), None, "{cookies}");
        }
        assert_eq!(session_in(&headers(&[("cookie", &own), ("cookie", &other)])), None);
        for cookies in [String::new(), "bench_session=".into(), format!("x{own}"), format!("{own}x")] {
            assert_eq!(session_in(&headers(&[("cookie", &cookies)])), None, "{cookies}");
        }
    }

    #[test]
    fn only_own_pages_change_things_with_a_cookie() {
        let owner_key = Arc::new(OwnerKey::from_master_key(&[7; 32]));
        let access = |local, own_origin: Option<&str>| Access {
            own_origin: own_origin.map(str::to_owned),
            ..Access::new(local, None, Arc::clone(&owner_key))
        };
        let site = access(false, Some("https://bench.example"));
        let passes = |access: &Access, method: Method, sent: &[(&'static str, &str)]| {
            refuse_cross_site(access, &method, &headers(sent)).is_ok()
        };
        assert!(passes(&site, Method::POST, &[("origin", "https://bench.example")]));
        assert!(passes(&site, Method::DELETE, &[("sec-fetch-site", "same-origin")]));
        assert!(passes(&site, Method::GET, &[("origin", "https://evil.example")]));
        for sent in [
            &[][..],
            &[("origin", "https://evil.example")],
            &[("origin", "null")],
            &[("origin", "https://bench.example.evil.example")],
            &[("origin", "http://bench.example")],
            &[("sec-fetch-site", "same-site")],
            &[("sec-fetch-site", "none")],
            &[("origin", "https://evil.example"), ("sec-fetch-site", "cross-site")],
            // The host is the sender's choice on a server that others can reach.
            &[("origin", "https://evil.example"), ("host", "evil.example")],
        ] {
            assert!(!passes(&site, Method::POST, sent), "{sent:?}");
            assert!(!passes(&site, Method::PATCH, sent), "{sent:?}");
        }
        let home = access(true, None);
        assert!(passes(
            &home,
            Method::POST,
            &[("origin", "http://localhost:8000"), ("host", "localhost:8000")]
        ));
        // A page of another server on this machine gets the same cookies.
        assert!(!passes(
            &home,
            Method::POST,
            &[("origin", "http://localhost:3000"), ("host", "localhost:8000")]
        ));
    }
}
