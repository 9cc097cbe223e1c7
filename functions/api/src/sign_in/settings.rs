//! Settings of the sign-in.

use bench_sign_in::SignInConfig;

/// Settings of the sign-in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignInSettings {
    /// The provider, and this server's credentials with it.
    pub provider: SignInConfig,
    /// Address of this server's pages, without a slash at its end. `None` only on loopback: then it's the address that the
    /// server listens on.
    pub page_url: Option<String>,
}

impl SignInSettings {
    /// Reads the variables of [`SignInConfig`], and `FRONTEND_URL`. Returns `None` without a client id.
    ///
    /// # Errors
    /// One sentence that names the variable and the problem.
    pub fn from_vars(var: impl Fn(&str) -> Option<String>, local: bool) -> Result<Option<Self>, String> {
        let Some(provider) = SignInConfig::from_vars(&var)? else { return Ok(None) };
        let page_url = var("FRONTEND_URL").map(|url| url.trim().trim_end_matches('/').to_owned());
        let page_url = page_url.filter(|url| !url.is_empty());
        match &page_url {
            None if !local => Err(
                "FRONTEND_URL: set it to the address of this server's pages, such as https://bench.example, since \
                 CHUTES_CLIENT_ID is set: the sign-in provider sends browsers back to it"
                    .to_owned(),
            ),
            Some(url) if !is_page_address(url) => {
                Err(format!("FRONTEND_URL: `{url}` isn't an https address without a path, or one of this machine"))
            }
            _ => Ok(Some(Self { provider, page_url })),
        }
    }
}

/// Returns true for `https://HOST`, and for `http://` with a name of this machine.
fn is_page_address(url: &str) -> bool {
    let (secure, authority) = match (url.strip_prefix("https://"), url.strip_prefix("http://")) {
        (Some(authority), _) => (true, authority),
        (None, Some(authority)) => (false, authority),
        (None, None) => return false,
    };
    let is_authority = !authority.is_empty()
        && authority
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b':' | b'[' | b']'));
    is_authority && (secure || is_this_machine(authority))
}

fn is_this_machine(authority: &str) -> bool {
    let host = match authority.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => authority.split(':').next().unwrap_or_default(),
    };
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(url: Option<&str>, local: bool) -> Result<Option<SignInSettings>, String> {
        let var = |name: &str| match name {
            "CHUTES_CLIENT_ID" => Some("bench".to_owned()),
            "FRONTEND_URL" => url.map(str::to_owned),
            _ => None,
        };
        SignInSettings::from_vars(var, local)
    }

    #[test]
    fn a_server_that_others_can_reach_needs_the_address_of_its_pages() {
        assert!(read(None, false).unwrap_err().starts_with("FRONTEND_URL"));
        assert_eq!(read(None, true).unwrap().unwrap().page_url, None);
        for url in
            ["https://bench.example/", "http://localhost:3000", "http://[::1]:3000", "http://127.0.0.1"]
        {
            let settings = read(Some(url), false).unwrap().unwrap();
            assert_eq!(settings.page_url.as_deref(), Some(url.trim_end_matches('/')));
        }
        for url in [
            "http://bench.example",
            "bench.example",
            "https://",
            "https://a/b",
            "https://u@h",
            "javascript:x",
        ] {
            assert!(read(Some(url), true).unwrap_err().starts_with("FRONTEND_URL"), "{url}");
        }
        assert_eq!(SignInSettings::from_vars(|_| None, false), Ok(None));
    }
}
