//! Events: the engine's input.

use bywash_units::{Ratio, Utility};

use crate::request::{AddressKey, ClassId, Request, RequestId, SessionKey, Signals};

/// An event. Every driver must be able to report each of them.
#[derive(Clone, Copy, Debug)]
pub enum Event {
    /// A request has arrived. The engine answers with `Dispatch` or `Shed`, immediately or later.
    Arrived {
        /// The request's number, in use until its last event or action.
        id: RequestId,
        /// The facts known about the request.
        request: Request,
    },
    /// A waiting request has waited for as long as its client had announced. The engine answers
    /// with `Shed`. For a running request the driver reports that its client has left.
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
    /// The client of a running request has left, and the application goes on with its work.
    /// `Finished` follows.
    Departed {
        /// The request's number.
        id: RequestId,
    },
    /// The response to a running request has begun, so the request can no longer be stopped.
    Answering {
        /// The request's number.
        id: RequestId,
    },
    /// A running request waits for its client, which sends or reads slowly, and not for the
    /// application. The driver may report this again when the rate changes.
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
    /// The whole body of a running request has been received; it was unfinished before.
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
    /// A request has ended whose outcome was not decided here. Only the engine's own accounting
    /// held a place or a slot for it. The engine frees that place or slot and learns nothing from
    /// the request.
    Withdrawn {
        /// The request's number.
        id: RequestId,
    },
    /// A session was served, which proves how far it has come.
    Served {
        /// The session.
        session: SessionKey,
        /// The answer.
        service: Service,
        /// The signals that the request showed.
        signals: Signals,
        /// The revenue that the application reported for the answer; usually zero.
        revenue: Utility,
        /// Whether the answer was sent while the client still waited. A later answer was work done
        /// and proves a path, but it says nothing about what visitors do next.
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
    /// Creates the event that a session was served content of `class`, in time and without revenue.
    pub fn served(session: SessionKey, class: ClassId) -> Self {
        let (signals, revenue) = (Signals::NONE, Utility::default());
        Self::Served { session, service: Service::content(class), signals, revenue, in_time: true }
    }
}

/// An answer to a request of a session.
#[derive(Clone, Copy, Debug)]
pub struct Service {
    /// The class of the request.
    pub class: ClassId,
    /// The client's address, if it is known.
    pub address: Option<AddressKey>,
    /// The kind of the answer.
    pub answer: AnswerKind,
    /// Whether a source that the driver trusts, such as a verified token, says that the session
    /// began earlier. If the engine does not remember the session, this answer is then not taken
    /// for the session's beginning.
    pub had_begun: bool,
    /// Whether the answer meets the conditions of success of its class. If not, the session was
    /// served, but the class was not.
    pub succeeded: bool,
}

impl Service {
    /// A success of `class` with content, at an unknown address.
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
    /// A redirection. Logins and orders are answered with one, but so is a static route, which
    /// costs the server no work.
    Redirect,
    /// The client's cached copy is still valid.
    NotModified,
}

/// How a running request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The upstream answered. The slot was held until then.
    Answered {
        /// Whether the answer came while the client still waited.
        in_time: bool,
        /// Whether the client was slow to take the answer. The duration then says nothing about the
        /// upstream.
        held_up: bool,
        /// Whether the application did what the request asked for. An application that did not (an
        /// error, a page that does not exist) may answer much sooner.
        done: bool,
    },
    /// The request exceeded its time limit, which is what too many slots lead to.
    TimedOut,
    /// The client had left before (`Departed`).
    Abandoned {
        /// Whether the application answered all the same. Otherwise it stopped, or its time ended.
        answered: bool,
    },
    /// The upstream failed to answer. The duration carries no information.
    Failed,
}

impl End {
    /// A complete answer in time.
    pub const ANSWERED: Self = Self::Answered { in_time: true, held_up: false, done: true };
}

/// A measurement of the machine since the last one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reading {
    /// The quantity that was measured.
    pub meter: Meter,
    /// The measured value.
    pub share: Ratio,
}

/// A quantity of the machine that can be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meter {
    /// The share of CPU time in use.
    Cpu,
    /// The share of time in which at least one task waited for the CPU (the kernel's pressure stall
    /// information, «some»).
    Pressure,
}
