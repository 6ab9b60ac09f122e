//! The target of a live run: its checked URL, and an address that accepts connections.

use std::io;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::time::Duration;

use http::uri::{Authority, Scheme};
use http::{HeaderValue, Uri};

use crate::error::LoadError;

/// The time limit for a connect. It is long enough for a site on the other side of the world, and
/// short enough for a user who has mistyped the URL.
const PROBE: Duration = Duration::from_secs(5);

/// A site to send requests to. It accepted a connection when it was checked.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    /// The site's address. It is resolved only once, because name resolution during the run would
    /// be part of the response times.
    pub(crate) address: SocketAddr,
    /// The value of the header `Host`.
    pub(crate) host: HeaderValue,
}

impl Target {
    /// Parses `url`, resolves its host and connects to it once. With a wrong port, this function
    /// fails, and no run full of failed requests begins.
    pub(crate) fn find(url: &str) -> Result<Self, LoadError> {
        let (authority, port) = authority(url)?;
        let host = HeaderValue::from_str(authority.as_str())
            .map_err(|_| LoadError::NotATarget(url.into()))?;
        let name = authority.host().trim_matches(['[', ']']);
        let address = probe(name, port)
            .map_err(|source| LoadError::Unreachable { url: url.into(), source })?;
        Ok(Self { address, host })
    }

    /// Returns the URL of `path` at the site. Returns `None` if no header field can have it as its
    /// value.
    pub(crate) fn url(&self, path: &Uri) -> Option<HeaderValue> {
        let host = self.host.to_str().ok()?;
        HeaderValue::try_from(format!("http://{host}{path}")).ok()
    }
}

fn authority(url: &str) -> Result<(Authority, u16), LoadError> {
    let not_a_target = || LoadError::NotATarget(url.into());
    let parts = url.parse::<Uri>().map_err(|_| not_a_target())?.into_parts();
    let authority = parts.authority.ok_or_else(not_a_target)?;
    match parts.scheme {
        Some(scheme) if scheme == Scheme::HTTP => {}
        Some(_) => return Err(LoadError::NotHttp(url.into())),
        None => return Err(not_a_target()),
    }
    let bare = parts.path_and_query.is_none_or(|path| path == "/");
    if !bare || authority.as_str().contains('@') {
        return Err(not_a_target());
    }
    match authority.port_u16() {
        Some(port) if port > 0 => Ok((authority, port)),
        _ => Err(LoadError::NoPort(url.into())),
    }
}

/// Returns the first address of `name` that accepts a connection on `port`. Fails with the error of
/// the last address if none does.
fn probe(name: &str, port: u16) -> io::Result<SocketAddr> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for address in (name, port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, PROBE) {
            Ok(_) => return Ok(address),
            Err(error) => last = error,
        }
    }
    Err(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_and_a_port_are_read() {
        for (url, port) in [
            ("http://127.0.0.1:80", 80),
            ("http://[::1]:8080/", 8080),
            ("http://shop.test:9000", 9000),
        ] {
            assert_eq!(authority(url).unwrap().1, port, "{url}");
        }
    }

    #[test]
    fn what_is_no_target_is_refused_for_its_own_reason_and_named() {
        let refused = |url: &str| {
            let error = authority(url).expect_err(url);
            assert!(error.to_string().contains(url), "{error}");
            error
        };
        for url in [
            "",
            "shop",
            "127.0.0.1:80",
            "http://",
            "http://h:80/path",
            "http://u:p@h:80",
            "h ttp://x",
        ] {
            assert!(matches!(refused(url), LoadError::NotATarget(_)), "{url}");
        }
        assert!(matches!(refused("https://h:443"), LoadError::NotHttp(_)));
        for url in ["http://h", "http://h:0", "http://h:99999"] {
            assert!(matches!(refused(url), LoadError::NoPort(_)), "{url}");
        }
    }

    #[test]
    fn a_port_where_nobody_listens_is_named() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        drop(listener);
        let error = Target::find(&url).expect_err("nobody listens");
        assert!(matches!(error, LoadError::Unreachable { .. }), "{error}");
        assert!(error.to_string().contains(&url), "{error}");
    }
}
