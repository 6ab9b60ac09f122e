//! The number of frames of each kind that a client may send: enough for a client that works, and
//! not more.
//!
//! A budget is not a window but an allowance, which frames use up and time refills. Where a frame
//! responds to something, that refills the allowance too: a `WINDOW_UPDATE` responds to data, and a
//! PING measures how fast data arrives. So a stream of many small messages, which is full of such
//! frames, never comes near the end of its budget, and idle frames use it up soon. Each comment
//! ends with the source of the number, or with the limits of other implementations.

/// The part of a budget that is left: never more than `MOST`, and refilled as time passes.
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

    /// Uses up `amount`. Returns `None`, and uses up nothing, if less than that is left.
    pub(super) fn spend(&mut self, amount: u32) -> Option<()> {
        self.0 = self.0.checked_sub(amount)?;
        Some(())
    }
}

/// The cost of resetting a stream younger than two seconds. A reset costs 2; a stream opened earns
/// 1, and a second earns 3. So in the long run no more than half of the streams can be reset. A
/// connection starts with one less than the number of streams that may be open at a time, and saves
/// up at most twice that number.
///
/// Twice, because a user may leave a page as soon as all its pictures were requested. One less,
/// because the page itself was requested too: with 100 streams at a time, 101 are opened and 100
/// reset. Pairs of HEADERS and `RST_STREAM` end with the 100th. Older streams do not count. A user
/// who waits for seconds and gives up is normal in an overload, and the number of concurrent
/// streams bounds how many of those there can be. Others: Envoy 250 of 500 within 2 s, Netty 200 in
/// 30 s, nghttp2 1,000 and then 33 a second.
pub(super) const YOUNG_RESET: u32 = 2;
pub(super) const YOUNG_RESETS_EACH_SECOND: u32 = 3;

/// The smallest number of concurrent streams for which the budget is computed: the minimum that the
/// RFC recommends (section 6.5.2).
pub(super) const LEAST_STREAMS: u32 = 100;

/// All other resets, of old streams and of streams that are reset already: one for each stream
/// opened, and 1,000 more.
pub(super) type LateResets = Allowance<1_000, 100>;

/// HEADERS on streams that are open, which are trailers: one for each stream opened, and 1,000
/// more. The library decodes them even for a stream that it has just reset.
pub(super) type MoreHeaders = Allowance<1_000, 100>;

/// SETTINGS. A client sends one, acknowledges ours, and sends one more for each doubling of its
/// windows; from 64 KiB to 16 MiB that is 8. Jetty allows 128 a second of all such frames.
pub(super) type Settings = Allowance<32, 3>;

/// PING: 128 at first and 12 a second, each costing 32 bytes. Every byte that moves in either
/// direction earns one. Bandwidth estimators (gRPC) have one PING under way at a time, so at most
/// one for each message; the smallest message, with our acknowledgement of the PING, is 33 bytes.
pub(super) type Pings = Allowance<{ 128 * PING }, { 12 * PING }>;
pub(super) const PING: u32 = 32;

/// Empty DATA frames in a row that do not end their stream. Envoy allows 1, Netty 2, h2 100 in a
/// connection's life.
pub(super) const EMPTY_DATA: u32 = 64;

/// DATA with less than 5 bytes costs the number of bytes it lacks, and other DATA earns the number
/// of bytes it has beyond 5. That allows 12,500 frames of one byte a second. No protocol adds less
/// than 5 bytes to a message (gRPC 5 bytes, WebSocket from a client 6). So a frame of 5 bytes
/// carries a real message, which costs as much as any other use of the connection, and grpc-go
/// sends hundreds of thousands of empty messages a second on request.
pub(super) type SmallData = Allowance<{ 10 * SMALL_EACH_SECOND }, SMALL_EACH_SECOND>;
pub(super) const SMALL: u32 = 5;
const SMALL_EACH_SECOND: u32 = 10_000 * SMALL;

/// PRIORITY: 100 for each stream opened (Envoy's number), and in addition 1,000 at first and 100 a
/// second. Browsers with the old scheme reprioritise all pictures of a page when it is scrolled.
pub(super) type Priorities = Allowance<10_000, 100>;
pub(super) const PRIORITIES_AT_FIRST: u32 = 1_000;
pub(super) const PRIORITIES_EACH_STREAM: u32 = 100;

/// `WINDOW_UPDATE`: two for the smallest DATA frame that we send (10 bytes), one for its stream and
/// one for the connection; two for each stream opened, to enlarge its window; and in addition 1,000
/// at first and 100 a second. Envoy: two for each stream opened, 20 for each DATA frame. Up to 1
/// MiB is carried over, because a client may read late what we have sent early.
pub(super) type WindowUpdates = Allowance<{ 1 << 20 }, { 100 * WINDOW_UPDATE }>;
pub(super) const WINDOW_UPDATE: u32 = 5;
pub(super) const WINDOW_UPDATES_AT_FIRST: u32 = 1_000 * WINDOW_UPDATE;

/// `WINDOW_UPDATE` by less than 16 bytes: each costs 16, and every byte that we send earns one. A
/// client that opens its window by one byte at a time makes us send 10 bytes for each, and is cut
/// after 26,666. A client that responds to each small message is not: grpc-go sends a PING and such
/// an update for each message while it measures. In addition 10,000 at first and 1,000 a second.
pub(super) type SmallUpdates = Allowance<{ 10_000 * CRUMB }, { 1_000 * CRUMB }>;
pub(super) const CRUMB: u32 = 16;

/// GOAWAY, and frames of extensions that we do not speak.
pub(super) type Others = Allowance<1_000, 100>;

/// CONTINUATION frames of one field block. Netty allows 16 small ones, nghttp2 8, h2 at our limits
/// 5.
pub(super) const CONTINUATIONS: u32 = 16;

/// Compressed bytes of one field block: nghttp2's number, four times what the limit on fields
/// admits.
pub(super) const LIST: u32 = 64 << 10;

/// Frames in a connection's life that make the server reset a stream. A correct client sends none.
pub(super) const PROVOKED: u32 = 16;

/// The largest window (section 6.9.1) minus the initial window of a stream (6.5.2). A larger
/// increment overflows.
pub(super) const LARGEST_INCREMENT: u32 = 0x7fff_ffff - 65_535;

/// The length of the shortest request: `:method`, `:scheme` and `:path` (section 8.3.1), each at
/// least one byte in HPACK.
pub(super) const LEAST_REQUEST: u32 = 3;
