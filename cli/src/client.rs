//! Client of the HTTP API, either of a server or of the stack in this process.

mod files;
mod in_process;
mod poll_backoff;
mod remote;
mod tasks;

use std::env;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context;
use axum::body::Bytes;
use bench_domain::{Code, Secret};
use bench_stack::is_disk_full;
use bench_web::auth::{ADMIN_HEADER, JUDGE_HEADER, USER_HEADER};
use bytes_stream::ByteStream;
use clap::Args;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::io::AsyncWriteExt;

pub(crate) use crate::encoding::encode;
use crate::exit::{Problem, disk_full, sentence};
use crate::helper_keys::HelperKeys;
use crate::logs;
use crate::output;
use crate::refusal::Refusal;

pub(crate) use poll_backoff::PollBackoff;
pub(crate) use tasks::{Listing, StoredAgent, Task, TaskResults};

/// Variable with the API key for a server, unless `--api-key-env` names another.
const KEY_VARIABLE: &str = "BENCH_API_KEY";
/// Variable with a server's operator secret.
const ADMIN_VARIABLE: &str = "BENCH_ADMIN_SECRET";
/// Maximum time to wait for a server to build a file.
const BUILD_MAX: Duration = Duration::from_secs(30 * 60);
/// Maximum number of response bytes to hold in memory.
const RESPONSE_BYTES_MAX: usize = 256 * 1024 * 1024;

/// Server to use instead of the data directory, if any.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Server and data directory")]
pub(crate) struct ServerArgs {
    /// Address of a running server to use instead of the data directory on this machine
    #[arg(long, env = "BENCH_SERVER", value_name = "URL")]
    pub(crate) server: Option<String>,
    /// Name of the environment variable that holds the API key [default with --server: BENCH_API_KEY]
    #[arg(long, env = "BENCH_API_KEY_ENV", value_name = "VAR")]
    pub(crate) api_key_env: Option<String>,
}

impl ServerArgs {
    /// Returns the server's address, if one was given.
    pub(crate) fn server(&self) -> Option<&str> {
        self.server.as_deref().map(str::trim).filter(|server| !server.is_empty())
    }

    /// Returns the key from the variable that `--api-key-env` names.
    pub(crate) fn named_key(&self) -> anyhow::Result<Option<Secret>> {
        let Some(name) = self.api_key_env.as_deref().map(str::trim).filter(|name| !name.is_empty()) else {
            return Ok(None);
        };
        let plausible = !name.starts_with(|c: char| c.is_ascii_digit())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if !plausible {
            // The value may be the key itself, so the message doesn't repeat it.
            let message = "--api-key-env takes the name of a variable, not a key";
            return Err(Problem::usage(message)
                .hint("`export MY_KEY=…`, then give --api-key-env MY_KEY")
                .into());
        }
        let key = env::var(name).ok().and_then(Secret::new);
        key.map(Some)
            .ok_or_else(|| Problem::usage(format!("--api-key-env: the variable `{name}` is not set")).into())
    }

    /// Returns a client of the server, or `None` if no server was given.
    pub(crate) fn client(&self) -> anyhow::Result<Option<Client>> {
        let Some(server) = self.server() else { return Ok(None) };
        let key = self.named_key()?.or_else(|| env::var(KEY_VARIABLE).ok().and_then(Secret::new));
        let admin = env::var(ADMIN_VARIABLE).ok().and_then(Secret::new);
        Ok(Some(Client {
            transport: Transport::Remote(remote::Remote::new(server)?),
            key,
            admin,
            helper_keys: HelperKeys::default(),
        }))
    }
}

/// Client of the HTTP API.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    transport: Transport,
    key: Option<Secret>,
    admin: Option<Secret>,
    /// Caller's own keys for judge and user model, sent with orders and changes.
    helper_keys: HelperKeys,
}

#[derive(Debug, Clone)]
enum Transport {
    Remote(remote::Remote),
    InProcess(in_process::InProcess),
}

/// Body of a request.
#[derive(Debug, Clone)]
enum Payload<'a> {
    None,
    Json(&'a Value),
    Bytes { content_type: String, bytes: Bytes },
}

impl<'a> Payload<'a> {
    fn json(body: Option<&'a Value>) -> Self {
        body.map_or(Self::None, Self::Json)
    }
}

/// Response whose body is still arriving.
struct Response {
    status: StatusCode,
    headers: HeaderMap,
    body: ByteStream,
}

mod bytes_stream {
    use std::pin::Pin;

    /// Response body as a stream.
    pub(super) type ByteStream =
        Pin<Box<dyn futures_util::Stream<Item = anyhow::Result<super::Bytes>> + Send>>;
}

impl Client {
    /// Creates a client for a stack in this process, with this data directory.
    pub(crate) fn in_process(router: axum::Router, data_dir: PathBuf) -> Self {
        Self {
            transport: Transport::InProcess(in_process::InProcess::new(router, data_dir)),
            key: None,
            admin: None,
            helper_keys: HelperKeys::default(),
        }
    }

    /// Sets the key to send with requests.
    #[must_use]
    pub(crate) fn with_key(mut self, key: Option<Secret>) -> Self {
        self.key = key.or(self.key);
        self
    }

    /// Sets the caller's own keys for judge and user model of the runs that it orders.
    #[must_use]
    pub(crate) fn with_helper_keys(mut self, keys: HelperKeys) -> Self {
        self.helper_keys = keys;
        self
    }

    /// Makes the client act for the operator: with the admin secret, if there is one, instead of any other key.
    #[must_use]
    pub(crate) fn acting_as_admin(mut self) -> Self {
        self.key = None;
        self.helper_keys = HelperKeys::default();
        self
    }

    /// Advises on a key if nothing is the caller's: without one, a server on another machine doesn't know the caller.
    /// A server on this machine does.
    pub(crate) fn hint_at_key(&self) {
        let is_elsewhere = matches!(&self.transport, Transport::Remote(remote) if !remote.is_local());
        if is_elsewhere && self.key.is_none() && self.admin.is_none() {
            output::hint(&format!(
                "without a key, the server doesn't know what is yours: set {KEY_VARIABLE} to your key or access token, or name \
                 its variable with --api-key-env"
            ));
        }
    }

    /// Returns the server's address, or `None` for the stack in this process.
    pub(crate) fn address(&self) -> Option<&str> {
        match &self.transport {
            Transport::Remote(remote) => Some(remote.address()),
            Transport::InProcess(_) => None,
        }
    }

    /// Sends a GET request and parses the response.
    pub(crate) async fn get<T: DeserializeOwned>(&self, path: &str) -> anyhow::Result<T> {
        self.request(Method::GET, path, Payload::None).await
    }

    /// Sends a POST request and parses the response.
    pub(crate) async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        body: Option<&Value>,
    ) -> anyhow::Result<T> {
        self.request(Method::POST, path, Payload::json(body)).await
    }

    /// Sends a PATCH request and parses the response.
    pub(crate) async fn patch<T: DeserializeOwned>(&self, path: &str, body: &Value) -> anyhow::Result<T> {
        self.request(Method::PATCH, path, Payload::Json(body)).await
    }

    /// Sends a DELETE request and parses the response.
    pub(crate) async fn delete<T: DeserializeOwned>(&self, path: &str) -> anyhow::Result<T> {
        self.request(Method::DELETE, path, Payload::None).await
    }

    async fn request<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Payload<'_>,
    ) -> anyhow::Result<T> {
        let answer = self.send(method, path, body).await?;
        let text = collect(answer.body).await?;
        serde_json::from_slice(&text).with_context(|| format!("unexpected answer of the server to `{path}`"))
    }

    /// Downloads a path into the file `to`, or, if `to` is a folder, into a file in it named by the response. The file
    /// appears once it is complete.
    pub(crate) async fn download(&self, path: &str, to: &Path) -> anyhow::Result<PathBuf> {
        use futures_util::StreamExt;
        let mut answer = self.get_when_built(path).await?;
        let to = if to.is_dir() {
            let disposition =
                answer.headers.get(header::CONTENT_DISPOSITION).and_then(|value| value.to_str().ok());
            to.join(disposition.and_then(file_name).unwrap_or_else(|| "export".to_owned()))
        } else {
            to.to_owned()
        };
        if std::fs::symlink_metadata(&to).is_ok_and(|found| !found.is_file()) {
            let problem =
                format!("`{}` is a link, a pipe or a device, which a download doesn't replace", to.display());
            return Err(Problem::usage(problem).hint("give the name of a file").into());
        }
        let mut partial = to.clone().into_os_string();
        partial.push(".partial");
        let written = async {
            // A download that was killed leaves such a file, and a link would be followed.
            match tokio::fs::remove_file(&partial).await {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
                _ => {}
            }
            let mut file = tokio::fs::File::create_new(&partial).await?;
            while let Some(piece) = answer.body.next().await {
                file.write_all(&piece?).await?;
            }
            // Without it, `sync_all` succeeds although the last write has failed.
            file.flush().await?;
            file.sync_all().await?;
            tokio::fs::rename(&partial, &to).await?;
            anyhow::Ok(())
        };
        if let Err(error) = written.await {
            // The partial file is of no use. A failure to remove it changes nothing.
            let _ = tokio::fs::remove_file(&partial).await;
            return Err(error.context(format!("could not write `{}`", to.display())));
        }
        Ok(to)
    }

    /// Writes a path's file to standard output, piece by piece. Stops quietly if its reader is gone.
    pub(crate) async fn print_file(&self, path: &str) -> anyhow::Result<()> {
        use futures_util::StreamExt;
        let mut answer = self.get_when_built(path).await?;
        while let Some(piece) = answer.body.next().await {
            output::write_bytes(&piece?)?;
            if output::is_closed() {
                break;
            }
        }
        Ok(())
    }

    /// Sends a GET request for a file that the server may still have to build, and repeats it until the file is ready.
    async fn get_when_built(&self, path: &str) -> anyhow::Result<Response> {
        let since = Instant::now();
        let mut backoff = PollBackoff::new();
        let mut is_noted = false;
        loop {
            let answer = self.send(Method::GET, path, Payload::None).await?;
            // 202 is a success status, so it has no error code to check.
            if answer.status != StatusCode::ACCEPTED {
                return Ok(answer);
            }
            if since.elapsed() > BUILD_MAX {
                let minutes = BUILD_MAX.as_secs() / 60;
                return Err(Problem::failure(format!(
                    "the server did not finish the file in {minutes} minutes"
                ))
                .hint("try again later: the server continues where it stopped")
                .into());
            }
            if !is_noted {
                output::note("Waiting for the server to build the file…");
                is_noted = true;
            }
            tokio::time::sleep(backoff.next(retry_after(&answer.headers))).await;
        }
    }

    async fn send(&self, method: Method, path: &str, body: Payload<'_>) -> anyhow::Result<Response> {
        let mut headers = HeaderMap::new();
        if let Some(key) = &self.key {
            headers.insert(header::AUTHORIZATION, secret_header(&format!("Bearer {}", key.expose()))?);
        }
        if let (Some(admin), None) = (&self.admin, &self.key) {
            headers.insert(ADMIN_HEADER, secret_header(admin.expose())?);
        }
        if matches!(method, Method::POST | Method::PATCH) {
            let HelperKeys { judge, user } = &self.helper_keys;
            for (name, key) in [(JUDGE_HEADER, judge), (USER_HEADER, user)] {
                let Some(key) = key else { continue };
                headers.insert(name, secret_header(&format!("Bearer {}", key.expose()))?);
            }
        }
        let answer = match &self.transport {
            Transport::Remote(remote) => remote.send(method, path, headers, body).await?,
            Transport::InProcess(router) => router.send(method, path, headers, body).await?,
        };
        if answer.status.is_success() {
            return Ok(answer);
        }
        let (status, retry_after) = (answer.status, retry_after(&answer.headers));
        let text = collect(answer.body).await.unwrap_or_default();
        let (code, detail) = (code(&text), detail(status, &text));
        if let Transport::InProcess(here) = &self.transport
            && status.is_server_error()
            && (logs::saw_disk_full() || is_disk_full(here.data_dir(), false))
        {
            return Err(disk_full(here.data_dir()).into());
        }
        Err(Refusal::new(status, code, detail).after(retry_after).into())
    }
}

/// Parses the seconds in `Retry-After`. Dates are ignored, since our servers don't send them.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds))
}

fn secret_header(text: &str) -> anyhow::Result<HeaderValue> {
    let mut value = HeaderValue::from_str(text)
        .map_err(|_| Problem::usage("the API key has characters that HTTP does not allow"))?;
    value.set_sensitive(true);
    Ok(value)
}

async fn collect(mut body: ByteStream) -> anyhow::Result<Vec<u8>> {
    use futures_util::StreamExt;
    let mut text = Vec::new();
    while let Some(piece) = body.next().await {
        text.extend_from_slice(&piece?);
        if text.len() > RESPONSE_BYTES_MAX {
            return Err(Problem::failure("the answer of the server is too long").into());
        }
    }
    Ok(text)
}

/// Extracts the code from an error's body.
fn code(body: &[u8]) -> Option<Code> {
    let parsed: Value = serde_json::from_slice(body).ok()?;
    Code::from_name(parsed.get("code")?.as_str()?)
}

/// Extracts the sentence from an error's body: the API's `detail`, which is a text or a list of problems with fields.
fn detail(status: StatusCode, body: &[u8]) -> String {
    let parsed: Option<Value> = serde_json::from_slice(body).ok();
    match parsed.as_ref().and_then(|body| body.get("detail")) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(problems)) => {
            let problem = |problem: &Value| {
                let field = problem.get("loc").and_then(Value::as_array).and_then(|loc| loc.last());
                let field = match field {
                    Some(Value::String(field)) => Some(field.clone()),
                    other => other.map(Value::to_string),
                };
                // In front of a check's own sentence, `msg` has words of the compatible system that don't help people.
                let is_check = problem.get("type").is_some_and(|kind| kind == "value_error");
                let sentence = problem.pointer("/ctx/error").filter(|_| is_check).and_then(Value::as_str);
                let text = sentence.or_else(|| problem.get("msg").and_then(Value::as_str));
                let text = text.unwrap_or("is invalid");
                field.map_or_else(|| text.to_owned(), |field| format!("{field}: {text}"))
            };
            problems.iter().map(problem).collect::<Vec<_>>().join("; ")
        }
        _ => format!("the server answered {status}"),
    }
}

/// Extracts the name from a `Content-Disposition` and makes it safe: a server must not choose where a file goes.
fn file_name(disposition: &str) -> Option<String> {
    let name = disposition.split_once("filename=")?.1.trim().split(';').next()?.trim().trim_matches('"');
    let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_') { c } else { '_' };
    let name: String = name.chars().take(200).map(plain).collect();
    (!name.trim_matches('.').is_empty()).then(|| name.trim_start_matches('.').to_owned())
}

/// Describes a transport error in one sentence.
fn transport_error(what: &str, error: impl Into<anyhow::Error>) -> anyhow::Error {
    let error = error.into();
    Problem::failure(format!("{what}: {}", sentence(&error))).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_read_where_there_are_any() {
        assert_eq!(code(br#"{"detail":"Gone.","code":"run_not_found"}"#), Some(Code::RunNotFound));
        for other in
            [r#"{"detail":"Gone."}"#, r#"{"code":"not_invented_yet"}"#, r#"{"code":1}"#, "<html>", ""]
        {
            assert_eq!(code(other.as_bytes()), None, "{other}");
        }
    }

    #[test]
    fn details_become_one_sentence() {
        let of = |body: &str| detail(StatusCode::BAD_REQUEST, body.as_bytes());
        assert_eq!(of(r#"{"detail":"Run not found"}"#), "Run not found");
        assert_eq!(
            of(
                r#"{"detail":[{"loc":["body","subset_pct"],"msg":"too large"},{"loc":["body",0],"msg":"no"}]}"#
            ),
            "subset_pct: too large; 0: no"
        );
        let value_error = |context: &str| {
            of(&format!(
                r#"{{"detail":[{{"loc":["body","cron"],"msg":"Value error, `x` has 1 field","type":"value_error"{context}}}]}}"#
            ))
        };
        assert_eq!(value_error(r#","ctx":{"error":"`x` has 1 field"}"#), "cron: `x` has 1 field");
        // Responses of an older server and of the compatible system.
        for context in ["", r#","ctx":{"error":{}}"#] {
            assert_eq!(value_error(context), "cron: Value error, `x` has 1 field");
        }
        assert_eq!(of("<html>"), "the server answered 400 Bad Request");
    }

    #[test]
    fn a_server_does_not_choose_where_a_file_goes() {
        assert_eq!(file_name("attachment; filename=\"a b/../c.zip\"").unwrap(), "a_b_.._c.zip");
        assert_eq!(file_name("attachment; filename=x.csv").unwrap(), "x.csv");
        assert_eq!(file_name("attachment; filename=\"..\""), None);
        assert_eq!(file_name("attachment; filename=\".bashrc\"").unwrap(), "bashrc");
        assert_eq!(file_name("inline"), None);
    }

    #[test]
    fn a_key_given_instead_of_its_name_is_not_repeated() {
        let args = ServerArgs { server: None, api_key_env: Some("sk-very-secret".into()) };
        assert!(!args.named_key().unwrap_err().to_string().contains("very"));
    }
}
