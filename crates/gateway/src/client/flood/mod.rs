//! Budgets for HTTP/2 frames that cost work and request nothing. Frames are counted as they are
//! read, and a connection that exceeds a budget is ended.
//!
//! **Bounded by the library** (h2 0.4.20, according to its source), and therefore not bounded here:
//! memory. The library:
//! - reads no further until there is room for the acknowledgement of a PING or SETTINGS;
//! - buffers small DATA up to half the connection's window, counting each frame as 256 bytes, and
//!   at most 100 empty frames in a connection's life;
//! - lets 20 streams be reset that the application has not accepted yet
//!   (`max_pending_accept_reset_streams`);
//! - remembers 50 streams that it has reset for 1 s (`reset_stream_max`, `reset_stream_duration`);
//! - accepts 1.25 times the CONTINUATION frames that the largest field block needs, at least 5;
//! - ends a connection for which it had to reset more streams than `h2/mod.rs` allows: 256, or any
//!   number where many users share the connection (`max_local_error_reset_streams`).
//!
//! **Not bounded by the library**: time. A client may go on for as long as it likes with these
//! frames: PING, SETTINGS, PRIORITY, `WINDOW_UPDATE`, unknown frames, frames for closed streams,
//! resets of accepted streams, and tiny DATA that is read at once. They are counted here, before
//! the library gets them. This covers CVE-2019-9511 to -9518, CVE-2023-44487 (rapid reset),
//! VU#421644 (CONTINUATION) and CVE-2025-8671 (made you reset). In addition, a field block may take
//! no longer than the head of an HTTP/1 request.
//!
//! **Made you reset** makes the server reset the client's streams. Some of the frames that do so
//! are counted here: dependencies of a stream on itself, increments that overflow or are zero, and
//! requests without fields. Others are not, because that would take HPACK or the state of each
//! stream: malformed fields, bodies that do not match their `content-length` or exceed the window,
//! and trailers that do not end the stream. The library's limit on resets (above) bounds these
//! frames. That limit also counts streams refused above `max_concurrent_streams`. The library ends
//! the connection at once for DATA on a half-closed stream and for an increment of zero.
//!
//! The budgets and their reasons are in `budgets`.

mod budgets;
mod walk;

use budgets::{
    Allowance, CONTINUATIONS, CRUMB, EMPTY_DATA, LARGEST_INCREMENT, LEAST_REQUEST, LEAST_STREAMS,
    LIST, LateResets, MoreHeaders, Others, PING, PRIORITIES_AT_FIRST, PRIORITIES_EACH_STREAM,
    PROVOKED, Pings, Priorities, SMALL, Settings, SmallData, SmallUpdates, WINDOW_UPDATE,
    WINDOW_UPDATES_AT_FIRST, WindowUpdates, YOUNG_RESET, YOUNG_RESETS_EACH_SECOND,
};
use walk::{Frame, Walk};

use crate::telemetry::metrics::Flood;

/// Finds DATA and HEADERS frames in the bytes that are sent to a client.
#[derive(Debug, Default)]
pub(crate) struct Answers(Walk);

impl Answers {
    /// Returns two facts about the next bytes sent to the client. The first is whether a HEADERS or
    /// DATA frame begins in them, as opposed to acknowledgements only. The second is the total
    /// payload length, in bytes, of the DATA frames that begin in them.
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

/// The flood budgets of one connection. They take about a hundred bytes, without heap memory.
#[derive(Debug)]
pub(crate) struct Frames {
    walk: Walk,
    /// The clock's value in seconds at the last call of [`Frames::note`], or the highest one so
    /// far.
    second: Option<u32>,
    /// The highest number of a stream that the client has opened.
    newest: u32,
    /// The value of `newest` at the start of the current second, and at the start of the second
    /// before.
    newest_before: [u32; 2],
    /// The numbers of CONTINUATION frames and of compressed bytes in the current field block.
    list: (u32, u32),
    /// The second in which the current field block began; `None` after its last byte has arrived.
    list_since: Option<u32>,
    /// Whether the last frame of the current field block has begun.
    list_ends: bool,
    /// The maximum number of seconds that a field block may take to arrive.
    list_limit: u32,
    /// The number of empty DATA frames in a row.
    empty_data: u32,
    /// The number of frames in the connection's life that make the server reset a stream.
    provoked: u32,
    /// Whether the connection comes from a trusted proxy, which many users share.
    shared: bool,
    /// The number of streams that may be open at a time, at least [`LEAST_STREAMS`].
    streams: u32,
    /// The allowance that is left for resets of young streams; see [`YOUNG_RESET`].
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
    /// Creates the budgets of a new connection, which may have `streams` open at a time. `shared`
    /// says whether the connection comes from a trusted proxy that carries the requests of many
    /// users. If so, the resets of some users are not held against all of them. `list_limit` is the
    /// maximum number of seconds that a field block may take.
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

    /// Counts the frames in the next bytes that the client has sent. The first call begins at the
    /// preface or at the first frame, and pieces may have any size. `second` is the value of any
    /// clock that counts seconds and does not go back.
    ///
    /// # Errors
    /// Returns the budget that is used up. The caller must then end the connection without handing
    /// on these bytes, and must not call this again.
    pub(crate) fn note(&mut self, mut bytes: &[u8], second: u32) -> Result<(), Flood> {
        self.pass(second);
        // Checked before the bytes are parsed, so that the result does not depend on how the bytes
        // are cut into reads.
        let lasts = self.list_since.map_or(0, |since| second.saturating_sub(since));
        if lasts > self.list_limit && !bytes.is_empty() {
            return Err(Flood::SlowList);
        }
        while let Some(frame) = self.walk.frame(&mut bytes) {
            // Only CONTINUATION frames may stand between the first and the last frame of a field
            // block.
            if self.list_ends {
                self.end_field_block();
            }
            self.count(&frame)?;
        }
        if self.list_ends && self.walk.is_between_frames() {
            self.end_field_block();
        }
        Ok(())
    }

    fn end_field_block(&mut self) {
        (self.list_since, self.list_ends) = (None, false);
    }

    /// Counts bytes sent to the client, frame heads included. A client answers them with PING and
    /// `WINDOW_UPDATE`, so they refill the budgets of these frames.
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
                self.count_self_dependency(frame)?;
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
        // The last frame of a stream costs nothing: a stream has only one.
        if carried >= SMALL || frame.ends_stream() {
            self.small_data.gain(carried.saturating_sub(SMALL));
            return Ok(());
        }
        self.small_data.spend(SMALL - carried).ok_or(Flood::SmallData)
    }

    fn headers(&mut self, frame: &Frame) -> Result<(), Flood> {
        self.pings.gain(frame.wire_length());
        self.count_self_dependency(frame)?;
        if frame.stream > self.newest {
            self.count_opened(frame)?;
        } else {
            self.headers.spend(1).ok_or(Flood::Headers)?;
        }
        self.list = (0, 0);
        self.list_since = self.list_since.or(self.second);
        self.list(frame)
    }

    fn count_opened(&mut self, frame: &Frame) -> Result<(), Flood> {
        self.newest = frame.stream;
        self.may_reset(1);
        self.late_resets.gain(1);
        self.headers.gain(1);
        self.priorities.gain(PRIORITIES_EACH_STREAM);
        self.window_updates.gain(2 * WINDOW_UPDATE);
        if frame.ends_headers() && frame.carried() < LEAST_REQUEST {
            return self.count_provoked();
        }
        Ok(())
    }

    /// Adds a frame to the current field block. Returns an error if the block has too many
    /// CONTINUATION frames or bytes.
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
            self.count_provoked()?;
        }
        if increment < CRUMB {
            self.small_updates.spend(CRUMB).ok_or(Flood::WindowUpdate)?;
        }
        self.window_updates.spend(WINDOW_UPDATE).ok_or(Flood::WindowUpdate)
    }

    /// Counts a frame by which a stream depends on itself (RFC 7540 section 5.3.1), which makes the
    /// server reset the stream. Returns an error after too many of these.
    fn count_self_dependency(&mut self, frame: &Frame) -> Result<(), Flood> {
        if frame.depends_on() == Some(frame.stream) { self.count_provoked() } else { Ok(()) }
    }

    fn count_provoked(&mut self) -> Result<(), Flood> {
        self.provoked = self.provoked.saturating_add(1);
        if self.provoked > PROVOKED { Err(Flood::Provoked) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests;
