//! The session of one live visitor on the site.
//!
//! `bywash_scenario::Visitor` decides the behaviour. This module makes the requests, waits for the
//! visitor's patience, and records the outcomes. The response time of a request counts from when
//! the request was due. A pause begins when the last request ended for the *visitor*, even if its
//! answer is still read.

use std::rc::Rc;

use bywash_scenario::{Attempt, Closes, Ending, Next, Stream, Visitor};
use bywash_units::{Time, TimeSpan};
use http::header::RETRY_AFTER;
use http::{HeaderMap, HeaderValue, StatusCode, Uri};
use tokio::task::spawn_local;
use tokio::time::timeout_at;

use crate::connection::{Answer, Connection, RequestError, send};
use crate::context::RunContext;
use crate::cookie_jar::CookieJar;
use crate::head::{Head, is_file};
use crate::slots::Slot;
use crate::statistics::Confirmed;

/// The number of the random stream for the placeholders in requests. The streams of the scenario
/// have lower numbers.
const PLACEHOLDERS: u64 = 0x4001;
/// The number of the random stream for the head of a visitor's requests.
const HEADS: u64 = 0x4002;

/// A visitor in a live run, with its connection and cookies.
pub(crate) struct VirtualUser {
    context: Rc<RunContext>,
    visitor: Visitor,
    index: u64,
    /// The index of the client set that the visitor belongs to; `None` for a visitor outside the
    /// sets.
    set: Option<usize>,
    /// The time at which the session is due to start.
    start: Time,
    jar: CookieJar,
    keeps_cookies: bool,
    /// The head of the visitor's requests; `None` if the run has no heads.
    head: Option<Head>,
    /// The address of the last page, which further requests send as `Referer`; `None` before it.
    referrer: Option<HeaderValue>,
    /// The random stream for the placeholders of requests.
    chance: Stream,
    /// The path of the last request, which a retry uses again.
    path: Uri,
    /// The header fields of every request: the visitor's tag, and the signals that are headers.
    extra_headers: HeaderMap,
    /// The connection to the site, which is reused while the site keeps it open.
    connection: Option<Connection>,
    slot: Slot,
}

impl VirtualUser {
    /// Creates the `index`-th visitor of the run, whose session is due to start at `start`. `set`
    /// is the index of its client set, if it belongs to one.
    pub(crate) fn new(
        context: &Rc<RunContext>,
        index: u64,
        set: Option<usize>,
        start: Time,
        slot: Slot,
    ) -> Self {
        let visitor = context.scenario.visitor(context.seed, index, start);
        let visitor = match set {
            Some(set) => visitor.of_set(&context.scenario.sets[set]),
            None => visitor,
        };
        let shape = || Stream::new(context.seed, HEADS, index);
        let (head, keeps_cookies) = match context.scenario.client.shape(shape) {
            Some((shape, chance)) => context.requests.head(shape, chance),
            None => (None, true),
        };
        Self {
            head,
            keeps_cookies,
            referrer: None,
            start,
            index,
            set,
            extra_headers: context.requests.extra_headers(index, visitor.signals()),
            jar: context.requests.jar(visitor.signals()),
            chance: Stream::new(context.seed, PLACEHOLDERS, index),
            path: Uri::default(),
            visitor,
            connection: None,
            context: Rc::clone(context),
            slot,
        }
    }

    /// Runs the whole session. Returns the visitor's slot, for the next session of the client;
    /// `None` if a client of a set had not ended its session when the run was over.
    pub(crate) async fn run(mut self) -> Option<Slot> {
        let (context, start) = (Rc::clone(&self.context), self.start);
        let rho = context.rho_at(start);
        let statistics = context.statistics_for(self.set);
        statistics.borrow_mut().session(&context.scenario, &self.visitor, start, rho);
        let not_generated = self.requests(start).await;
        statistics.borrow_mut().session_over(not_generated.unwrap_or(0));
        not_generated.map(|_| self.slot)
    }

    /// Makes one request after another, until the visitor is gone or the run is over. Returns the
    /// number of planned requests that were not made. Returns `None` for a client of a set whose
    /// session is unfinished, because that session does not count.
    async fn requests(&mut self, start: Time) -> Option<u64> {
        let mut intended = start;
        loop {
            let lag = self.context.lag(intended);
            self.context.statistics.borrow_mut().record_lag(lag);
            let (ended, ending) = self.request(intended).await;
            match self.visitor.ended(&self.context.scenario, ending) {
                Next::Gone { not_generated } => {
                    if self.set.is_none() || ended <= self.context.last_arrival {
                        let statistics = self.context.statistics_for(self.set);
                        statistics.borrow_mut().session_ended(ended.since(start));
                    }
                    return Some(not_generated);
                }
                Next::After(pause) => intended = ended + pause,
            }
            let over = match self.set {
                Some(_) => self.context.last_arrival,
                None => self.context.closing,
            };
            if intended >= over {
                return self.set.is_none().then(|| self.left(ending));
            }
            self.pause(intended).await;
        }
    }

    /// Makes one request that is due at `intended`. Returns the time at which the request ended for
    /// the visitor, and its outcome.
    async fn request(&mut self, intended: Time) -> (Time, Ending) {
        let context = Rc::clone(&self.context);
        let attempt = self.visitor.attempt(&context.scenario);
        if !attempt.retry {
            self.path = context.requests.path(attempt.class, &mut self.chance);
        }
        if self.head.is_some_and(|head| !head.requests(&self.path)) {
            return (intended, Ending::Completed);
        }
        let statistics = context.statistics_for(self.set);
        if self.set.is_none() {
            statistics.borrow_mut().generated(attempt.class, intended);
        }
        let deadline = (intended + attempt.patience).min(context.closing);
        let ending = self.try_until(deadline, &attempt).await;
        let ended = match ending {
            Ending::TimedOut => deadline,
            Ending::Completed | Ending::Dropped | Ending::Terminated | Ending::Failed => {
                context.clock.now()
            }
        };
        let mut recorded = statistics.borrow_mut();
        if self.set.is_some() {
            // Permanent clients continue until the run ends, so their requests count only if they
            // ended before the end of arrivals.
            if ended > context.last_arrival {
                return (ended, ending);
            }
            recorded.generated(attempt.class, intended);
        }
        let response = ended.since(intended);
        if ending == Ending::Completed && attempt.order {
            recorded.confirmed.push(Confirmed { visitor: self.index, response });
        }
        recorded.ended(&attempt, ended, response, ending);
        (ended, ending)
    }

    /// Sends the request, and waits for the whole answer until `deadline`. Returns the outcome for
    /// the visitor.
    async fn try_until(&mut self, deadline: Time, attempt: &Attempt) -> Ending {
        let context = Rc::clone(&self.context);
        let mut headers = context.requests.headers(attempt);
        if let Some(head) = &self.head {
            head.write(&mut headers, &self.path, self.referrer.as_ref());
            if !is_file(&self.path) {
                self.referrer = context.target.url(&self.path);
            }
        }
        headers.extend(self.extra_headers.clone());
        let path = self.path.clone();
        let request = context.requests.build(attempt, path, &self.jar, headers);
        let kept = self.connection.take();
        let mut exchange = Box::pin(send(kept, context.endpoints(self.index, self.set), request));
        match timeout_at(context.clock.instant(deadline), &mut exchange).await {
            // The timer may fire a millisecond late, but the visitor's patience ends on time.
            Ok(_) if context.clock.now() >= deadline => Ending::TimedOut,
            Ok(answer) => self.take(answer, attempt.class),
            Err(_) => {
                give_up(&context, exchange);
                Ending::TimedOut
            }
        }
    }

    /// Returns the outcome, for the visitor, of an answer or of a request that failed without an
    /// answer.
    fn take(&mut self, answer: Result<Answer, RequestError>, class: usize) -> Ending {
        match answer {
            Ok(answer) => {
                if self.keeps_cookies {
                    self.jar.store(&answer.headers);
                }
                self.connection = answer.connection;
                let asked = retry_after(&answer.headers);
                self.visitor.asked_to_wait(asked.unwrap_or_default());
                let wanted = self.context.scenario.classes[class].status;
                match meaning(answer.status, answer.whole, asked.is_some()) {
                    Ending::Completed if wanted.is_some_and(|status| answer.status != status) => {
                        Ending::Failed
                    }
                    ending => ending,
                }
            }
            Err(RequestError::Exhausted) => {
                self.context.statistics.borrow_mut().flaws.exhausted += 1;
                Ending::Failed
            }
            Err(RequestError::Lost | RequestError::Unsent(_)) => Ending::Failed,
        }
    }

    /// Waits until `until`, when the next request is due. Drops the connection if the site closes
    /// it meanwhile.
    async fn pause(&mut self, until: Time) {
        let over = self.context.clock.reach(until);
        match &mut self.connection {
            Some(connection) => connection.drive(over).await,
            None => over.await,
        }
        self.connection.take_if(|connection| !connection.is_open());
    }

    /// Returns the number of further requests that the visitor would have made if the run had not
    /// ended during its pause. Assumes that each of them would have been completed. `last` is the
    /// outcome of the last request.
    fn left(&self, last: Ending) -> u64 {
        let mut rest = self.visitor.clone();
        let mut visits = 0;
        loop {
            rest.attempt(&self.context.scenario);
            visits += 1;
            if let Next::Gone { .. } = rest.ended(&self.context.scenario, Ending::Completed) {
                break;
            }
        }
        // `visits` includes the present visit if its request failed. That request was made, so it
        // does not count.
        visits - u64::from(last != Ending::Completed)
    }
}

/// Ends the request of a client that has lost patience. Closes the socket now, unless the run hides
/// departures as an intermediary does. With hidden departures, it reads and discards the answer,
/// until the answer is complete or the run is over. If no slot is free for this, it closes the
/// socket and counts the departure as not hidden.
fn give_up(
    context: &Rc<RunContext>,
    exchange: impl Future<Output = Result<Answer, RequestError>> + 'static,
) {
    if context.closes == Closes::Visible || context.clock.now() >= context.closing {
        return drop(exchange);
    }
    let Some(slot) = context.slots.take() else {
        context.statistics.borrow_mut().flaws.not_hidden += 1;
        return;
    };
    let closing = context.clock.instant(context.closing);
    spawn_local(async move {
        // Any answer comes too late for the visitor, so it is discarded.
        let _ = timeout_at(closing, exchange).await;
        drop(slot);
    });
}

/// Returns the wait that a refusal asks for in `Retry-After`, if it is given in seconds. A date is
/// ignored, because it depends on another clock.
fn retry_after(headers: &HeaderMap) -> Option<TimeSpan> {
    let seconds: u32 = headers.get(RETRY_AFTER)?.to_str().ok()?.parse().ok()?;
    Some(TimeSpan::from_secs(seconds.into()))
}

/// Returns the outcome that a status means to the visitor. A refusal counts as a refusal even if
/// its body is incomplete (`whole` is false). A 504 with `Retry-After` (`asks_again`) means that
/// the gateway stopped a running request.
fn meaning(status: StatusCode, whole: bool, asks_again: bool) -> Ending {
    match status {
        StatusCode::GATEWAY_TIMEOUT if asks_again => Ending::Terminated,
        StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS => Ending::Dropped,
        _ if whole && (status.is_success() || status.is_redirection()) => Ending::Completed,
        _ => Ending::Failed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_asks_for_seconds_or_for_nothing() {
        let asks = |text: &'static str| {
            let value = http::HeaderValue::from_static(text);
            retry_after(&HeaderMap::from_iter([(RETRY_AFTER, value)]))
        };
        assert_eq!(asks("7"), Some(TimeSpan::from_secs(7)));
        for nothing in ["Fri, 20 Nov 2026 08:00:00 GMT", "-1", "1.5", "", "99999999999999"] {
            assert_eq!(asks(nothing), None, "{nothing}");
        }
        assert_eq!(retry_after(&HeaderMap::new()), None);
    }

    #[test]
    fn only_a_whole_answer_completes_and_only_503_and_429_refuse() {
        let cases = [
            (200, true, Ending::Completed),
            (304, true, Ending::Completed),
            (200, false, Ending::Failed),
            (503, false, Ending::Dropped),
            (429, true, Ending::Dropped),
            (500, true, Ending::Failed),
            (404, true, Ending::Failed),
            (101, true, Ending::Failed),
        ];
        for (status, whole, ending) in cases {
            let status = StatusCode::from_u16(status).unwrap();
            assert_eq!(meaning(status, whole, true), ending, "{status}, whole: {whole}");
        }
        let timeout = |asks_again| meaning(StatusCode::GATEWAY_TIMEOUT, true, asks_again);
        assert_eq!([true, false].map(timeout), [Ending::Terminated, Ending::Failed]);
    }
}
