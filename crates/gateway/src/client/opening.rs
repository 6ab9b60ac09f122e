//! What comes before a protocol: where the client really is (PROXY header), and TLS.
//!
//! All of it counts as the head of the first request and has the same time.

use std::net::SocketAddr;

use bytes::BytesMut;
use tokio::net::TcpStream;

use super::proxy_header::{self, Parsed};
use crate::shared::Door;
use crate::stream::{Rewound, Stream, read_more};
use crate::worker::Worker;

/// A connection that is ready to speak HTTP.
pub(super) struct Opened {
    pub(super) stream: Stream,
    /// What was read of it already.
    pub(super) input: BytesMut,
    pub(super) secure: bool,
    pub(super) http2: bool,
}

/// Why a connection did not get as far as HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotOpened {
    /// No PROXY header from one who must send it, or a broken one.
    ProxyHeader,
    /// The TLS handshake failed.
    Tls,
    /// The client has gone.
    Gone,
}

impl NotOpened {
    pub(crate) const ALL: [Self; 3] = [Self::ProxyHeader, Self::Tls, Self::Gone];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::ProxyHeader => "proxy_header",
            Self::Tls => "tls",
            Self::Gone => "gone",
        }
    }
}

/// Where a connection comes from, as it says itself or its PROXY header does. What was read behind
/// that is left in `ahead`.
pub(super) async fn whence(
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

/// Makes it ready to speak HTTP.
pub(super) async fn open(
    worker: &Worker,
    stream: TcpStream,
    ahead: Vec<u8>,
    door: Door,
) -> Result<Opened, NotOpened> {
    let settings = worker.settings();
    let acceptor = match door {
        Door::Clear => None,
        Door::Tls => settings.tls.as_ref().map(|served| served.acceptor()),
    };
    let Some(acceptor) = acceptor else {
        let (stream, input) = (Stream::Tcp(stream), BytesMut::from(&ahead[..]));
        return Ok(Opened { stream, input, secure: false, http2: false });
    };
    let accepted = acceptor.accept(Rewound { stream, ahead }).await;
    let tls = accepted.map_err(|_| NotOpened::Tls)?;
    let http2 = tls.get_ref().1.alpn_protocol() == Some(b"h2");
    let (stream, input) = (Stream::TlsClient(Box::new(tls)), BytesMut::new());
    Ok(Opened { stream, input, secure: true, http2 })
}

/// Reads a PROXY header; what follows it is left in `ahead`.
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
