//! Tests of requests to axum and to actix-web: both behave alike.

use std::future::pending;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use actix_web::{App, HttpServer, middleware, web};
use axum::extract::State;
use axum::routing::get;
use axum::{Extension, Router};
use bywash_tower::{Class, Controller, Stats, TerminateLayer, Terminated, Token};
use bywash_tower_frameworks::actix::{HandlerError, terminate};
use bywash_tower_frameworks::axum::answer;
use bywash_tower_frameworks::sqlx::Failure;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::millis;
use crate::site::patiently;

/// The longest time that a class of a test has, which no test waits for.
pub(crate) const NEVER: Duration = Duration::from_secs(3600);

pub(crate) type Query =
    dyn Fn(Token) -> Pin<Box<dyn Future<Output = Result<(), Failure>> + Send>> + Send + Sync;

#[derive(Clone, Copy, Debug)]
pub(crate) enum Framework {
    Axum,
    Actix,
}

/// The handlers of a test, which both frameworks call.
#[derive(Clone)]
struct Handlers {
    events: UnboundedSender<String>,
    query: Arc<Query>,
}

/// A guard that reports why the future of its request was dropped.
struct Drops(Token, UnboundedSender<String>);

impl Drop for Drops {
    fn drop(&mut self) {
        let reason = self.0.reason().map_or("no reason", |reason| reason.name());
        // The receiver is dropped when the test ends.
        let _unheard = self.1.send(format!("dropped {reason}"));
    }
}

impl Handlers {
    async fn wait(self, token: Token) -> String {
        let _drops = Drops(token, self.events.clone());
        self.events.send("begun".into()).unwrap();
        pending().await
    }

    async fn checkpoints(token: Token) -> Result<(), Terminated> {
        loop {
            token.checkpoint()?;
            tokio::task::yield_now().await;
        }
    }

    async fn own(self, token: Token) -> String {
        token.only_at_checkpoints();
        self.events.send("begun".into()).unwrap();
        let over = Self::checkpoints(token).await.unwrap_err();
        // The handler goes on beyond another await.
        tokio::task::yield_now().await;
        let words = format!("own words after {}", over.reason.name());
        self.events.send(words.clone()).unwrap();
        words
    }
}

/// Reports which tasks a handler of actix-web can spawn after its client has left.
async fn spawns(token: Token, events: UnboundedSender<String>) -> &'static str {
    token.only_at_checkpoints();
    events.send("begun".into()).unwrap();
    Handlers::checkpoints(token).await.unwrap_err();
    let local = std::panic::catch_unwind(|| drop(actix_web::rt::spawn(async {})));
    if local.is_err() {
        events.send("actix-web spawns nothing".into()).unwrap();
    }
    tokio::spawn(async move { events.send("tokio spawns".into()).unwrap() });
    ""
}

fn name(token: &Token) -> String {
    token.request().map(ToString::to_string).unwrap()
}

pub(crate) struct Server {
    framework: Framework,
    address: SocketAddr,
    controller: Controller,
    events: UnboundedReceiver<String>,
    /// Ends the server of actix-web, which has threads of its own.
    actix: Option<actix_web::dev::ServerHandle>,
}

impl Server {
    pub(crate) const FRAMEWORKS: [Framework; 2] = [Framework::Axum, Framework::Actix];

    /// Starts a server whose requests may run for `run_max`.
    async fn new(framework: Framework, run_max: Duration) -> Self {
        let class = Class::new("search", millis(50), run_max);
        let controller = Controller::new([class]).unwrap();
        Self::with(framework, &controller, Arc::new(|_| Box::pin(pending()))).await
    }

    pub(crate) async fn with(
        framework: Framework,
        controller: &Controller,
        query: Arc<Query>,
    ) -> Self {
        let layer = TerminateLayer::new(controller, "search").unwrap();
        let (sender, events) = unbounded_channel();
        let handlers = Handlers { events: sender, query };
        let (address, actix) = match framework {
            Framework::Axum => (on_axum(layer, handlers).await, None),
            Framework::Actix => {
                let (address, handle) = on_actix(layer, handlers);
                (address, Some(handle))
            }
        };
        Self { framework, address, controller: controller.clone(), events, actix }
    }

    pub(crate) async fn ask(&self, path: &str, fields: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let head = format!("GET {path} HTTP/1.1\r\nhost: a\r\n{fields}connection: close\r\n\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        stream
    }

    /// Sends a request and returns the whole response, with header names in lower case.
    async fn answer(&self, path: &str, fields: &str) -> String {
        let (mut stream, mut text) = (self.ask(path, fields).await, String::new());
        patiently(stream.read_to_string(&mut text)).await.unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        format!("{}\n\n{body}", head.to_ascii_lowercase().replace('\r', ""))
    }

    /// Checks that this is the answer to a request that is over, from the layer or a handler.
    fn is_termination(&self, answer: &str, reason: &str) {
        let head = ["http/1.1 504 ", "\ncache-control: no-store", "\ncontent-type: text/plain"];
        for part in head.into_iter().chain([format!("({reason})\n").as_str()]) {
            assert!(answer.contains(part), "{:?}: {part} in {answer}", self.framework);
        }
        let has_time = answer.contains("\nretry-after: 10\n");
        assert_eq!(has_time, reason == "ran_too_long", "{:?}: {answer}", self.framework);
    }

    async fn is_told(&mut self, event: &str) {
        assert_eq!(patiently(self.events.recv()).await.unwrap(), event, "{:?}", self.framework);
    }

    fn stats(&self) -> Stats {
        self.controller.stats()["search"]
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(handle) = &self.actix {
            // The server is told by the call. The future only waits for its end.
            drop(handle.stop(false));
        }
    }
}

async fn on_axum(layer: TerminateLayer, handlers: Handlers) -> SocketAddr {
    async fn query(
        State(handlers): State<Handlers>,
        Extension(token): Extension<Token>,
    ) -> Result<(), Failure> {
        (handlers.query)(token).await
    }
    let wait = async |State(handlers): State<Handlers>, Extension(token): Extension<Token>| {
        handlers.wait(token).await
    };
    let own = async |State(handlers): State<Handlers>, Extension(token): Extension<Token>| {
        handlers.own(token).await
    };
    let checkpoints = async |Extension(token): Extension<Token>| {
        Handlers::checkpoints(token).await.map_err(Failure::from)
    };
    let router = Router::new()
        .route("/name", get(async |Extension(token): Extension<Token>| name(&token)))
        .route("/wait", get(wait))
        .route("/checkpoints", get(checkpoints))
        .route("/inside", get(checkpoints).layer(layer.clone()))
        .route("/own", get(own))
        .route("/query", get(query))
        .layer(axum::middleware::from_fn(answer))
        .layer(layer)
        .with_state(handlers);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(axum::serve(listener, router).into_future());
    address
}

fn on_actix(
    layer: TerminateLayer,
    handlers: Handlers,
) -> (SocketAddr, actix_web::dev::ServerHandle) {
    type Request = web::ReqData<Token>;
    let app = move || {
        let (waits, owns, queries) = (handlers.clone(), handlers.clone(), handlers.clone());
        let wait = move |token: Request| waits.clone().wait(token.into_inner());
        let own = move |token: Request| owns.clone().own(token.into_inner());
        let query = move |token: Request| {
            let end = (queries.query)(token.into_inner());
            async { end.await.map(|()| "").map_err(HandlerError::from) }
        };
        let events = handlers.events.clone();
        let spawns = move |token: Request| spawns(token.into_inner(), events.clone());
        let checkpoints = async |token: Request| {
            let end = Handlers::checkpoints(token.into_inner()).await;
            end.map(|()| "").map_err(HandlerError::from)
        };
        let inside = web::resource("/inside").wrap(middleware::from_fn(terminate));
        let inside = inside.route(web::get().to(checkpoints));
        App::new()
            .app_data(web::Data::new(layer.clone()))
            .wrap(middleware::from_fn(terminate))
            .route("/name", web::get().to(async |token: Request| name(&token)))
            .route("/wait", web::get().to(wait))
            .route("/checkpoints", web::get().to(checkpoints))
            .service(inside)
            .route("/own", web::get().to(own))
            .route("/spawns", web::get().to(spawns))
            .route("/query", web::get().to(query))
    };
    let (sender, started) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        actix_web::rt::System::new().block_on(async {
            // Otherwise actix-web does not drop the future of a client that has left.
            let server = HttpServer::new(app).h1_allow_half_closed(false);
            let server = server.workers(1).disable_signals().bind(("127.0.0.1", 0)).unwrap();
            let address = server.addrs()[0];
            let server = server.run();
            sender.send((address, server.handle())).unwrap();
            server.await
        })
    });
    started.recv().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_runs_for_too_long_is_answered_with_504() {
    for framework in Server::FRAMEWORKS {
        let mut server = Server::new(framework, millis(50)).await;
        server.is_termination(&server.answer("/wait", "").await, "ran_too_long");
        server.is_told("begun").await;
        server.is_told("dropped ran_too_long").await;
        for path in ["/checkpoints", "/inside"] {
            server.is_termination(&server.answer(path, "").await, "ran_too_long");
        }
        let own = server.answer("/own", "").await;
        assert!(own.starts_with("http/1.1 200 "), "{framework:?}: {own}");
        assert!(own.ends_with("\n\nown words after ran_too_long"), "{framework:?}: {own}");
        let Stats { arrived, terminated, running, .. } = server.stats();
        assert_eq!((arrived, terminated, running), (4, 4, 0), "{framework:?}");
    }
}

/// Starts a server whose query begins after the end of its request, and then fails as `failure`
/// says.
async fn late(framework: Framework, failure: fn(Terminated) -> Failure) -> Server {
    let class = Class::new("search", millis(50), millis(50));
    let query = move |token: Token| -> Pin<Box<dyn Future<Output = _> + Send>> {
        Box::pin(async move {
            token.only_at_checkpoints();
            Err(failure(Handlers::checkpoints(token).await.unwrap_err()))
        })
    };
    Server::with(framework, &Controller::new([class]).unwrap(), Arc::new(query)).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handler_that_gets_no_lease_after_the_end_is_answered_with_504() {
    for framework in Server::FRAMEWORKS {
        let server = late(framework, Failure::from).await;
        server.is_termination(&server.answer("/query", "").await, "ran_too_long");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_query_that_fails_after_the_end_keeps_its_own_answer() {
    for framework in Server::FRAMEWORKS {
        let server = late(framework, |_| Failure::Database(sqlx::Error::RowNotFound)).await;
        let fails = server.answer("/query", "").await;
        assert!(fails.starts_with("http/1.1 500 "), "{framework:?}: {fails}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_answer_has_the_format_that_the_client_accepts() {
    for framework in Server::FRAMEWORKS {
        let server = late(framework, Failure::from).await;
        for path in ["/wait", "/query"] {
            let answer = server.answer(path, "accept: application/json\r\n").await;
            for part in [
                "http/1.1 504 ",
                "\ncache-control: no-store",
                "\ncontent-type: application/problem+json",
                "\"reason\":\"ran_too_long\"",
            ] {
                assert!(answer.contains(part), "{framework:?} {path}: {part} in {answer}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_has_the_name_and_the_deadline_that_it_brings() {
    for framework in Server::FRAMEWORKS {
        let mut server = Server::new(framework, NEVER).await;
        let named = server.answer("/name", "bywash-request: r1\r\n").await;
        assert!(named.ends_with("\n\nr1"), "{framework:?}: {named}");
        let nameless = server.answer("/name", "").await;
        let name = nameless.rsplit('\n').next().unwrap();
        assert!(name.len() == 16 && name.bytes().all(|digit| digit.is_ascii_hexdigit()), "{name}");
        server.is_termination(&server.answer("/wait", "bywash-deadline: 0\r\n").await, "deadline");
        server.is_termination(&server.answer("/wait", "bywash-deadline: 60\r\n").await, "deadline");
        server.is_told("begun").await;
        server.is_told("dropped deadline").await;
        assert_eq!(server.stats().deadline, 2, "{framework:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_leaves_ends_its_handler() {
    for framework in Server::FRAMEWORKS {
        let mut server = Server::new(framework, NEVER).await;
        let client = server.ask("/wait", "").await;
        server.is_told("begun").await;
        drop(client);
        server.is_told("dropped client_left").await;
        // A handler that must not be dropped goes on without its client.
        let client = server.ask("/own", "").await;
        server.is_told("begun").await;
        drop(client);
        server.is_told("own words after client_left").await;
        assert_eq!(server.stats().client_left, 2, "{framework:?}");
    }
}

/// Checks the limit of which `src/actix.rs` warns.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handler_of_actix_that_outlives_its_client_spawns_tasks_of_tokio_only() {
    let mut server = Server::new(Framework::Actix, NEVER).await;
    let client = server.ask("/spawns", "").await;
    server.is_told("begun").await;
    drop(client);
    server.is_told("actix-web spawns nothing").await;
    server.is_told("tokio spawns").await;
}
