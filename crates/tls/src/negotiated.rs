//! The HTTP version that both sides have agreed on (ALPN, RFC 7301). The names are from RFC 9113
//! section 3.1 and RFC 7301 section 6.

use rustls::CommonState;

const H2: &[u8] = b"h2";
const HTTP_1_1: &[u8] = b"http/1.1";

/// Returns the protocols to offer, the preferred one first. If `http2` is true, HTTP/2 is offered
/// before HTTP/1.1.
pub(crate) fn protocols(http2: bool) -> Vec<Vec<u8>> {
    let offered: &[&[u8]] = if http2 { &[H2, HTTP_1_1] } else { &[HTTP_1_1] };
    offered.iter().map(|protocol| protocol.to_vec()).collect()
}

/// A stream whose handshake is over.
pub trait Negotiated {
    /// Returns whether the two sides agreed on HTTP/2. Otherwise the connection uses HTTP/1.1, even
    /// if a side offered no protocol.
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
