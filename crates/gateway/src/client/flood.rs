//! HTTP/2 clients that make work and want nothing: frames counted as they are read, and an end to
//! connections that exceed a budget.
//!
//! **What the library bounds** (h2 0.4.20, from its source), so that it need not be bounded here:
//! memory. It reads no further before there is room for the acknowledgement of a PING or SETTINGS;
//! buffers small DATA up to half the connection's window, counting each for 256 bytes, and 100
//! empty ones in a connection's life; lets 20 streams be reset that nobody has looked at yet
//! (`max_pending_accept_reset_streams`); remembers 50 streams that it has reset for 1 s
//! (`reset_stream_max`, `reset_stream_duration`); takes 1.25 times the CONTINUATION frames that
//! the largest list of fields needs, at least 5; and ends a connection for which it had to reset
//! more streams than `h2.rs` allows: 256, or any number where many users share the connection
//! (`max_local_error_reset_streams`).
//!
//! **What it leaves**: time. PING, SETTINGS, PRIORITY, `WINDOW_UPDATE`, unknown frames, frames for
//! closed streams, resets of streams that were looked at, and tiny DATA that is read at once go on
//! for as long as the client likes. That is counted here, in front of it: CVE-2019-9511 to -9518,
//! CVE-2023-44487 (rapid reset), VU#421644 (CONTINUATION), CVE-2025-8671 (made you reset). And a
//! list of fields may take no longer than the head of an HTTP/1 request.
//!
//! **Made you reset** makes the server reset the client's streams. Seen here: dependencies on
//! oneself, increments that overflow or are zero, requests without fields. Not seen, because it
//! would take HPACK or the state of each stream: malformed fields, bodies unlike their
//! `content-length` or beyond the window, trailers that do not end. For those stands that limit of
//! the library's, which also counts streams refused above `max_concurrent_streams`. DATA on a
//! half-closed stream, and increments of zero, end the connection there at once.
//!
//! How much is allowed, and why, is in `budgets`.

mod budgets;
mod walk;

use budgets::{
    Allowance, CONTINUATIONS, CRUMB, EMPTY_DATA, LARGEST_INCREMENT, LEAST_REQUEST, LEAST_STREAMS,
    LIST, LateResets, MoreHeaders, Others, PING, PRIORITIES_AT_FIRST, PRIORITIES_EACH_STREAM,
    PROVOKED, Pings, Priorities, SMALL, Settings, SmallData, SmallUpdates, WINDOW_UPDATE,
    WINDOW_UPDATES_AT_FIRST, WindowUpdates, YOUNG_RESET, YOUNG_RESETS_EACH_SECOND,
};
use walk::{Frame, Walk};

/// What a connection was ended for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flood {
    /// Streams opened and reset at once, or reset again and again (CVE-2023-44487).
    Reset,
    /// Frames that make the server reset the stream (CVE-2019-9514, CVE-2025-8671).
    Provoked,
    /// A list of fields without end (VU#421644).
    Continuation,
    /// A list of fields that takes too long to arrive.
    SlowList,
    /// Fields for streams that are open already.
    Headers,
    /// Settings changed all the time (CVE-2019-9515).
    Settings,
    /// PING without anything to measure (CVE-2019-9512).
    Ping,
    /// DATA with nothing in it (CVE-2019-9518).
    EmptyData,
    /// DATA with next to nothing in it.
    SmallData,
    /// Streams put in order all the time (CVE-2019-9513).
    Priority,
    /// Windows opened by next to nothing (CVE-2019-9511), or for nothing.
    WindowUpdate,
    /// Frames that mean nothing here.
    Other,
}

impl Flood {
    /// In the order of their numbers.
    pub(crate) const ALL: [Self; 12] = [
        Self::Reset,
        Self::Provoked,
        Self::Continuation,
        Self::SlowList,
        Self::Headers,
        Self::Settings,
        Self::Ping,
        Self::EmptyData,
        Self::SmallData,
        Self::Priority,
        Self::WindowUpdate,
        Self::Other,
    ];

    /// As in the metrics.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Reset => "reset",
            Self::Provoked => "provoked_reset",
            Self::Continuation => "continuation",
            Self::SlowList => "slow_list",
            Self::Headers => "headers",
            Self::Settings => "settings",
            Self::Ping => "ping",
            Self::EmptyData => "empty_data",
            Self::SmallData => "small_data",
            Self::Priority => "priority",
            Self::WindowUpdate => "window_update",
            Self::Other => "other",
        }
    }
}

/// Answers in what goes out.
#[derive(Debug, Default)]
pub(crate) struct Answers(Walk);

impl Answers {
    /// Whether a part of one begins in these bytes, which are not acknowledgements only; and how much of
    /// bodies the frames carry that begin in them.
    pub(crate) fn begin_in(&mut self, mut bytes: &[u8]) -> (bool, usize) {
        let (mut answers, mut carried) = (false, 0);
        while let Some(frame) = self.0.frame(&mut bytes) {
            answers |= matches!(frame.kind, walk::DATA | walk::HEADERS);
            if frame.kind == walk::DATA {
                carried += frame.length as usize;
            }
        }
        (answers, carried)
    }
}

/// The budgets of one connection. About a hundred bytes, and nothing behind a pointer.
#[derive(Debug)]
pub(crate) struct Frames {
    walk: Walk,
    /// The coarse clock at the last look.
    second: Option<u32>,
    /// The highest stream that the client has opened.
    newest: u32,
    /// The same as this second began, and as the last one did.
    newest_before: [u32; 2],
    /// CONTINUATION frames and bytes of the list of fields at hand.
    list: (u32, u32),
    /// The second in which it began, until its last byte has come.
    list_since: Option<u32>,
    /// Its last frame has begun.
    list_ends: bool,
    /// Seconds that it may take.
    list_limit: u32,
    empty_data: u32,
    provoked: u32,
    /// By a proxy in front that many users share.
    shared: bool,
    /// How many may be open at a time.
    streams: u32,
    young_resets: u32,
    late_resets: LateResets,
    headers: MoreHeaders,
    settings: Settings,
    pings: Pings,
    small_data: SmallData,
    priorities: Priorities,
    window_updates: WindowUpdates,
    small_updates: SmallUpdates,
    others: Others,
}

impl Frames {
    /// For a connection on which nothing has been read and `streams` may be open at a time.
    /// `shared`: by a trusted proxy in front, on which many users' requests meet: what they reset
    /// is not held against all of them. `list_limit`: seconds that a list of fields may take.
    pub(crate) fn new(streams: u32, shared: bool, list_limit: u32) -> Self {
        let streams = streams.max(LEAST_STREAMS);
        Self {
            walk: Walk::default(),
            second: None,
            newest: 0,
            newest_before: [0; 2],
            list: (0, 0),
            list_since: None,
            list_ends: false,
            list_limit,
            empty_data: 0,
            provoked: 0,
            shared,
            streams,
            young_resets: streams - 1,
            late_resets: Allowance::full(),
            headers: Allowance::full(),
            settings: Allowance::full(),
            pings: Allowance::full(),
            small_data: Allowance::full(),
            priorities: Allowance(PRIORITIES_AT_FIRST),
            window_updates: Allowance(WINDOW_UPDATES_AT_FIRST),
            small_updates: Allowance::full(),
            others: Allowance::full(),
        }
    }

    /// Counts what the client has sent, from the preface or from the first frame on, in pieces of
    /// any size. `second` is any clock that counts seconds and does not go back.
    ///
    /// # Errors
    /// The budget that is used up. The connection is to be ended without handing on these bytes;
    /// what comes after them has no meaning here any more.
    pub(crate) fn note(&mut self, mut bytes: &[u8], second: u32) -> Result<(), Flood> {
        self.pass(second);
        // Before a look at what has come: it is late however it is cut into reads.
        let lasts = self.list_since.map_or(0, |since| second.saturating_sub(since));
        if lasts > self.list_limit && !bytes.is_empty() {
            return Err(Flood::SlowList);
        }
        while let Some(frame) = self.walk.frame(&mut bytes) {
            // Nothing but its own frames may stand between a list's first and last.
            if self.list_ends {
                self.list_has_come();
            }
            self.count(&frame)?;
        }
        if self.list_ends && self.walk.is_between_frames() {
            self.list_has_come();
        }
        Ok(())
    }

    fn list_has_come(&mut self) {
        (self.list_since, self.list_ends) = (None, false);
    }

    /// Counts what was sent to the client, frames and all: PING and `WINDOW_UPDATE` answer it.
    pub(crate) fn wrote(&mut self, bytes: usize) {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        self.pings.gain(bytes);
        self.window_updates.gain(bytes);
        self.small_updates.gain(bytes);
    }

    fn pass(&mut self, second: u32) {
        let seconds = second.saturating_sub(self.second.unwrap_or(second));
        if seconds > 0 {
            let [this, _last] = self.newest_before;
            self.newest_before = [self.newest, if seconds == 1 { this } else { self.newest }];
            self.may_reset(seconds.saturating_mul(YOUNG_RESETS_EACH_SECOND));
            self.late_resets.pass(seconds);
            self.headers.pass(seconds);
            self.settings.pass(seconds);
            self.pings.pass(seconds);
            self.small_data.pass(seconds);
            self.priorities.pass(seconds);
            self.window_updates.pass(seconds);
            self.small_updates.pass(seconds);
            self.others.pass(seconds);
        }
        self.second = self.second.max(Some(second));
    }

    fn count(&mut self, frame: &Frame) -> Result<(), Flood> {
        match frame.kind {
            walk::DATA => self.data(frame),
            walk::HEADERS => self.headers(frame),
            walk::CONTINUATION => {
                self.list.0 = self.list.0.saturating_add(1);
                self.list(frame)
            }
            walk::PRIORITY | walk::PRIORITY_UPDATE => {
                self.depends(frame)?;
                self.priorities.spend(1).ok_or(Flood::Priority)
            }
            walk::RST_STREAM => self.reset(frame),
            walk::SETTINGS => self.settings.spend(1).ok_or(Flood::Settings),
            walk::PING => self.pings.spend(PING).ok_or(Flood::Ping),
            walk::WINDOW_UPDATE => self.window_update(frame),
            _ => self.others.spend(1).ok_or(Flood::Other),
        }
    }

    fn data(&mut self, frame: &Frame) -> Result<(), Flood> {
        self.pings.gain(frame.wire_length());
        let carried = frame.carried();
        if carried > 0 || frame.ends_stream() {
            self.empty_data = 0;
        } else {
            self.empty_data = self.empty_data.saturating_add(1);
        }
        if self.empty_data > EMPTY_DATA {
            return Err(Flood::EmptyData);
        }
        // Each stream has but one last frame.
        if carried >= SMALL || frame.ends_stream() {
            self.small_data.gain(carried.saturating_sub(SMALL));
            return Ok(());
        }
        self.small_data.spend(SMALL - carried).ok_or(Flood::SmallData)
    }

    fn headers(&mut self, frame: &Frame) -> Result<(), Flood> {
        self.pings.gain(frame.wire_length());
        self.depends(frame)?;
        if frame.stream > self.newest {
            self.opens(frame)?;
        } else {
            self.headers.spend(1).ok_or(Flood::Headers)?;
        }
        self.list = (0, 0);
        self.list_since = self.list_since.or(self.second);
        self.list(frame)
    }

    fn opens(&mut self, frame: &Frame) -> Result<(), Flood> {
        self.newest = frame.stream;
        self.may_reset(1);
        self.late_resets.gain(1);
        self.headers.gain(1);
        self.priorities.gain(PRIORITIES_EACH_STREAM);
        self.window_updates.gain(2 * WINDOW_UPDATE);
        if frame.ends_headers() && frame.carried() < LEAST_REQUEST {
            return self.provokes();
        }
        Ok(())
    }

    /// The list of fields goes on with `frame`.
    fn list(&mut self, frame: &Frame) -> Result<(), Flood> {
        self.list_ends = frame.ends_headers();
        let (continuations, bytes) = &mut self.list;
        *bytes = bytes.saturating_add(frame.length);
        if *continuations > CONTINUATIONS || *bytes > LIST {
            return Err(Flood::Continuation);
        }
        Ok(())
    }

    fn reset(&mut self, frame: &Frame) -> Result<(), Flood> {
        let [_this, last] = self.newest_before;
        if frame.stream <= last || self.shared {
            return self.late_resets.spend(1).ok_or(Flood::Reset);
        }
        self.young_resets = self.young_resets.checked_sub(YOUNG_RESET).ok_or(Flood::Reset)?;
        Ok(())
    }

    fn may_reset(&mut self, more: u32) {
        let most = self.streams.saturating_mul(YOUNG_RESET);
        self.young_resets = self.young_resets.saturating_add(more).min(most);
    }

    fn window_update(&mut self, frame: &Frame) -> Result<(), Flood> {
        let increment = frame.increment();
        if increment == 0 || (frame.stream > 0 && increment > LARGEST_INCREMENT) {
            self.provokes()?;
        }
        if increment < CRUMB {
            self.small_updates.spend(CRUMB).ok_or(Flood::WindowUpdate)?;
        }
        self.window_updates.spend(WINDOW_UPDATE).ok_or(Flood::WindowUpdate)
    }

    /// A stream must not depend on itself (RFC 7540 section 5.3.1).
    fn depends(&mut self, frame: &Frame) -> Result<(), Flood> {
        if frame.depends_on() == Some(frame.stream) { self.provokes() } else { Ok(()) }
    }

    fn provokes(&mut self) -> Result<(), Flood> {
        self.provoked = self.provoked.saturating_add(1);
        if self.provoked > PROVOKED { Err(Flood::Provoked) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests;
