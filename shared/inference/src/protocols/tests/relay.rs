//! A second protocol: the model in the address, signed requests, a stream of JSON lines, and pages of models.

use bench_domain::Finish;
use reqwest::header::{HeaderMap, HeaderValue};
use reqwest::{Method, Request, Url};
use serde::Deserialize;
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use crate::failure::{FailureKind, Fatal};
use crate::listed_model::{CatalogModel, ListPage};
use crate::protocols::{AnswerReader, Dialect, PreparedRequest, Protocol, RequestError, Target};
use crate::providers::Provider;
use crate::response::lines::{Line, LineParser};
use crate::response::{AnswerDraft, ErrorBody, Part, ReportedUsage, Stop, TokenCount, classify, read_json};

pub(super) static RELAY: Provider =
    Provider { name: "relay2", display_name: "Relay", protocol: &Relay, ..Provider::DEFAULT };

/// An account and its secret.
pub(super) const KEY: &str = "relay:secret-0123456789";

#[derive(Debug)]
struct Relay;

#[derive(Debug, Default)]
struct LineReader {
    lines: LineParser,
}

/// A line of a stream, or a whole answer.
#[derive(Deserialize)]
struct RelayReply<'a> {
    say: Option<String>,
    think: Option<String>,
    end: Option<String>,
    model: Option<String>,
    #[serde(borrow)]
    tokens: Option<&'a RawValue>,
    #[serde(borrow)]
    fault: Option<&'a RawValue>,
}

/// Returns the signature of a request with [`KEY`].
pub(super) fn signature(method: &str, path: &str, body: &str) -> String {
    sign(KEY, method, path, body.as_bytes()).unwrap()
}

fn sign(key: &str, method: &str, path: &str, body: &[u8]) -> Option<String> {
    let (account, secret) = key.split_once(':')?;
    let mut digest = Sha256::new();
    digest.update(format!("{secret}\n{method}\n{path}\n"));
    digest.update(body);
    let digest: String = digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    Some(format!("{account}:{digest}"))
}

fn signed(target: &Target, method: Method, url: Url, body: Vec<u8>) -> Result<Request, RequestError> {
    let path = url.query().map_or(url.path().to_owned(), |query| format!("{}?{query}", url.path()));
    let key = target.key().ok_or(RequestError::Key)?.expose();
    let signature = sign(key, method.as_str(), &path, &body).ok_or(RequestError::Key)?;
    let mut request = Request::new(method, url);
    request.headers_mut().insert("x-relay-signature", HeaderValue::from_str(&signature)?);
    *request.body_mut() = Some(body.into());
    Ok(request)
}

impl Protocol for Relay {
    fn answer_request(
        &self,
        target: &Target,
        prepared: PreparedRequest<'_>,
    ) -> Result<Request, RequestError> {
        let turns: Vec<_> = prepared.request.prompt.messages.iter().map(|message| &message.content).collect();
        let turns = serde_json::to_string(&turns)?;
        let limit = if prepared.dialect.has_max_completion_tokens { "cap" } else { "limit" };
        let tokens = serde_json::to_string(&prepared.request.generation.max_tokens)?;
        let body = format!(r#"{{"turns":{turns},"{limit}":{tokens}}}"#);
        let url = target.url(["models", prepared.request.model, "answer"])?;
        signed(target, Method::POST, url, body.into_bytes())
    }

    fn models_request(&self, target: &Target, page: Option<&str>) -> Result<Request, RequestError> {
        let mut url = target.url(["known"])?;
        if let Some(page) = page {
            url.query_pairs_mut().append_pair("after", page);
        }
        self.get_request(target, url)
    }

    fn get_request(&self, target: &Target, url: Url) -> Result<Request, RequestError> {
        signed(target, Method::GET, url, Vec::new())
    }

    fn is_stream(&self, headers: &HeaderMap, _: &[u8]) -> bool {
        headers.get("content-type").is_some_and(|value| value == "application/x-ndjson")
    }

    fn answer_reader(&self) -> Box<dyn AnswerReader> {
        Box::new(LineReader::default())
    }

    fn request_id_headers(&self) -> &'static [&'static str] {
        &["x-relay-trace"]
    }

    fn read_error(&self, body: &[u8]) -> ErrorBody {
        #[derive(Deserialize)]
        struct Fault {
            name: String,
            text: String,
        }
        #[derive(Deserialize)]
        struct Body {
            fault: Fault,
        }
        let fault = match serde_json::from_slice::<Body>(body) {
            Ok(Body { fault }) => fault,
            // Within a stream, the fault has no outer object.
            Err(_) => match serde_json::from_slice::<Fault>(body) {
                Ok(fault) => fault,
                Err(_) => return ErrorBody::default(),
            },
        };
        let code = match fault.name.as_str() {
            "Throttled" => "rate_limited".to_owned(),
            "OutOfRoom" => "context_length_exceeded".to_owned(),
            _ => fault.name,
        };
        ErrorBody { message: fault.text, codes: vec![code], ..ErrorBody::default() }
    }

    fn classify(&self, status: u16, error: &ErrorBody) -> FailureKind {
        if error.has_code(&["WrongKey"]) {
            return FailureKind::FatalForRun(Fatal::Key);
        }
        classify(status, error)
    }

    fn next_dialect(&self, prepared: PreparedRequest<'_>, _: u16, error: &ErrorBody) -> Option<Dialect> {
        let is_unknown = error.has_code(&["UnknownField"]) && error.message == "limit";
        is_unknown.then_some(Dialect { has_max_completion_tokens: true, ..prepared.dialect })
    }

    fn split_models<'a>(&self, body: &'a [u8]) -> Result<ListPage<'a>, String> {
        #[derive(Deserialize)]
        struct Page<'a> {
            #[serde(borrow)]
            known: Vec<&'a RawValue>,
            after: Option<String>,
        }
        let page: Page<'a> = serde_json::from_slice(body).map_err(|_| "no `known`".to_owned())?;
        Ok(ListPage {
            entries: page.known.into_iter().map(RawValue::get).collect(),
            total: None,
            next: page.after,
        })
    }

    fn listed_model(&self, entry: &str) -> Option<CatalogModel> {
        let (slug, context_length): (String, Option<u64>) = serde_json::from_str(entry).ok()?;
        Some(CatalogModel { slug, context_length, ..CatalogModel::default() })
    }

    fn unknown_key(&self) -> &'static str {
        "relay:bench-runner-is-no-key"
    }
}

impl AnswerReader for LineReader {
    fn push(&mut self, chunk: &[u8], draft: &mut AnswerDraft) -> Result<(), Stop> {
        self.lines.push(chunk, |line: Line<'_>| read(line.bytes, draft))
    }

    fn end(&mut self, draft: &mut AnswerDraft) -> Result<(), Stop> {
        self.lines.finish(|line| read(line.bytes, draft))
    }

    fn read_whole(&mut self, body: &[u8], draft: &mut AnswerDraft) -> Result<(), Stop> {
        read(body, draft)
    }
}

fn read(line: &[u8], draft: &mut AnswerDraft) -> Result<(), Stop> {
    let mut marked = None;
    let Ok((reply, form)) = read_json::<RelayReply<'_>>(line, &mut marked) else {
        return Err(Stop::Garbage("no line of this protocol".to_owned(), line.to_vec()));
    };
    if let Some(fault) = reply.fault {
        return Err(Stop::Error(fault.get().into()));
    }
    draft.begin();
    for (part, text) in [(Part::Reasoning, &reply.think), (Part::Content, &reply.say)] {
        draft.append(part, text.as_deref().unwrap_or_default(), form)?;
    }
    if let Some(model) = &reply.model {
        draft.set_model(model, form);
    }
    if let Some(tokens) = reply.tokens {
        draft.set_usage(tokens.get(), read_usage(tokens.get()));
    }
    if let Some(end) = &reply.end {
        draft.set_finish(end, form, |name| match name {
            "done" => Finish::Stop,
            "room" => Finish::Length,
            other => Finish::Other(other.to_owned()),
        });
        draft.end();
    }
    Ok(())
}

fn read_usage(json: &str) -> ReportedUsage {
    #[derive(Deserialize)]
    struct Tokens<'a> {
        #[serde(borrow)]
        r#in: Option<&'a RawValue>,
        #[serde(borrow)]
        out: Option<&'a RawValue>,
    }
    let Ok(tokens) = serde_json::from_str::<Tokens<'_>>(json) else { return ReportedUsage::Nothing };
    let count = |tokens: Option<&RawValue>| TokenCount::read(tokens.map(RawValue::get));
    ReportedUsage::new(count(tokens.r#in), count(tokens.out), TokenCount::Missing)
}
