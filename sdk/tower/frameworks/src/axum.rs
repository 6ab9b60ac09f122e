//! The answer of axum to a handler that fails, because its request is over or its query has failed.
//!
//! An error becomes a response without its request, but the format of the 504 depends on the
//! request. So the error puts the termination into its response, and [`answer`] makes the 504 from
//! it.

use axum::Extension;
use axum::extract::Request;
use axum::http::{HeaderMap, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use bywash_tower::{LeaseError, Terminated};

use crate::sqlx::Failure;

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        match self {
            Self::Lease(LeaseError::Stopped(over)) => {
                (StatusCode::GATEWAY_TIMEOUT, Extension(over)).into_response()
            }
            Self::Lease(LeaseError::Taken) | Self::Database(_) => {
                StatusCode::INTERNAL_SERVER_ERROR.into_response()
            }
        }
    }
}

/// Answers for handlers that fail because their request is over. Use it by
/// `middleware::from_fn(answer)`.
pub async fn answer(method: Method, head: HeaderMap, request: Request, next: Next) -> Response {
    let response = next.run(request).await;
    match response.extensions().get::<Terminated>() {
        Some(over) => over.answer(&method, &head),
        None => response,
    }
}
