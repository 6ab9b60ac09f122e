//! The life of one request on the HTTP side: route, read, queue, wait, respond.

use bywash_site::{Application, Body, Waiting, read};
use http::{Request, Response};
use hyper::body::Incoming;

use super::Refusal;
use super::respond;
use super::route::{Route, route};
use crate::Service;
use crate::ask::Ask;
use crate::house::House;

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
    let waiting = Waiting::new(answer, house.counters.departures());
    waiting.answer().await.map(respond::outcome).ok_or(Refusal::Closing)
}
