//! An answer as a gateway may accept it from an upstream that speaks HTTP/1.
//!
//! An upstream is trusted no more than a client: an answer whose end is in doubt would put words
//! into the mouth of the next one on that connection.

use http::{Method, StatusCode, Version};

use crate::connection::Options;
use crate::fault::Fault;
use crate::fields::Fields;
use crate::framing::{self, Framing};
use crate::head::Limits;
use crate::line;
use crate::octet::is_value;
use crate::request::version;

/// An answer without its body.
#[derive(Clone, Debug)]
pub struct Response {
    /// 100 to 599.
    pub status: StatusCode,
    /// The reason phrase; empty if there is none or it is the usual one.
    pub reason: Vec<u8>,
    /// 1.0, 1.1 or 2.
    pub version: Version,
    /// All but those that frame the body. The length that an answer to `HEAD`, or a 304, would have
    /// had is among them.
    pub fields: Fields,
    /// How the body ends.
    pub framing: Framing,
    /// Whether another request may go on this connection.
    pub keep_alive: bool,
    /// It may not for the answer's sake alone, though the upstream would take one: the answer has no
    /// body and speaks of one, or answers `HEAD`. An application that sends a body all the same sends
    /// it late, and it would be taken for the answer to somebody else's request.
    pub doubtful: bool,
}

impl Response {
    /// Parses a whole head, as [`Head::end`](crate::Head::end) has found it, of an answer to a
    /// request with the method `asked`.
    pub fn parse(head: &[u8], asked: &Method, limits: &Limits) -> Result<Self, Fault> {
        let (first, section) = line::first(head)?;
        if first.len() > limits.first_line() {
            return Err(Fault::HeadTooLarge);
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

/// `HTTP-version SP status-code SP [ reason-phrase ]` (RFC 9112 §4); some leave the second space
/// away when there is no reason.
fn status_line(line: &[u8]) -> Result<(Version, StatusCode, &[u8]), Fault> {
    let (start, rest) = line.split_at_checked(8).ok_or(Fault::Syntax)?;
    let version = version(start)?;
    let [b' ', digits @ ..] = rest else { return Err(Fault::Syntax) };
    let (digits, rest) = digits.split_at_checked(3).ok_or(Fault::Syntax)?;
    let status = StatusCode::from_bytes(digits).map_err(|_| Fault::Syntax)?;
    let reason = match rest {
        [] => rest,
        [b' ', reason @ ..] => reason,
        _ => return Err(Fault::Syntax),
    };
    // 600 and above are nobody's (RFC 9110 §15).
    let fine = status.as_u16() < 600 && is_value(reason);
    if fine { Ok((version, status, reason)) } else { Err(Fault::Syntax) }
}
