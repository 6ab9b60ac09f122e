//! The number of frames of each kind that a client may send: enough for a client that works, and
//! not more.
//!
//! A budget is not a count per time window but an allowance: frames use it up and time refills it.
//! The event that a frame responds to refills the allowance too. A `WINDOW_UPDATE` responds to
//! data, and a PING measures how fast data arrives. So a stream of many small messages, which is
//! full of such frames, never comes near the end of its budget. Frames that respond to nothing use
//! the budget up soon. Each comment ends with the source of the number, or with the limits of other
//! implementations.

/// The part of a budget that is left: at most `MOST`, and refilled by `EACH_SECOND` per second.
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

    /// Uses up `amount`. If less than that is left, returns `None` and uses up nothing.
    pub(super) fn spend(&mut self, amount: u32) -> Option<()> {
        self.0 = self.0.checked_sub(amount)?;
        Some(())
    }
}

/// The cost of resetting a stream younger than two seconds. It is paid from the allowance for young
/// resets. Each opened stream adds 1 to that allowance, and each second adds 3. So in the long run
/// no more than half of the streams can be reset. A connection starts with one less than the number
/// of streams that may be open at a time, and saves up at most twice that number.
///
/// The maximum is twice the number of streams, because a user may leave a page as soon as all its
/// pictures were requested. The start is one less, because the page itself was requested too: with
/// 100 streams at a time, 101 are opened and 100 reset. Alternating HEADERS and `RST_STREAM` are
/// cut off at the 100th pair. Resets of older streams are not counted here. A user who waits for
/// seconds and gives up is normal in an overload, and the number of concurrent streams bounds how
/// many of those there can be. Other implementations allow: Envoy 250 of 500 within 2 s, Netty 200
/// in 30 s, nghttp2 1,000 and then 33 a second.
pub(super) const YOUNG_RESET: u32 = 2;
/// The amount that each second adds to the allowance for young resets; see [`YOUNG_RESET`].
pub(super) const YOUNG_RESETS_EACH_SECOND: u32 = 3;

/// The budget of young resets assumes at least this many concurrent streams, even if fewer are
/// allowed. RFC 9113 recommends this minimum (section 6.5.2).
pub(super) const LEAST_STREAMS: u32 = 100;

/// The budget for all other resets: of streams older than two seconds, of streams that are reset
/// already, and all resets on a connection that many users share. It allows one reset for each
/// stream opened, and in addition 1,000 at first and 100 a second.
pub(super) type LateResets = Allowance<1_000, 100>;

/// The budget for HEADERS on streams that are open already, which are trailers. It allows one for
/// each stream opened, and in addition 1,000 at first and 100 a second. The library decodes them
/// even for a stream that it has just reset.
pub(super) type MoreHeaders = Allowance<1_000, 100>;

/// The budget for SETTINGS frames: 32 at first and 3 a second. A client sends one, acknowledges the
/// server's, and sends one more for each doubling of its windows. From 64 KiB to 16 MiB that is 8.
/// Jetty allows 128 a second of all such frames.
pub(super) type Settings = Allowance<32, 3>;

/// The budget for PING frames: 128 at first and 12 a second. Each costs 32, and every byte that is
/// sent in either direction gives back 1. Bandwidth estimators (gRPC) have one PING under way at a
/// time, so at most one for each message. The smallest message, with the server's acknowledgement
/// of the PING, has 33 bytes.
pub(super) type Pings = Allowance<{ 128 * PING }, { 12 * PING }>;
/// The cost of one PING; see [`Pings`].
pub(super) const PING: u32 = 32;

/// The maximum number of empty DATA frames in a row that do not end their stream. Envoy allows 1,
/// Netty 2, h2 100 in a connection's life.
pub(super) const EMPTY_DATA: u32 = 64;

/// The budget for small DATA frames. A frame of less than 5 bytes costs the number of bytes it
/// lacks, and any other gives back the number of bytes it has beyond 5. That allows 12,500 frames
/// of one byte a second. No protocol adds less than 5 bytes to a message (gRPC 5 bytes, WebSocket
/// from a client 6). So a frame of 5 bytes carries a real message, which costs as much as any other
/// use of the connection. On request, grpc-go sends hundreds of thousands of empty messages a
/// second.
pub(super) type SmallData = Allowance<{ 10 * SMALL_EACH_SECOND }, SMALL_EACH_SECOND>;
/// The number of bytes below which a DATA frame is small; see [`SmallData`].
pub(super) const SMALL: u32 = 5;
/// The amount by which each second refills the budget for small DATA frames; see [`SmallData`].
const SMALL_EACH_SECOND: u32 = 10_000 * SMALL;

/// The budget for PRIORITY frames: 100 for each stream opened (Envoy's number), and in addition
/// 1,000 at first and 100 a second. At most 10,000 are saved up. Browsers with the old scheme
/// reprioritise all pictures of a page when it is scrolled.
pub(super) type Priorities = Allowance<10_000, 100>;
/// The number of PRIORITY frames that a new connection may send before it opens a stream; see
/// [`Priorities`].
pub(super) const PRIORITIES_AT_FIRST: u32 = 1_000;
/// The number of further PRIORITY frames that each opened stream allows; see [`Priorities`].
pub(super) const PRIORITIES_EACH_STREAM: u32 = 100;

/// The budget for `WINDOW_UPDATE` frames. It allows two for the smallest DATA frame that the server
/// sends (10 bytes), one for its stream and one for the connection. It also allows two for each
/// stream opened, to enlarge its window, and in addition 1,000 at first and 100 a second. Envoy
/// allows two for each stream opened and 20 for each DATA frame. Bytes sent are saved up to 1 MiB,
/// because a client may read late what the server has sent early.
pub(super) type WindowUpdates = Allowance<{ 1 << 20 }, { 100 * WINDOW_UPDATE }>;
/// The cost of one `WINDOW_UPDATE`. Each byte that the server sends gives back 1; see
/// [`WindowUpdates`].
pub(super) const WINDOW_UPDATE: u32 = 5;
/// The allowance for `WINDOW_UPDATE` frames of a new connection; see [`WindowUpdates`].
pub(super) const WINDOW_UPDATES_AT_FIRST: u32 = 1_000 * WINDOW_UPDATE;

/// The additional budget for `WINDOW_UPDATE` frames that enlarge a window by less than 16 bytes:
/// 10,000 at first and 1,000 a second. Each costs 16, and every byte that the server sends gives
/// back 1. A client that opens its window by one byte at a time makes the server send 10 bytes for
/// each frame, and is cut off after 26,666 frames. A client that responds to each small message is
/// not cut off: grpc-go sends a PING and such an update for each message while it measures.
pub(super) type SmallUpdates = Allowance<{ 10_000 * CRUMB }, { 1_000 * CRUMB }>;
/// The cost of one small `WINDOW_UPDATE`. An update is small if its increment is less than this
/// number of bytes; see [`SmallUpdates`].
pub(super) const CRUMB: u32 = 16;

/// The budget for all other frames, which are GOAWAY and frames of unknown extensions: 1,000 at
/// first and 100 a second.
pub(super) type Others = Allowance<1_000, 100>;

/// The maximum number of CONTINUATION frames of one field block. Netty allows 16 small ones,
/// nghttp2 8, h2 with the gateway's limits 5.
pub(super) const CONTINUATIONS: u32 = 16;

/// The maximum number of compressed bytes of one field block: nghttp2's number, four times what the
/// gateway's limit on fields admits.
pub(super) const LIST: u32 = 64 << 10;

/// The maximum number of frames in a connection's life that make the server reset a stream. A
/// correct client sends none.
pub(super) const PROVOKED: u32 = 16;

/// The largest increment in bytes that a stream's initial window admits: the largest window (RFC
/// 9113 section 6.9.1) minus the initial window of a stream (6.5.2). A larger increment overflows.
pub(super) const LARGEST_INCREMENT: u32 = 0x7fff_ffff - 65_535;

/// The length in bytes of the shortest field block of a request: `:method`, `:scheme` and `:path`
/// (RFC 9113 section 8.3.1), each at least one byte in HPACK.
pub(super) const LEAST_REQUEST: u32 = 3;
