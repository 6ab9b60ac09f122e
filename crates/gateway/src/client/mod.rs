//! Client connections: accepts, parses, watches and serves them, and bounds their cost.
//!
//! `h1/` and `h2/` implement the two versions of HTTP with a client and hand each request to a
//! [`Handler`]: the data plane's or the admin listener's. `opening.rs` handles the PROXY header and
//! TLS, which come before HTTP. `watch.rs` detects disconnects and timeouts, `minimum_rate.rs`
//! detects clients that send or read too slowly, and `flood/` detects HTTP/2 clients whose frames
//! cost work but request nothing.

mod flood;
pub(crate) mod h1;
mod h2;
mod linger;
pub(crate) mod minimum_rate;
mod opening;
mod permit;
mod proxy_header;
mod watch;

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::task::Poll;

use bywash_config::HalfClose;
use bywash_message::{ParseError, Request};
use bywash_shaper::{Lane, Mark};
use tokio::net::TcpStream;

use self::permit::ConnectionPermit;
use crate::connections::Phase;
use crate::context::Worker;
use crate::elephants::NoLane;
use crate::io::body::Body;
use crate::io::stream::{keep_alive, limit_unread, limit_unsent};
use crate::process::memory;
use crate::process::memory::MemoryReservation;
use crate::request::reply::{Answer, Reply};
use crate::request::{self, ClientConnection, Peer};
use crate::settings::Settings;
use crate::telemetry::metrics::{Flood, Handshake, NotOpened};
use watch::CloseAction;
pub(crate) use watch::{Client, Clients};

/// The interface between a client connection and what answers its requests: the data plane or the
/// admin listener.
pub(crate) trait Handler {
    /// Answers one request. `back` is the way to the client for interim responses. Dropping the
    /// future ends the request.
    fn serve(
        &self,
        request: Request,
        body: Body,
        back: Rc<dyn ClientConnection>,
    ) -> impl Future<Output = Reply>;
    /// Returns the response to a request that could not be parsed.
    fn malformed(&self, error: ParseError) -> Reply;
    /// Returns the response to a client whose request head does not arrive in time.
    fn too_slow(&self) -> Reply;
    /// Records that the connection is ended because the client has read its response more slowly
    /// than [`Handler::body_rate`].
    fn record_slow_reader(&self);
    /// Records the phase that the connection enters.
    fn enter(&self, phase: Phase);
    /// Returns whether the client has taken too long to send a request head.
    fn is_too_slow(&self) -> bool;
    /// Returns whether the connection must end after its next response.
    fn is_stopping(&self) -> bool;
    /// Returns the minimum rate at which a client must send and read bodies, in bytes per second; 0
    /// for no limit.
    fn body_rate(&self) -> u64;
    /// Prepares for a response on a connection that carries no other response at the same time. It
    /// puts the connection into the response's lane of the network device, and stores the lane in
    /// `mark`. A throttled response that gets no lane is paced by the gateway itself.
    fn enter_lane(&self, socket: BorrowedFd<'_>, mark: &mut Mark, answer: &mut Answer);
    /// Returns whether the client may begin HTTP/2 with prior knowledge on this connection. It may
    /// only in cleartext; TLS negotiates the protocol.
    fn speaks_http2(&self) -> bool;
    /// Returns whether a client counts as having left when it ends TLS (`close_notify`) but keeps
    /// the TCP connection open.
    fn leaves_by_ending_tls(&self) -> bool {
        false
    }
}

/// The kind of listener that accepted a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListenerKind {
    Clear,
    Tls,
}

/// Serves an accepted connection in a task of its own. If the limits do not allow the connection,
/// it is closed and counted as refused.
pub(crate) fn serve(
    worker: &Rc<Worker>,
    clients: &Rc<Clients>,
    stream: TcpStream,
    peer: SocketAddr,
    kind: ListenerKind,
) {
    let (shared, settings) = (&worker.shared, worker.settings());
    let Some(permit) = ConnectionPermit::take(shared, &settings, clients.inbox(), peer) else {
        shared.metrics.connection_refused();
        return;
    };
    keep_alive(&stream);
    limit_unsent(&stream);
    limit_unread(&stream, shared.memory.socket_buffer());
    let half_close = settings.config.listen.half_close;
    let Ok(client) = clients.admit(&stream, half_close, &permit.held) else {
        shared.metrics.connection_refused();
        return;
    };
    let (worker, quarters) = (Rc::clone(worker), clients.quarters());
    tokio::task::spawn_local(async move {
        let mut permit = permit;
        let _held = worker.shared.memory.hold(memory::CONNECTION);
        let connection =
            pin!(connection(&worker, stream, peer, kind, (&client, quarters), &mut permit));
        live(&client, connection).await;
    });
}

/// Runs one connection for its whole life. Dropping its future drops the requests in it, in
/// whatever phase they are. A disconnect takes effect only here.
async fn live(client: &Client, mut connection: Pin<&mut impl Future<Output = ()>>) {
    std::future::poll_fn(|cx| match client.poll_action(cx) {
        CloseAction::End => Poll::Ready(()),
        CloseAction::TooSlow
        | CloseAction::EndSoon
        | CloseAction::MakeRoom
        | CloseAction::Continue => connection.as_mut().poll(cx),
    })
    .await;
}

async fn connection(
    worker: &Rc<Worker>,
    mut stream: TcpStream,
    from: SocketAddr,
    kind: ListenerKind,
    (client, quarters): (&Rc<Client>, Rc<Cell<u32>>),
    permit: &mut ConnectionPermit,
) {
    #[cfg(test)]
    worker.shared.traps.pass(crate::process::panics::Trap::Connection);
    let not_opened = |failure: &NotOpened| worker.shared.metrics.not_opened(*failure);
    // Boxed, because the future is large and is over early in a connection's life. The HTTP/2
    // future below is boxed because most connections never start it.
    let mut ahead = Vec::new();
    let mut client_address =
        Box::pin(opening::client_address(worker, &mut stream, from, &mut ahead));
    let peer =
        opening::in_time(client, client_address.as_mut()).await.unwrap_or(Err(NotOpened::Timeout));
    drop(client_address);
    let Ok(peer) = peer.inspect_err(not_opened) else { return };
    // Checked before the TLS handshake, which is the most expensive operation that an unknown
    // client can cause.
    if !permit.count_for_address(&worker.settings(), peer.ip()) {
        worker.shared.metrics.connection_refused();
        return;
    }
    let tls = if kind == ListenerKind::Tls { memory::TLS } else { 0 };
    let held = worker.shared.memory.hold(tls);
    // A client that rejects the certificate sends a TLS alert and leaves. The alert must be read
    // before the disconnect takes effect.
    client.set_departure_postponed(true);
    let mut opening = Box::pin(opening::open(worker, stream, ahead, kind));
    let opened = opening::in_time(client, opening.as_mut()).await;
    drop(opening);
    client.set_departure_postponed(false);
    let handshake = |how| worker.shared.metrics.handshake_ended(how);
    let opened = match opened {
        Some(Ok(opened)) => opened,
        Some(Err(failure)) => return handshake(Handshake::Failed(failure)),
        None => return handshake(Handshake::Timeout),
    };
    if opened.secure {
        handshake(Handshake::Done);
    }
    let plane = Plane::new(worker, (client, quarters), peer, opened.secure);
    let limits = worker.settings().limits;
    let http2 = if opened.http2 {
        Some((opened.stream, opened.input))
    } else {
        client.set_may_get_response(true);
        match h1::serve(opened.stream, opened.input, limits, &plane, plane.hold(0)).await {
            h1::Ended::Closed => None,
            h1::Ended::Http2(stream, input) => Some((stream, input)),
        }
    };
    client.set_may_get_response(false);
    if let Some((stream, input)) = http2 {
        client.set_http2();
        Box::pin(h2::serve(stream, input, limits, Rc::new(plane))).await;
    }
    drop(held);
}

/// The data plane's [`Handler`] for one client connection.
pub(crate) struct Plane {
    worker: Rc<Worker>,
    client: Rc<Client>,
    /// The coarse clock of the connection's worker: quarters of a second since the worker began.
    quarters: Rc<Cell<u32>>,
    /// The client's address, from the PROXY header if there is one.
    address: SocketAddr,
    /// Whether the client uses TLS with the gateway.
    secure: bool,
    /// The settings from which the client's properties were last computed, and these properties.
    /// They are computed again after a reload, because the trusted addresses may change during a
    /// connection.
    peer: RefCell<(Rc<Settings>, Rc<Peer>)>,
}

impl Plane {
    fn new(
        worker: &Rc<Worker>,
        (client, quarters): (&Rc<Client>, Rc<Cell<u32>>),
        address: SocketAddr,
        secure: bool,
    ) -> Self {
        let settings = worker.settings();
        let peer = Rc::new(Peer::new(&settings, address, secure));
        let (worker, client) = (Rc::clone(worker), Rc::clone(client));
        Self { worker, client, quarters, address, secure, peer: RefCell::new((settings, peer)) }
    }

    fn peer(&self) -> Rc<Peer> {
        let settings = self.worker.settings();
        let mut known = self.peer.borrow_mut();
        if !Rc::ptr_eq(&known.0, &settings) {
            let peer = Rc::new(Peer::new(&settings, self.address, self.secure));
            *known = (settings, peer);
        }
        Rc::clone(&known.1)
    }

    /// Records that bytes of a response have been sent to the client.
    fn record_progress(&self) {
        self.client.record_progress();
    }

    /// Charges `bytes` to the memory budget, for as long as the returned reservation lives.
    fn hold(&self, bytes: usize) -> MemoryReservation {
        self.worker.shared.memory.hold(bytes)
    }

    /// Returns the HTTP/2 window for one stream, in bytes: `calm`, or `little` near the memory
    /// budget.
    fn window(&self, calm: u32, little: u32) -> u32 {
        if self.worker.shared.memory.size_under_pressure(1, 0) == 0 { little } else { calm }
    }

    /// Returns the maximum number of concurrent HTTP/2 streams of a connection.
    fn streams(&self) -> u32 {
        self.worker.settings().config.client_limits.h2_streams
    }

    /// Returns whether the connection comes from a trusted proxy, which carries the requests of
    /// many users.
    fn is_shared(&self) -> bool {
        self.peer().is_trusted()
    }

    /// Returns whether the memory budget is so short that the connection must end after its present
    /// requests.
    fn closes(&self) -> bool {
        self.worker.shared.memory.closes()
    }

    /// Returns whether the connection was evicted and must end now.
    fn makes_room(&self) -> bool {
        self.client.makes_room()
    }

    /// Returns the maximum time in seconds that an HTTP/2 field block may take to arrive.
    fn list_limit(&self) -> u32 {
        self.worker.settings().config.client_limits.header_timeout.as_secs_f64().ceil() as u32
    }

    fn clock(&self) -> Rc<Cell<u32>> {
        self.quarters.clone()
    }

    /// Prepares for an HTTP/2 response. The response shares its connection with others, so it gets
    /// no lane. If it is throttled, it is counted as a response without a lane.
    fn prepare_shared_response(&self, answer: &mut Answer) {
        if answer.pacing().is_some() {
            self.worker.shared.metrics.throttled_answer(Some(NoLane::Http2));
        }
    }

    fn flooded(&self, flood: Flood) {
        self.worker.shared.metrics.flooded(flood);
    }
}

impl Handler for Plane {
    fn serve(
        &self,
        request: Request,
        body: Body,
        back: Rc<dyn ClientConnection>,
    ) -> impl Future<Output = Reply> {
        request::serve(Rc::clone(&self.worker), self.peer(), request, body, back)
    }

    fn malformed(&self, error: ParseError) -> Reply {
        request::malformed(&self.worker, &self.peer(), error)
    }

    fn too_slow(&self) -> Reply {
        request::too_slow(&self.worker, &self.peer())
    }

    fn record_slow_reader(&self) {
        self.worker.shared.metrics.too_slow();
    }

    fn enter(&self, phase: Phase) {
        self.client.enter(phase);
        let proven = self.peer.borrow().1.is_proven();
        if self.client.set_proven(proven) {
            self.worker.shared.connections.proof_changed(proven);
        }
    }

    fn is_too_slow(&self) -> bool {
        self.client.is_too_slow()
    }

    fn is_stopping(&self) -> bool {
        self.client.ends_soon() || self.worker.shared.is_draining.load(Ordering::Relaxed)
    }

    fn body_rate(&self) -> u64 {
        self.worker.settings().config.client_limits.body_rate
    }

    fn enter_lane(&self, socket: BorrowedFd<'_>, mark: &mut Mark, answer: &mut Answer) {
        let shared = &self.worker.shared;
        let Some(paced) = answer.pacing() else {
            let _ = shared.elephants.lanes.enter(socket, mark, Lane::Ant);
            return;
        };
        let entered = shared.elephants.lanes.enter(socket, mark, Lane::Elephant);
        if entered.is_ok() {
            paced.enter_lane();
        }
        shared.metrics.throttled_answer(entered.err().map(NoLane::Without));
    }

    fn leaves_by_ending_tls(&self) -> bool {
        self.worker.settings().config.listen.half_close == HalfClose::Abort
    }

    fn speaks_http2(&self) -> bool {
        self.worker.settings().config.listen.http2 && !self.secure
    }
}
