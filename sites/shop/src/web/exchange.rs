//! The life of one request on the HTTP side: route, read, queue, wait, respond.
//!
//! It is one future. Whatever ends it early drops [`Waiting`], which tells the worker.

use bywash_site::{Application, Body, read};
use http::{Request, Response};
use hyper::body::Incoming;
use tokio::sync::oneshot;

use super::respond;
use super::route::{Route, route};
use super::{Refusal, page};
use crate::Stage;
use crate::ask::Ask;
use crate::counters::Counters;
use crate::house::House;
use crate::store::Answer;

impl Application for House {
    async fn answer(&self, request: Request<Incoming>) -> Response<Body> {
        let response = match route(request.method(), request.uri().path()) {
            Ok(Route::Stage(stage)) => visit(self, stage, request).await,
            Ok(Route::Stats) => Ok(respond::stats(&self.stats())),
            Ok(Route::Health) => Ok(respond::health()),
            Err(refusal) => Err(refusal),
        };
        response.unwrap_or_else(respond::refusal)
    }
}

async fn visit(
    house: &House,
    stage: Stage,
    request: Request<Incoming>,
) -> Result<Response<Body>, Refusal> {
    let (head, body) = request.into_parts();
    let body = read(body).await.map_err(Refusal::Body)?;
    let ask = Ask::read(stage, &head, &body)?;
    let waiting = Waiting { answer: house.offer(ask)?, counters: &house.counters, is_over: false };
    waiting.answer().await.map(|answer| respond::answer(&answer, page::title(stage)))
}

/// A client waiting for its answer. Dropped before the answer came, it counts a departure.
struct Waiting<'a> {
    answer: oneshot::Receiver<Answer>,
    counters: &'a Counters,
    is_over: bool,
}

impl Waiting<'_> {
    async fn answer(mut self) -> Result<Answer, Refusal> {
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
