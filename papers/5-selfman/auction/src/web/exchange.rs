//! Handles one request on the HTTP side: queues it, waits for its answer, and responds.

use bytes::Bytes;
use bywash_site::{Application, Body, PendingReply, Refusal};
use http::request::Parts;
use http::{Method, Response};
use serde::Serialize;

use super::respond;
use crate::Page;
use crate::app_state::AppState;
use crate::request::Operation;

impl Application for AppState {
    type Page = Page;

    fn page(path: &str) -> Option<(Page, Method)> {
        Page::at(path).map(|page| (page, page.method()))
    }

    async fn handle(
        &self,
        page: Page,
        head: Parts,
        body: Bytes,
    ) -> Result<Response<Body>, Refusal> {
        let operation = Operation::read(page, &head, &body)?;
        let receiver = self.queue.offer(page.index(), operation)?;
        let pending = PendingReply::new(receiver, self.queue.counters.departures());
        pending.answer().await.map(respond::response).ok_or(Refusal::Closing)
    }

    fn stats(&self) -> impl Serialize {
        self.read_stats()
    }
}
