//! The servers, and how each is connected to.

use std::io;
use std::sync::Arc;

use bywash_config::{Endpoint, Scheme, Server, Upstream};
use bywash_tls::Negotiated;
use bywash_units::{Span, Time};
use tokio::net::{TcpStream, UnixStream};

use super::servers::{Options, Servers};
use super::{Link, UpstreamError, h1, h2};
use crate::memory::{Held, Memory};
use crate::stream::{Stream, keep_alive};

/// All servers of the upstream, and what is known of them.
pub(crate) struct Upstreams {
    list: Vec<Server>,
    pub(crate) servers: Arc<Servers>,
    tls: Option<bywash_tls::Connector>,
}

impl Upstreams {
    /// What is known of a server that was there `before` stays known.
    pub(crate) fn new(
        upstream: &Upstream,
        now: Time,
        before: Option<&Self>,
    ) -> Result<Self, bywash_tls::TlsError> {
        let secure = upstream.servers.iter().any(|server| server.scheme == Scheme::Https);
        let tls = secure.then(|| bywash_tls::client(client_options(upstream))).transpose()?;
        let health = &upstream.health;
        let options = Options {
            rise: health.rise,
            fall: health.fall,
            eject_after: health.eject_after,
            eject_for: health.eject_for,
            slow_start: health.slow_start,
        };
        let list = upstream.servers.clone();
        let servers = match before {
            Some(before) => {
                let was = |server| before.list.iter().position(|other| other == server);
                let kept: Vec<Option<usize>> = list.iter().map(was).collect();
                before.servers.reloaded(&kept, options, now)
            }
            None => Servers::new(list.len(), options, now),
        };
        Ok(Self { list, servers: Arc::new(servers), tls })
    }

    pub(crate) fn list(&self) -> &[Server] {
        &self.list
    }

    /// A new connection.
    pub(crate) async fn connect(
        &self,
        server: usize,
        limit: Span,
        memory: &Arc<Memory>,
    ) -> Result<Link, UpstreamError> {
        let limit = limit.to_std();
        let connect = self.connect_without_limit(&self.list[server], memory.hold(0));
        let connected = tokio::time::timeout(limit, connect).await;
        connected.map_err(|_| UpstreamError::ConnectTimeout(limit))?.map_err(UpstreamError::Connect)
    }

    async fn connect_without_limit(&self, server: &Server, held: Held) -> io::Result<Link> {
        let (host, port) = match &server.endpoint {
            Endpoint::Unix(path) => {
                let stream = Stream::Unix(UnixStream::connect(path).await?);
                return Ok(Link::H1(h1::Link::new(stream, held)));
            }
            Endpoint::Tcp { host, port } => (host.as_str(), *port),
        };
        let stream = TcpStream::connect((host, port)).await?;
        keep_alive(&stream);
        match server.scheme {
            Scheme::Http => Ok(Link::H1(h1::Link::new(Stream::Tcp(stream), held))),
            Scheme::H2c => Ok(Link::H2(h2::Link::new(Stream::Tcp(stream), false).await?)),
            Scheme::Https => {
                let tls = self.tls.as_ref().expect("made when a server speaks TLS");
                let stream = tls.connect(host, stream).await?;
                let is_h2 = stream.is_h2();
                let stream = Stream::TlsServer(Box::new(stream));
                if is_h2 {
                    return Ok(Link::H2(h2::Link::new(stream, true).await?));
                }
                Ok(Link::H1(h1::Link::new(stream, held)))
            }
        }
    }
}

fn client_options(upstream: &Upstream) -> bywash_tls::ClientOptions {
    let tls = &upstream.tls;
    bywash_tls::ClientOptions {
        ca: tls.ca.clone(),
        name: tls.name.clone(),
        certificate: tls.certificate.clone().zip(tls.key.clone()),
        http2: true,
    }
}
