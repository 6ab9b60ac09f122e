//! The steps before HTTP: reading the client's real address (PROXY header), and the TLS handshake.
//!
//! These steps count as part of the head of the first request, and share its time limit.

use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::Poll;

use bytes::BytesMut;
use bywash_tls::{HandshakeFailure, Negotiated};
use tokio::net::TcpStream;

use super::proxy_header::{self, Parsed};
use super::{Client, ListenerKind};
use crate::context::Worker;
use crate::io::stream::{Rewound, Stream, read_more};
use crate::telemetry::metrics::NotOpened;

/// A connection that is ready to speak HTTP.
pub(super) struct Opened {
    pub(super) stream: Stream,
    /// The bytes of HTTP that were read already.
    pub(super) input: BytesMut,
    /// Whether the client uses TLS with the gateway.
    pub(super) secure: bool,
    /// Whether TLS has negotiated HTTP/2.
    pub(super) http2: bool,
}

/// Waits for a step before HTTP. Returns `None` if the client exceeds the time limit for its first
/// request head.
pub(super) async fn in_time<T>(
    client: &Client,
    mut opening: Pin<&mut impl Future<Output = T>>,
) -> Option<T> {
    client.set_may_get_response(true);
    let opened = poll_fn(|cx| {
        if client.is_too_slow() {
            return Poll::Ready(None);
        }
        opening.as_mut().poll(cx).map(Some)
    });
    let opened = opened.await;
    client.set_may_get_response(false);
    opened
}

/// Returns the client's address: the one in the PROXY header if the peer must send one
/// (`listen.proxy_protocol`), else the peer address. Bytes read after the header are left in
/// `ahead`.
pub(super) async fn client_address(
    worker: &Worker,
    stream: &mut TcpStream,
    from: SocketAddr,
    ahead: &mut Vec<u8>,
) -> Result<SocketAddr, NotOpened> {
    let settings = worker.settings();
    if settings.config.listen.proxy_protocol.iter().any(|known| known.contains(from.ip())) {
        return Ok(proxied(stream, ahead).await?.unwrap_or(from));
    }
    Ok(from)
}

/// Makes a connection ready for HTTP: performs the TLS handshake if it came by the TLS listener.
/// `ahead` holds bytes that were read already.
pub(super) async fn open(
    worker: &Worker,
    stream: TcpStream,
    ahead: Vec<u8>,
    kind: ListenerKind,
) -> Result<Opened, HandshakeFailure> {
    let settings = worker.settings();
    let served = match kind {
        ListenerKind::Clear => None,
        ListenerKind::Tls => settings.tls.as_ref(),
    };
    let Some(served) = served else {
        let (stream, input) = (Stream::Tcp(stream), BytesMut::from(&ahead[..]));
        return Ok(Opened { stream, input, secure: false, http2: false });
    };
    let tls = served.accept(Rewound { stream, ahead }).await?;
    let http2 = tls.is_h2();
    let (stream, input) = (Stream::TlsClient(Box::new(tls)), BytesMut::new());
    Ok(Opened { stream, input, secure: true, http2 })
}

/// Reads a PROXY header and returns the client's address in it; `None` if the header names none.
/// Bytes after the header are left in `ahead`.
async fn proxied(
    stream: &mut TcpStream,
    ahead: &mut Vec<u8>,
) -> Result<Option<SocketAddr>, NotOpened> {
    loop {
        match proxy_header::parse(ahead).map_err(|_| NotOpened::ProxyHeader)? {
            Parsed::Done { used, source } => {
                ahead.drain(..used);
                return Ok(source);
            }
            Parsed::More => match read_more(stream, ahead).await {
                Ok(0) | Err(_) => return Err(NotOpened::Gone),
                Ok(_) => {}
            },
        }
    }
}
