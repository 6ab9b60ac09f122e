//! Which HTTP the two sides have agreed on (ALPN, RFC 7301; the names are RFC 9113 section 3.1's
//! and RFC 7301 section 6's).

use rustls::CommonState;

const H2: &[u8] = b"h2";
const HTTP_1_1: &[u8] = b"http/1.1";

/// What is offered, best first.
pub(crate) fn protocols(http2: bool) -> Vec<Vec<u8>> {
    let offered: &[&[u8]] = if http2 { &[H2, HTTP_1_1] } else { &[HTTP_1_1] };
    offered.iter().map(|protocol| protocol.to_vec()).collect()
}

/// A stream whose handshake is over.
pub trait Negotiated {
    /// Both sides speak HTTP/2; else HTTP/1.1, which is also meant by a side that names nothing.
    fn is_h2(&self) -> bool;
}

impl<S> Negotiated for tokio_rustls::server::TlsStream<S> {
    fn is_h2(&self) -> bool {
        is_h2(self.get_ref().1)
    }
}

impl<S> Negotiated for tokio_rustls::client::TlsStream<S> {
    fn is_h2(&self) -> bool {
        is_h2(self.get_ref().1)
    }
}

fn is_h2(connection: &CommonState) -> bool {
    connection.alpn_protocol() == Some(H2)
}
