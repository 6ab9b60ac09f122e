//! Handles one request on the HTTP side: parses and queues the request, waits for its answer, and
//! responds.
//!
//! A request is one future. If the client leaves, the future is dropped early. That also drops the
//! request's [`PendingReply`], from which the worker learns of the departure.

use bytes::Bytes;
use bywash_levels::Gateway;
use bywash_site::{Application, Body, Form, JSON, PendingReply, Refusal, respond as plain};
use http::request::Parts;
use http::{HeaderValue, Method, Response, StatusCode};
use serde::Serialize;

use super::respond;
use crate::app_state::AppState;
use crate::request::{ParsedRequest, Route};
use crate::values::Timestamp;

/// The route of a request.
#[derive(Debug)]
pub(crate) enum Page {
    /// The statistics, which are answered without waiting in a queue.
    Stats,
    Queued(Route),
}

impl Application for AppState {
    type Page = Page;

    fn page(path: &str) -> Option<(Page, Method)> {
        Self::pages(path).into_iter().next()
    }

    fn pages(path: &str) -> Vec<(Page, Method)> {
        if path == "/stats" {
            return vec![(Page::Stats, Method::GET)];
        }
        let routes = Route::at(path).into_iter();
        routes.map(|(route, method)| (Page::Queued(route), method)).collect()
    }

    async fn handle(
        &self,
        page: Page,
        head: Parts,
        body: Bytes,
    ) -> Result<Response<Body>, Refusal> {
        let route = match page {
            Page::Stats => {
                let stats = serde_json::to_string(&self.read_stats()).unwrap_or_default();
                return Ok(plain(StatusCode::OK, JSON, stats));
            }
            Page::Queued(route) => route,
        };
        let form = Form::read(head.uri.query().unwrap_or_default(), &body);
        let field = head.headers.get(Gateway::FIELD).map(HeaderValue::as_bytes);
        let level = self.level(field);
        let request = ParsedRequest::read(
            route,
            &form,
            level,
            self.options.level_parameter,
            Timestamp::now(),
        )?;
        let pending = PendingReply::new(self.offer(request)?, self.counters.departures());
        pending.answer().await.map(respond::answer).ok_or(Refusal::Closing)
    }

    fn stats(&self) -> impl Serialize {
        self.read_stats()
    }
}
