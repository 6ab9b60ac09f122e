//! The session of one visitor on the site.
//!
//! `bywash_scenario::Visitor` decides; this module makes the requests, waits for the visitor's
//! patience, and records the outcomes. All times are the due times: a request counts from the time
//! at which it was due, and a pause from the time at which the last request ended for the
//! *visitor*.

use std::rc::Rc;

use bywash_scenario::{Attempt, Closes, Ending, Next, Stream, Visitor};
use bywash_units::{Span, Time};
use http::header::RETRY_AFTER;
use http::{HeaderMap, StatusCode, Uri};
use tokio::task::spawn_local;
use tokio::time::timeout_at;

use crate::connection::{Answer, Broken, Connection, ask};
use crate::field::Field;
use crate::jar::Jar;
use crate::slots::Slot;

/// The random stream of the visitor's blanks; those of the scenario have lower numbers.
const BLANKS: u64 = 0x4001;

/// A visitor and their state.
pub(crate) struct Walk {
    field: Rc<Field>,
    visitor: Visitor,
    index: u64,
    /// The set, for a permanent client.
    set: Option<usize>,
    /// The time at which the session is due to start.
    start: Time,
    jar: Jar,
    /// The random stream for the blanks of requests.
    chance: Stream,
    /// The path of the last request; a retry uses the same.
    path: Uri,
    /// The tag and the signals.
    marks: HeaderMap,
    /// The connection, kept between requests while the site keeps it.
    connection: Option<Connection>,
    slot: Slot,
}

impl Walk {
    /// Creates the `index`-th visitor of the run, due to arrive at `start`.
    pub(crate) fn new(
        field: &Rc<Field>,
        index: u64,
        set: Option<usize>,
        start: Time,
        slot: Slot,
    ) -> Self {
        let visitor = field.scenario.visitor(field.seed, index, start);
        let visitor = match set {
            Some(set) => visitor.of_set(&field.scenario.sets[set]),
            None => visitor,
        };
        Self {
            start,
            index,
            set,
            marks: field.requests.marks(index, visitor.signals()),
            jar: field.requests.jar(visitor.signals()),
            chance: Stream::new(field.seed, BLANKS, index),
            path: Uri::default(),
            visitor,
            connection: None,
            field: Rc::clone(field),
            slot,
        }
    }

    /// Runs the whole session. Returns the slot, unless the time was over before the session ended.
    pub(crate) async fn go(mut self) -> Option<Slot> {
        let (field, start) = (Rc::clone(&self.field), self.start);
        let rho = field.rho_at(start);
        let books = field.books(self.set);
        books.borrow_mut().session(&field.scenario, &self.visitor, start, rho);
        let not_generated = self.requests(start).await;
        books.borrow_mut().session_over(not_generated.unwrap_or(0));
        not_generated.map(|_| self.slot)
    }

    /// Makes request after request, until the visitor is gone or the run is over. Returns the
    /// number of requests not made. Returns `None` for a client of a set, whose unfinished session
    /// does not count.
    async fn requests(&mut self, start: Time) -> Option<u64> {
        let mut intended = start;
        loop {
            let lag = self.field.lag(intended);
            self.field.ledger.borrow_mut().late(lag);
            let (ended, ending) = self.request(intended).await;
            match self.visitor.ended(&self.field.scenario, ending) {
                Next::Gone { not_generated } => {
                    if self.set.is_none() || ended <= self.field.last_arrival {
                        let books = self.field.books(self.set);
                        books.borrow_mut().session_ended(ended.since(start));
                    }
                    return Some(not_generated);
                }
                Next::After(pause) => intended = ended + pause,
            }
            let over = match self.set {
                Some(_) => self.field.last_arrival,
                None => self.field.closing,
            };
            if intended >= over {
                return self.set.is_none().then(|| self.left(ending));
            }
            self.pause(intended).await;
        }
    }

    /// Makes one request that is due at `intended`. Returns the time and the kind of its end for
    /// the visitor.
    async fn request(&mut self, intended: Time) -> (Time, Ending) {
        let field = Rc::clone(&self.field);
        let attempt = self.visitor.attempt(&field.scenario);
        let books = field.books(self.set);
        if self.set.is_none() {
            books.borrow_mut().generated(attempt.class, intended);
        }
        let deadline = (intended + attempt.patience).min(field.closing);
        let ending = self.try_until(deadline, &attempt).await;
        let ended = match ending {
            Ending::TimedOut => deadline,
            Ending::Completed | Ending::Dropped | Ending::Terminated | Ending::Failed => {
                field.clock.now()
            }
        };
        let mut ledger = books.borrow_mut();
        if self.set.is_some() {
            // A client of a set has no last request; only requests that ended in time count.
            if ended > field.last_arrival {
                return (ended, ending);
            }
            ledger.generated(attempt.class, intended);
        }
        if ending == Ending::Completed && attempt.order {
            ledger.confirmed.push(self.index);
        }
        ledger.ended(&attempt, ended, ended.since(intended), ending);
        (ended, ending)
    }

    /// Sends the request, and waits for the whole answer until `deadline`.
    async fn try_until(&mut self, deadline: Time, attempt: &Attempt) -> Ending {
        let field = Rc::clone(&self.field);
        if !attempt.retry {
            self.path = field.requests.path(attempt.class, &mut self.chance);
        }
        let path = self.path.clone();
        let question = field.requests.ask(attempt, path, &self.jar, &self.marks);
        let kept = self.connection.take();
        let mut asking = Box::pin(ask(kept, field.way(self.index, self.set), question));
        match timeout_at(field.clock.instant(deadline), &mut asking).await {
            // The timer may be late by a millisecond; the visitor's patience ends on time.
            Ok(_) if field.clock.now() >= deadline => Ending::TimedOut,
            Ok(answer) => self.take(answer, attempt.class),
            Err(_) => {
                give_up(&field, asking);
                Ending::TimedOut
            }
        }
    }

    /// Returns the outcome of an answer, or of none, for the visitor.
    fn take(&mut self, answer: Result<Answer, Broken>, class: usize) -> Ending {
        match answer {
            Ok(answer) => {
                self.jar.remember(&answer.headers);
                self.connection = answer.connection;
                let asked = retry_after(&answer.headers);
                self.visitor.asked_to_wait(asked.unwrap_or_default());
                let wanted = self.field.scenario.classes[class].status;
                match meaning(answer.status, answer.whole, asked.is_some()) {
                    Ending::Completed if wanted.is_some_and(|status| answer.status != status) => {
                        Ending::Failed
                    }
                    ending => ending,
                }
            }
            Err(Broken::Exhausted) => {
                self.field.ledger.borrow_mut().flaws.exhausted += 1;
                Ending::Failed
            }
            Err(Broken::Lost | Broken::Unsent(_)) => Ending::Failed,
        }
    }

    /// Waits for the next request, and meanwhile notices if the site closes the connection.
    async fn pause(&mut self, until: Time) {
        let over = self.field.clock.reach(until);
        match &mut self.connection {
            Some(connection) => connection.drive(over).await,
            None => over.await,
        }
        self.connection.take_if(|connection| !connection.is_open());
    }

    /// Returns the planned requests that remained when the run ended in a pause. `last` is the
    /// outcome of the last request.
    fn left(&self, last: Ending) -> u64 {
        let mut rest = self.visitor.clone();
        let mut visits = 0;
        loop {
            rest.attempt(&self.field.scenario);
            visits += 1;
            if let Next::Gone { .. } = rest.ended(&self.field.scenario, Ending::Completed) {
                break;
            }
        }
        // A visit that was tried and failed was made, although without success.
        visits - u64::from(last != Ending::Completed)
    }
}

/// Ends the request of a client that has lost patience. The socket is closed now, unless an
/// intermediary hides it. In that case the answer is read and discarded, until it is complete or
/// the run is over.
fn give_up(field: &Rc<Field>, asking: impl Future<Output = Result<Answer, Broken>> + 'static) {
    if field.closes == Closes::Visible || field.clock.now() >= field.closing {
        return drop(asking);
    }
    let Some(slot) = field.slots.take() else {
        field.ledger.borrow_mut().flaws.not_hidden += 1;
        return;
    };
    let closing = field.clock.instant(field.closing);
    spawn_local(async move {
        // Any answer is too late.
        let _ = timeout_at(closing, asking).await;
        drop(slot);
    });
}

/// Returns how long a refusal asks the client to wait, if it is given in seconds. A date would
/// depend on another clock.
fn retry_after(headers: &HeaderMap) -> Option<Span> {
    let seconds: u32 = headers.get(RETRY_AFTER)?.to_str().ok()?.parse().ok()?;
    Some(Span::from_secs(seconds.into()))
}

/// Returns the outcome that a status means. A refusal is one even if its text is incomplete. A
/// gateway timeout with `Retry-After` means that the gateway stopped a running request.
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
        assert_eq!(asks("7"), Some(Span::from_secs(7)));
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
