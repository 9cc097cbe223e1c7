use std::time::Duration;

use axum::body::Body;
use axum::routing::get;
use bench_web::Subresource;
use http::StatusCode;
use serde::Deserialize;
use tower::ServiceExt;

use super::*;

mod template;

/// Accept header of a browser that opens an address.
const BROWSER: &str = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";

#[derive(Deserialize)]
pub(crate) struct Cases {
    pub(crate) index: String,
    pub(crate) files: String,
    pub(crate) api: Vec<String>,
    pub(crate) routes: Vec<String>,
    pub(crate) cases: Vec<Case>,
}

#[derive(Deserialize)]
pub(crate) struct Case {
    pub(crate) path: String,
    pub(crate) accept: Option<String>,
    pub(crate) answer: String,
}

pub(crate) fn cases() -> Cases {
    serde_json::from_str(routes::TABLE).unwrap()
}

/// Sends a request to the page around an API that answers `api`.
async fn ask(page: &Page, method: &str, path: &str, headers: &[(&str, &str)]) -> Response {
    let api = Router::new().route("/", get(|| async { "api" })).fallback(|| async { "api" });
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    page.around(api).oneshot(request.body(Body::empty()).unwrap()).await.unwrap()
}

async fn body(response: Response) -> Vec<u8> {
    axum::body::to_bytes(response.into_body(), 10_000_000).await.unwrap().to_vec()
}

fn header<'a>(response: &'a Response, name: &str) -> &'a str {
    response.headers().get(name).map_or("", |value| value.to_str().unwrap())
}

#[tokio::test]
async fn the_table_of_routes_holds() {
    let table = cases();
    assert_eq!((table.index.as_str(), table.files.as_str()), ("/page/index.html", routes::FILES));
    assert_eq!((table.routes.as_slice(), table.api.as_slice()), (routes::page_routes(), routes::api_paths()));
    for route in &table.routes {
        let covered = table.cases.iter().any(|case| {
            let same = case.path.split('/').count() == route.split('/').count();
            let parts = case.path.split('/').zip(route.split('/'));
            same && case.answer == "page" && parts.clone().all(|(a, b)| a == b || b.starts_with('{'))
        });
        assert!(covered, "routes.json: no case for {route}");
    }
    let index = compiled::FILES.iter().find(|(name, _)| *name == INDEX).unwrap().1;
    for case in table.cases {
        let accept: Vec<_> = case.accept.iter().map(|accept| ("accept", accept.as_str())).collect();
        let response = ask(&Page::compiled(), "GET", &case.path, &accept).await;
        let (status, text) = (response.status(), body(response).await);
        let given = match text.as_slice() {
            b"api" => "api",
            _ if case.path.starts_with(routes::FILES) => "file",
            text if text == index && status == StatusCode::NOT_FOUND => "missing",
            text if text == index => "page",
            _ => "another",
        };
        assert_eq!(given, case.answer, "{} {:?}", case.path, case.accept);
        let name = case.path.strip_prefix(routes::FILES);
        let is_missing = case.answer == "missing" || name.is_some_and(|name| compiled::file(name).is_none());
        assert_eq!(status == StatusCode::NOT_FOUND, is_missing, "{}", case.path);
    }
    // Only GET and HEAD get the page.
    let head = ask(&Page::compiled(), "HEAD", "/new", &[("accept", BROWSER)]).await;
    assert_eq!(header(&head, "content-length"), index.len().to_string());
    assert!(body(head).await.is_empty());
    for method in ["POST", "OPTIONS"] {
        let response = ask(&Page::compiled(), method, "/new", &[("accept", BROWSER)]).await;
        assert_eq!(body(response).await, b"api", "{method}");
    }
}

#[tokio::test]
async fn a_file_is_sent_once_and_compressed() {
    let page = Page::compiled();
    let (path, browser) = ("/page/routes.json", [("accept-encoding", "br, gzip;q=0.8")]);
    let response = ask(&page, "GET", path, &browser).await;
    assert_eq!(header(&response, "content-encoding"), "gzip");
    assert_eq!(header(&response, "content-type"), "application/json");
    assert_eq!(header(&response, "vary"), "Accept-Encoding");
    let tag = header(&response, "etag").to_owned();
    let smaller = body(response).await;
    assert!(smaller.len() * 3 < routes::TABLE.len(), "{}", smaller.len());
    let mut text = String::new();
    std::io::Read::read_to_string(&mut flate2::read::GzDecoder::new(&smaller[..]), &mut text).unwrap();
    assert_eq!(text, routes::TABLE);
    for (known, status) in [(tag.as_str(), 304), ("\"x\", W/\"y\"", 200), ("*", 304)] {
        let known = [browser[0], ("if-none-match", known)];
        let response = ask(&page, "GET", path, &known).await;
        assert_eq!((response.status().as_u16(), header(&response, "etag")), (status, tag.as_str()));
        assert_eq!(header(&response, "content-encoding"), if status == 200 { "gzip" } else { "" });
        assert_eq!(body(response).await.is_empty(), status == 304);
    }
    // The other representation has another tag.
    for refusal in ["", "identity", "gzip;q=0"] {
        let response =
            ask(&page, "GET", path, &[("accept-encoding", refusal), ("if-none-match", &tag)]).await;
        assert_eq!((response.status().as_u16(), header(&response, "content-encoding")), (200, ""));
        assert_eq!(body(response).await, routes::TABLE.as_bytes());
    }
}

#[tokio::test]
async fn every_file_has_its_headers_and_a_known_type() {
    for (name, bytes) in compiled::FILES {
        assert!(
            file::content_type(name).is_some(),
            "{name}: add its type to `TYPES` and infra/upload_page.py"
        );
        let response = ask(&Page::compiled(), "GET", &format!("/page/{name}"), &[]).await;
        for (header_name, value) in headers::HEADERS {
            assert_eq!(header(&response, header_name), value, "{name}");
        }
        // Only scripts and styles do without the headers of documents, also if the client has them already.
        let tag = header(&response, "etag").to_owned();
        assert_eq!(body(response).await, *bytes, "{name}");
        let is_subresource = name.ends_with(".js") || name.ends_with(".css");
        for known in ["", tag.as_str()] {
            let response =
                ask(&Page::compiled(), "GET", &format!("/page/{name}"), &[("if-none-match", known)]).await;
            assert_eq!(response.extensions().get::<Subresource>().is_some(), is_subresource, "{name}");
            for (header_name, value) in headers::DOCUMENT_HEADERS {
                let wanted = if is_subresource { "" } else { value };
                assert_eq!(header(&response, header_name), wanted, "{name}");
            }
        }
    }
    let index = ask(&Page::compiled(), "GET", "/runs", &[("accept", BROWSER)]).await;
    assert_eq!(header(&index, "content-type"), "text/html; charset=utf-8");
    let varies: Vec<_> = index.headers().get_all("vary").iter().collect();
    assert!(varies.iter().any(|value| *value == "Accept"), "{varies:?}");
}

#[test]
fn nothing_in_the_policy_is_loose() {
    for loose in ["unsafe", "*", "http", "blob:", "strict-dynamic"] {
        assert!(!headers::CONTENT_SECURITY_POLICY.contains(loose), "{loose}");
    }
    let index = compiled::FILES.iter().find(|(name, _)| *name == INDEX).unwrap().1;
    let index = String::from_utf8(index.to_vec()).unwrap();
    for inline in ["<style", " style=", " onclick=", "javascript:", "<script>", "http://", "https://"] {
        assert!(!index.contains(inline), "index.html: {inline}");
    }
}

#[tokio::test]
async fn a_folder_is_read_at_each_request() {
    let dir = tempfile::tempdir().unwrap();
    let outside = dir.path().join("outside.js");
    std::fs::write(&outside, "secret").unwrap();
    let root = dir.path().join("page");
    std::fs::create_dir_all(root.join(".git")).unwrap();
    std::fs::write(root.join(".git/config"), "hidden").unwrap();
    std::fs::write(root.join("index.html"), "<html><head></head><p>one").unwrap();
    let page = Page::in_folder(root.clone());
    let open = || async {
        String::from_utf8(body(ask(&page, "GET", "/new", &[("accept", BROWSER)]).await).await).unwrap()
    };
    let script = "<script type=\"module\" src=\"/page/.reload/script.js\"></script>";
    assert_eq!(open().await, format!("<html><head>{script}\n</head><p>one"));
    std::fs::write(root.join("index.html"), "two").unwrap();
    assert_eq!(open().await, format!("two{script}\n"));
    for missing in [
        "x.js",
        ".git/config",
        "../outside.js",
        "..%2Foutside.js",
        "",
        "/etc/passwd",
        "index.html/",
        "./index.html",
    ] {
        let response = ask(&page, "GET", &format!("/page/{missing}"), &[]).await;
        assert_eq!(response.status(), 404, "{missing}");
    }
    // A folder isn't a file.
    std::fs::create_dir(root.join("js")).unwrap();
    assert_eq!(ask(&page, "GET", "/page/js", &[]).await.status(), 404);
    let script = ask(&page, "GET", "/page/.reload/script.js", &[]).await;
    assert_eq!(header(&script, "content-security-policy"), headers::CONTENT_SECURITY_POLICY);
    assert_eq!(header(&script, "content-type"), "text/javascript; charset=utf-8");
    // The compiled page has neither.
    for name in ["script.js", "versions"] {
        let response = ask(&Page::compiled(), "GET", &format!("/page/.reload/{name}"), &[]).await;
        assert_eq!(response.status(), 404);
    }
}

#[tokio::test]
async fn browsers_hear_of_changed_files_until_the_server_stops() {
    use futures_util::StreamExt;
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("app.js"), "1").unwrap();
    let page = Page::in_folder(dir.path().to_owned());
    let response = ask(&page, "GET", "/page/.reload/versions", &[]).await;
    assert_eq!(header(&response, "content-type"), "text/event-stream");
    let mut events = response.into_body().into_data_stream();
    let mut next = async || {
        let event = tokio::time::timeout(Duration::from_secs(120), events.next()).await.unwrap();
        event.map(|event| String::from_utf8(event.unwrap().to_vec()).unwrap())
    };
    let first = next().await.unwrap();
    assert!(first.starts_with("data: ") && first.ends_with("\n\n"), "{first:?}");
    std::fs::write(dir.path().join("app.js"), "12").unwrap();
    let second = next().await.unwrap();
    assert_ne!(first, second);
    std::fs::create_dir(dir.path().join("css")).unwrap();
    std::fs::write(dir.path().join("css/new.css"), "").unwrap();
    assert_ne!(next().await.unwrap(), second);
    page.stop();
    assert_eq!(next().await, None);
}
