//! A response as a gateway may accept it from an upstream that speaks HTTP/1.
//!
//! An upstream is trusted no more than a client. If the end of a response is in doubt, its bytes
//! could be taken for part of the next response on the connection.

use http::{Method, StatusCode, Version};

use crate::character_class::is_value;
use crate::connection::Options;
use crate::fields::Fields;
use crate::framing::{self, Framing};
use crate::head::Limits;
use crate::line;
use crate::parse_error::ParseError;
use crate::request::version;

/// A response without the content of its body.
#[derive(Clone, Debug)]
pub struct Response {
    /// The status, from 100 to 599.
    pub status: StatusCode,
    /// The reason phrase. It is empty if there is none or if it is the standard one for the status.
    pub reason: Vec<u8>,
    /// The version: 1.0, 1.1 or 2.
    pub version: Version,
    /// All fields except those that frame the body. A response to `HEAD` and a 304 keep the length
    /// that their body would have had.
    pub fields: Fields,
    /// The way in which the end of the body is recognised.
    pub framing: Framing,
    /// Whether the connection may carry another request.
    pub keep_alive: bool,
    /// Whether the connection must be closed although the upstream would accept another request on
    /// it. That is so if the response has no body but announces one, or answers `HEAD`. Some
    /// applications send the body nevertheless. It arrives late, and would be taken for the
    /// response to another client's request.
    pub doubtful: bool,
}

impl Response {
    /// Parses a whole head, which [`Head::end`](crate::Head::end) has found. `asked` is the method
    /// of the request.
    ///
    /// # Errors
    /// Returns the reason why the response is refused.
    pub fn parse(head: &[u8], asked: &Method, limits: &Limits) -> Result<Self, ParseError> {
        let (first, section) = line::first(head)?;
        if first.len() > limits.first_line() {
            return Err(ParseError::HeadTooLarge);
        }
        let (version, status, reason) = status_line(first)?;
        let mut fields = line::fields(section, limits)?;
        let announces = framing::announces_body(&fields);
        let framing = framing::of_response(&mut fields, version, status, asked)?;
        let persists =
            Options::of_response(&fields)?.persists(version) && framing != Framing::UntilClose;
        let bodiless = framing == Framing::None;
        let doubtful = persists && bodiless && (announces || *asked == Method::HEAD);
        let keep_alive = persists && !doubtful;
        let usual = status.canonical_reason().is_some_and(|usual| usual.as_bytes() == reason);
        let reason = if usual { Vec::new() } else { reason.to_vec() };
        Ok(Self { status, reason, version, fields, framing, keep_alive, doubtful })
    }
}

/// Parses `HTTP-version SP status-code SP [ reason-phrase ]` (RFC 9112 §4). Some servers omit the
/// second space if there is no reason phrase.
fn status_line(line: &[u8]) -> Result<(Version, StatusCode, &[u8]), ParseError> {
    let (start, rest) = line.split_at_checked(8).ok_or(ParseError::Syntax)?;
    let version = version(start)?;
    let [b' ', digits @ ..] = rest else { return Err(ParseError::Syntax) };
    let (digits, rest) = digits.split_at_checked(3).ok_or(ParseError::Syntax)?;
    let status = StatusCode::from_bytes(digits).map_err(|_| ParseError::Syntax)?;
    let reason = match rest {
        [] => rest,
        [b' ', reason @ ..] => reason,
        _ => return Err(ParseError::Syntax),
    };
    // Statuses of 600 and above are not assigned (RFC 9110 §15).
    let fine = status.as_u16() < 600 && is_value(reason);
    if fine { Ok((version, status, reason)) } else { Err(ParseError::Syntax) }
}
