//! Tests of leases with the real daemon and real databases, over tokio-postgres and `mysql_async`.
//! They check which query is cancelled, and what becomes of its connection.
//! `scripts/with-databases` starts the databases. The variable `BYWASH` names the daemon's program.
//! Without them these tests print `NOT TESTED`.

mod site;

use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use bywash_tower::{DatabaseName, LeaseError, Reason, TerminateLayer, Terminated, Token};
use http::{Request, Response};
use http_body_util::Full;
use tower_layer::Layer;
use tower_service::Service;

use crate::millis;

use site::{Connection, DatabaseKind, End, Site, leave_after, patiently};

/// Runs a test once for each database that is available.
fn with_each<F: Future<Output = ()>>(test: impl Fn(Site) -> F) {
    for kind in DatabaseKind::ALL {
        let Some(site) = Site::new(kind) else { continue };
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(test(site));
    }
}

fn shop() -> DatabaseName {
    "shop".parse().unwrap()
}

#[test]
fn a_query_that_is_stopped_is_cancelled_and_its_connection_serves_others() {
    with_each(|site| async move {
        let token = site.request("r1");
        let connection = site.connect().await;
        let number = connection.number;
        let mut leased =
            site.stop_client.lease(&token, &shop(), number, connection, drop).await.unwrap();
        let watch = site.watch().await;
        let stop = async {
            watch.until_works(number).await;
            token.leave();
        };
        let (end, ()) = tokio::join!(leased.run(site.kind.long()), stop);
        assert_eq!(end, End::Cancelled);
        assert_eq!(token.checkpoint().unwrap_err().reason, Reason::ClientLeft);
        let mut connection = leased.release().await.expect("nothing is aimed at it");
        assert_eq!(connection.run("SELECT 1").await, End::Done);
        assert_eq!(site.stop_client.stats().closed, 0);
    });
}

/// A handler with a lease, as a tower service. Its future is dropped when its client leaves.
#[derive(Clone)]
struct Handler<F>(F);

impl<F, A> Service<Request<()>> for Handler<F>
where
    F: FnMut(Token) -> A,
    A: Future<Output = ()> + Send + 'static,
{
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future =
        std::pin::Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(
        &mut self,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Result<(), Infallible>> {
        std::task::Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<()>) -> Self::Future {
        let handled = (self.0)(request.extensions().get::<Token>().unwrap().clone());
        Box::pin(async move {
            handled.await;
            Ok(Response::default())
        })
    }
}

#[test]
fn a_future_that_is_dropped_with_its_client_leaves_no_query_and_no_connection() {
    with_each(|site| async move {
        site.until_cancelled(async || is_left_by_its_client(&site).await).await;
    });
}

/// Runs a query whose future is dropped with its client, and checks the end of its connection.
async fn is_left_by_its_client(site: &Site) {
    let before = site.stop_client.stats();
    let connection = site.connect().await;
    let (number, kind, stop_client) = (connection.number, site.kind, site.stop_client.clone());
    let (closed, is_closed) = tokio::sync::oneshot::channel();
    let mut own = Some((connection, closed));
    let layer = TerminateLayer::new(&site.controller, "search").unwrap();
    let mut service = layer.layer(Handler(move |token: Token| {
        let ((connection, closed), stop_client) = (own.take().unwrap(), stop_client.clone());
        async move {
            let close = move |connection: Connection| {
                drop(connection);
                closed.send(()).unwrap();
            };
            let mut leased =
                stop_client.lease(&token, &shop(), number, connection, close).await.unwrap();
            leased.run(kind.long()).await;
        }
    }));
    let request = Request::builder().header(bywash_tower::REQUEST_HEADER, "r1");
    let handling = tokio::spawn(service.call(request.body(()).unwrap()));
    let watch = site.watch().await;
    watch.until_works(number).await;
    handling.abort();
    patiently(is_closed).await.unwrap();
    watch.until_rests(number).await;
    // The stop is counted when the daemon answers it, which may be a moment after the release.
    patiently(async {
        while site.stop_client.stats().stops == before.stops {
            tokio::time::sleep(millis(1)).await;
        }
    })
    .await;
    let stats = site.stop_client.stats();
    assert_eq!((stats.stops, stats.closed), (before.stops + 1, before.closed + 1));
}

#[test]
fn a_request_that_was_stopped_begins_no_query() {
    with_each(|site| async move {
        site.gateway().await.stop("r1").await;
        let (token, connection) = (site.request("r1"), site.connect().await);
        let leased =
            site.stop_client.lease(&token, &shop(), connection.number, connection, drop).await;
        let Err(LeaseError::Stopped(Terminated { reason, .. })) = leased else { panic!() };
        assert_eq!(reason, Reason::ClientLeft);
    });
}

#[test]
fn a_connection_that_another_has_leased_is_closed() {
    with_each(|site| async move {
        let connection = site.connect().await;
        let mut other = site.gateway().await;
        other.ask(&format!("LEASE other shop {}", connection.number)).await;
        let (closed, is_closed) = tokio::sync::oneshot::channel();
        let close = |connection| {
            drop::<Connection>(connection);
            closed.send(()).unwrap();
        };
        let token = site.request("r1");
        let leased =
            site.stop_client.lease(&token, &shop(), connection.number, connection, close).await;
        assert!(matches!(leased.err(), Some(LeaseError::Taken)));
        is_closed.await.unwrap();
    });
}

#[test]
fn a_daemon_that_dies_leaves_no_connection_that_something_is_aimed_at() {
    with_each(|mut site| async move {
        let (token, connection) = (site.request("r1"), site.connect().await);
        let number = connection.number;
        let leased =
            site.stop_client.lease(&token, &shop(), number, connection, drop).await.unwrap();
        site.daemon.dies();
        assert!(leased.release().await.is_none());
        assert_eq!(site.stop_client.stats().closed, 1);
    });
}

#[test]
fn of_two_requests_that_share_a_connection_only_the_stopped_one_is_hit() {
    with_each(|site| async move {
        let (mut connection, mut hit, mut closed) = (site.connect().await, 0, 0);
        let query = site.kind.long().replace("20", "0.003");
        for round in 0..200_u64 {
            let victim = site.request(&format!("a{round}"));
            let number = connection.number;
            let mut leased =
                site.stop_client.lease(&victim, &shop(), number, connection, drop).await.unwrap();
            // Stop at a different moment of the query in each round, in some rounds after its end.
            let stop = leave_after(victim, Duration::from_micros(round * 25));
            let (end, ()) = tokio::join!(leased.run(&query), stop);
            hit += u32::from(end == End::Cancelled);
            connection = if let Some(connection) = leased.release().await {
                connection
            } else {
                closed += 1;
                site.connect().await
            };
            let innocent = site.request(&format!("b{round}"));
            let number = connection.number;
            let mut leased =
                site.stop_client.lease(&innocent, &shop(), number, connection, drop).await.unwrap();
            assert_eq!(leased.run(&query).await, End::Done, "round {round}");
            connection = match leased.release().await {
                Some(connection) => connection,
                None => site.connect().await,
            };
        }
        println!("{:?}: {hit} of 200 were hit, {closed} connections closed", site.kind);
        assert!(hit > 10, "only {hit} of 200 were hit at all");
    });
}
