//! Measures whether a running request waits for its client, and how fast that client sends or
//! reads.
//!
//! A request holds its slot while its body arrives and while its response is read. If the client
//! sends or reads slowly, the client and not the application decides how long the slot is held.
//! Therefore the request is judged at the end of each window of half a second. If the gateway has
//! waited for the client for more than half of the window, it tells the engine the rate at which
//! the client moves bytes. The engine may then stop the request while others wait
//! (`Event::ClientSlow`).
//!
//! For a response, only bytes that the client's kernel has acknowledged count. Our own kernel
//! accepts a hundred kilobytes, however slow the client is. The rate is the mean over the time in
//! which the client was slow. After eight seconds of such time, older samples lose weight.
//!
//! When a response begins, the client's kernel fills its buffer, however slowly the client reads.
//! Therefore the first quarter of a second is excluded from the mean.
//!
//! Until the gateway waits for the client for the first time, nothing is computed and no timer is
//! set.

use std::pin::Pin;
use std::task::Context;
use std::time::Duration;

use tokio::time::{Instant, Sleep};

use crate::driver::Ticket;
use crate::upstream::Exchange;

/// The time between two judgements of a request.
const WINDOW: Duration = Duration::from_millis(500);

/// The number of seconds of slowness over which the client's rate is averaged.
const AVERAGED: f64 = 8.0;

/// The assumed rate of a client before the gateway asks for its body, in bytes per second. Most
/// honest clients send faster.
const NOT_ASKED: u64 = 8192;

/// The measurement of the client of one running request, in both directions.
#[derive(Default)]
pub(crate) struct ClientRate {
    window: Option<Window>,
    answer: Answer,
    mean: Mean,
    /// Whether the gateway has told the engine that the client is slow.
    is_slow: bool,
    /// Whether the engine has stopped the request because the client is slow.
    was_stopped: bool,
    /// Whether the gateway has told the engine that the request's body is not complete.
    is_unfinished: bool,
}

/// The state of the response that matters for the client's rate.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Answer {
    #[default]
    NotBegun,
    /// The response still fills the buffer of the client's kernel.
    FillsBuffer,
    /// The buffer of the client's kernel is full, or has space because the client reads.
    IsRead,
}

/// The number of bytes that the client has moved, and the seconds in which it has moved them. Older
/// samples have less weight in both.
#[derive(Default)]
struct Mean {
    bytes: f64,
    seconds: f64,
}

impl Mean {
    fn add(&mut self, bytes: u64, time: Duration) {
        let seconds = self.seconds + time.as_secs_f64();
        let kept = AVERAGED.min(seconds) / seconds;
        self.bytes = (self.bytes + bytes as f64) * kept;
        self.seconds = seconds * kept;
    }

    /// Returns the mean rate in bytes a second. Must not be called before a first window has ended.
    fn rate(&self) -> u64 {
        (self.bytes / self.seconds) as u64
    }
}

struct Window {
    since: Instant,
    /// The number of bytes that the client had moved when the window began.
    moved: u64,
    /// The time in this window for which the gateway has waited for the client, without the present
    /// wait.
    waited: Duration,
    waits_since: Option<Instant>,
    over: Pin<Box<Sleep>>,
    /// Whether the window ended while the gateway did not wait, so that the next wait is judged at
    /// once.
    is_due: bool,
}

impl Window {
    fn new(now: Instant, length: Duration, moved: u64, waits: bool) -> Self {
        let over = Box::pin(tokio::time::sleep_until(now + length));
        let waits_since = waits.then_some(now);
        Self { since: now, moved, waited: Duration::ZERO, waits_since, over, is_due: false }
    }

    /// Records whether the gateway waits for the client from now on.
    fn waits(&mut self, now: Instant, waits: bool) {
        match (self.waits_since, waits) {
            (None, true) => self.waits_since = Some(now),
            (Some(since), false) => {
                self.waited += now - since;
                self.waits_since = None;
            }
            (Some(_), true) | (None, false) => {}
        }
    }
}

impl ClientRate {
    /// Begins the measurement with a client whose body has not arrived completely. Such a client
    /// counts as slow from the start. Otherwise a client could hold slots by requesting them
    /// repeatedly. `rate` is the rate of its body so far in bytes a second; `None` if the client
    /// was not asked for the body yet.
    pub(super) fn begin_slow(&mut self, rate: Option<u64>, ticket: &Ticket) {
        self.is_slow = true;
        ticket.client_slow(rate.unwrap_or(NOT_ASKED));
    }

    /// Returns whether the gateway has told the engine that the client is slow. Only then may the
    /// engine stop the request because of its client.
    pub(super) const fn is_slow(&self) -> bool {
        self.is_slow
    }

    /// Ends the slowness, because the body is complete or the server takes no more of it now.
    fn end_slow(&mut self, ticket: &Ticket) {
        self.window = None;
        self.judge(None, ticket);
    }

    /// Records that the gateway has told the engine that the request's body is not complete.
    pub(super) const fn begin_unfinished_body(&mut self) {
        self.is_unfinished = true;
    }

    /// Tells the engine that the request's body is complete, if the gateway has told the engine
    /// before that the body is not complete.
    fn complete_body(&mut self, ticket: &Ticket) {
        if std::mem::take(&mut self.is_unfinished) {
            ticket.body_complete();
        }
    }

    /// Observes how a running request's body arrives before its response has begun.
    pub(super) fn observe_upload(
        &mut self,
        cx: &mut Context<'_>,
        exchange: &Exchange,
        ticket: &Ticket,
    ) {
        let waits = exchange.waits_for_client();
        self.observe(cx, waits, || exchange.sent(), ticket);
        if !waits {
            self.end_slow(ticket);
        }
        if exchange.has_uploaded() {
            self.complete_body(ticket);
        }
    }

    /// Records that the engine has stopped the request because its client is slow.
    pub(super) const fn mark_stopped(&mut self) {
        self.was_stopped = true;
    }

    /// Returns whether the engine has stopped the request because its client is slow.
    pub(super) const fn was_stopped(&self) -> bool {
        self.was_stopped
    }

    /// Observes how the client reads the response. `waits` says whether the gateway waits for the
    /// client now. `moved` returns the number of bytes that the client has moved since the request
    /// began.
    pub(super) fn observe_answer(
        &mut self,
        cx: &mut Context<'_>,
        waits: bool,
        moved: impl Fn() -> u64,
        ticket: &Ticket,
    ) {
        if self.answer == Answer::NotBegun {
            self.answer = Answer::FillsBuffer;
        }
        self.observe(cx, waits, moved, ticket);
    }

    /// Observes whether the gateway waits for the client now (`waits`). `moved` returns the number
    /// of bytes that the client has moved since the request began. At the end of each window the
    /// engine gets the result.
    fn observe(
        &mut self,
        cx: &mut Context<'_>,
        waits: bool,
        moved: impl Fn() -> u64,
        ticket: &Ticket,
    ) {
        if self.window.is_none() && !waits {
            self.judge(None, ticket);
            return;
        }
        let now = Instant::now();
        let fills_buffer = self.answer == Answer::FillsBuffer;
        let length = if fills_buffer { WINDOW / 2 } else { WINDOW };
        let window = self.window.get_or_insert_with(|| Window::new(now, length, moved(), waits));
        window.waits(now, waits);
        if window.over.as_mut().poll(cx).is_pending() && !(waits && window.is_due) {
            return;
        }
        if fills_buffer && waits {
            self.answer = Answer::IsRead;
            self.begin_window(cx, now, WINDOW / 2, moved());
            return;
        }
        let elapsed = now - window.since;
        let waited = window.waited + window.waits_since.map_or(Duration::ZERO, |since| now - since);
        let mostly_waited = waited * 2 > elapsed;
        if mostly_waited && !waits {
            // The client takes a piece for which there was room. It is not known yet whether it has
            // read the pieces before. That will show when the gateway waits next, or has not waited
            // for an equally long time.
            window.is_due = true;
            window.over.as_mut().reset(now + WINDOW);
            let _ = window.over.as_mut().poll(cx);
            return;
        }
        if mostly_waited {
            self.mean.add(moved().saturating_sub(window.moved), elapsed);
        }
        // If the gateway does not wait now, the next window begins with the next wait.
        self.window = None;
        if waits {
            self.begin_window(cx, now, WINDOW, moved());
        }
        self.judge(mostly_waited.then(|| self.mean.rate()), ticket);
    }

    /// Begins a window of this length in which the gateway waits for the client. Its end wakes the
    /// task.
    fn begin_window(&mut self, cx: &mut Context<'_>, now: Instant, length: Duration, moved: u64) {
        let window = self.window.insert(Window::new(now, length, moved, true));
        let _ = window.over.as_mut().poll(cx);
    }

    /// Tells the engine the rate of a slow client in bytes a second. With `None`, tells it that the
    /// client is not slow any more.
    fn judge(&mut self, slow: Option<u64>, ticket: &Ticket) {
        match slow {
            Some(rate) => ticket.client_slow(rate),
            None if self.is_slow => ticket.client_caught_up(),
            None => {}
        }
        self.is_slow = slow.is_some();
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use bywash_engine::{ClassId, Request};
    use tokio::time::advance;

    use super::*;

    /// The number of bytes of one TLS record.
    const PIECE: u64 = 16_384;

    /// Returns a function that observes a running request. Its arguments say whether the gateway
    /// waits for the client, and how many bytes the client has moved. It returns whether the client
    /// is slow.
    fn observer() -> impl FnMut(bool, u64) -> bool {
        let driver = crate::driver::tests::driver(1);
        let ticket = driver.arrive(Request::of(ClassId(0)), true, |_| ());
        let mut rate = ClientRate::default();
        move |waits, moved| {
            rate.observe_answer(&mut Context::from_waker(Waker::noop()), waits, || moved, &ticket);
            rate.is_slow()
        }
    }

    /// Returns an [`observer`] for a client whose kernel's buffer is full.
    async fn observer_of_reader() -> impl FnMut(bool, u64) -> bool {
        let mut observe = observer();
        assert!(!observe(true, 0));
        advance(WINDOW / 2).await;
        assert!(!observe(true, 0));
        observe
    }

    /// The reader takes a whole TLS record at a time. At the end of a window there is room for a
    /// piece, although the gateway has waited for nearly all of the window.
    #[tokio::test(start_paused = true)]
    async fn a_reader_that_takes_a_piece_at_the_end_of_a_window_is_judged_at_the_next_wait() {
        let mut observe = observer_of_reader().await;
        advance(WINDOW).await;
        assert!(!observe(false, PIECE), "there is room for a piece");
        advance(Duration::from_millis(1)).await;
        assert!(observe(true, PIECE), "it waits again");
    }

    #[tokio::test(start_paused = true)]
    async fn a_reader_for_which_nothing_waits_after_a_window_has_caught_up() {
        let mut observe = observer_of_reader().await;
        advance(WINDOW).await;
        assert!(!observe(false, PIECE));
        advance(WINDOW + Duration::from_millis(1)).await;
        assert!(!observe(true, PIECE), "it has waited for less than half of the time");
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_quarter_of_a_second_of_an_answer_tells_no_rate() {
        let driver = crate::driver::tests::driver(1);
        let ticket = driver.arrive(Request::of(ClassId(0)), true, |_| ());
        let mut client = ClientRate::default();
        let mut judged = Vec::new();
        for (quarters, moved) in [(0, 0), (1, 65_536), (1, 65_736), (2, 66_136), (2, 66_136)] {
            advance(WINDOW / 2 * quarters).await;
            let mut cx = Context::from_waker(Waker::noop());
            client.observe_answer(&mut cx, true, || moved, &ticket);
            judged.push(client.is_slow().then(|| client.mean.rate()));
        }
        assert_eq!(judged, [None, None, Some(800), Some(800), Some(480)]);
    }

    #[test]
    fn a_burst_counts_for_as_long_as_it_pays_for() {
        let mut mean = Mean::default();
        mean.add(80_000, WINDOW / 2);
        let after = |mean: &mut Mean, windows| {
            (0..windows).for_each(|_| mean.add(0, WINDOW));
            mean.rate()
        };
        assert_eq!(after(&mut mean, 8), 18_823);
        assert!((10_000..10_700).contains(&after(&mut mean, 7)));
        assert!(after(&mut mean, 32) < 1_500);
    }
}
