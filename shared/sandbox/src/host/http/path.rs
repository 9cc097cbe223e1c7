//! Parameters of a request's path.

use axum::extract::{FromRequestParts, Path};
use bench_domain::Code;
use http::request::Parts;

use super::error::ApiError;

/// Id of a sandbox in a request's path.
pub(super) struct Id(pub(super) String);

impl<S: Send + Sync> FromRequestParts<S> for Id {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let id = Path::from_request_parts(parts, state).await;
        let Path(id) = id.map_err(|refusal| ApiError::new(Code::InvalidPath, refusal.body_text()))?;
        Ok(Self(id))
    }
}
