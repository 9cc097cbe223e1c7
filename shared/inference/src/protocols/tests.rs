//! The seam: a protocol that shares nothing with chat completions.

use std::io::{Read, Write};
use std::net::TcpListener;

use bench_domain::{Generation, Prompt};
use reqwest::header::HeaderValue;

use super::*;
use crate::providers::{LMSTUDIO, Provider};
use crate::{ChatClient, Endpoint, GaveUpBy, HttpOptions};

/// A question is `MODEL: TEXT`, an answer a stream of words that a full stop ends.
#[derive(Debug)]
struct Words;

#[derive(Debug, Default)]
struct WordReader {
    text: String,
    is_done: bool,
}

impl Protocol for Words {
    fn answer_path(&self) -> &'static str {
        "words"
    }

    fn models_path(&self) -> &'static str {
        "known"
    }

    fn headers(&self, key: Option<&Secret>) -> Result<HeaderMap, InvalidHeaderValue> {
        let mut headers = HeaderMap::new();
        if let Some(key) = key {
            headers.insert("x-words-key", HeaderValue::from_str(key.expose())?);
        }
        Ok(headers)
    }

    fn request_body(&self, request: &ChatRequest<'_>, dialect: Dialect) -> serde_json::Result<Vec<u8>> {
        let text = request.prompt.messages.iter().map(|message| message.content.as_str());
        let text: String = text.collect();
        let limit = if dialect.has_max_completion_tokens { " (briefly)" } else { "" };
        Ok(format!("{}: {text}{limit}", request.model).into_bytes())
    }

    fn answer_reader(&self, _: Keys, _: bool) -> Box<dyn AnswerReader> {
        Box::new(WordReader::default())
    }

    fn read_error(&self, status: u16, body: &[u8], _: &str, asked: Option<Asked<'_>>) -> ServerRefusal {
        let next = asked
            .filter(|_| body == b"too long")
            .map(|asked| Dialect { has_max_completion_tokens: true, ..asked.dialect });
        let kind = if status == 418 { FailureKind::Bad } else { FailureKind::Transient };
        ServerRefusal { kind, next }
    }

    fn listed_model(&self, json: &str) -> Option<CatalogueModel> {
        Some(CatalogueModel { slug: json.trim_matches('"').to_owned(), ..CatalogueModel::default() })
    }
}

impl AnswerReader for WordReader {
    fn event(&mut self, event: &Event<'_>) -> Result<(), Stop> {
        match event.data {
            b"." => self.is_done = true,
            b"!" => {
                let error = ReportedError { status: None, kind: FailureKind::RateLimited };
                return Err(Stop::Error(error, "out of words".to_owned()));
            }
            word => self.text.push_str(&String::from_utf8_lossy(word)),
        }
        Ok(())
    }

    fn whole(&mut self, _: &[u8]) -> Result<(), Stop> {
        Err(Stop::Garbage("no words".to_owned()))
    }

    fn is_complete(&self) -> bool {
        self.is_done
    }

    fn is_done(&self) -> bool {
        self.is_done
    }

    fn has_begun(&self) -> bool {
        self.bytes() > 0
    }

    fn bytes(&self) -> usize {
        self.text.len()
    }

    fn usage_so_far(&self) -> Option<Usage> {
        None
    }

    fn finish(self: Box<Self>, request_id: Option<String>) -> Answer {
        Answer { request_id, ..Answer::local(self.text) }
    }
}

static WORDS: Provider = Provider {
    name: "words",
    display_name: "Words",
    protocol: &Words,
    slug_prefixes: &[],
    account: None,
    public_list: None,
    ..LMSTUDIO
};

/// Serves these responses, one connection each; the endpoint, and the requests as they came.
fn serve(responses: Vec<String>) -> (Endpoint, std::thread::JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let requests = std::thread::spawn(move || {
        let mut requests = Vec::new();
        for response in responses {
            let (mut stream, _) = listener.accept().unwrap();
            let (mut request, mut piece) = (Vec::new(), [0; 4096]);
            loop {
                let bytes = stream.read(&mut piece).unwrap();
                request.extend_from_slice(&piece[..bytes]);
                let text = String::from_utf8_lossy(&request).to_lowercase();
                let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
                let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
                if bytes == 0 || body.len() >= length.map_or(0, |length| length.parse().unwrap()) {
                    break;
                }
            }
            requests.push(String::from_utf8(request).unwrap());
            stream.write_all(response.as_bytes()).unwrap();
        }
        requests
    });
    let endpoint = Endpoint::new(&WORDS, &format!("http://{address}/v9"), Secret::new("key-0123456789"));
    (endpoint.unwrap(), requests)
}

fn response(status: u16, body: &str) -> String {
    format!(
        "HTTP/1.1 {status} S\r\ncontent-type: text/event-stream\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    )
}

#[tokio::test]
async fn another_protocol_answers_fails_and_lists_in_its_own_form() {
    let (endpoint, requests) = serve(vec![
        response(418, "too long"),
        response(200, "data: Hel\n\ndata: lo\n\ndata: .\n\n"),
        response(200, "data: Hel\n\ndata: !\n\n"),
        response(200, r#"{"items":["a/b","c"]}"#),
    ]);
    let client = ChatClient::new(HttpOptions::default());
    let (prompt, generation) = (Prompt::user("Hi"), Generation::default());
    let request = ChatRequest { model: "m", prompt: &prompt, generation: &generation, reply_schema: None };
    // What the server does not know is left out, and stays out.
    assert_eq!(client.complete(&endpoint, &request, None).await.unwrap().text, "Hello");
    let failure = client.complete(&endpoint, &request, None).await.unwrap_err();
    assert_eq!((failure.kind, failure.gave_up_by), (FailureKind::RateLimited, GaveUpBy::Provider));
    assert_eq!(failure.cause, "Words error: out of words");
    let listed = client.list_gateway_models(&endpoint).await.unwrap();
    assert_eq!(listed.iter().map(|model| model.slug.as_str()).collect::<Vec<_>>(), ["a/b", "c"]);
    let requests = tokio::task::spawn_blocking(|| requests.join().unwrap()).await.unwrap();
    let sent: Vec<_> = requests.iter().map(|request| request.split_once("\r\n\r\n").unwrap().1).collect();
    assert_eq!(sent, ["m: Hi", "m: Hi (briefly)", "m: Hi (briefly)", ""]);
    let lines: Vec<_> = requests.iter().map(|request| request.lines().next().unwrap()).collect();
    assert_eq!(lines[0], "POST /v9/words HTTP/1.1");
    assert_eq!(lines[3], "GET /v9/known HTTP/1.1");
    assert!(requests.iter().all(|request| request.contains("x-words-key: key-0123456789")));
    assert!(requests.iter().all(|request| !request.to_lowercase().contains("authorization:")));
}
