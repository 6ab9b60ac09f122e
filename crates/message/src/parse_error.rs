//! The reasons for which a message is refused.

/// The reason for which a message is refused as malformed or unacceptable. Each has a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum ParseError {
    /// Invalid HTTP: a bad first line, a bare CR or LF, a folded line, space before a colon, or a
    /// byte that is not allowed in a field (RFC 9112 §2.2, §3, §5).
    Syntax,
    /// A version other than 1.0 and 1.1 (RFC 9112 §2.3).
    Version,
    /// No `Host`, more than one, a malformed one, or one that contradicts the request line (RFC
    /// 9112 §3.2).
    Host,
    /// A length together with a transfer coding, two lengths, a bad length, a transfer coding other
    /// than one `chunked`, or any transfer coding in HTTP/1.0 (RFC 9112 §6).
    Framing,
    /// The method `CONNECT`, which is not supported.
    Method,
    /// An expectation other than `100-continue` (RFC 9110 §10.1.1).
    Expectation,
    /// A path or query with a byte or an escape that two recipients could interpret differently, or
    /// with dot segments that lead above the root (RFC 3986 §3.3, §6.2.2).
    Path,
    /// The target is too long.
    UriTooLong,
    /// Too many fields, or too many bytes in all fields.
    HeadTooLarge,
    /// A body that breaks off or contradicts the framing of its head, or trailers that are
    /// malformed or too large.
    Body,
    /// A `Connection` that names an end-to-end field (RFC 9110 §7.6.1).
    Nominated,
}

impl ParseError {
    /// All errors, in the order of their discriminants.
    pub const ALL: [Self; 11] = [
        Self::Syntax,
        Self::Version,
        Self::Host,
        Self::Framing,
        Self::Method,
        Self::Expectation,
        Self::Path,
        Self::UriTooLong,
        Self::HeadTooLarge,
        Self::Body,
        Self::Nominated,
    ];

    /// Returns the name of the error in metrics and logs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Syntax => "syntax",
            Self::Version => "version",
            Self::Host => "host",
            Self::Framing => "framing",
            Self::Method => "method",
            Self::Expectation => "expectation",
            Self::Path => "path",
            Self::UriTooLong => "uri_too_long",
            Self::HeadTooLarge => "head_too_large",
            Self::Body => "body",
            Self::Nominated => "nominated",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_are_listed_in_the_order_of_their_numbers() {
        for (number, error) in ParseError::ALL.into_iter().enumerate() {
            assert_eq!(error as usize, number, "{}", error.name());
        }
    }

    #[test]
    fn each_has_a_word_of_its_own() {
        let words: std::collections::BTreeSet<_> = ParseError::ALL.map(ParseError::name).into();
        assert_eq!(words.len(), ParseError::ALL.len());
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte == b'_';
        assert!(words.iter().all(|word| !word.is_empty() && word.bytes().all(plain)));
    }
}
