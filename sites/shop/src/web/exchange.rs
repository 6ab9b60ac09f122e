//! The life of one request on the HTTP side: route, read, queue, wait, respond.
//!
//! It is one future. Whatever ends it early drops [`Waiting`], which tells the worker.

use bywash_site::{Application, Body, Waiting, read};
use http::{Request, Response};
use hyper::body::Incoming;

use super::respond;
use super::route::{Route, route};
use super::{Refusal, page};
use crate::Stage;
use crate::ask::Ask;
use crate::house::House;

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
    let waiting = Waiting::new(house.offer(ask)?, house.counters.departures());
    let answer = waiting.answer().await.ok_or(Refusal::Closing)?;
    Ok(respond::answer(&answer, page::title(stage)))
}
