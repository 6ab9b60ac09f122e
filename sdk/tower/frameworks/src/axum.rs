//! The answer of axum to a handler that fails, because its request is over or its query has failed.

use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use bywash_tower::LeaseError;

use crate::sqlx::Failure;

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        match self {
            Self::Lease(LeaseError::Stopped(over)) => {
                over.answer(&Method::GET, &HeaderMap::default())
            }
            Self::Lease(LeaseError::Taken) | Self::Database(_) => {
                StatusCode::INTERNAL_SERVER_ERROR.into_response()
            }
        }
    }
}
