//! HTTP messages as a gateway may accept them and forward them.
//!
//! A message is parsed once, strictly, and written again from the parsed form, so that the next
//! recipient cannot interpret it differently. Framing is never copied, a path has one form, and
//! hop-by-hop fields stay on their connection. The rules are those of RFC 9110, RFC 9112 and RFC
//! 9113. Where they let a recipient choose between repair and refusal, this crate refuses, and each
//! refusal is a [`ParseError`].
//!
//! The crate has no I/O and no clock: bytes go in, values come out. A head is searched for its end
//! once ([`Head`]), copied once and parsed in one pass ([`Request::parse`], [`Response::parse`]).
//! There is no allocation per field. A body is decoded without a copy ([`Decoder`]).
//!
//! ```
//! use bywash_message::{Framing, Head, Limits, Request, write_request};
//!
//! let limits = Limits { target: 8192, fields: 100, bytes: 16384 };
//! let came = b"GET /a/../%70ay HTTP/1.1\r\nHost:shop.example\r\nContent-Length: 03\r\n\r\nabc";
//! let end = Head::default().end(came, &limits)?.expect("it is whole");
//! let request = Request::parse(&came[..end], &limits)?;
//! assert_eq!((request.target.path(), request.framing), ("/pay", Framing::Length(3)));
//!
//! let (mut out, target) = (Vec::new(), request.target.path_and_query());
//! write_request(&mut out, &request.method, target, &request.fields, request.framing);
//! assert_eq!(out, b"GET /pay HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 3\r\n\r\n");
//! # Ok::<(), bywash_message::ParseError>(())
//! ```

#![forbid(unsafe_code)]

mod authentication;
mod character_class;
mod chunk;
mod connection;
mod decode;
mod fields;
mod forwarded;
mod framing;
mod h2;
mod head;
mod host;
mod line;
mod name;
mod parse_error;
mod part;
mod request;
mod response;
mod target;
mod trailers;
mod write;

pub use decode::Decoder;
pub use fields::{Field, Fields};
pub use forwarded::{Forwarded, Node};
pub use framing::Framing;
pub use head::{Head, Limits};
pub use host::is_host;
pub use name::{Name, alike};
pub use parse_error::ParseError;
pub use part::Part;
pub use request::Request;
pub use response::Response;
pub use target::Target;
pub use write::{write_chunk, write_chunk_head, write_last_chunk, write_request, write_response};
