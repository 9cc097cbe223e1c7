//! Lists of models.

use bench_inference::catalog::CatalogError;
use bench_inference::providers::CHUTES;
use bench_inference::{FailureKind, Fatal};

use crate::client;
use crate::server::{KEY, Server, Step, response};

fn page(from: usize, to: usize, total: Option<usize>) -> String {
    let items: Vec<_> = (from..to).map(|number| serde_json::json!({"name": format!("m/{number}")})).collect();
    serde_json::json!({"items": items, "total": total}).to_string()
}

#[tokio::test]
async fn the_public_list_is_read_page_by_page_without_a_key() {
    for (total, pages) in [(None, 3), (Some(1000), 2)] {
        let server = Server::start(move |number, _| {
            let body = match number {
                // The second page repeats a name and has an invalid entry.
                0 => page(0, 500, total),
                1 => page(499, 998, total).replacen('[', "[{\"chute_id\":\"nameless\"},", 1),
                _ => page(998, 1001, total),
            };
            response(200, "", &body)
        })
        .await;
        let models =
            client().list_public_models(&CHUTES, &format!("http://{}", server.address)).await.unwrap();
        assert_eq!(models.len(), if pages == 3 { 1001 } else { 998 });
        assert_eq!(models[997].slug, "m/997");
        let requests = server.requests.lock().unwrap();
        assert_eq!(requests.len(), pages);
        assert!(requests.iter().all(|request| request.header("authorization").is_none()));
        let line = "GET /chutes/?include_public=true&page=1&limit=500&include_schemas=false HTTP/1.1";
        assert_eq!(requests[1].line, line);
    }
}

#[tokio::test]
async fn the_gateways_list_is_read_with_the_key() {
    let body =
        r#"{"object":"list","data":[{"id":"a/b","max_model_len":4096},{"id":"a/b"},{"id":"image"},{"x":1}]}"#;
    let server = Server::always(response(200, "", body)).await;
    let models = client().list_gateway_models(&server.endpoint()).await.unwrap();
    let found: Vec<_> = models.iter().map(|model| (model.slug.as_str(), model.is_language_model)).collect();
    assert_eq!(found, [("a/b", true), ("image", false)]);
    let requests = server.requests.lock().unwrap();
    assert_eq!(requests[0].line, "GET /v1/models HTTP/1.1");
    assert_eq!(requests[0].header("authorization"), Some(format!("Bearer {KEY}").as_str()));
}

#[tokio::test]
async fn a_list_that_is_none_is_an_error() {
    let server = Server::always(response(401, "", &format!("bad {KEY}"))).await;
    match client().list_gateway_models(&server.endpoint()).await {
        Err(CatalogError::Request(failure)) => {
            assert_eq!(failure.kind, FailureKind::FatalForRun(Fatal::Key));
            assert_eq!(failure.cause, "HTTP 401 from Chutes: bad [redacted]");
        }
        other => panic!("{other:?}"),
    }
    let server = Server::always(response(200, "", "<html>")).await;
    let address = format!("http://{}", server.address);
    let error = client().list_public_models(&CHUTES, &address).await.unwrap_err();
    assert!(matches!(&error, CatalogError::Malformed { .. }), "{error}");

    let length = b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{\"items\":[".to_vec();
    let server = Server::always(vec![Step::Send(length), Step::Close]).await;
    match client().list_public_models(&CHUTES, &format!("http://{}", server.address)).await {
        Err(CatalogError::Request(failure)) => assert_eq!(failure.kind, FailureKind::Transient),
        other => panic!("{other:?}"),
    }
    let error = client().list_public_models(&CHUTES, "api.chutes.ai").await.unwrap_err();
    assert!(matches!(error, CatalogError::BadAddress { .. }));
}

/// The key in plain form, escaped, cut, in a name, in an unused field, and in a body that isn't a list.
#[tokio::test]
async fn a_key_that_a_list_repeats_is_in_none_of_its_entries() {
    let escaped: String = KEY.bytes().map(|byte| format!("\\u{byte:04x}")).collect();
    let long = format!("{}{KEY}", "x".repeat(1_000 - KEY.len() / 2));
    let body = format!(
        r#"{{"data":[{{"id":"{KEY}","name":"{escaped}","owned_by":"{long}"}},
            {{"id":"m-{escaped}","logo":"http://x/?k={KEY}","tagline":"for {KEY}","chute_id":"{KEY}"}},{{"id":"m"}}]}}"#
    );
    let server = Server::always(response(200, "", &body)).await;
    let models = client().list_gateway_models(&server.endpoint()).await.unwrap();
    assert_eq!(models.len(), 3);
    let printed = format!("{models:?}");
    assert!(printed.contains("[redacted]") && !printed.contains(&KEY[..KEY.len() / 2]), "{printed}");
    assert_eq!((models[0].slug.as_str(), models[2].slug.as_str()), ("[redacted]", "m"));

    let broken = format!("{{\"data\": no, {}{KEY}", "x".repeat(980 - KEY.len() / 2));
    let server = Server::always(response(200, "", &broken)).await;
    let error = client().list_gateway_models(&server.endpoint()).await.unwrap_err().to_string();
    assert!(!error.contains(&KEY[..KEY.len() / 2]), "{error}");
}
