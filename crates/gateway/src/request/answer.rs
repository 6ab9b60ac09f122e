//! The fourth phase: the answer streams back, and the request ends.
//!
//! The slot, the upstream connection and the record ride in the answer's body. hyper drops it
//! when the last byte is written or when the client has left; either way everything goes back.

use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use bywash_engine::{Outcome, SessionKey};
use http::{Response, StatusCode, Version, header};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;

use super::fields::Fields;
use super::{Busy, examine};
use crate::driver::Ticket;
use crate::record::Record;
use crate::upstream::Link;
use crate::worker::Worker;

/// The body of an answer.
pub(crate) enum Answer {
    /// Our own words, or none.
    Local(Option<Bytes>),
    /// The upstream's.
    Stream(Box<Stream>),
}

/// A request whose answer has begun.
pub(super) struct Streaming {
    pub(super) worker: Rc<Worker>,
    pub(super) busy: Busy,
    pub(super) record: Record,
    pub(super) ticket: Option<Ticket>,
    pub(super) link: Link,
}

/// The body of the upstream's answer, and what is to be given back at its end.
pub(crate) struct Stream {
    body: Incoming,
    status: StatusCode,
    /// The session that gets on by this answer.
    served: Option<SessionKey>,
    /// `None` once the request has ended.
    running: Option<Streaming>,
}

impl Streaming {
    /// The answer for the client. One without a body ends its request here and now.
    pub(super) fn answer(self, response: Response<Incoming>) -> Response<Answer> {
        let (mut parts, body) = response.into_parts();
        let fields = Fields::of(&parts.headers);
        fields.remove_hop_by_hop(&mut parts.headers);
        if fields.transfer_encoding {
            // The chunks were what counted (RFC 9112 §6.3), and hyper would go by this.
            parts.headers.remove(header::CONTENT_LENGTH);
        }
        // Whatever the upstream speaks, to the client it is we who speak (RFC 9110 §2.5).
        parts.version = Version::HTTP_11;
        let claimed = self.ticket.as_ref().and_then(Ticket::session);
        let begun = || examine::session_begun(&self.worker.shared, &parts.headers);
        let served = if fields.set_cookie { begun().or(claimed) } else { claimed };
        let status = parts.status;
        let mut stream = Stream { body, status, served, running: Some(self) };
        if stream.body.is_end_stream() {
            stream.end();
            return Response::from_parts(parts, Answer::Local(None));
        }
        Response::from_parts(parts, Answer::Stream(Box::new(stream)))
    }
}

impl Stream {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        if let Some(running) = &mut self.running {
            running.link.poll_io(cx);
        }
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        match &frame {
            // After trailers hyper asks no more.
            Some(Ok(frame)) if frame.is_data() && !self.body.is_end_stream() => {}
            Some(Ok(_)) | None => self.end(),
            Some(Err(_)) => self.break_off(),
        }
        Poll::Ready(frame)
    }

    /// The answer is complete.
    fn end(&mut self) {
        let Some(Streaming { worker, busy, mut record, ticket, link }) = self.running.take() else {
            return;
        };
        let failed = self.status.is_server_error();
        let got_on = self.status.is_success() || self.status.is_redirection();
        if let Some(ticket) = ticket {
            record.decided(&ticket);
            ticket.answered(self.served.filter(|_| got_on), record.is_enforced());
        }
        let outcome = if failed { Outcome::UpstreamError } else { record.served_or_late() };
        record.ends(outcome, self.status);
        worker.pool.put(link);
        drop(busy);
    }

    /// The upstream broke off in the middle. hyper closes the client's connection on the error,
    /// so that nobody takes the part for the whole.
    fn break_off(&mut self) {
        let Some(Streaming { mut record, ticket, .. }) = self.running.take() else { return };
        record.ends(Outcome::UpstreamError, self.status);
        if let Some(ticket) = ticket {
            record.decided(&ticket);
            ticket.failed();
        }
    }
}

impl Body for Answer {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        match self.get_mut() {
            Self::Local(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Stream(stream) => stream.poll(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Local(bytes) => bytes.is_none(),
            Self::Stream(stream) => stream.running.is_none(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Local(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, Bytes::len) as u64),
            Self::Stream(stream) => stream.body.size_hint(),
        }
    }
}
