//! The web page: the files of `frontend-static`, their routes and their security headers.
//!
//! | module | contents |
//! | --- | --- |
//! | [`routes`] | `frontend-static/routes.json`: paths that answer with the page or the API, for clients that ask for HTML |
//! | [`headers`] | Content-Security-Policy and other headers of files |
//! | `file` | a file as a response: content type, entity tag, compression |
//! | `compiled` | the files, compiled in |
//! | `folder` | files of a folder, and live reload |
//!
//! CloudFront serves the same files by the same rules: a test compares `template.yaml` with [`headers`] and [`routes`].

mod compiled;
mod file;
mod folder;
pub mod headers;
pub mod routes;

use std::path::PathBuf;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use bench_domain::Code;
use bench_web::ApiError;
use http::{HeaderValue, Method, StatusCode, header};

use crate::file::File;
use crate::folder::Folder;
use crate::routes::Answer;

/// Name of the file that all page routes answer with.
const INDEX: &str = "index.html";

/// The page's files. Clones share them.
#[derive(Debug, Clone)]
pub struct Page(Arc<Source>);

#[derive(Debug)]
enum Source {
    Compiled,
    Folder(Folder),
}

impl Page {
    /// Returns the page that was compiled in.
    #[must_use]
    pub fn compiled() -> Self {
        Self(Arc::new(Source::Compiled))
    }

    /// Returns the page in a folder, whose files are read at each request. Browsers load the page again when one of them
    /// changes.
    #[must_use]
    pub fn in_folder(folder: PathBuf) -> Self {
        Self(Arc::new(Source::Folder(Folder::new(folder))))
    }

    /// Ends the connections that wait for changes of files.
    pub fn stop(&self) {
        if let Source::Folder(folder) = &*self.0 {
            folder.stop();
        }
    }

    /// Adds the page to a router that has all other routes: it answers GET and HEAD requests for page routes and files.
    pub fn around(&self, router: Router) -> Router {
        router.layer(from_fn_with_state(self.clone(), answer))
    }

    async fn file(&self, name: &str) -> Result<Option<File>, ApiError> {
        match &*self.0 {
            Source::Compiled => Ok(compiled::file(name)),
            Source::Folder(folder) => folder.file(name).await.map_err(|error| {
                ApiError::internal(format!("the page's file `{name}` could not be read: {error}"))
            }),
        }
    }
}

async fn answer(State(page): State<Page>, request: Request, next: Next) -> Response {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return next.run(request).await;
    }
    let path = request.uri().path();
    let answer = routes::answer(path, request.headers());
    let name = match answer {
        Answer::Api => return next.run(request).await,
        Answer::Page | Answer::Missing => INDEX,
        Answer::File(name) => name,
    };
    let is_page_route = !path.starts_with(routes::FILES);
    if let Source::Folder(folder) = &*page.0
        && let Some(response) = folder.reload(name)
    {
        return headers::add(response, false);
    }
    let mut response = match page.file(name).await {
        Ok(Some(file)) => headers::add(file.respond(request.headers()), file.is_subresource()),
        Ok(None) => ApiError::new(Code::RouteNotFound, "Not Found").into_response(),
        Err(error) => error.into_response(),
    };
    // A browser that has the page already gets 304, and shows what it has.
    if answer == Answer::Missing && response.status() == StatusCode::OK {
        *response.status_mut() = StatusCode::NOT_FOUND;
    }
    if is_page_route { with_vary(response) } else { response }
}

/// Marks a response that is another one for clients that don't ask for HTML.
fn with_vary(mut response: Response) -> Response {
    response.headers_mut().append(header::VARY, HeaderValue::from_static("Accept"));
    response
}

#[cfg(test)]
mod tests;
