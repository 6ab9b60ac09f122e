//! The life of one request on the HTTP side: route, read, queue, wait, respond.

use bywash_site::{Application, Body, read};
use http::{Request, Response};
use hyper::body::Incoming;
use tokio::sync::oneshot;

use super::Refusal;
use super::respond;
use super::route::{Route, route};
use crate::Service;
use crate::ask::Ask;
use crate::counters::Counters;
use crate::house::House;
use crate::worker::Outcome;

impl Application for House {
    async fn answer(&self, request: Request<Incoming>) -> Response<Body> {
        let response = match route(request.method(), request.uri().path()) {
            Ok(Route::Service(service)) => visit(self, service, request).await,
            Ok(Route::Stats) => Ok(respond::stats(&self.stats())),
            Ok(Route::Health) => Ok(respond::health()),
            Err(refusal) => Err(refusal),
        };
        response.unwrap_or_else(respond::refusal)
    }
}

async fn visit(
    house: &House,
    service: Service,
    request: Request<Incoming>,
) -> Result<Response<Body>, Refusal> {
    let (head, body) = request.into_parts();
    let body = read(body).await.map_err(Refusal::Body)?;
    let ask = Ask::read(service, &head, &body)?;
    let answer = house.offer(service, ask)?;
    let waiting = Waiting { answer, counters: &house.counters, is_over: false };
    waiting.outcome().await.map(respond::outcome)
}

/// A client waiting for its answer. Dropped before the answer came, it counts a departure; the worker goes on.
struct Waiting<'a> {
    answer: oneshot::Receiver<Outcome>,
    counters: &'a Counters,
    is_over: bool,
}

impl Waiting<'_> {
    async fn outcome(mut self) -> Result<Outcome, Refusal> {
        let answer = (&mut self.answer).await;
        self.is_over = true;
        answer.map_err(|_| Refusal::Closing)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            // Closed before it is counted, so that who sees the count knows that workers see it.
            self.answer.close();
            self.counters.departed();
        }
    }
}
