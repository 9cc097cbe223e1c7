//! A router that can be replaced while it is served.

use std::convert::Infallible;
use std::sync::{Arc, PoisonError, RwLock};

use axum::Router;
use axum::extract::Request;
use tower::ServiceExt;

/// The router of the stack that is open now. Clones share it.
#[derive(Clone, Default)]
pub(super) struct RouterSlot(Arc<RwLock<Router>>);

impl RouterSlot {
    /// Replaces the router. Requests in progress end with the one before.
    pub(super) fn set(&self, router: Router) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = router;
    }

    /// Returns a router that passes requests to the one of the moment.
    pub(super) fn router(&self) -> Router {
        let slot = self.clone();
        Router::new().fallback_service(tower::service_fn(move |request: Request| {
            let router = slot.0.read().unwrap_or_else(PoisonError::into_inner).clone();
            async move {
                Ok::<_, Infallible>(router.oneshot(request).await.unwrap_or_else(|never| match never {}))
            }
        }))
    }
}
