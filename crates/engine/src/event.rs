//! The events that are the engine's input.

use bywash_units::{Ratio, Utility};

use crate::request::{AddressKey, ClassId, Request, RequestId, SessionKey, Signals};

/// An event that a driver reports to the engine. Every driver must be able to report each kind.
#[derive(Clone, Copy, Debug)]
pub enum Event {
    /// A request has arrived. The engine answers with the action `Dispatch` or `Shed`, now or
    /// later.
    Arrived {
        /// The request's number, in use until the request's last event or action.
        id: RequestId,
        /// The facts known about the request.
        request: Request,
    },
    /// A waiting request has reached the deadline that its client announced. The engine answers
    /// with `Shed`. For a running request the driver reports `ClientGone` or `Departed` instead.
    OutOfTime {
        /// The request's number.
        id: RequestId,
    },
    /// The client of a waiting or running request has closed the connection. The number is free
    /// after this event.
    ClientGone {
        /// The request's number.
        id: RequestId,
    },
    /// The client of a running request has left, and the application goes on working for the
    /// request. `Finished` follows.
    Departed {
        /// The request's number.
        id: RequestId,
    },
    /// The response to a running request has begun. The engine can no longer stop the request.
    Answering {
        /// The request's number.
        id: RequestId,
    },
    /// A running request waits for its client, which sends or reads slowly, and not for the
    /// application. The driver may report this repeatedly, when the rate has changed.
    ClientSlow {
        /// The request's number.
        id: RequestId,
        /// The rate at which the client sends or reads, in bytes per second.
        rate: u64,
    },
    /// A running request no longer waits for its client.
    ClientCaughtUp {
        /// The request's number.
        id: RequestId,
    },
    /// The answer to a running request is a redirection or "not modified", not a page.
    Redirected {
        /// The request's number.
        id: RequestId,
    },
    /// The whole body of a running request has been received. Before, part of the body was missing.
    BodyComplete {
        /// The request's number.
        id: RequestId,
    },
    /// A running request has ended. The number is free after this event.
    Finished {
        /// The request's number.
        id: RequestId,
        /// How the request ended.
        end: End,
    },
    /// A request has ended because of a decision outside the engine. The engine frees the place or
    /// slot that the request held, and learns nothing from the request.
    Withdrawn {
        /// The request's number.
        id: RequestId,
    },
    /// A session was served an answer, which proves how far the session has come.
    Served {
        /// The key of the session.
        session: SessionKey,
        /// The answer that was served.
        service: Service,
        /// The signals that the request itself showed.
        signals: Signals,
        /// The revenue that the application reported for this answer; usually zero.
        revenue: Utility,
        /// Whether the answer was sent while the client still waited. A later answer proves a path,
        /// too, but it says nothing about what visitors do next.
        in_time: bool,
    },
    /// A session continues under another key because its application has set a new cookie.
    Renamed {
        /// The session's old key.
        from: SessionKey,
        /// The session's new key.
        to: SessionKey,
    },
    /// The driver has measured the machine.
    Read(Reading),
}

impl Event {
    /// Creates the event that a session was served content of `class`, in time and without reported
    /// revenue.
    pub fn served(session: SessionKey, class: ClassId) -> Self {
        let (signals, revenue) = (Signals::NONE, Utility::default());
        Self::Served { session, service: Service::content(class), signals, revenue, in_time: true }
    }
}

/// An answer that a session was served.
#[derive(Clone, Copy, Debug)]
pub struct Service {
    /// The class of the request that was answered.
    pub class: ClassId,
    /// The address of the client, if it is known.
    pub address: Option<AddressKey>,
    /// The kind of the answer, such as a redirection.
    pub answer: AnswerKind,
    /// Whether a source that the driver trusts, such as a verified token, says that the session had
    /// begun earlier. If so, the engine does not take this answer for the session's beginning, even
    /// if it does not remember the session.
    pub had_begun: bool,
    /// Whether the answer meets the conditions of success of its class. Otherwise the session
    /// counts as served, but not as served this class.
    pub succeeded: bool,
}

impl Service {
    /// Creates the record of a successful answer of `class` with content, at an unknown address.
    pub const fn content(class: ClassId) -> Self {
        let answer = AnswerKind::Content;
        Self { class, address: None, answer, had_begun: false, succeeded: true }
    }
}

/// The kind of an answer, which decides whether it proves that a session was served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerKind {
    /// The requested content.
    Content,
    /// A redirection. Logins and orders are answered with one. So are some static routes, which
    /// cost the server no work.
    Redirect,
    /// The answer "not modified": the client's cached copy is still valid.
    NotModified,
}

/// How a running request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The upstream answered. The request held its slot until the answer ended.
    Answered {
        /// Whether the answer came while the client still waited.
        in_time: bool,
        /// Whether the client was slow to take the answer. If so, the duration says nothing about
        /// the upstream.
        held_up: bool,
        /// Whether the application did what the request asked for. If it did not (an error, a
        /// missing page), it may have answered much sooner than usual.
        done: bool,
    },
    /// The request exceeded its time limit, which is a sign of too many slots.
    TimedOut,
    /// The client had left before the end, as the event [`Event::Departed`] reported.
    Abandoned {
        /// Whether the application answered nevertheless. Otherwise it stopped its work, or the
        /// time limit ended the request.
        answered: bool,
    },
    /// The upstream failed to answer. The duration says nothing about the application.
    Failed,
}

impl End {
    /// The end of a request that was answered completely and in time.
    pub const ANSWERED: Self = Self::Answered { in_time: true, held_up: false, done: true };
}

/// A measurement of the machine, over the time since the previous measurement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reading {
    /// The quantity that was measured.
    pub meter: Meter,
    /// The measured value, as a share.
    pub share: Ratio,
}

/// A quantity of the machine that can be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meter {
    /// The share of the machine's CPU time that was in use.
    Cpu,
    /// The share of time in which at least one task waited for the CPU. Linux reports it as
    /// pressure stall information, line «some».
    Pressure,
}
