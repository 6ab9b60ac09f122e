//! The admin listener. It serves the gateway's state, the few commands that the gateway takes while
//! it runs, and the console, which offers both.
//!
//! The listener has its own thread. So it answers while every worker is busy, and its requests are
//! never shed. `auth` controls access. The endpoints are declared in the table of `bywash_api`;
//! this file maps each of them to its answer. `input` parses requests, `answer` writes answers.

mod answer;
mod auth;
mod connections;
mod console;
mod elephants;
pub(crate) mod fleet;
mod history;
mod input;
mod lab;
mod policy;
mod populations;
mod requests;
mod response_memory;
mod routes;
mod sampler;
mod sessions;
mod status;

use std::cell::Cell;
use std::os::fd::BorrowedFd;
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use bywash_api::{Code, Endpoint, endpoints};
use bywash_handover::Listener;
use bywash_message::{Limits, Name, ParseError, Request};
use bywash_shaper::Mark;
use bywash_terminal::text::escaped;
use http::{Method, StatusCode};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::watch;

use self::answer::{Answered, Refused, document, fields, plain, text};
use self::auth::{Caller, Credentials};
pub(crate) use self::connections::MOST as MOST_CONNECTIONS;
use self::connections::{AdminConnection, AdminConnections};
use self::elephants::Verb;
use self::input::{parse_body, query};
use self::response_memory::ResponseMemory;
use crate::client::{Handler, h1};
use crate::connections::Phase;
use crate::io::body::Body;
use crate::io::stream::Stream;
use crate::process::lifecycle::Lifecycle;
use crate::process::runtime;
use crate::request::ClientConnection;
use crate::request::reply::{Answer, Reply};
use crate::shared::Shared;

/// The maximum time for which an authenticated connection may be open, unless it watches. It is
/// longer than any answer takes.
const LONGEST: Duration = Duration::from_secs(60);
/// The maximum time for which a connection may be open without authentication.
const LONGEST_UNAUTHENTICATED: Duration = Duration::from_secs(10);
/// The maximum time for which a connection may follow events or requests.
const LONGEST_WATCH: Duration = Duration::from_secs(24 * 3600);

/// The minimum rate at which an operator's client must send and read bodies, in bytes per second. A
/// slower client is cut off after ten seconds of waiting.
const SLOWEST: u64 = 4096;

/// The limits on the head of an operator's request, in bytes and fields. A token has up to 1200
/// characters.
const LIMITS: Limits = Limits { target: 4096, fields: 64, bytes: 16 * 1024 };

/// Runs the admin listener: accepts operators while the gateway runs, and serves them until it
/// ends. Signals `ready` when the listener is set up. Returns an error if that fails.
pub(crate) fn run(
    shared: Arc<Shared>,
    listener: Listener,
    lifecycle: watch::Receiver<Lifecycle>,
    ready: SyncSender<()>,
) -> std::io::Result<()> {
    runtime::local()?.block_on(serve(shared, listener, lifecycle, ready))
}

/// The admin listener's socket, registered with the runtime.
enum AdminListener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl AdminListener {
    fn new(listener: Listener) -> std::io::Result<Self> {
        Ok(match listener {
            Listener::Tcp(listener) => Self::Tcp(TcpListener::from_std(listener)?),
            Listener::Unix(listener) => Self::Unix(UnixListener::from_std(listener)?),
        })
    }

    /// Returns the address that clients connect to, or `unix` for a unix socket.
    fn place(&self) -> std::io::Result<String> {
        match self {
            Self::Tcp(listener) => listener.local_addr().map(|address| address.to_string()),
            Self::Unix(_) => Ok("unix".to_owned()),
        }
    }

    async fn accept(&self) -> std::io::Result<Stream> {
        match self {
            Self::Tcp(listener) => listener.accept().await.map(|(stream, _)| Stream::Tcp(stream)),
            Self::Unix(listener) => listener.accept().await.map(|(stream, _)| Stream::Unix(stream)),
        }
    }
}

async fn serve(
    shared: Arc<Shared>,
    listener: Listener,
    mut lifecycle: watch::Receiver<Lifecycle>,
    ready: SyncSender<()>,
) -> std::io::Result<()> {
    let listener = AdminListener::new(listener)?;
    let place: Rc<str> = listener.place()?.into();
    // The receiver exists, because the thread that started this one waits for the signal.
    let _ = ready.send(());
    // Do not accept before the gateway runs, because until then another process may serve
    // operators. An error means that the gateway has ended.
    let _ = lifecycle.wait_for(|lifecycle| *lifecycle >= Lifecycle::Runs).await;
    let connections: Rc<AdminConnections> = Rc::default();
    let read = Arc::clone(&shared);
    tokio::task::spawn_local(async move { sampler::sample(&read).await });
    loop {
        let accepted = tokio::select! {
            // Check the lifecycle first: a connection that arrives while draining belongs to the
            // next process.
            biased;
            _ = lifecycle.wait_for(|lifecycle| *lifecycle >= Lifecycle::Drains) => break,
            accepted = listener.accept() => accepted,
        };
        let Ok(stream) = accepted else {
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let Some(connection) = connections.admit() else { continue };
        let is_local = matches!(stream, Stream::Unix(_));
        connection.is_known.set(is_local);
        let operator = Operator {
            shared: Arc::clone(&shared),
            is_local,
            connections: Rc::clone(&connections),
            connection: Rc::clone(&connection),
            held: ResponseMemory::new(&shared.memory),
            place: Rc::clone(&place),
            watches: Cell::new(false),
        };
        tokio::task::spawn_local(async move {
            let held = operator.shared.memory.hold(0);
            let served = h1::serve(stream, BytesMut::new(), LIMITS, &operator, held);
            // Each connection has its own task, so a client that breaks off does not affect others.
            tokio::select! {
                () = bounded(served, &operator) => {}
                () = connection.wait_for_eviction() => {}
            }
        });
    }
    // From here on, new connections go to the next process.
    drop(listener);
    let _ = lifecycle.wait_for(|lifecycle| *lifecycle == Lifecycle::Ends).await;
    Ok(())
}

/// Serves a connection for a limited time: [`LONGEST_UNAUTHENTICATED`], then [`LONGEST`] more if it
/// has authenticated, then [`LONGEST_WATCH`] more if it follows events.
async fn bounded<T>(served: impl Future<Output = T>, operator: &Operator) {
    let mut served = std::pin::pin!(served);
    let stages = [
        (LONGEST_UNAUTHENTICATED, &operator.connection.is_known),
        (LONGEST, &operator.watches),
        (LONGEST_WATCH, &Cell::new(false)),
    ];
    for (longest, goes_on) in stages {
        if tokio::time::timeout(longest, served.as_mut()).await.is_ok() || !goes_on.get() {
            return;
        }
    }
}

/// The [`Handler`] for one operator's connection.
struct Operator {
    shared: Arc<Shared>,
    /// Whether the connection came by the unix socket.
    is_local: bool,
    connections: Rc<AdminConnections>,
    connection: Rc<AdminConnection>,
    /// The memory charged for the connection's last answer, which the client may not have read yet.
    held: ResponseMemory,
    /// The address of the admin listener, or `unix`.
    place: Rc<str>,
    /// Whether the connection follows events or requests.
    watches: Cell<bool>,
}

impl Handler for Operator {
    async fn serve(
        &self,
        request: Request,
        body: Body,
        _client: Rc<dyn ClientConnection>,
    ) -> Reply {
        self.held.stop_counting();
        let reply = self.respond(&request, body).await.unwrap_or_else(Refused::reply);
        match self.held.take(&reply) {
            Ok(()) => reply,
            Err(refused) => refused.reply(),
        }
    }

    fn malformed(&self, error: ParseError) -> Reply {
        plain(StatusCode::BAD_REQUEST, error.name()).closing()
    }

    fn too_slow(&self) -> Reply {
        plain(StatusCode::REQUEST_TIMEOUT, "").closing()
    }

    fn record_slow_reader(&self) {}

    fn enter(&self, phase: Phase) {
        self.connection.is_busy.set(matches!(phase, Phase::Busy));
    }

    fn is_too_slow(&self) -> bool {
        false
    }

    fn is_stopping(&self) -> bool {
        // While the gateway drains, each connection ends after one answer. So the client's next
        // request reaches the next process, if there is one.
        self.shared.is_draining.load(Ordering::Relaxed)
    }

    fn body_rate(&self) -> u64 {
        SLOWEST
    }

    fn enter_lane(&self, _socket: BorrowedFd<'_>, _mark: &mut Mark, _answer: &mut Answer) {}

    fn speaks_http2(&self) -> bool {
        false
    }
}

impl Operator {
    async fn respond(&self, request: &Request, body: Body) -> Answered {
        let path = request.target.path();
        if let Some(file) = console::file(path, takes_gzip(request)) {
            auth::authorize(&self.shared, self.is_local, request, bywash_api::Access::Anybody)?;
            return match request.method {
                Method::GET | Method::HEAD => Ok(file),
                _ => Err(Refused::new(Code::MethodNotAllowed, "this path takes only GET and HEAD")),
            };
        }
        let (endpoint, parameter) = endpoint_of(&request.method, path)?;
        let caller = auth::authorize(&self.shared, self.is_local, request, endpoint.access)?;
        if endpoint.access != bywash_api::Access::Anybody {
            self.connection.is_known.set(true);
        }
        self.answer(endpoint, &caller, parameter, request, body).await
    }

    async fn answer(
        &self,
        endpoint: &Endpoint,
        caller: &Caller,
        parameter: &str,
        request: &Request,
        body: Body,
    ) -> Answered {
        let shared = &self.shared;
        let names: Vec<&str> = endpoint.query.iter().map(|(name, _)| *name).collect();
        let asked = query(request, &names)?;
        match endpoint.path {
            "/livez" => Ok(plain(StatusCode::OK, "ok")),
            "/readyz" => Ok(ready(shared)),
            "/metrics" => Ok(metrics(shared)),
            "/v1/openapi.json" => Ok(openapi()),
            "/v1/proof" => auth::proof(shared, &self.place, asked.get("nonce").map(String::as_str)),
            "/v1/status" => Ok(document(&status::status(shared))),
            "/v1/history" => history::history(shared, &asked),
            "/v1/events" => {
                if request.method != Method::HEAD {
                    self.watch(caller)?;
                }
                Ok(history::events(shared, request, Credentials::of(request, self.is_local)))
            }
            "/v1/requests" => requests::last(shared, &asked),
            "/v1/requests/{name}" => requests::explain(shared, parameter),
            // The answer to a `HEAD` is complete with its head, so the connection does not count as
            // watching.
            "/v1/tap" if request.method == Method::HEAD => Ok(requests::tap_head()),
            "/v1/tap" => {
                requests::check(shared, &asked)?;
                self.watch(caller)?;
                requests::tap(shared, &asked, Credentials::of(request, self.is_local))
            }
            "/v1/sessions" => Ok(document(&sessions::sessions(shared))),
            "/v1/populations" => Ok(document(&populations::populations(shared))),
            "/v1/fleet" => fleet::fleet(shared),
            path if path.starts_with("/v1/fleet/") => {
                fleet::of_gateway(shared, path, parameter).await
            }
            "/v1/routes" => Ok(document(&routes::routes(shared))),
            "/v1/use" => routes::used(shared, asked.get("resource").map(String::as_str)),
            "/v1/elephants" => Ok(document(&elephants::list(shared))),
            "/v1/elephants/{number}" => elephants::show(shared, parameter),
            "/v1/elephants/{number}/evidence" => routes::evidence(shared, parameter),
            "/v1/elephants/{number}/answers" => routes::answers(shared, parameter),
            "/v1/policy" => Ok(document(&policy::policy(shared))),
            "/v1/export" => Ok(document(&policy::export(shared))),
            "/v1/audit" => Ok(document(&policy::audit(shared, input::limit(&asked)?))),
            "/v1/lab" => lab::list(shared).await,
            "/v1/lab/{name}" => lab::show(shared, parameter).await,
            _ => self.change(endpoint, caller, parameter, request, body).await,
        }
    }

    /// Marks the connection as watching. Returns an error if too many connections watch already.
    fn watch(&self, caller: &Caller) -> Result<(), Refused> {
        let taken = self.connections.watch(&self.connection, caller.name());
        taken.map_err(|why| Refused::new(Code::Unavailable, why))?;
        self.watches.set(true);
        Ok(())
    }

    /// Carries out a request that changes something, or previews a change.
    async fn change(
        &self,
        endpoint: &Endpoint,
        caller: &Caller,
        parameter: &str,
        request: &Request,
        body: Body,
    ) -> Answered {
        let shared = &self.shared;
        let verb = match endpoint.path {
            "/v1/elephants/{number}/preview" => {
                return elephants::preview(shared, parameter, parse_body(request, body).await?);
            }
            "/v1/routes/ask" => {
                return elephants::ask(shared, caller, parse_body(request, body).await?).await;
            }
            "/v1/policy/class" => {
                return policy::set_class(shared, caller, parse_body(request, body).await?).await;
            }
            "/v1/policy/population" => {
                return policy::rank_population(shared, caller, parse_body(request, body).await?)
                    .await;
            }
            "/v1/policy/{number}/undo" => {
                return policy::undo(shared, caller, parameter, parse_body(request, body).await?)
                    .await;
            }
            "/v1/bypass" => {
                return policy::set_bypass(shared, caller, parse_body(request, body).await?).await;
            }
            "/v1/elephants/{number}/approve" => Verb::Approve,
            "/v1/elephants/{number}/try" => Verb::Try,
            "/v1/elephants/{number}/reject" => Verb::Reject,
            "/v1/elephants/{number}/undo" => Verb::Undo,
            // Not reached: a test requests every endpoint of the table.
            _ => return Err(Refused::not_found("no handler answers this path")),
        };
        elephants::decide(shared, caller, parameter, verb, parse_body(request, body).await?).await
    }
}

/// Returns the endpoint for this method and path, and the value of the path's parameter (empty if
/// it has none). Returns an error if no endpoint has the path, or if the endpoint does not take the
/// method.
fn endpoint_of<'p>(
    method: &Method,
    path: &'p str,
) -> Result<(&'static Endpoint, &'p str), Refused> {
    // The path `/healthz` is an alias that other servers use.
    let path = if path == "/healthz" { "/livez" } else { path };
    let method = if *method == Method::HEAD { "GET" } else { method.as_str() };
    let mut of_path =
        endpoints().iter().filter_map(|endpoint| Some((endpoint, matched(endpoint.path, path)?)));
    let mut is_known = false;
    let found = of_path.find(|(endpoint, _)| {
        is_known = true;
        endpoint.method == method
    });
    found.ok_or_else(|| {
        if is_known {
            Refused::new(Code::MethodNotAllowed, escaped(&format!("{path} does not take {method}")))
        } else {
            Refused::not_found("no operation has this path: /v1/openapi.json lists all operations")
        }
    })
}

/// Returns the value of the template's parameter in `path` (empty if the template has none); `None`
/// if the path does not match.
fn matched<'p>(template: &str, path: &'p str) -> Option<&'p str> {
    let Some((before, rest)) = template.split_once('{') else {
        return (template == path).then_some("");
    };
    let (_, after) = rest.split_once('}')?;
    let parameter = path.strip_prefix(before)?.strip_suffix(after)?;
    (!parameter.is_empty() && !parameter.contains('/')).then_some(parameter)
}

fn takes_gzip(request: &Request) -> bool {
    let takes = |field: &[u8]| field.windows(4).any(|word| word.eq_ignore_ascii_case(b"gzip"));
    request.fields.all(Name::AcceptEncoding).any(takes)
}

/// Returns the description of the API. It is built only once, because any client may ask for it.
fn openapi() -> Reply {
    static DOCUMENT: LazyLock<Bytes> = LazyLock::new(|| bywash_api::openapi().to_string().into());
    Reply::local(StatusCode::OK, fields("application/json"), DOCUMENT.clone())
}

fn ready(shared: &Shared) -> Reply {
    if shared.is_ready() {
        return plain(StatusCode::OK, "ready");
    }
    let is_leaving = shared.is_leaving.load(Ordering::Relaxed);
    let why = if is_leaving { "draining" } else { "a worker has failed" };
    plain(StatusCode::SERVICE_UNAVAILABLE, why)
}

fn metrics(shared: &Shared) -> Reply {
    status::read_gauges(shared);
    match shared.metrics.text() {
        Ok(words) => {
            let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
            text(StatusCode::OK, kind, words)
        }
        Err(_) => plain(StatusCode::INTERNAL_SERVER_ERROR, "the metrics cannot be written"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_has_one_endpoint_and_its_parameter_no_slash() {
        let found = |path| {
            endpoint_of(&Method::GET, path).ok().map(|(endpoint, name)| (endpoint.path, name))
        };
        assert_eq!(found("/v1/elephants"), Some(("/v1/elephants", "")));
        assert_eq!(found("/v1/elephants/3"), Some(("/v1/elephants/{number}", "3")));
        assert_eq!(
            found("/v1/elephants/3/evidence"),
            Some(("/v1/elephants/{number}/evidence", "3"))
        );
        assert_eq!(found("/v1/elephants/"), None);
        assert_eq!(found("/v1/elephants/3/4"), None);
        assert_eq!(found("/healthz"), Some(("/livez", "")));
    }
}
