//! Parameters of a request's path.

use axum::extract::FromRequestParts;
use bench_domain::Code;
use http::request::Parts;
use serde::de::DeserializeOwned;

use crate::ApiError;

/// Parameters of a request's path, as [`axum::extract::Path`] reads them. Refuses a path that can't be
/// decoded with [`Code::InvalidPath`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Path<T>(pub T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Path<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        match axum::extract::Path::from_request_parts(parts, state).await {
            Ok(axum::extract::Path(parameters)) => Ok(Self(parameters)),
            Err(refusal) if refusal.status().is_client_error() => {
                Err(ApiError::new(Code::InvalidPath, refusal.body_text()))
            }
            // The route lacks a parameter that its handler reads.
            Err(mistake) => Err(ApiError::internal(mistake.body_text())),
        }
    }
}
