//! What the world tells the engine.

use bywash_units::{Share, Utility};

use crate::request::{AddressKey, ClassId, Request, RequestId, SessionKey, Signals};

/// Something that happened. Every driver must be able to say each of these.
#[derive(Clone, Copy, Debug)]
pub enum Event {
    /// A request is here. It is answered by `Dispatch` or `Shed`, at once or later.
    Arrived {
        /// Its number until it is gone.
        id: RequestId,
        /// What is known of it.
        request: Request,
    },
    /// The client of a request that waits had said how long it would, and that is over. It is answered by
    /// `Shed`. Of one that runs nothing is said so: its client has gone.
    OutOfTime {
        /// Whose.
        id: RequestId,
    },
    /// The client of a request that waits or runs has closed the connection. The number is free
    /// after this.
    ClientGone {
        /// Whose.
        id: RequestId,
    },
    /// The client of a request that runs has gone, and the application works on. `Finished` follows.
    Departed {
        /// Whose.
        id: RequestId,
    },
    /// The response to a request that runs has begun: it cannot be stopped any more.
    Answering {
        /// Which.
        id: RequestId,
    },
    /// A running request waits for its client, which sends or reads slowly, and not for the application. May
    /// be said again when the rate changes.
    ClientSlow {
        /// Which.
        id: RequestId,
        /// Bytes a second that the client has moved.
        rate: u64,
    },
    /// A running request does not wait for its client any more.
    ClientCaughtUp {
        /// Which.
        id: RequestId,
    },
    /// The body of a running request that was unfinished has come as a whole.
    BodyComplete {
        /// Which.
        id: RequestId,
    },
    /// A request that ran is over. The number is free after this.
    Finished {
        /// Which.
        id: RequestId,
        /// How.
        end: End,
    },
    /// A request is over, and what became of it was not decided here: it held its place or its
    /// slot in the engine's books alone. It gives that back, and nothing is learned from it.
    Withdrawn {
        /// Which.
        id: RequestId,
    },
    /// A session was served: it has come so far.
    Served {
        /// Whose session.
        session: SessionKey,
        /// What it was served.
        service: Service,
        /// What the request showed of its visitor.
        signals: Signals,
        /// What the answer brought, by the word of the application; mostly nothing.
        earned: Utility,
        /// Whether it came while somebody still waited for it. What came later was work done, and
        /// proves a path, but says nothing of what visitors do next.
        in_time: bool,
    },
    /// A session goes on under another name: its application has given it a new cookie.
    Renamed {
        /// What it was called.
        from: SessionKey,
        /// What it is called now.
        to: SessionKey,
    },
    /// A measurement of the machine.
    Read(Reading),
}

impl Event {
    /// A session was served content of `class`, in time, and it brought nothing.
    pub fn served(session: SessionKey, class: ClassId) -> Self {
        let (signals, earned) = (Signals::NONE, Utility::default());
        Self::Served { session, service: Service::content(class), signals, earned, in_time: true }
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
    /// Somebody whom the driver believes says that the session had begun before: of what is
    /// not remembered of it, this is not the beginning.
    pub had_begun: bool,
}

impl Service {
    /// Content of `class`, at an unknown address.
    pub const fn content(class: ClassId) -> Self {
        Self { class, address: None, answer: AnswerKind::Content, had_begun: false }
    }
}

/// The kind of an answer, as far as it says that a session was served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerKind {
    /// The content that was asked for.
    Content,
    /// A redirection. It is how a login or an order is answered, and also how a server answers a static route
    /// without any work.
    Redirect,
    /// Word that the copy of the client is still valid.
    NotModified,
}

/// How a request that ran came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The upstream answered: so long the request held its slot.
    Answered {
        /// While somebody still waited for it.
        in_time: bool,
        /// The client was slow to take it: how long it took says nothing of the upstream.
        held_up: bool,
        /// What was asked for was done. An application that says that it is not (an error, a page that is
        /// not there) may say so much sooner.
        done: bool,
    },
    /// It took longer than it may: what a slot too many comes to.
    TimedOut,
    /// Its client had gone before (`Departed`): the application worked on for nobody.
    Abandoned,
    /// It did not: nothing can be learned from how long it took.
    Failed,
}

impl End {
    /// As it should be.
    pub const ANSWERED: Self = Self::Answered { in_time: true, held_up: false, done: true };
}

/// A measurement of the machine since the last one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reading {
    /// What was measured.
    pub meter: Meter,
    /// How much.
    pub share: Share,
}

/// What can be measured of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meter {
    /// Share of CPU time in use.
    Cpu,
    /// Share of time in which somebody waited for the CPU (the kernel's pressure stall
    /// information, «some»).
    Pressure,
}
