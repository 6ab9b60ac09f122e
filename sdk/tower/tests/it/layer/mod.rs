//! Tests of the layer around a service. They run in tokio's paused time: no test really waits, and
//! every measured time is exact.

mod told;

use std::future::pending;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use bywash_tower::{
    Class, Controller, HEADER, LeaseError, Reason, Running, Stats, TerminateLayer, Terminated,
    Token,
};
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, timeout};
use tower_layer::Layer;
use tower_service::Service;

use crate::{millis, secs};

type Body = Full<Bytes>;
type Answer<E = Terminated> = Result<Response<Body>, E>;
type Boxed<E> = Pin<Box<dyn Future<Output = Answer<E>> + Send>>;

/// A service that calls a function for each request.
#[derive(Clone)]
pub(crate) struct Handler<F>(pub(crate) F);

impl<F, A, E> Service<Request<()>> for Handler<F>
where
    F: FnMut(Request<()>) -> A,
    A: Future<Output = Answer<E>> + Send + 'static,
{
    type Response = Response<Body>;
    type Error = E;
    type Future = Boxed<E>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), E>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<()>) -> Self::Future {
        Box::pin((self.0)(request))
    }
}

struct Site {
    controller: Controller,
    layer: TerminateLayer,
}

impl Site {
    fn new(run_min: Duration, run_max: Duration) -> Self {
        let class = Class::new("search", run_min, run_max);
        Self::of(Controller::new([class]).unwrap())
    }

    fn of(controller: Controller) -> Self {
        let layer = TerminateLayer::new(&controller, "search").unwrap();
        Self { controller, layer }
    }

    fn run<A>(
        &self,
        request: Request<()>,
        handler: impl FnMut(Request<()>) -> A,
    ) -> Running<Boxed<Terminated>>
    where
        A: Future<Output = Answer> + Send + 'static,
    {
        self.layer.layer(Handler(handler)).call(request)
    }

    fn stats(&self) -> Stats {
        self.controller.stats()["search"]
    }
}

fn get() -> Request<()> {
    Request::new(())
}

fn with_deadline(text: &str) -> Request<()> {
    Request::builder().header(HEADER, text).body(()).unwrap()
}

fn token(request: &Request<()>) -> Token {
    request.extensions().get::<Token>().unwrap().clone()
}

fn ok() -> std::future::Ready<Answer> {
    std::future::ready(Ok(Response::new(Body::from("done"))))
}

async fn text(answer: Answer) -> (StatusCode, String) {
    let response = answer.unwrap();
    let status = response.status();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

#[tokio::test(start_paused = true)]
async fn a_long_handler_is_dropped_at_its_threshold_and_a_short_one_is_done() {
    let site = Site::new(secs(1), secs(9));
    let start = Instant::now();
    let response = site.run(get(), |_| pending()).await.unwrap();
    assert_eq!(start.elapsed().as_millis() / 10, 900, "within ten milliseconds");
    assert_eq!(response.status(), StatusCode::GATEWAY_TIMEOUT);
    assert_eq!(response.headers()["retry-after"], "10");
    assert_eq!(response.headers()["cache-control"], "no-store");
    assert!(!response.headers().contains_key("proxy-status"));
    let (_, body) = text(Ok(response)).await;
    assert!(body.ends_with("(ran_too_long)\n"), "{body}");
    assert_eq!(text(site.run(get(), |_| ok()).await).await.0, StatusCode::OK);
    let stats = site.stats();
    assert_eq!((stats.arrived, stats.lost, stats.terminated, stats.running), (2, 1, 1, 0));
}

#[tokio::test(start_paused = true)]
async fn a_checkpoint_that_fails_becomes_the_answer() {
    let site = Site::new(secs(1), secs(9));
    let answer = site.run(get(), |request| async move {
        let token = token(&request);
        token.only_at_checkpoints();
        sleep(secs(20)).await;
        token.checkpoint()?;
        ok().await
    });
    assert_eq!(text(answer.await).await.0, StatusCode::GATEWAY_TIMEOUT);
    assert_eq!(site.stats().lost, 1);
}

#[tokio::test(start_paused = true)]
async fn who_cancels_termination_is_not_dropped() {
    let site = Site::new(secs(1), secs(9));
    let answer = site.run(get(), |request| async move {
        token(&request).cancel_termination()?;
        sleep(secs(100)).await;
        ok().await
    });
    assert_eq!(text(answer.await).await.0, StatusCode::OK);
    assert_eq!((site.stats().deferred, site.stats().lost), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn what_has_come_counts_even_if_it_was_overdue_in_the_same_moment() {
    let site = Site::new(secs(1), secs(9));
    let answer = site.run(get(), |_| async {
        // The handler becomes ready in the same poll in which it becomes overdue.
        sleep(secs(9)).await;
        ok().await
    });
    assert_eq!(text(answer.await).await.0, StatusCode::OK);
    assert_eq!(site.stats().lost, 0);
}

#[tokio::test(start_paused = true)]
async fn a_falling_threshold_reaches_who_runs() {
    let site = Site::new(secs(1), secs(100));
    let class = site.controller.class("search").unwrap();
    let start = Instant::now();
    let running = site.run(get(), |_| pending());
    (0..100).for_each(|_| class.lost());
    assert_eq!(text(running.await).await.0, StatusCode::GATEWAY_TIMEOUT);
    assert_eq!(start.elapsed().as_secs(), 10, "the end of the interval");
}

#[tokio::test(start_paused = true)]
async fn a_rising_threshold_reaches_who_runs() {
    let site = Site::new(secs(1), secs(15));
    let class = site.controller.class("search").unwrap();
    (0..100).for_each(|_| class.lost());
    sleep(millis(19_500)).await;
    let start = Instant::now();
    assert_eq!(text(site.run(get(), |_| pending()).await).await.0, StatusCode::GATEWAY_TIMEOUT);
    assert_eq!(start.elapsed().as_secs(), 15);
}

#[tokio::test(start_paused = true)]
async fn tiny_deadlines_end_their_own_requests_and_lower_no_threshold() {
    let site = Site::new(secs(1), secs(9));
    for deadline in ["0", "1", "500"] {
        let (status, body) = text(site.run(with_deadline(deadline), |_| pending()).await).await;
        assert_eq!(status, StatusCode::GATEWAY_TIMEOUT);
        assert!(body.ends_with("(deadline)\n"), "{body}");
    }
    let response = site.run(with_deadline("0"), |_| ok()).await.unwrap();
    assert!(!response.headers().contains_key("retry-after"));
    assert_eq!(response.headers()["cache-control"], "no-store");
    assert_eq!((site.stats().deadline, site.stats().lost), (4, 0));
    sleep(secs(10)).await;
    assert_eq!(site.stats().threshold, secs(9));
}

#[tokio::test(start_paused = true)]
async fn who_comes_with_nothing_left_does_not_begin() {
    let site = Site::new(secs(1), secs(9));
    let answer = site.run(with_deadline("0"), |_| async { panic!("it ran") });
    assert_eq!(text(answer.await).await.0, StatusCode::GATEWAY_TIMEOUT);
}

#[tokio::test(start_paused = true)]
async fn a_future_that_is_dropped_was_left_and_a_thread_that_works_for_it_is_told() {
    let site = Site::new(secs(1), secs(9));
    let (tell, told) = std::sync::mpsc::channel();
    let running = site.run(get(), |request| {
        tell.send(token(&request)).unwrap();
        pending()
    });
    let token = told.recv().unwrap();
    assert_eq!(token.checkpoint(), Ok(()));
    drop(running);
    assert_eq!(token.checkpoint().unwrap_err().reason, Reason::ClientLeft);
    let stats = site.stats();
    assert_eq!((stats.client_left, stats.lost, stats.running), (1, 0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_request_of_no_class_passes_untouched() {
    let layer = TerminateLayer::by(|_, _| None);
    let mut service = layer.layer(Handler(|request: Request<()>| async move {
        assert!(request.extensions().get::<Token>().is_none());
        sleep(secs(10_000)).await;
        ok().await
    }));
    assert_eq!(text(service.call(get()).await).await.0, StatusCode::OK);
}

#[tokio::test(start_paused = true)]
async fn of_two_hundred_at_once_nothing_stays_behind() {
    // Every token holds a reference to this clock, so that a leaked token is detected.
    let clock = Arc::new(Instant::now());
    let held = Arc::downgrade(&clock);
    let class = Class::new("search", secs(1), secs(9));
    let site = Site::of(Controller::with_clock([class], move || clock.elapsed()).unwrap());
    let mut running = tokio::task::JoinSet::new();
    for number in 0..200 {
        running.spawn(site.run(get(), move |request| async move {
            let _token = token(&request);
            sleep(if number % 2 == 0 { secs(1) } else { secs(1000) }).await;
            ok().await
        }));
    }
    let answers = running.join_all().await;
    let done = answers.iter().filter(|answer| answer.as_ref().unwrap().status() == StatusCode::OK);
    assert_eq!(done.count(), 100);
    assert_eq!((site.stats().running, site.stats().lost), (0, 100));
    assert_eq!(tokio::runtime::Handle::current().metrics().num_alive_tasks(), 0);
    drop(site);
    assert_eq!(held.strong_count(), 0, "a token is held");
}

/// The errors of a handler: its own error, and one whose source is the error of a checkpoint.
#[derive(Debug, thiserror::Error)]
enum Failed {
    #[error("the disk is full")]
    Disk,
    #[error("stopped")]
    Stopped(#[from] Terminated),
}

#[tokio::test(start_paused = true)]
async fn of_the_errors_only_that_of_a_checkpoint_is_answered_for() {
    type Any = Box<dyn std::error::Error + Send + Sync>;
    let site = Site::new(secs(1), secs(9));
    let long = async |request: Request<()>| {
        let token = token(&request);
        token.only_at_checkpoints();
        sleep(secs(20)).await;
        token.checkpoint().unwrap_err()
    };
    let status = |answer: Result<Response<Body>, Any>| answer.unwrap().status();
    let plain = Handler(|request| async move { Err(Any::from(long(request).await)) });
    let answer = site.layer.layer(plain).call(get()).await;
    assert_eq!(status(answer), StatusCode::GATEWAY_TIMEOUT);
    let stopped =
        Handler(|request| async move { Err(Any::from(Failed::from(long(request).await))) });
    let answer = site.layer.layer(stopped).call(get()).await;
    assert_eq!(status(answer), StatusCode::GATEWAY_TIMEOUT);
    let lease =
        Handler(|request| async move { Err(Any::from(LeaseError::from(long(request).await))) });
    let answer = site.layer.layer(lease).call(get()).await;
    assert_eq!(status(answer), StatusCode::GATEWAY_TIMEOUT);
    let disk = Handler(|request| async move {
        long(request).await;
        Err(Failed::Disk)
    });
    let answer = site.layer.layer(disk).call(get()).await;
    assert!(matches!(answer, Err(Failed::Disk)), "its own words: {answer:?}");
    assert_eq!(site.stats().lost, 4);
}

#[tokio::test(start_paused = true)]
async fn an_error_of_a_request_that_goes_on_stays_an_error() {
    let site = Site::new(secs(1), secs(9));
    let error = Terminated { class: "else".into(), reason: Reason::Deadline, retry_after: secs(1) };
    let given = error.clone();
    let answer = site.run(get(), move |_| std::future::ready(Err(given.clone()))).await;
    assert_eq!(answer.unwrap_err(), error);
}

/// Polls a future, and drops it after the time `after`, as a server does when the client leaves.
async fn leave(running: impl Future, after: Duration) {
    assert!(timeout(after, running).await.is_err(), "it has answered");
}

/// Runs a handler of a hundred seconds whose client leaves after five seconds, and returns what the
/// handler's checkpoint reports then. The handler first calls `says` with its token.
async fn left_by_its_client(
    site: &Site,
    says: impl Fn(&Token),
) -> oneshot::Receiver<Result<(), Terminated>> {
    let (tell, told) = oneshot::channel();
    let mut tell = Some(tell);
    let running = site.run(get(), |request| {
        let tell = tell.take().unwrap();
        says(&token(&request));
        async move {
            sleep(secs(100)).await;
            tell.send(token(&request).checkpoint()).unwrap();
            ok().await
        }
    });
    leave(running, secs(5)).await;
    told
}

#[tokio::test(start_paused = true)]
async fn who_cancels_termination_finishes_although_its_client_leaves() {
    let site = Site::new(secs(1), secs(9));
    let told = left_by_its_client(&site, |token| token.cancel_termination().unwrap()).await;
    assert_eq!(site.stats().running, 1, "it goes on");
    assert_eq!(told.await, Ok(Ok(())));
    tokio::task::yield_now().await;
    let stats = site.stats();
    assert_eq!((stats.running, stats.deferred, stats.client_left), (0, 1, 0));
}

#[test]
fn who_cancels_termination_is_dropped_where_no_runtime_is_any_more() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (site, running) = runtime.block_on(async {
        let site = Site::new(secs(1), secs(3600));
        let mut running = Box::pin(site.run(get(), |request| async move {
            token(&request).cancel_termination()?;
            pending().await
        }));
        assert!(timeout(millis(1), running.as_mut()).await.is_err());
        (site, running)
    });
    assert_eq!(site.stats().running, 1);
    drop((running, runtime));
    assert_eq!((site.stats().running, site.stats().client_left), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn who_panics_has_not_been_left_and_does_not_go_on() {
    let site = Site::new(secs(1), secs(9));
    let running = || {
        site.run(get(), |request| async move {
            token(&request).cancel_termination()?;
            sleep(secs(5)).await;
            panic!("as it is to")
        })
    };
    assert!(tokio::spawn(running()).await.unwrap_err().is_panic());
    leave(running(), secs(1)).await;
    sleep(secs(5)).await;
    let stats = site.stats();
    assert_eq!((stats.running, stats.deferred, stats.client_left), (0, 2, 0));
    assert_eq!(tokio::runtime::Handle::current().metrics().num_alive_tasks(), 0);
}

#[tokio::test(start_paused = true)]
async fn of_two_layers_the_outer_one_decides() {
    let (outer, inner) = (Site::new(secs(1), secs(9)), Site::new(secs(1), secs(2)));
    let service = Handler(|request: Request<()>| async move {
        assert_eq!(token(&request).left(), Some(secs(9)));
        sleep(secs(5)).await;
        ok().await
    });
    let mut service = outer.layer.layer(inner.layer.layer(service));
    assert_eq!(text(service.call(get()).await).await.0, StatusCode::OK);
    assert_eq!((outer.stats().arrived, inner.stats().arrived), (1, 0));
    // A request without a class in the outer layer passes through it, and the inner layer's class
    // counts.
    let inside = inner.layer.layer(Handler(|_| pending()));
    let mut service = TerminateLayer::by(|_, _| None).layer(inside);
    assert_eq!(text(service.call(get()).await).await.0, StatusCode::GATEWAY_TIMEOUT);
    assert_eq!((outer.stats().arrived, inner.stats().lost), (1, 1));
}
