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
        let result = client().check_key(&server.endpoint(), account(&server)).await;
        assert_eq!(result.unwrap(), check);
        let requests = server.requests.lock().unwrap();
        assert_eq!(requests.len(), 1);
        assert_eq!(requests[0].line, "GET /users/me HTTP/1.1");
    }
    let server = server(403, 401).await;
    let failure = client().check_key(&server.endpoint(), account(&server)).await.unwrap_err();
    assert_eq!((failure.status, server.count()), (Some(403), 1), "no model is asked");
}

#[tokio::test]
async fn a_list_of_models_confirms_a_key_only_if_it_refuses_another() {
    for (with_key, with_another, check) in
        [(200, 401, KeyCheck::Confirmed), (200, 200, KeyCheck::AnyKey), (401, 401, KeyCheck::Refused)]
    {
        let server = server(with_key, with_another).await;
        assert_eq!(client().check_key(&server.endpoint(), None).await.unwrap(), check);
        let requests = server.requests.lock().unwrap();
        assert!(requests.iter().all(|request| request.line == "GET /v1/models HTTP/1.1"));
    }
    for (with_key, with_another) in [(404, 401), (500, 401), (200, 503)] {
        let server = server(with_key, with_another).await;
        let failure = client().check_key(&server.endpoint(), None).await.unwrap_err();
        assert_eq!(failure.status, Some(if with_key == 200 { with_another } else { with_key }));
    }
}
