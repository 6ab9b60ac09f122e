//! The wiki of the demo with scrapers: a site without orders, sessions or cookies.
//!
//! A page or a history takes one of a fixed number of workers for its demand. Requests wait for a
//! worker in the order in which they came. Like the shop, the wiki works on for clients that have
//! left. The files of a page take no worker.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use bywash_load::DEMAND_HEADER;
use bywash_site::{Application, Body, HTML, Listener, Refusal, add, respond};
use http::header::{CACHE_CONTROL, ETAG};
use http::request::Parts;
use http::{Method, Response, StatusCode};
use serde::Serialize;
use tokio::sync::Semaphore;

use super::super::side::Site;
use crate::shop::BACKLOG;

/// The demand of a request that states none, such as that of a person who tries the wiki.
const USUAL_DEMAND: Duration = Duration::from_millis(40);
/// The longest demand that the wiki accepts.
const LONGEST_DEMAND: Duration = Duration::from_secs(60);
/// The size of a picture, in bytes.
const PICTURE: usize = 20_000;

/// A wiki that serves until it is dropped.
pub(super) struct Wiki {
    listener: Listener,
}

impl Wiki {
    /// Starts a wiki with `workers` workers on a free port of loopback.
    pub(super) fn start(workers: u32) -> Result<Self, bywash_site::ListenError> {
        let mut listener = Listener::listen(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
        let workers = Arc::new(Semaphore::new(workers as usize));
        listener.open("wiki", Arc::new(State { workers, inside: Arc::default() }))?;
        Ok(Self { listener })
    }
}

impl Site for Wiki {
    fn address(&self) -> SocketAddr {
        self.listener.address()
    }
}

struct State {
    /// The workers, each a permit. The semaphore gives permits in the order of requests.
    workers: Arc<Semaphore>,
    /// The number of requests that have a worker or wait for one.
    inside: Arc<AtomicU64>,
}

/// A page of the wiki.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Page {
    Article(u32),
    History(u32),
    Style,
    Picture,
}

impl State {
    /// Occupies a worker for `demand`, as soon as one is free. The work goes on if the caller is
    /// dropped.
    async fn occupy(&self, demand: Duration) -> Result<(), Refusal> {
        if self.inside.load(Ordering::Relaxed) >= BACKLOG as u64 {
            return Err(Refusal::Busy);
        }
        self.inside.fetch_add(1, Ordering::Relaxed);
        let (workers, inside) = (Arc::clone(&self.workers), Arc::clone(&self.inside));
        let work = tokio::spawn(async move {
            let _worker = workers.acquire().await;
            tokio::time::sleep(demand).await;
            inside.fetch_sub(1, Ordering::Relaxed);
        });
        work.await.map_err(|_| Refusal::Closing)
    }
}

impl Application for State {
    type Page = Page;

    fn page(path: &str) -> Option<(Page, Method)> {
        let page = match path {
            "/style.css" => Page::Style,
            "/picture.png" => Page::Picture,
            "/" => Page::Article(1),
            _ => {
                let path = path.strip_prefix("/wiki/")?;
                match path.strip_suffix("/history") {
                    Some(number) => Page::History(number.parse().ok()?),
                    None => Page::Article(path.parse().ok()?),
                }
            }
        };
        Some((page, Method::GET))
    }

    async fn handle(&self, page: Page, head: Parts, _: Bytes) -> Result<Response<Body>, Refusal> {
        match page {
            Page::Style => Ok(file("text/css", "body { max-width: 40em; margin: auto }")),
            Page::Picture => Ok(file("image/png", vec![0; PICTURE])),
            Page::Article(number) => {
                self.occupy(demand(&head)).await?;
                Ok(respond(StatusCode::OK, HTML, text("Page", number)))
            }
            Page::History(number) => {
                self.occupy(demand(&head)).await?;
                Ok(respond(StatusCode::OK, HTML, text("History of page", number)))
            }
        }
    }

    fn stats(&self) -> impl Serialize {
        serde_json::json!({ "inside": self.inside.load(Ordering::Relaxed) })
    }
}

fn demand(head: &Parts) -> Duration {
    let stated =
        head.headers.get(DEMAND_HEADER).and_then(|value| value.to_str().ok()?.parse().ok());
    stated.map_or(USUAL_DEMAND, Duration::from_micros).min(LONGEST_DEMAND)
}

/// Returns the response for a file of a page, which a cache may store.
fn file(kind: &str, body: impl Into<Bytes>) -> Response<Body> {
    let mut response = respond(StatusCode::OK, kind, body);
    add(&mut response, CACHE_CONTROL, "public, max-age=3600");
    add(&mut response, ETAG, "\"1\"");
    response
}

fn text(title: &str, number: u32) -> String {
    let next = number.wrapping_add(1);
    format!(
        "<!doctype html><title>{title} {number}</title><link rel=stylesheet href=/style.css>\
         <h1>{title} {number}</h1><img src=/picture.png alt=\"\">\
         <p><a href=/wiki/{next}>next page</a> <a href=/wiki/{number}/history>history</a></p>"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_an_article_and_a_history() {
        let page = |path| State::page(path).map(|(page, _)| page);
        assert_eq!(page("/wiki/7"), Some(Page::Article(7)));
        assert_eq!(page("/wiki/7/history"), Some(Page::History(7)));
        assert_eq!(page("/style.css"), Some(Page::Style));
        for path in ["/wiki/", "/wiki/x", "/wiki/7/", "/wiki/7/history/", "/x.css"] {
            assert_eq!(page(path), None, "{path}");
        }
    }

    #[tokio::test]
    async fn one_worker_serves_one_request_at_a_time_also_for_clients_that_have_left() {
        let state = State { workers: Arc::new(Semaphore::new(1)), inside: Arc::default() };
        let demand = Duration::from_millis(50);
        let begun = std::time::Instant::now();
        let left = tokio::time::timeout(Duration::from_millis(1), state.occupy(demand)).await;
        assert!(left.is_err());
        assert!(state.occupy(demand).await.is_ok());
        assert!(begun.elapsed() >= demand * 2);
    }
}
