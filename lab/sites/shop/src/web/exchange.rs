//! The HTTP side of one request: code that queues the request, waits for the answer, and responds.
//!
//! The exchange is one future. Anything that ends the future early drops [`PendingReply`], which
//! tells the worker that the client has left.

use bytes::Bytes;
use bywash_site::{Application, Body, PendingReply, Refusal};
use http::request::Parts;
use http::{Method, Response};
use serde::Serialize;

use super::{page, respond};
use crate::Stage;
use crate::app_state::AppState;
use crate::request::ParsedRequest;

impl Application for AppState {
    type Page = Stage;

    fn page(path: &str) -> Option<(Stage, Method)> {
        Stage::at(path).map(|stage| (stage, stage.method()))
    }

    async fn handle(
        &self,
        stage: Stage,
        head: Parts,
        body: Bytes,
    ) -> Result<Response<Body>, Refusal> {
        let request = ParsedRequest::read(stage, &head, &body)?;
        let pending = PendingReply::new(self.offer(request)?, self.counters.departures());
        let answer = pending.answer().await.ok_or(Refusal::Closing)?;
        Ok(respond::answer(&answer, page::title(stage)))
    }

    fn stats(&self) -> impl Serialize {
        self.read_stats()
    }
}
