//! Tests of the queue in front of a service. They run in tokio's paused time: no test really waits,
//! and every measured time is exact.

use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use bywash_tower::{
    Admission, AdmissionError, AdmissionLayer, AdmissionSettings, Admitting, Class, Controller,
    TerminateLayer, Terminated, Tier,
};
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use tokio::task::{JoinHandle, yield_now};
use tokio::time::{Instant, sleep};
use tower_layer::Layer;
use tower_service::Service;

use crate::{millis, secs};

type Answer = Result<Response<Full<Bytes>>, Terminated>;

/// A service that takes one second for each request and records the path of the request.
#[derive(Clone, Default)]
struct Works(Arc<Mutex<Vec<String>>>);

impl Service<Request<()>> for Works {
    type Response = Response<Full<Bytes>>;
    type Error = Terminated;
    type Future = Pin<Box<dyn Future<Output = Answer> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Terminated>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<()>) -> Self::Future {
        let path = request.uri().path().to_owned();
        self.0.lock().unwrap().push(path.clone());
        Box::pin(async move {
            sleep(secs(1)).await;
            assert_ne!(path, "/panics", "as it is to");
            Ok(Response::default())
        })
    }
}

struct Site {
    admission: Admission,
    service: Admitting<Works>,
    works: Works,
}

impl Site {
    fn new(settings: &AdmissionSettings) -> Self {
        let (admission, works) = (Admission::new(settings).unwrap(), Works::default());
        let layer = AdmissionLayer::by(&admission, &["buy", "page"], |_, uri| match uri.path() {
            "/untouched" => None,
            path if path.starts_with("/buy") => Some(0),
            _ => Some(1),
        });
        let service = layer.unwrap().layer(works.clone());
        Self { admission, service, works }
    }

    /// Sends a request to `path`, and returns the task that waits for its response.
    async fn ask(&mut self, path: &str) -> JoinHandle<Answer> {
        let asked = tokio::spawn(self.service.call(get(path)));
        yield_now().await;
        asked
    }

    fn counts(&self) -> (u32, u32, u64) {
        let stats = self.admission.stats();
        (stats.running, stats.waiting, stats.refused)
    }

    fn worked(&self) -> Vec<String> {
        self.works.0.lock().unwrap().clone()
    }
}

fn get(path: &str) -> Request<()> {
    Request::builder().uri(path).body(()).unwrap()
}

fn one_slot(places: &str) -> AdmissionSettings {
    AdmissionSettings::new(1)
        .class("buy", Tier::Transaction, 5.0)
        .class("page", Tier::Browsing, 1.0)
        .scheduler("session-first", &[("capacity", places), ("floor_share", "0")])
}

async fn status(asked: JoinHandle<Answer>) -> StatusCode {
    asked.await.unwrap().unwrap().status()
}

#[tokio::test(start_paused = true)]
async fn who_finds_no_slot_waits_for_one() {
    let mut site = Site::new(&one_slot("10"));
    let start = Instant::now();
    let (first, second) = (site.ask("/a").await, site.ask("/b").await);
    assert_eq!(site.counts(), (1, 1, 0));
    assert_eq!((status(first).await, start.elapsed()), (StatusCode::OK, secs(1)));
    assert_eq!((status(second).await, start.elapsed()), (StatusCode::OK, secs(2)));
    assert_eq!(site.counts(), (0, 0, 0));
}

#[tokio::test(start_paused = true)]
async fn who_buys_comes_first_and_who_is_of_no_class_does_not_wait() {
    let mut site = Site::new(&one_slot("10"));
    let mut asked = Vec::new();
    for path in ["/a", "/b", "/buy", "/untouched"] {
        asked.push(site.ask(path).await);
    }
    for one in asked {
        assert_eq!(status(one).await, StatusCode::OK);
    }
    assert_eq!(site.worked(), ["/a", "/untouched", "/buy", "/b"]);
}

#[tokio::test(start_paused = true)]
async fn the_newest_come_first_once_the_oldest_have_waited_long() {
    // Overload begins when a request has waited for more than a tenth of the patience, here 400 ms.
    let impatient = [("patience", "4s"), ("floor_share", "0")];
    let mut site = Site::new(&one_slot("10").scheduler("session-first", &impatient));
    let mut asked = vec![site.ask("/a").await];
    sleep(millis(500)).await;
    for path in ["/b", "/c", "/d"] {
        asked.push(site.ask(path).await);
    }
    for one in asked {
        assert_eq!(status(one).await, StatusCode::OK);
    }
    assert_eq!(site.worked(), ["/a", "/d", "/c", "/b"]);
}

#[tokio::test(start_paused = true)]
async fn the_worst_is_evicted_from_a_full_queue_and_told_when_to_come_again() {
    let mut site = Site::new(&one_slot("1"));
    let (runs, waits) = (site.ask("/a").await, site.ask("/b").await);
    let buys = site.ask("/buy").await;
    let refused = waits.await.unwrap().unwrap();
    assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert!(refused.headers()["retry-after"].to_str().unwrap().parse::<u64>().unwrap() >= 1);
    assert_eq!(refused.headers()["cache-control"], "no-store");
    // Every waiting request has at least the standing of the new one, so the new one is refused.
    assert_eq!(status(site.ask("/c").await).await, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(site.counts(), (1, 1, 2));
    assert_eq!((status(runs).await, status(buys).await), (StatusCode::OK, StatusCode::OK));
    assert_eq!(site.worked(), ["/a", "/buy"]);
}

#[tokio::test(start_paused = true)]
async fn a_client_who_leaves_gives_back_its_place_or_its_slot() {
    let mut site = Site::new(&one_slot("10"));
    let (runs, leaves, waits) = (site.ask("/a").await, site.ask("/b").await, site.ask("/c").await);
    leaves.abort();
    leaves.await.unwrap_err();
    assert_eq!(site.counts(), (1, 1, 0));
    runs.abort();
    assert_eq!(status(waits).await, StatusCode::OK);
    assert_eq!(site.counts(), (0, 0, 0));
    assert_eq!(site.worked(), ["/a", "/c"]);
    // A request whose future was never polled also gives back its place.
    drop(site.service.call(get("/d")));
    assert_eq!(site.counts(), (0, 0, 0));
}

#[tokio::test(start_paused = true)]
async fn who_panics_gives_its_slot_back() {
    let mut site = Site::new(&one_slot("10"));
    let (panics, waits) = (site.ask("/panics").await, site.ask("/b").await);
    assert!(AssertUnwindSafe(panics).0.await.unwrap_err().is_panic());
    assert_eq!(status(waits).await, StatusCode::OK);
    assert_eq!(site.counts(), (0, 0, 0));
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_longer_than_he_may() {
    let mut site = Site::new(&one_slot("10").max_wait(millis(300)));
    let start = Instant::now();
    let (runs, waits) = (site.ask("/a").await, site.ask("/b").await);
    assert_eq!(status(waits).await, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(start.elapsed(), millis(300));
    assert_eq!((status(runs).await, site.counts()), (StatusCode::OK, (0, 0, 1)));
}

#[tokio::test(start_paused = true)]
async fn within_termination_waiting_is_part_of_a_requests_time_and_who_is_refused_was_lost() {
    let class = Class::new("search", millis(100), Duration::from_millis(1500));
    let controller = Controller::new([class]).unwrap();
    let terminates = TerminateLayer::new(&controller, "search").unwrap();
    let mut site = Site::new(&one_slot("1"));
    let mut service = terminates.layer(site.service.clone());
    let start = Instant::now();
    let runs = tokio::spawn(service.call(get("/a")));
    yield_now().await;
    let waits = tokio::spawn(service.call(get("/b")));
    yield_now().await;
    assert_eq!(
        status(tokio::spawn(service.call(get("/c")))).await,
        StatusCode::SERVICE_UNAVAILABLE
    );
    let stats = controller.stats()["search"];
    assert_eq!((stats.arrived, stats.lost), (3, 1));
    assert_eq!(status(runs).await, StatusCode::OK);
    // The request waited for one second and ran for half a second before its deadline ended it.
    assert_eq!(status(waits).await, StatusCode::GATEWAY_TIMEOUT);
    assert!((millis(1500)..millis(1520)).contains(&start.elapsed()));
    assert_eq!(site.counts(), (0, 0, 1));
    assert_eq!(status(site.ask("/d").await).await, StatusCode::OK);
}

#[test]
fn settings_that_make_no_sense_are_refused() {
    let wrong = |settings: AdmissionSettings| Admission::new(&settings).unwrap_err();
    let none = AdmissionSettings::new(1);
    assert_eq!(wrong(none.clone()), AdmissionError::Classes);
    let page = none.class("page", Tier::Browsing, 1.0);
    assert_eq!(wrong(page.clone().class("page", Tier::Browsing, 1.0)), AdmissionError::Classes);
    for scheduler in ["what", "lifo-pri"] {
        assert_eq!(
            wrong(page.clone().scheduler(scheduler, &[])),
            AdmissionError::Scheduler(scheduler.into())
        );
    }
    let signal = page.clone().scheduler("session-first", &[("signal", "cpu")]);
    assert_eq!(wrong(signal), AdmissionError::Scheduler("session-first".into()));
    let capacity = wrong(page.clone().scheduler("session-first", &[("capacity", "0")]));
    assert!(matches!(capacity, AdmissionError::Parameters(_)), "{capacity}");
    let nobody = AdmissionSettings::new(0).class("page", Tier::Browsing, 1.0);
    assert_eq!(wrong(nobody), AdmissionError::Limit);
    let admission = Admission::new(&page).unwrap();
    assert!(AdmissionLayer::new(&admission, "page").is_ok());
    let unknown = AdmissionLayer::new(&admission, "buy").err();
    assert_eq!(unknown, Some(AdmissionError::Unknown("buy".into())));
}
