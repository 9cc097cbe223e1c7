//! An archive that the page reads.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use bench_domain::Code;
use bench_web::ApiError;
use http::header;
use tokio::fs::File;
use tokio_util::io::ReaderStream;
use uuid::Uuid;

use crate::client::encode;
use crate::exit::Problem;

/// An archive at a path that only this process and its browser know.
pub(super) struct ServedArchive {
    file: Arc<Path>,
    path: String,
}

impl ServedArchive {
    /// Checks that the file exists and can be read. The page checks its content.
    pub(super) fn new(file: &Path) -> anyhow::Result<Self> {
        let shown = file.display();
        if let Ok(false) = file.try_exists() {
            return Err(Problem::usage(format!("there is no file `{shown}`"))
                .hint("relative paths start in the current folder; `bench export RUN` writes an archive")
                .into());
        }
        if file.is_dir() {
            return Err(Problem::usage(format!("`{shown}` is a folder, not an archive")).into());
        }
        std::fs::File::open(file)
            .map_err(|error| Problem::failure(format!("could not read `{shown}`: {error}")))?;
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        // The key is random.
        let path = format!("/archives/{}/{}", Uuid::new_v4().simple(), encode(&name));
        Ok(Self { file: PathBuf::from(file).into(), path })
    }

    /// Returns the page's path that checks the archive.
    pub(super) fn page_path(&self) -> String {
        format!("/verify?file={}", encode(&self.path))
    }

    /// Adds the archive to a router.
    pub(super) fn add_to(&self, router: Router) -> Router {
        router.merge(Router::new().route(&self.path, get(send)).with_state(Arc::clone(&self.file)))
    }
}

/// Sends the file piece by piece: it may be larger than the memory.
async fn send(State(file): State<Arc<Path>>) -> Result<Response, ApiError> {
    let unreadable =
        |error| ApiError::new(Code::RouteNotFound, format!("the archive can't be read any more: {error}"));
    let opened = File::open(&file).await.map_err(unreadable)?;
    let length = opened.metadata().await.map_err(unreadable)?.len();
    let headers = [
        (header::CONTENT_TYPE, "application/zip".to_owned()),
        (header::CONTENT_LENGTH, length.to_string()),
        (header::HeaderName::from_static("cross-origin-resource-policy"), "same-origin".to_owned()),
    ];
    Ok((headers, Body::from_stream(ReaderStream::new(opened))).into_response())
}
