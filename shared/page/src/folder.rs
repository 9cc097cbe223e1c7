//! The page in a folder, for work on it: files are read at each request, and browsers load the page again when one
//! changes.

use std::convert::Infallible;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use http::header;
use tokio_util::sync::CancellationToken;

use crate::INDEX;
use crate::file::File;

/// Script that loads the page again. Hidden files of the folder aren't served, so none can have this name.
const SCRIPT_NAME: &str = ".reload/script.js";
const SCRIPT: &str = include_str!("folder/reload.js");
/// Stream of the folder's versions.
const VERSIONS_NAME: &str = ".reload/versions";
/// Element that loads the script.
const SCRIPT_ELEMENT: &str = "<script type=\"module\" src=\"/page/.reload/script.js\"></script>\n";
/// Interval at which the folder is looked at while a browser waits for changes.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// Looks after which a stream sends a sign of life, so that the connection of a browser that left ends.
const LOOKS_PER_SIGN: u32 = 40;

/// A folder with the page's files.
#[derive(Debug)]
pub(crate) struct Folder {
    root: PathBuf,
    stopped: CancellationToken,
}

impl Folder {
    pub(crate) fn new(root: PathBuf) -> Self {
        Self { root, stopped: CancellationToken::new() }
    }

    /// Ends the streams of versions.
    pub(crate) fn stop(&self) {
        self.stopped.cancel();
    }

    /// Reads a file. `index.html` gets the script that loads the page again.
    pub(crate) async fn file(&self, name: &str) -> io::Result<Option<File>> {
        if !is_plain(name) {
            return Ok(None);
        }
        let bytes = match tokio::fs::read(self.root.join(name)).await {
            Ok(bytes) => bytes,
            Err(error) if is_missing(&error) => return Ok(None),
            Err(error) => return Err(error),
        };
        let bytes = if name == INDEX { with_script(bytes) } else { bytes };
        Ok(Some(File::new(name, bytes.into())))
    }

    /// Answers the requests of live reload.
    pub(crate) fn reload(&self, name: &str) -> Option<Response> {
        match name {
            SCRIPT_NAME => {
                Some(([(header::CONTENT_TYPE, "text/javascript; charset=utf-8")], SCRIPT).into_response())
            }
            VERSIONS_NAME => Some(self.versions()),
            _ => None,
        }
    }

    /// Sends the folder's version, and again after each change, as server-sent events.
    fn versions(&self) -> Response {
        let state = (self.root.clone(), self.stopped.clone(), None);
        let events = stream::unfold(state, |(root, stopped, sent)| async move {
            let mut looks = 0;
            loop {
                let wait = if sent.is_none() { Duration::ZERO } else { LOOK_EVERY };
                if tokio::time::timeout(wait, stopped.cancelled()).await.is_ok() {
                    return None;
                }
                let folder = root.clone();
                let version = tokio::task::spawn_blocking(move || version(&folder)).await.ok()?;
                if sent != Some(version) {
                    let event = format!("data: {version:x}\n\n");
                    return Some((event, (root, stopped, Some(version))));
                }
                looks += 1;
                if looks >= LOOKS_PER_SIGN {
                    return Some((":\n\n".to_owned(), (root, stopped, sent)));
                }
            }
        });
        let events = futures_util::StreamExt::map(events, |event| Ok::<_, Infallible>(Bytes::from(event)));
        ([(header::CONTENT_TYPE, "text/event-stream")], Body::from_stream(events)).into_response()
    }
}

/// Returns true if a name leads to a file of the folder that isn't hidden.
fn is_plain(name: &str) -> bool {
    !name.is_empty()
        && !name.contains(['\\', '\0', '%', ':'])
        && name.split('/').all(|part| !part.is_empty() && !part.starts_with('.'))
}

fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::IsADirectory | ErrorKind::NotADirectory)
}

fn with_script(html: Vec<u8>) -> Vec<u8> {
    let mut html = String::from_utf8_lossy(&html).into_owned();
    let at = html.find("</head>").unwrap_or(html.len());
    html.insert_str(at, SCRIPT_ELEMENT);
    html.into_bytes()
}

/// Returns a number that changes with the names, times and sizes of the files.
fn version(root: &Path) -> u64 {
    let mut hasher = DefaultHasher::new();
    hash_folder(root, &mut hasher);
    hasher.finish()
}

fn hash_folder(folder: &Path, hasher: &mut DefaultHasher) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.retain(|path| path.file_name().is_some_and(|name| !name.to_string_lossy().starts_with('.')));
    paths.sort();
    for path in paths {
        let Ok(metadata) = path.metadata() else { continue };
        if metadata.is_dir() {
            hash_folder(&path, hasher);
        } else {
            (&path, metadata.modified().ok(), metadata.len()).hash(hasher);
        }
    }
}
