//! Handles one request on the HTTP side: queues it, waits for its answer, and responds.

use bytes::Bytes;
use bywash_site::{Application, Body, PendingReply, Refusal};
use http::request::Parts;
use http::{Method, Response};
use serde::Serialize;

use super::respond;
use crate::Service;
use crate::app_state::AppState;
use crate::request::ParsedRequest;

impl Application for AppState {
    type Page = Service;

    fn page(path: &str) -> Option<(Service, Method)> {
        Service::at(path).map(|service| (service, service.method()))
    }

    async fn handle(
        &self,
        service: Service,
        head: Parts,
        body: Bytes,
    ) -> Result<Response<Body>, Refusal> {
        let request = ParsedRequest::read(service, &head, &body)?;
        let pending = PendingReply::new(
            self.queue.offer(service.index(), request)?,
            self.queue.counters.departures(),
        );
        pending.answer().await.map(respond::response).ok_or(Refusal::Closing)
    }

    fn stats(&self) -> impl Serialize {
        self.read_stats()
    }
}
