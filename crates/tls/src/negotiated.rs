//! The protocols that a side offers, and the HTTP version that both sides have agreed on (ALPN, RFC
//! 7301). The names are from RFC 9113 section 3.1 and RFC 7301 section 6.

const H2: &[u8] = b"h2";
const HTTP_1_1: &[u8] = b"http/1.1";

/// The protocols that a side offers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocols {
    /// HTTP/1.1.
    #[default]
    Http1,
    /// HTTP/2, or HTTP/1.1 if the other side does not offer HTTP/2.
    Http2,
    /// A protocol other than HTTP, by its name.
    Only(&'static [u8]),
}

impl Protocols {
    /// Returns the protocols of HTTP, with or without HTTP/2.
    pub const fn http(http2: bool) -> Self {
        if http2 { Self::Http2 } else { Self::Http1 }
    }

    /// Returns the names of the protocols, the preferred one first.
    pub(crate) fn names(self) -> Vec<Vec<u8>> {
        match self {
            Self::Http1 => vec![HTTP_1_1.to_vec()],
            Self::Http2 => vec![H2.to_vec(), HTTP_1_1.to_vec()],
            Self::Only(name) => vec![name.to_vec()],
        }
    }
}

/// A stream whose handshake is over.
pub trait Negotiated {
    /// Returns the name of the protocol that the two sides agreed on; `None` if a side offered none.
    fn agreed(&self) -> Option<&[u8]>;

    /// Returns whether the two sides agreed on HTTP/2. Otherwise the connection uses HTTP/1.1, even
    /// if a side offered no protocol.
    fn is_h2(&self) -> bool {
        self.agreed() == Some(H2)
    }
}

impl<S> Negotiated for tokio_rustls::server::TlsStream<S> {
    fn agreed(&self) -> Option<&[u8]> {
        self.get_ref().1.alpn_protocol()
    }
}

impl<S> Negotiated for tokio_rustls::client::TlsStream<S> {
    fn agreed(&self) -> Option<&[u8]> {
        self.get_ref().1.alpn_protocol()
    }
}
