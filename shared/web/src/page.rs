//! HTML pages without external resources: no script, font or picture.

use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderValue, header};

/// Style of all pages, light and dark.
const STYLE: &str = "\
:root{color-scheme:light dark;--ink:light-dark(#1b1f24,#e6e8ea);--dim:light-dark(#57606a,#9aa4ae);\
--back:light-dark(#fff,#14171a);--raised:light-dark(#f5f6f8,#1d2126);--line:light-dark(#d8dce1,#343a41);\
--link:light-dark(#0b5cad,#7db7f5);--good:light-dark(#18794e,#5cc694);--bad:light-dark(#b42318,#f28b82);\
--warn:light-dark(#8a5a00,#e3b341)}\
*{box-sizing:border-box}\
body{margin:0 auto;max-width:72rem;padding:1.5rem;font:1rem/1.5 system-ui,sans-serif;color:var(--ink);background:var(--back)}\
h1{font-size:1.6rem;margin:0 0 .5rem}h2{font-size:1.25rem;margin:2.5rem 0 .5rem}h3{font-size:1rem;margin:1rem 0 .25rem}\
a{color:var(--link)}.dim{color:var(--dim)}.good{color:var(--good)}.bad{color:var(--bad)}.warn{color:var(--warn)}\
code,pre{font:.875rem/1.5 ui-monospace,monospace}\
pre{background:var(--raised);border:1px solid var(--line);border-radius:.375rem;padding:.75rem;overflow-x:auto;margin:.25rem 0}\
.scroll{overflow-x:auto}table{border-collapse:collapse;width:100%}\
th,td{text-align:left;vertical-align:top;padding:.375rem .75rem .375rem 0;border-bottom:1px solid var(--line)}\
th{font-weight:600;color:var(--dim)}td.number,th.number{text-align:right}\
details{border:1px solid var(--line);border-radius:.5rem;margin:.5rem 0;background:var(--back)}\
summary{cursor:pointer;padding:.5rem .75rem}details>div{padding:0 .75rem .75rem}\
.method{display:inline-block;min-width:4.5rem;font:700 .8125rem ui-monospace,monospace;color:var(--link)}\
.method.delete{color:var(--bad)}.method.post{color:var(--good)}\
nav ul{columns:16rem;padding-left:1.25rem}";

/// Escapes a text for HTML, including attributes.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
    }
    escaped
}

/// Renders a whole page. `title` is text, `content` is HTML. With `refresh_s`, the browser reloads the page
/// after that number of seconds.
pub fn page(title: &str, content: &str, refresh_s: Option<u32>) -> Response {
    let title = escape(title);
    let refresh = refresh_s
        .map(|seconds| format!("<meta http-equiv=\"refresh\" content=\"{seconds}\">"))
        .unwrap_or_default();
    let html = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">{refresh}\
         <title>{title}</title><style>{STYLE}</style></head>\n<body>\n{content}\n</body></html>\n"
    );
    let digest = STANDARD.encode(ring::digest::digest(&ring::digest::SHA256, STYLE.as_bytes()));
    let policy = format!(
        "default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    );
    let mut response = ([(header::CONTENT_TYPE, "text/html; charset=utf-8")], html).into_response();
    if let Ok(policy) = HeaderValue::from_str(&policy) {
        response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, policy);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_page_allows_its_own_style_and_nothing_else() {
        let response = page("<Runs>", "<p>x</p>", Some(5));
        let policy = response.headers()["content-security-policy"].to_str().unwrap().to_owned();
        assert!(policy.starts_with("default-src 'none'; style-src 'sha256-") && !policy.contains("unsafe"));
        let body = axum::body::to_bytes(response.into_body(), 100_000).await.unwrap();
        let html = String::from_utf8(body.to_vec()).unwrap();
        assert!(html.contains("<title>&lt;Runs&gt;</title>") && html.contains("content=\"5\""));
        assert!(!html.contains("<script") && !html.contains("http://") && !html.contains("https://"));
    }

    #[test]
    fn markup_is_escaped() {
        assert_eq!(escape("<a href=\"x\">'&'"), "&lt;a href=&quot;x&quot;&gt;&#39;&amp;&#39;");
    }
}
