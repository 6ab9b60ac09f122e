//! The body of a response: delivers its pieces, limits their rate, and ends the request.

use std::task::{Context, Poll, ready};

use bytes::Bytes;
use bywash_engine::{End, Refusal, SessionKey};
use http::StatusCode;

use super::{Streaming, return_to_pool};
use crate::elephants::Paced;
use crate::io::body::{BodyError, Piece};
use crate::request::ClientRate;
use crate::request::answer_kind::may_advance_session;
use crate::request::deadline::Deadline;
use crate::request::read_ahead::ReadAhead;
use crate::request::success::{Judged, Sought};
use crate::static_files::{self, FileKey, Shows};
use crate::upstream::servers::Failure;
use crate::upstream::{Exchange, UpstreamError};

/// The body of the upstream's response, with everything that must be released at its end.
pub(crate) struct Stream {
    pub(super) exchange: Option<Exchange>,
    pub(super) deadline: Deadline,
    pub(super) status: StatusCode,
    /// The session whose progress this response counts for, if any.
    pub(super) served: Option<SessionKey>,
    /// Whether the complete response counts as a success, and its revenue.
    pub(super) judged: Judged,
    /// The search for the conditions of success in the body. `None` if the head alone decides.
    pub(super) sought: Option<Box<Sought>>,
    pub(super) takes_trailers: bool,
    /// The number of bytes of the request's body that had been sent when the limit on pauses was
    /// last checked. If the upload goes on, a pause of the response is not the upstream's fault:
    /// see [`Deadline::excuse_upstream`].
    pub(super) sent: u64,
    /// Whether the response may pause for any length of time (server-sent events).
    pub(super) endless: bool,
    /// Whether the response was delayed on this side, because its client was slow or a rule delays
    /// its bytes. Its duration then says nothing about the upstream.
    pub(super) held_up: bool,
    /// The number of bytes of the response's body that have arrived from the upstream.
    pub(super) taken: u64,
    /// The target with the conclusion from the head, if the length of the body must still decide
    /// whether the target is a file.
    pub(super) file: Option<(FileKey, Shows)>,
    /// The part of a file's content that was read ahead and that the client has not taken yet.
    pub(super) ahead: Option<ReadAhead>,
    pub(super) client: ClientRate,
    /// The pacing of the bytes, if a rule for an elephant delays them.
    pub(super) paced: Option<Paced>,
    /// The request; `None` once it has ended.
    pub(super) running: Option<Streaming>,
}

impl Stream {
    pub(crate) fn poll_piece(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Piece, UpstreamError>> {
        if let Some(paced) = self.paced.as_mut().filter(|paced| paced.holds()) {
            let piece = ready!(paced.poll(cx));
            self.deadline.progressed();
            if let Some(piece) = piece {
                return Poll::Ready(Ok(Piece::Data(piece)));
            }
        }
        let piece = match self.ahead.as_mut().and_then(ReadAhead::take) {
            Some(piece) => piece,
            None => ready!(self.poll_arrival(cx)),
        };
        if self.running.is_none() && self.ahead.as_ref().is_some_and(ReadAhead::is_empty) {
            self.ahead = None;
        }
        Poll::Ready(piece)
    }

    /// Returns the next piece that arrives from the upstream. Ends the request at the end of the
    /// body, on an error, and on a timeout.
    fn poll_arrival(&mut self, cx: &mut Context<'_>) -> Poll<Result<Piece, UpstreamError>> {
        let Some(exchange) = &mut self.exchange else {
            return Poll::Ready(Ok(Piece::End(None)));
        };
        let result = match exchange.poll_piece(cx) {
            Poll::Ready(result) => result,
            Poll::Pending if self.endless => return Poll::Pending,
            Poll::Pending => {
                self.deadline.excuse_upstream(exchange, &mut self.sent);
                let waits = exchange.waits_for_client();
                if self.poll_slow(cx, waits, || 0).is_ready() {
                    return Poll::Ready(Err(UpstreamError::Upload(BodyError::TooSlow)));
                }
                match self.deadline.poll(cx) {
                    Poll::Ready(error) => Err(error),
                    Poll::Pending => return Poll::Pending,
                }
            }
        };
        Poll::Ready(match result {
            Ok(Piece::Data(data)) => {
                self.deadline.progressed();
                self.taken += data.len() as u64;
                let _ = self.poll_slow(cx, false, || 0);
                if let Some(running) = &mut self.running {
                    running.record.received(data.len());
                    if self.taken > static_files::LARGEST
                        && let Some((file, _)) = self.file.take()
                    {
                        running.worker.shared.note_file(file, Shows::Other);
                    }
                }
                if let Some(sought) = &mut self.sought {
                    sought.take(&data);
                }
                match self.paced(data) {
                    Some(data) => Ok(Piece::Data(data)),
                    // The pacing holds the piece back. The task is woken when the piece is due.
                    None => return self.poll_piece(cx),
                }
            }
            Ok(Piece::End(trailers)) => {
                self.end();
                Ok(Piece::End(trailers.filter(|_| self.takes_trailers)))
            }
            Err(error) => {
                self.break_off(&error);
                Err(error)
            }
        })
    }

    /// Reads a file's content ahead of its client, while the buffer has space. Pending while the
    /// server has not sent more of it.
    fn poll_ahead(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        while self.running.is_some() && self.ahead.as_ref().is_some_and(ReadAhead::has_room) {
            let piece = ready!(self.poll_arrival(cx));
            if let Some(ahead) = &mut self.ahead {
                ahead.push(piece);
            }
        }
        Poll::Ready(())
    }

    /// Returns the pacing of the response, if a rule for an elephant delays its bytes.
    pub(crate) const fn pacing(&mut self) -> Option<&mut Paced> {
        self.paced.as_mut()
    }

    /// Returns the arrived data if it may be passed on now. Returns `None` if the pacing holds it
    /// back.
    fn paced(&mut self, data: Bytes) -> Option<Bytes> {
        let (Some(paced), Some(running)) = (&mut self.paced, &self.running) else {
            return Some(data);
        };
        let lanes = &running.worker.shared.elephants.lanes;
        if paced.is_still_in_lane(lanes.missing().is_none()) {
            return Some(data);
        }
        let due = paced.take(running.worker.shared.driver.now(), data);
        // A duration that the pacing has lengthened is not a sample of the upstream's speed.
        self.held_up |= due.is_none();
        due
    }

    /// Sends the rest of the request's body while the client reads slowly, and reads a file ahead.
    /// Time that the client takes does not count as a pause of the upstream. `unread` returns the
    /// bytes that the client has not taken. Completes if the request was stopped because its client
    /// was slow.
    pub(crate) fn poll_upload(
        &mut self,
        cx: &mut Context<'_>,
        unread: impl Fn() -> usize,
    ) -> Poll<()> {
        ready!(self.poll_ahead(cx));
        if let Some(exchange) = &mut self.exchange {
            exchange.poll_upload(cx);
            self.deadline.progressed();
            self.held_up = true;
        }
        self.poll_slow(cx, true, unread)
    }

    /// Returns whether the engine stopped the request because its client was slow while others
    /// waited.
    pub(crate) const fn was_stopped(&self) -> bool {
        self.client.was_stopped()
    }

    /// Tells the engine whether the request waits for its client, as `waits` says. Completes once
    /// the engine has stopped the request because its client was slow; the request has then ended.
    fn poll_slow(
        &mut self,
        cx: &mut Context<'_>,
        waits: bool,
        unread: impl Fn() -> usize,
    ) -> Poll<()> {
        let Some(running) = &self.running else {
            return if self.was_stopped() { Poll::Ready(()) } else { Poll::Pending };
        };
        let enforced = running.ticket.as_ref().filter(|_| running.record.is_enforced());
        let Some(ticket) = enforced else { return Poll::Pending };
        let sent = self.exchange.as_ref().map_or(0, Exchange::sent);
        let moved = || sent + self.taken.saturating_sub(unread() as u64);
        self.client.observe_answer(cx, waits, moved, ticket);
        if !self.client.is_slow() {
            return Poll::Pending;
        }
        let refusal = ready!(ticket.poll_stopped(cx));
        self.stop(&refusal);
        Poll::Ready(())
    }

    /// Ends the request because the engine has stopped it in the middle of its response. The
    /// client's connection is cut, so the part that was sent does not look like a complete
    /// response.
    fn stop(&mut self, refusal: &Refusal) {
        self.client.mark_stopped();
        let exchange = self.exchange.take();
        // Dropping the ticket gives no slot back, because the engine has already taken the slot.
        // Dropping the load reports nothing about the server.
        let Some(Streaming { mut record, .. }) = self.running.take() else { return };
        record.sent(exchange.as_ref().map_or(0, Exchange::sent));
        record.stopped(refusal, self.status);
    }

    /// Ends the request after a complete response: records it, and gives the upstream connection
    /// back.
    pub(super) fn end(&mut self) {
        let Some(running) = self.running.take() else { return };
        if let Some(sought) = &self.sought {
            match sought.judge(&running.record.class_config().success) {
                Ok(judged) => self.judged = judged,
                Err(why) => running.record.success_unread(why),
            }
        }
        let advanced = self.served.filter(|_| may_advance_session(self.status));
        let progress = running.progress(advanced, self.status, self.judged);
        let Streaming { worker, mut record, ticket, pool, owner, load, .. } = running;
        if let Some((file, shows)) = self.file.take() {
            worker.shared.note_file(file, shows);
        }
        if let Some(ahead) = &mut self.ahead {
            ahead.server_is_done(&worker.shared);
        }
        if !self.endless {
            record.set_revenue(self.judged.revenue);
        }
        record.finish(ticket, progress, self.status, self.held_up);
        let now = worker.shared.driver.now();
        record.completed(now);
        let exchange = self.exchange.take();
        record.sent(exchange.as_ref().map_or(0, Exchange::sent));
        let link = exchange.and_then(Exchange::finish);
        if let Some(load) = load {
            let server = load.server();
            if self.status.is_server_error() {
                load.errs(now);
            } else {
                load.succeeded(now);
            }
            if let Some(link) = link {
                return_to_pool(&pool, owner.as_ref(), server, link);
            }
        }
    }

    /// Ends the request after its response broke off. The caller closes the client's connection or
    /// stream on the error, so that the client does not take the truncated response for a complete
    /// one.
    fn break_off(&mut self, error: &UpstreamError) {
        let exchange = self.exchange.take();
        if let (Some(exchange), UpstreamError::IdleTimeout(_)) = (&exchange, error) {
            exchange.retire();
        }
        let Some(running) = self.running.take() else { return };
        let Streaming { worker, mut record, ticket, load, .. } = running;
        record.sent(exchange.as_ref().map_or(0, Exchange::sent));
        // The upstream is not to blame for the total time, which includes the client's, nor for a
        // pause in which the client's body was missing.
        let waits = exchange.as_ref().is_some_and(Exchange::waits_for_client);
        record.fail(ticket, error, if waits { End::Failed } else { error.end() }, self.status);
        let blameless =
            waits || matches!(error, UpstreamError::Upload(_) | UpstreamError::TotalTimeout);
        if let Some(load) = load.filter(|_| !blameless) {
            load.failed(worker.shared.driver.now(), Failure::Response);
        }
    }
}
