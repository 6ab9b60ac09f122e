//! How many frames of each kind a client may send that works, and not more.
//!
//! A budget is no window but an allowance, which frames use up and time refills. Where a frame
//! answers something (a `WINDOW_UPDATE` data, a PING the wish to measure how fast data comes), that
//! refills it too. So a stream of many small messages, which is full of such frames, never comes
//! near its end, and making them idly does soon. At the end of each line stands whose number it
//! is, or what others allow.

/// What may still be used up: never more than `MOST`, and refilled as time passes.
#[derive(Debug)]
pub(super) struct Allowance<const MOST: u32, const EACH_SECOND: u32>(pub(super) u32);

impl<const MOST: u32, const EACH_SECOND: u32> Allowance<MOST, EACH_SECOND> {
    pub(super) const fn full() -> Self {
        Self(MOST)
    }

    pub(super) fn gain(&mut self, amount: u32) {
        self.0 = self.0.saturating_add(amount).min(MOST);
    }

    pub(super) fn pass(&mut self, seconds: u32) {
        self.gain(seconds.saturating_mul(EACH_SECOND));
    }

    /// `None` if there is not as much, and then nothing is used up.
    pub(super) fn spend(&mut self, amount: u32) -> Option<()> {
        self.0 = self.0.checked_sub(amount)?;
        Some(())
    }
}

/// Resets of streams younger than two seconds: one costs 2, a stream opened brings 1, a second 3.
/// So no more than half of the streams in the long run. A connection starts with one less than
/// the streams that may be open at a time, and saves up to twice as many.
///
/// Twice, because a page may be left as soon as all its pictures were asked for; one less, because
/// the page itself was asked for too: with 100 at a time, 101 opened and 100 reset. Pairs of
/// HEADERS and `RST_STREAM` end with the 100th. Older streams do not count: who waits for seconds
/// and gives up is a user in an overload, and how many of those there can be is bounded by the
/// streams at a time. Others: Envoy 250 of 500 within 2 s, Netty 200 in 30 s, nghttp2 1,000 and
/// then 33 a second.
pub(super) const YOUNG_RESET: u32 = 2;
pub(super) const YOUNG_RESETS_EACH_SECOND: u32 = 3;

/// With fewer streams at a time, the budget is as for this many: what the RFC recommends at least
/// (section 6.5.2).
pub(super) const LEAST_STREAMS: u32 = 100;

/// All other resets, of old streams and of those that are reset already: one for each stream
/// opened, and 1,000 more.
pub(super) type LateResets = Allowance<1_000, 100>;

/// HEADERS on streams that are open: trailers, one for each stream opened, and 1,000 more. The
/// library decodes them even for a stream that it has just reset.
pub(super) type MoreHeaders = Allowance<1_000, 100>;

/// SETTINGS: a client sends one, acknowledges ours, and sends one more for each doubling of its
/// windows, of which 64 KiB to 16 MiB has 8. Jetty allows 128 a second of all such frames.
pub(super) type Settings = Allowance<32, 3>;

/// PING: 128, then 12 a second, each for 32 bytes; and every byte that moves in either direction
/// adds one. Estimators of bandwidth (gRPC) have one PING under way at a time, so at most one for
/// each message; the smallest, with what we acknowledge it with, is 33 bytes.
pub(super) type Pings = Allowance<{ 128 * PING }, { 12 * PING }>;
pub(super) const PING: u32 = 32;

/// Empty DATA frames in a row that do not end their stream. Envoy allows 1, Netty 2, h2 100 in a
/// connection's life.
pub(super) const EMPTY_DATA: u32 = 64;

/// DATA with less than 5 bytes uses up what it lacks, any other brings what it has more; 12,500
/// frames of one byte a second. No protocol puts less than that around a message (gRPC 5 bytes,
/// WebSocket from a client 6), so a frame with more is somebody's message, as dear as any other
/// use of the connection, and grpc-go sends hundreds of thousands of empty ones a second if asked.
pub(super) type SmallData = Allowance<{ 10 * SMALL_EACH_SECOND }, SMALL_EACH_SECOND>;
pub(super) const SMALL: u32 = 5;
const SMALL_EACH_SECOND: u32 = 10_000 * SMALL;

/// PRIORITY: 100 for each stream opened (Envoy's number), 1,000 before and 100 a second besides:
/// browsers of the old scheme reorder all pictures of a page when it is scrolled.
pub(super) type Priorities = Allowance<10_000, 100>;
pub(super) const PRIORITIES_AT_FIRST: u32 = 1_000;
pub(super) const PRIORITIES_EACH_STREAM: u32 = 100;

/// `WINDOW_UPDATE`: two for the smallest DATA frame that we send, 10 bytes, one for its stream and
/// one for the connection; two for each stream opened, to enlarge its window; and 1,000 before,
/// 100 a second besides. Envoy: two for each stream opened, 20 for each DATA frame. Up to a MiB is
/// carried over, because a client may read late what we have sent early.
pub(super) type WindowUpdates = Allowance<{ 1 << 20 }, { 100 * WINDOW_UPDATE }>;
pub(super) const WINDOW_UPDATE: u32 = 5;
pub(super) const WINDOW_UPDATES_AT_FIRST: u32 = 1_000 * WINDOW_UPDATE;

/// `WINDOW_UPDATE` by less than 16 bytes: each costs 16, and every byte that we send brings one.
/// A byte at a time makes us send 10, and so ends after 26,666; an answer to each small message
/// does not: grpc-go sends a PING and such an update for each as long as it measures. 10,000
/// before, 1,000 a second besides.
pub(super) type SmallUpdates = Allowance<{ 10_000 * CRUMB }, { 1_000 * CRUMB }>;
pub(super) const CRUMB: u32 = 16;

/// GOAWAY, and frames of extensions that we do not speak.
pub(super) type Others = Allowance<1_000, 100>;

/// CONTINUATION frames of one list. Netty allows 16 small ones, nghttp2 8, h2 at our limits 5.
pub(super) const CONTINUATIONS: u32 = 16;

/// Bytes of one list, compressed. As nghttp2; four times what the limit of fields lets through.
pub(super) const LIST: u32 = 64 << 10;

/// Frames in a connection's life that make the server reset the stream. No client that works
/// sends one.
pub(super) const PROVOKED: u32 = 16;

/// The largest window (section 6.9.1) less the one that each stream begins with (6.5.2): beyond
/// it, an increment overflows.
pub(super) const LARGEST_INCREMENT: u32 = 0x7fff_ffff - 65_535;

/// `:method`, `:scheme` and `:path` (section 8.3.1), each at least one byte in HPACK.
pub(super) const LEAST_REQUEST: u32 = 3;
