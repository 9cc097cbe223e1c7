//! The page of `bench serve`, and `bench view`.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::serve::Server;
use crate::support::{TestDir, vector_path};

/// Long enough for a busy machine.
const TIMEOUT: Duration = Duration::from_secs(120);
/// Accept header of a browser that opens an address.
const BROWSER: &str = "text/html,application/xhtml+xml,*/*;q=0.8";

/// A `bench view` that ends with the test.
struct View {
    child: Child,
    address: String,
}

impl View {
    /// Starts the command, with a browser that writes the address to a file, and returns when the page is served.
    fn start(dir: &TestDir, args: &[&str]) -> Self {
        let mut command = dir.command(&[&["view"], args].concat());
        command.env("BROWSER", browser(dir));
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        Self { child, address: line.trim().to_owned() }
    }

    /// Returns scheme, host and port.
    fn origin(&self) -> &str {
        let path = self.address["http://".len()..].find('/').unwrap();
        &self.address[.."http://".len() + path]
    }

    /// Presses Ctrl-C, and returns the exit code.
    fn interrupt(mut self) -> i32 {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        kill_process(pid, Signal::INT).unwrap();
        self.child.wait().unwrap().code().unwrap()
    }
}

impl Drop for View {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns a command that writes the address that it gets to the file `opened`.
fn browser(dir: &TestDir) -> PathBuf {
    let script =
        dir.write("browser", format!("#!/bin/sh\necho \"$1\" > '{}'\n", dir.path("opened").display()));
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    script
}

/// Waits until a condition holds.
fn until<T>(what: &str, condition: impl Fn() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(found) = condition() {
            return found;
        }
        assert!(started.elapsed() < TIMEOUT, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn opened(dir: &TestDir) -> String {
    until("no browser was opened", || {
        let address = std::fs::read_to_string(dir.path("opened")).ok()?;
        (!address.is_empty()).then(|| address.trim().to_owned())
    })
}

/// Sends a GET request, and returns the head and the body of the response; nothing if there is no server.
fn get(address: &str, accept: &str) -> Option<(String, Vec<u8>)> {
    let rest = address.strip_prefix("http://").unwrap();
    let (host, path) = rest.split_once('/').unwrap();
    let mut stream = std::net::TcpStream::connect(host).ok()?;
    write!(stream, "GET /{path} HTTP/1.1\r\nhost: {host}\r\naccept: {accept}\r\nconnection: close\r\n\r\n")
        .ok()?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).ok()?;
    let end = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n")?;
    Some((String::from_utf8(answer[..end].to_vec()).unwrap(), answer[end + 4..].to_vec()))
}

fn text(address: &str, accept: &str) -> (String, String) {
    let (head, body) = get(address, accept).unwrap();
    (head, String::from_utf8(body).unwrap())
}

#[test]
fn browsers_get_the_page_and_programs_the_api() {
    let dir = TestDir::new();
    let server = Server::start_with(&dir, &["--open"], &[("BROWSER", browser(&dir).to_str().unwrap())]);
    assert_eq!(opened(&dir), server.address);
    let at = |path: &str, accept: &str| text(&format!("{}{path}", server.address), accept);
    let index = at("/page/index.html", "*/*").1;
    assert!(index.to_lowercase().starts_with("<!doctype html>"));
    for path in ["/", "/runs/3f2b8c1e-7d4a-4f60-9b1e-0a5c6d7e8f90", "/verify?file=%2Fx"] {
        let (head, body) = at(path, BROWSER);
        assert!(
            head.starts_with("HTTP/1.1 200")
                && head.contains("content-security-policy: default-src 'none'; script-src 'self'")
        );
        assert_eq!(body, index, "{path}");
        // Nothing of live reload is in the built-in page.
        assert!(!body.contains("/page/.reload"));
    }
    assert!(at("/", "application/json").1.contains("\"docs\""));
    assert!(
        at("/docs", "*/*").1.starts_with("{\"components\"")
            && at("/openapi.json", BROWSER).1.starts_with('{')
    );
    assert!(
        at("/new", "*/*").0.starts_with("HTTP/1.1 404")
            && at("/unknown", BROWSER).0.starts_with("HTTP/1.1 404")
    );
}

#[test]
fn a_folder_replaces_the_built_in_page() {
    let dir = TestDir::new();
    dir.bench(&["serve", "--page", "nowhere"])
        .assert_refused(2, "--page: there is no file `index.html` in `nowhere`");
    std::fs::create_dir(dir.path("mine")).unwrap();
    dir.write("mine/index.html", "<head></head>mine");
    let server = Server::start(&dir, &["--page", "mine"]);
    let at = |path: &str| text(&format!("{}{path}", server.address), BROWSER).1;
    assert!(at("/new").ends_with("</head>mine") && at("/new").contains("/page/.reload/script.js"));
    assert!(at("/page/.reload/script.js").contains("EventSource"));
    dir.write("mine/index.html", "changed");
    assert!(at("/").starts_with("changed"));
    assert_eq!(std::fs::read_dir(dir.path("mine")).unwrap().count(), 1);
}

#[test]
fn a_run_is_opened_and_the_page_ends_with_the_command() {
    let dir = TestDir::new();
    dir.bench(&["view", "latest"]).assert_refused(1, "does not exist");
    let order =
        ["run", "--model", "oracle", "--benchmark", "mmlu_pro", "--demo", "--subset-count", "2", "--json"];
    let id = dir.json(&order)[0]["id"].as_str().unwrap().to_owned();
    let view = View::start(&dir, &[&id[..8]]);
    assert!(view.address.ends_with(&format!("/runs/{id}")), "{}", view.address);
    assert_eq!(opened(&dir), view.address);
    assert!(text(&view.address, BROWSER).1.to_lowercase().starts_with("<!doctype html>"));
    let api = format!("{}/api/runs/{id}", view.origin());
    assert!(text(&api, "*/*").1.contains("\"succeeded\""));
    // Other commands use the data directory meanwhile, and work is done for them.
    assert_eq!(dir.json(&order)[0]["status"], "succeeded");
    // A second one takes over when the first one ends, at its own address.
    let second = View::start(&dir, &["latest"]);
    assert_ne!(second.origin(), view.origin());
    let (first_api, second_api) = (api, format!("{}/api/runs/{id}", second.origin()));
    assert!(text(&second_api, "*/*").1.contains("\"succeeded\""));
    assert_eq!(view.interrupt(), 0);
    assert!(get(&first_api, "*/*").is_none());
    until("the second one does not take over", || {
        get(&second_api, "*/*").filter(|(head, _)| head.starts_with("HTTP/1.1 200"))
    });
    assert_eq!(dir.json(&order)[0]["status"], "succeeded");
    assert_eq!(second.interrupt(), 0);
}

#[test]
fn a_server_of_the_data_directory_shows_the_run() {
    let dir = TestDir::new();
    let order =
        ["run", "--model", "oracle", "--benchmark", "mmlu_pro", "--demo", "--subset-count", "2", "--json"];
    let id = dir.json(&order)[0]["id"].as_str().unwrap().to_owned();
    let server = Server::start(&dir, &[]);
    let at_server = format!("{}/runs/{id}", server.address);
    for more in [&[][..], &["--server", &server.address]] {
        let mut command = dir.command(&[&["view", "latest"], more].concat());
        let output = command.env("BROWSER", browser(&dir)).output().unwrap();
        assert_eq!(
            (output.status.code(), String::from_utf8(output.stdout).unwrap().trim()),
            (Some(0), at_server.as_str())
        );
        assert_eq!(opened(&dir), at_server);
    }
    // Without a browser, the address is all.
    let output = dir.bench(&["view"]);
    assert_eq!((output.code, output.stdout.trim()), (0, format!("{}/", server.address).as_str()));
    assert!(output.stderr.contains("No browser was found"), "{}", output.stderr);
}

#[test]
fn an_archive_is_served_at_a_path_of_its_own() {
    let dir = TestDir::new();
    let archive = std::fs::read(vector_path("chutes-signed-export.zip")).unwrap();
    dir.write("run of März.zip", &archive);
    let view = View::start(&dir, &["run of März.zip"]);
    assert_eq!(opened(&dir), view.address);
    let path = view.address.split_once("/verify?file=").unwrap().1.replace("%2F", "/").replace("%25", "%");
    assert!(path.starts_with("/archives/") && path.ends_with("/run%20of%20M%C3%A4rz.zip"), "{path}");
    let (head, body) = get(&format!("{}{path}", view.origin()), "*/*").unwrap();
    assert!(
        head.contains("content-type: application/zip")
            && head.contains("cross-origin-resource-policy: same-origin"),
        "{head}"
    );
    assert_eq!(body, archive);
    assert!(text(&view.address, BROWSER).1.to_lowercase().starts_with("<!doctype html>"));
    // The key is not guessed, and other sites' pages can't ask.
    let wrong = path.replacen(&path[10..14], "0000", 1);
    assert!(get(&format!("{}{wrong}", view.origin()), "*/*").unwrap().0.starts_with("HTTP/1.1 404"));
    // Each start has another path.
    let second = View::start(&dir, &["run of März.zip"]);
    assert_ne!(second.address.split_once("/verify"), view.address.split_once("/verify"));
    assert_eq!((view.interrupt(), second.interrupt()), (0, 0));
}
