//! Client connections: accepted, understood, watched, served, bounded.
//!
//! `h1.rs` and `h2.rs` speak the two protocols with a client and hand each request to a
//! [`Handler`]: the data plane's or the admin listener's. `opening.rs` is what comes before a
//! protocol: PROXY header and TLS. `watch.rs` sees clients leave and be late, `pace.rs` sees them
//! dawdle, `flood.rs` sees HTTP/2 clients that only make work.

mod flood;
pub(crate) mod h1;
mod h2;
mod linger;
mod opening;
pub(crate) mod pace;
mod proxy_header;
mod watch;

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};

use bywash_config::HalfClose;
use bywash_message::{Fault, Fields, Framing, Request};
use bywash_shaper::{Lane, Mark};
use http::StatusCode;
use tokio::net::TcpStream;

use crate::body::{BodyError, Piece};
use crate::connections::Seat;
use crate::elephants::NoLane;
use crate::memory::{self, Held};
use crate::reply::{Answer, Reply};
use crate::request::{self, Peer};
use crate::settings::Settings;
use crate::shared::Door;
use crate::stream::{keep_alive, limit_unread, limit_unsent};
use crate::upstream::PinnedLink;
use crate::worker::Worker;
pub(crate) use flood::Flood;
pub(crate) use opening::{Handshake, NotOpened};
use watch::Wish;
pub(crate) use watch::{Client, Clients, Phase};

/// Who answers the requests of a connection.
pub(crate) trait Handler {
    /// Answers one request. Dropping the future ends the request.
    fn serve(&self, request: Request, body: Body, back: Back) -> impl Future<Output = Reply>;
    /// Answers what is no message.
    fn malformed(&self, fault: Fault) -> Reply;
    /// Answers a head that does not come to its end.
    fn too_slow(&self) -> Reply;
    /// It has not read its answer at [`Handler::body_rate`], and is given up.
    fn dawdles(&self);
    /// The connection does this now.
    fn enter(&self, phase: Phase);
    /// It has taken too long for a head.
    fn is_too_slow(&self) -> bool;
    /// The next answer is the connection's last.
    fn is_stopping(&self) -> bool;
    /// Bytes a second that a body must make.
    fn body_rate(&self) -> u64;
    /// An answer comes next on this connection, which carries no other: it goes by its lane, or what holds it back
    /// does so here.
    fn takes_lane(&self, socket: BorrowedFd<'_>, mark: &mut Mark, answer: &mut Answer);
    /// Whether a connection in clear may turn out to be HTTP/2.
    fn speaks_http2(&self) -> bool;
    /// Returns whether a client that ends TLS, and not the connection, has left.
    fn leaves_by_ending_tls(&self) -> bool {
        false
    }
}

/// The body of a client's request.
pub(crate) enum Body {
    None,
    H1(Rc<h1::Conn>),
    H2(Box<h2::Incoming>),
}

/// The way back to a client, for what comes before the answer.
#[derive(Clone)]
pub(crate) enum Back {
    H1(Rc<h1::Conn>),
    H2(Rc<h2::Outgoing>),
}

impl Body {
    fn of_h1(conn: &Rc<h1::Conn>, framing: Framing) -> Self {
        match framing {
            Framing::None | Framing::Length(0) => Self::None,
            Framing::Length(_) | Framing::Chunked | Framing::UntilClose => {
                Self::H1(Rc::clone(conn))
            }
        }
    }

    /// The next piece. Not to be asked after the end.
    pub(crate) fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Result<Piece, BodyError>> {
        match self {
            Self::None => Poll::Ready(Ok(Piece::End(None))),
            Self::H1(conn) => conn.poll_body(cx),
            Self::H2(incoming) => incoming.poll_piece(cx),
        }
    }

    /// It is not read for now.
    pub(crate) fn pauses(&mut self) {
        if let Self::H2(incoming) = self {
            incoming.pauses();
        }
    }
}

impl Back {
    /// Returns the place of this client connection's own connection to a server. HTTP/2 has none: an
    /// authentication cannot belong to a connection of many streams.
    pub(crate) fn pin(&self) -> Option<&PinnedLink> {
        match self {
            Self::H1(conn) => Some(conn.pin()),
            Self::H2(_) => None,
        }
    }

    /// Passes an answer on that comes before the answer (1xx).
    pub(crate) fn interim(&self, cx: &mut Context<'_>, status: StatusCode, fields: &Fields) {
        match self {
            Self::H1(conn) => conn.interim(cx, status, fields),
            Self::H2(outgoing) => outgoing.interim(status, fields),
        }
    }
}

/// Serves one connection, in a task of its own.
pub(crate) fn serve(worker: &Rc<Worker>, stream: TcpStream, peer: SocketAddr, door: Door) {
    let (shared, settings) = (&worker.shared, worker.settings());
    let Some(seat) = Seat::take(shared, &settings, worker.clients.inbox(), peer) else {
        shared.metrics.connection_refused();
        return;
    };
    keep_alive(&stream);
    limit_unsent(&stream);
    limit_unread(&stream, shared.memory.socket_buffer());
    let half_close = settings.config.listen.half_close;
    let Ok(client) = worker.clients.admit(&stream, half_close, &seat.held) else {
        shared.metrics.connection_refused();
        return;
    };
    let worker = Rc::clone(worker);
    tokio::task::spawn_local(async move {
        let mut seat = seat;
        let _held = worker.shared.memory.hold(memory::CONNECTION);
        let connection = pin!(connection(&worker, stream, peer, door, &client, &mut seat));
        live(&client, connection).await;
    });
}

/// The whole life of one connection. Dropping its future drops whatever request is in it, in
/// whatever phase: this is the one place where a departure takes effect.
async fn live(client: &Client, mut connection: Pin<&mut impl Future<Output = ()>>) {
    std::future::poll_fn(|cx| match client.poll_wish(cx) {
        Wish::End => Poll::Ready(()),
        Wish::TooSlow | Wish::EndSoon | Wish::Leave | Wish::GoOn => connection.as_mut().poll(cx),
    })
    .await;
}

async fn connection(
    worker: &Rc<Worker>,
    mut stream: TcpStream,
    from: SocketAddr,
    door: Door,
    client: &Rc<Client>,
    seat: &mut Seat,
) {
    #[cfg(test)]
    worker.shared.traps.pass(crate::panics::Trap::Connection);
    let not_opened = |failure: &NotOpened| worker.shared.metrics.not_opened(*failure);
    // Large, and over, or never begun, for most of a connection's life: as is HTTP/2 below.
    let mut ahead = Vec::new();
    let mut whence = Box::pin(opening::whence(worker, &mut stream, from, &mut ahead));
    let peer = opening::in_time(client, whence.as_mut()).await.unwrap_or(Err(NotOpened::Timeout));
    drop(whence);
    let Ok(peer) = peer.inspect_err(not_opened) else { return };
    // Before the handshake, which is the dearest thing that a stranger can ask for.
    if !seat.belongs_to(&worker.settings(), peer.ip()) {
        worker.shared.metrics.connection_refused();
        return;
    }
    let tls = if door == Door::Tls { memory::TLS } else { 0 };
    let held = worker.shared.memory.hold(tls);
    // A client that refuses the certificate says so, and leaves: what it says is read first.
    client.postpones_departure(true);
    let mut opening = Box::pin(opening::open(worker, stream, ahead, door));
    let opened = opening::in_time(client, opening.as_mut()).await;
    drop(opening);
    client.postpones_departure(false);
    let handshake = |how| worker.shared.metrics.handshake_ended(how);
    let opened = match opened {
        Some(Ok(opened)) => opened,
        Some(Err(failure)) => return handshake(Handshake::Failed(failure)),
        None => return handshake(Handshake::Timeout),
    };
    if opened.secure {
        handshake(Handshake::Done);
    }
    let plane = Plane::new(worker, client, peer, opened.secure);
    let limits = worker.settings().limits;
    let ended = if opened.http2 {
        h1::Ended::Http2(opened.stream, opened.input)
    } else {
        client.may_be_told(true);
        h1::serve(opened.stream, opened.input, limits, &plane, plane.hold(0)).await
    };
    client.may_be_told(false);
    if let h1::Ended::Http2(stream, input) = ended {
        client.speaks_http2();
        Box::pin(h2::serve(stream, input, limits, Rc::new(plane))).await;
    }
    drop(held);
}

/// The data plane, as one connection sees it.
pub(crate) struct Plane {
    worker: Rc<Worker>,
    client: Rc<Client>,
    address: SocketAddr,
    secure: bool,
    /// What is known of the client under the settings that were in force when it was last looked
    /// up: whom to trust may change while a connection lasts.
    peer: RefCell<(Rc<Settings>, Rc<Peer>)>,
}

impl Plane {
    fn new(worker: &Rc<Worker>, client: &Rc<Client>, address: SocketAddr, secure: bool) -> Self {
        let settings = worker.settings();
        let peer = Rc::new(Peer::new(&settings, address, secure));
        let (worker, client) = (Rc::clone(worker), Rc::clone(client));
        Self { worker, client, address, secure, peer: RefCell::new((settings, peer)) }
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

    /// Bytes of an answer have gone out.
    fn moves(&self) {
        self.client.moves();
    }

    /// Counts bytes that the client makes the gateway hold.
    fn hold(&self, bytes: usize) -> Held {
        self.worker.shared.memory.hold(bytes)
    }

    /// The window for one stream of a connection.
    fn window(&self, calm: u32, little: u32) -> u32 {
        if self.worker.shared.memory.shrinks(1, 0) == 0 { little } else { calm }
    }

    /// Streams that one connection may have open at once.
    fn streams(&self) -> u32 {
        self.worker.settings().config.limits.h2_streams
    }

    /// Whether many users' requests meet on it.
    fn is_shared(&self) -> bool {
        self.peer().is_trusted()
    }

    /// Whether the budget of memory lets it take no further requests.
    fn closes(&self) -> bool {
        self.worker.shared.memory.closes()
    }

    /// It ends now, for another connection.
    fn makes_room(&self) -> bool {
        self.client.makes_room()
    }

    /// Seconds that a list of fields may take.
    fn list_limit(&self) -> u32 {
        self.worker.settings().config.limits.header_timeout.as_secs_f64().ceil() as u32
    }

    fn clock(&self) -> Rc<Cell<u32>> {
        self.worker.clients.quarters()
    }

    /// An answer comes next that shares the connection with others.
    fn shares(&self, answer: &mut Answer) {
        if answer.held_back().is_some() {
            self.worker.shared.metrics.held_back(Some(NoLane::Http2));
        }
    }

    fn flooded(&self, flood: Flood) {
        self.worker.shared.metrics.flooded(flood);
    }
}

impl Handler for Plane {
    fn serve(&self, request: Request, body: Body, back: Back) -> impl Future<Output = Reply> {
        request::serve(Rc::clone(&self.worker), self.peer(), request, body, back)
    }

    fn malformed(&self, fault: Fault) -> Reply {
        request::malformed(&self.worker, &self.peer(), fault)
    }

    fn too_slow(&self) -> Reply {
        request::too_slow(&self.worker, &self.peer())
    }

    fn dawdles(&self) {
        self.worker.shared.metrics.too_slow();
    }

    fn enter(&self, phase: Phase) {
        self.client.enter(phase);
        let proven = self.peer.borrow().1.is_proven();
        if self.client.proves(proven) {
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
        self.worker.settings().config.limits.body_rate
    }

    fn takes_lane(&self, socket: BorrowedFd<'_>, mark: &mut Mark, answer: &mut Answer) {
        let shared = &self.worker.shared;
        let Some(paced) = answer.held_back() else {
            let _ = shared.elephants.lanes.enter(socket, mark, Lane::Ant);
            return;
        };
        let entered = shared.elephants.lanes.enter(socket, mark, Lane::Elephant);
        if entered.is_ok() {
            paced.enters_lane();
        }
        shared.metrics.held_back(entered.err().map(NoLane::Without));
    }

    fn leaves_by_ending_tls(&self) -> bool {
        self.worker.settings().config.listen.half_close == HalfClose::Abort
    }

    fn speaks_http2(&self) -> bool {
        self.worker.settings().config.listen.http2 && !self.secure
    }
}
