//! The life of one request on the HTTP side: route, read, queue, wait, respond.
//!
//! It is one future. Whatever ends it early drops [`Waiting`], which tells the worker.

use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use tokio::sync::oneshot;
use tokio::time;

use super::respond;
use super::route::{Route, route};
use super::{Refusal, page};
use crate::Stage;
use crate::ask::Ask;
use crate::counters::Counters;
use crate::house::House;
use crate::store::Answer;

/// The longest body read. (hyper bounds the request line to the same 64 KiB.)
const MAX_BODY: usize = 64 * 1024;

/// How long a client may take to send its body.
const BODY_TIME: Duration = Duration::from_secs(30);

/// Answers one request.
pub(super) async fn exchange(
    house: &House,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let response = match route(request.method(), request.uri().path()) {
        Ok(Route::Stage(stage)) => visit(house, stage, request).await,
        Ok(Route::Stats) => Ok(respond::stats(&house.stats())),
        Ok(Route::Health) => Ok(respond::health()),
        Err(refusal) => Err(refusal),
    };
    Ok(response.unwrap_or_else(respond::refusal))
}

async fn visit(
    house: &House,
    stage: Stage,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Refusal> {
    let (head, body) = request.into_parts();
    // The body is read to its end first: hyper notices a departure only when nothing is left to
    // read from the client.
    let body = read(body).await?;
    let ask = Ask::read(stage, &head, &body)?;
    let waiting = Waiting { answer: house.offer(ask)?, counters: &house.counters, is_over: false };
    waiting.answer().await.map(|answer| respond::answer(&answer, page::title(stage)))
}

async fn read(body: Incoming) -> Result<Bytes, Refusal> {
    let whole = time::timeout(BODY_TIME, Limited::new(body, MAX_BODY).collect());
    match whole.await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<http_body_util::LengthLimitError>() => Err(Refusal::TooLarge),
        Ok(Err(_)) => Err(Refusal::BrokenBody),
        Err(_) => Err(Refusal::SlowBody),
    }
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
