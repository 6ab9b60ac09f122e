//! The servers of the upstream, and how the gateway connects to each.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bywash_config::{Endpoint, Scheme, Server, Upstream};
use bywash_tls::Negotiated;
use bywash_units::{Time, TimeSpan};
use tokio::net::{TcpStream, UnixStream};

use super::names::Name;
use super::servers::{Options, Servers};
use super::{Link, UpstreamError, h1, h2};
use crate::io::stream::{Stream, keep_alive};
use crate::process::memory::{Memory, MemoryReservation};
use crate::telemetry::metrics::NameFailure;

/// All servers of the upstream, with everything that the gateway knows about them.
pub(crate) struct Upstreams {
    list: Vec<Server>,
    /// The network name of each server; `None` for a server on a Unix socket.
    names: Vec<Option<Arc<Name>>>,
    pub(crate) servers: Arc<Servers>,
    tls: Option<bywash_tls::Connector>,
}

impl Upstreams {
    /// Creates the servers. A server that is also in `before` keeps its state.
    ///
    /// # Errors
    /// Returns an error if the certificates for TLS to the servers cannot be used.
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
            eject_share: f64::from(health.eject_share) / 100.0,
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
        let names = list.iter().map(|server| name(server, before)).collect();
        Ok(Self { list, names, servers: Arc::new(servers), tls })
    }

    /// Returns the names of the servers that are on the network.
    pub(crate) fn names(&self) -> impl Iterator<Item = &Arc<Name>> {
        self.names.iter().flatten()
    }

    pub(crate) fn list(&self) -> &[Server] {
        &self.list
    }

    /// Returns when the certificate that the gateway presents to servers expires. Returns `None` if
    /// there is none.
    pub(crate) fn certificate(&self) -> Option<&bywash_tls::Expiry> {
        self.tls.as_ref()?.expiry()
    }

    /// Opens a new connection to a server, within `limit`. The connection's buffers are charged to
    /// `memory`.
    pub(crate) async fn connect(
        &self,
        server: usize,
        limit: TimeSpan,
        memory: &Arc<Memory>,
    ) -> Result<Link, UpstreamError> {
        let limit = limit.to_std();
        let connected =
            tokio::time::timeout(limit, self.connect_without_limit(server, memory.hold(0))).await;
        connected.map_err(|_| self.late(server, limit))?
    }

    /// Returns the error of a connection that was not made within `limit`. If the server's name was
    /// not looked up yet, the error is a failed look-up of the name, because the server is not to
    /// blame.
    fn late(&self, server: usize, limit: Duration) -> UpstreamError {
        match &self.names[server] {
            Some(name) if !name.is_looked_up() => UpstreamError::Name(NameFailure::Temporary),
            Some(_) | None => UpstreamError::ConnectTimeout(limit),
        }
    }

    async fn connect_without_limit(
        &self,
        server: usize,
        held: MemoryReservation,
    ) -> Result<Link, UpstreamError> {
        let Server { scheme, endpoint } = &self.list[server];
        if let Endpoint::Unix(path) = endpoint {
            let stream =
                UnixStream::connect(path).await.map_err(busy).map_err(UpstreamError::of_connect)?;
            return Ok(Link::H1(h1::Link::new(Stream::Unix(stream), held)));
        }
        let name = self.names[server].as_ref().expect("made for each server on the network");
        let stream = name.connect().await?;
        keep_alive(&stream);
        self.open(*scheme, name.host(), stream, held).await.map_err(UpstreamError::Connect)
    }

    async fn open(
        &self,
        scheme: Scheme,
        host: &str,
        stream: TcpStream,
        held: MemoryReservation,
    ) -> io::Result<Link> {
        match scheme {
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

/// Converts the `EAGAIN` of a Unix socket, whose server accepts too slowly, to a refused
/// connection. On a TCP socket `EAGAIN` means that no local port is free.
fn busy(error: io::Error) -> io::Error {
    if error.kind() == io::ErrorKind::WouldBlock {
        return io::ErrorKind::ConnectionRefused.into();
    }
    error
}

/// Returns the name of a server; `None` for a Unix socket. A name that is also in `before` keeps
/// its addresses.
fn name(server: &Server, before: Option<&Upstreams>) -> Option<Arc<Name>> {
    let Endpoint::Tcp { host, port } = &server.endpoint else { return None };
    let known = before.and_then(|before| before.names().find(|name| name.is(host, *port)));
    Some(known.map_or_else(|| Arc::new(Name::new(host, *port)), Arc::clone))
}

fn client_options(upstream: &Upstream) -> bywash_tls::ClientOptions {
    let tls = &upstream.tls;
    bywash_tls::ClientOptions {
        ca: tls.ca.clone(),
        name: tls.name.clone(),
        certificate: tls.certificate.clone().zip(tls.key.clone()),
        protocols: bywash_tls::Protocols::Http2,
    }
}

#[cfg(test)]
mod tests {
    use bywash_config::Config;

    use super::*;

    #[tokio::test]
    async fn a_name_server_that_does_not_answer_is_not_a_server_that_takes_too_long() {
        let text = "version = 1\nupstream.server = 'http://app.invalid'";
        let Ok((config, _)) = Config::parse(text, "test") else { panic!("{text}") };
        // No task of this test looks the name up.
        let upstreams = Upstreams::new(&config.upstream, Time::ZERO, None).unwrap();
        let memory = Arc::new(Memory::new(1 << 20));
        let failed = upstreams.connect(0, TimeSpan::from_millis(20), &memory).await;
        assert!(matches!(failed, Err(UpstreamError::Name(NameFailure::Temporary))));
    }
}
