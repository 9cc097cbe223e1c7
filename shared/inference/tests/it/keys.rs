//! Keys, checked without asking a model.

use bench_inference::KeyCheck;
use reqwest::Url;

use crate::client;
use crate::server::{KEY, Server, response};

/// Starts a server with one status for requests with the right key and another for all others.
async fn server(with_key: u16, with_another: u16) -> Server {
    let right = format!("Bearer {KEY}");
    Server::start(move |_, request| {
        let status = if request.header("authorization") == Some(&right) { with_key } else { with_another };
        response(status, "", r#"{"data":[]}"#)
    })
    .await
}

fn account(server: &Server) -> Option<Url> {
    Url::parse(&format!("http://{}/users/me", server.address)).ok()
}

#[tokio::test]
async fn an_account_tells_a_key_by_one_request() {
    for (status, check) in [(200, KeyCheck::Confirmed), (401, KeyCheck::Refused)] {
        let server = server(status, 401).await;
        let found = client().check_endpoint(&server.endpoint(), account(&server)).await;
        assert_eq!(found.key.unwrap(), Some(check));
        assert_eq!(found.models.is_ok(), status == 200);
        let mut lines: Vec<_> =
            server.requests.lock().unwrap().iter().map(|request| request.line.clone()).collect();
        lines.sort();
        assert_eq!(lines, ["GET /users/me HTTP/1.1", "GET /v1/models HTTP/1.1"]);
    }
    let server = server(403, 401).await;
    let failure = client().check_endpoint(&server.endpoint(), account(&server)).await.key.unwrap_err();
    assert_eq!((failure.status, server.count()), (Some(403), 2), "no model is asked");
}

#[tokio::test]
async fn a_list_of_models_confirms_a_key_only_if_it_refuses_another() {
    for (with_key, with_another, check) in
        [(200, 401, KeyCheck::Confirmed), (200, 200, KeyCheck::AnyKey), (401, 401, KeyCheck::Refused)]
    {
        let server = server(with_key, with_another).await;
        assert_eq!(client().check_endpoint(&server.endpoint(), None).await.key.unwrap(), Some(check));
        let requests = server.requests.lock().unwrap();
        let by_key =
            requests.iter().filter(|it| it.header("authorization") == Some(&format!("Bearer {KEY}")));
        assert_eq!(by_key.count(), 1);
        assert!(requests.iter().all(|request| request.line == "GET /v1/models HTTP/1.1"));
    }
    for (with_key, with_another) in [(500, 401), (200, 503)] {
        let server = server(with_key, with_another).await;
        let failure = client().check_endpoint(&server.endpoint(), None).await.key.unwrap_err();
        assert_eq!(failure.status, Some(if with_key == 200 { with_another } else { with_key }));
    }
}

#[tokio::test]
async fn a_server_without_a_list_of_models_tells_nothing_about_a_key() {
    for status in [404, 405] {
        let server = server(status, 401).await;
        let found = client().check_endpoint(&server.endpoint(), None).await;
        assert_eq!((found.models.unwrap(), found.key.unwrap()), (None, None), "{status}");
        assert_eq!(server.count(), 1);
    }
}
