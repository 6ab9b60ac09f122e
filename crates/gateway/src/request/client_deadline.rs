//! Reads the client's own deadline, and computes the deadline that is passed on to the next hop.
//!
//! The field `bywash-deadline` gives the milliseconds within which a response must begin; a later
//! response is of no use to the client. The field `grpc-timeout` (gRPC over HTTP/2, «Requests»)
//! limits the whole call, including the end of its response. Here, both limit the time until a
//! response begins. Neither cuts off a response that has begun, because a client that does not want
//! the rest can leave. A malformed or repeated value is ignored and not passed on. Refusing such a
//! request would turn an optional hint into an error.
//!
//! **A deadline only shortens.** It applies in addition to `queue.max_wait`, `response_timeout` and
//! `run_max`, which apply as before. If it expires while the request waits, the request is refused
//! as after `queue.max_wait`. If it expires while the request runs, the request ends as if the
//! client had left, except that the response is a 504. The gateway then learns nothing about the
//! server or the concurrency limit, and counts nothing as load. Otherwise clients with tiny
//! deadlines could eject servers, lower the limit, and shorten the time that other requests get.
//!
//! **Forwarding.** The gateway sends the next hop the shortest of the limits that remain here. So
//! an application or another bywash gateway need not work longer than that. `grpc-timeout` contains
//! only the limits on a whole call, because the limit until a response begins would cut off a
//! stream that lasts longer.

use std::pin::Pin;
use std::task::{Context, Poll};

use bywash_message::{Fields, Name};
use bywash_units::{Time, TimeSpan};
use tokio::time::{Instant, Sleep};

/// The field with the time until a response must begin, in milliseconds. bywash defines it.
const FIELD: &[u8] = b"Bywash-Deadline";
const GRPC_FIELD: &[u8] = b"grpc-timeout";

/// The maximum number of digits in a `Bywash-Deadline`.
const DIGITS: usize = 9;
/// The maximum number of digits in a `grpc-timeout`, as gRPC defines it.
const GRPC_DIGITS: usize = 8;

/// The deadlines in a request's head.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Deadlines {
    /// The time from the arrival of the request until a response must begin, if the client has set
    /// one.
    pub(crate) begins: Option<TimeSpan>,
    /// The time from the arrival of the request until the whole call must be over, if set.
    whole: Option<TimeSpan>,
    /// Whether the request is a gRPC call, so that the next hop gets a `grpc-timeout`.
    is_grpc: bool,
}

impl Deadlines {
    pub(super) fn of(fields: &Fields) -> Self {
        let ours = || fields.named(FIELD);
        let ours = if fields.has(Name::Ours) { one(ours()).and_then(milliseconds) } else { None };
        let whole = one(fields.all(Name::GrpcTimeout)).and_then(timeout);
        let kind = fields.get(Name::ContentType).unwrap_or_default();
        let is_grpc = fields.has(Name::GrpcTimeout) || kind.starts_with(b"application/grpc");
        Self { begins: least(ours, whole), whole, is_grpc }
    }

    /// Writes the remaining times into `fields` for the next hop. `passed` is the time since the
    /// request arrived. The gateway itself still grants `begins` until a response begins, and
    /// `total` until the response is complete.
    pub(super) fn write(
        &self,
        fields: &mut Fields,
        passed: TimeSpan,
        begins: TimeSpan,
        total: TimeSpan,
    ) {
        let left = |span: TimeSpan| span.as_nanos().saturating_sub(passed.as_nanos());
        let caller_deadline = self.begins.map(|span| TimeSpan::from_nanos(left(span)));
        let begins = begins.min(total).min(caller_deadline.unwrap_or(total)).as_millis();
        fields.set(FIELD, Decimal::of(begins.min(10_u64.pow(DIGITS as u32) - 1)).text());
        if self.is_grpc {
            let whole =
                self.whole.map_or(total, |span| TimeSpan::from_nanos(left(span)).min(total));
            fields.set(GRPC_FIELD, Decimal::of_timeout(whole).text());
        }
    }
}

fn least(one: Option<TimeSpan>, other: Option<TimeSpan>) -> Option<TimeSpan> {
    [one, other].into_iter().flatten().min()
}

/// Returns the value of a field that occurs once. Returns `None` if it is missing or repeated.
fn one<'a>(mut values: impl Iterator<Item = &'a [u8]>) -> Option<&'a [u8]> {
    let value = values.next()?;
    if values.next().is_none() { Some(value) } else { None }
}

fn milliseconds(text: &[u8]) -> Option<TimeSpan> {
    number(text, DIGITS).map(TimeSpan::from_millis)
}

/// Parses a `grpc-timeout`: digits and a unit. Zero is valid, because some clients send it when no
/// time is left.
fn timeout(text: &[u8]) -> Option<TimeSpan> {
    let (unit, digits) = text.split_last()?;
    let count = number(digits, GRPC_DIGITS)?;
    Some(match unit {
        b'H' => TimeSpan::from_secs(count * 3600),
        b'M' => TimeSpan::from_secs(count * 60),
        b'S' => TimeSpan::from_secs(count),
        b'm' => TimeSpan::from_millis(count),
        b'u' => TimeSpan::from_micros(count),
        b'n' => TimeSpan::from_nanos(count),
        _ => return None,
    })
}

/// Parses a number of at most `most` digits. Returns `None` if `text` is anything else.
fn number(text: &[u8], most: usize) -> Option<u64> {
    let fits = !text.is_empty() && text.len() <= most && text.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(text).ok().filter(|_| fits)?.parse().ok()
}

/// A decimal number with an optional unit, formatted without an allocation.
struct Decimal {
    digits: [u8; 21],
    from: usize,
}

impl Decimal {
    fn of(number: u64) -> Self {
        Self::with_unit(number, None)
    }

    /// Formats a time for `grpc-timeout`, in the finest unit in which it has at most
    /// [`GRPC_DIGITS`] digits.
    fn of_timeout(span: TimeSpan) -> Self {
        let most = 10_u64.pow(GRPC_DIGITS as u32);
        let in_unit = [(span.as_micros(), b'u'), (span.as_millis(), b'm')];
        let (number, unit) = in_unit
            .into_iter()
            .find(|(number, _)| *number < most)
            .unwrap_or(((span.as_millis() / 1000).min(most - 1), b'S'));
        Self::with_unit(number, Some(unit))
    }

    fn with_unit(mut number: u64, unit: Option<u8>) -> Self {
        let mut decimal = Self { digits: [0; 21], from: 21 };
        if let Some(unit) = unit {
            decimal.push_front(unit);
        }
        loop {
            decimal.push_front(b'0' + (number % 10) as u8);
            number /= 10;
            if number == 0 {
                return decimal;
            }
        }
    }

    const fn push_front(&mut self, byte: u8) {
        self.from -= 1;
        self.digits[self.from] = byte;
    }

    fn text(&self) -> &[u8] {
        &self.digits[self.from..]
    }
}

/// A timer for a client's own deadline. It costs nothing for a client without a deadline.
pub(super) struct ClientDeadline {
    at: Option<Instant>,
    sleep: Option<Pin<Box<Sleep>>>,
}

impl ClientDeadline {
    /// A deadline that never expires.
    pub(super) const NEVER: Self = Self { at: None, sleep: None };

    /// Creates a timer that expires at `until`; with `None` it never expires. `now` is the present
    /// time.
    pub(super) fn at(until: Option<Time>, now: Time) -> Self {
        let at = until.map(|until| Instant::now() + until.since(now).to_std());
        Self { at, sleep: None }
    }

    pub(super) const fn is_never(&self) -> bool {
        self.at.is_none()
    }

    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(at) = self.at else { return Poll::Pending };
        // The clock is read here, because the runtime updates the time of its timers only when it
        // polls the timer driver.
        if at <= Instant::now() {
            return Poll::Ready(());
        }
        self.sleep.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(at))).as_mut().poll(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::fields;
    use super::*;

    fn begins_within(lines: &[(&str, &str)]) -> Option<u64> {
        Deadlines::of(&fields(lines)).begins.map(TimeSpan::as_nanos)
    }

    #[test]
    fn milliseconds_are_one_to_nine_digits() {
        for (text, expected) in [("0", 0), ("007", 7), ("250", 250), ("999999999", 999_999_999)] {
            assert_eq!(
                begins_within(&[("Bywash-Deadline", text)]),
                Some(expected * 1_000_000),
                "{text}"
            );
        }
        for text in ["", "-1", "+1", "1.5", "1 ", "250ms", "1000000000", "0x10", "1,2"] {
            assert_eq!(milliseconds(text.as_bytes()), None, "{text}");
        }
        assert_eq!(begins_within(&[("bywash-deadline", "5"), ("bywash-deadline", "9")]), None);
        assert_eq!(
            begins_within(&[("bywash_deadline", "5")]),
            None,
            "another spelling is no field of ours"
        );
    }

    #[test]
    fn a_timeout_is_one_to_eight_digits_and_a_unit() {
        for (text, expected) in [
            ("1H", 3_600_000_000_000),
            ("2M", 120_000_000_000),
            ("3S", 3_000_000_000),
            ("4m", 4_000_000),
            ("5u", 5_000),
            ("6n", 6),
            ("0n", 0),
            ("99999999S", 99_999_999_000_000_000),
            ("99999999H", u64::MAX),
        ] {
            assert_eq!(begins_within(&[("grpc-timeout", text)]), Some(expected), "{text}");
        }
        for text in ["", "S", "1", "1s", "1h", "100000000S", "-1S", "1 S", "1.5S", "1SS"] {
            assert_eq!(timeout(text.as_bytes()), None, "{text}");
        }
        assert_eq!(begins_within(&[("grpc-timeout", "1S"), ("grpc-timeout", "2S")]), None);
    }

    #[test]
    fn the_least_of_both_counts() {
        let both = |ours, grpc| begins_within(&[("bywash-deadline", ours), ("grpc-timeout", grpc)]);
        assert_eq!(both("20", "1S"), Some(20_000_000));
        assert_eq!(both("2000", "1S"), Some(1_000_000_000));
        assert_eq!(both("x", "1S"), Some(1_000_000_000));
        assert_eq!(both("20", "x"), Some(20_000_000));
    }

    /// Returns `Bywash-Deadline` and `grpc-timeout` as passed on one second after a request with
    /// these `lines` arrived. The gateway grants ten seconds until a response begins, and `total`
    /// seconds for the whole (`None`: an hour).
    fn written(lines: &[(&str, &str)], total: Option<u64>) -> [Option<String>; 2] {
        let mut map = fields(lines);
        let deadlines = Deadlines::of(&map);
        let total = TimeSpan::from_secs(total.unwrap_or(3600));
        map.remove(Name::Ours);
        map.remove(Name::GrpcTimeout);
        deadlines.write(&mut map, TimeSpan::from_secs(1), TimeSpan::from_secs(10), total);
        let text = |name: &[u8]| {
            map.named(name).next().map(|value| String::from_utf8(value.to_vec()).unwrap())
        };
        [text(FIELD), text(GRPC_FIELD)]
    }

    #[test]
    fn what_goes_on_is_the_least_that_is_left() {
        let plain = |lines: &[(&str, &str)], total| {
            let [ours, grpc] = written(lines, total);
            assert_eq!(grpc, None);
            ours.unwrap()
        };
        assert_eq!(plain(&[], None), "10000");
        assert_eq!(plain(&[], Some(4)), "4000");
        assert_eq!(plain(&[("bywash-deadline", "3500")], Some(4)), "2500");
        assert_eq!(plain(&[("bywash-deadline", "1")], None), "0");
        assert_eq!(plain(&[("bywash-deadline", "60000")], None), "10000");
        assert_eq!(plain(&[("bywash-deadline", "soon")], None), "10000");
    }

    #[test]
    fn a_call_is_told_only_what_bounds_the_whole_of_it() {
        let kind = ("content-type", "application/grpc+proto");
        let grpc = |lines: &[(&str, &str)], total| written(lines, total)[1].clone();
        // A `grpc-timeout` is not cut to the time until a response begins: a stream lasts longer.
        assert_eq!(grpc(&[kind], None).as_deref(), Some("3600000m"));
        assert_eq!(grpc(&[kind], Some(4)).as_deref(), Some("4000000u"));
        assert_eq!(grpc(&[kind, ("grpc-timeout", "61S")], None).as_deref(), Some("60000000u"));
        assert_eq!(grpc(&[kind, ("grpc-timeout", "61S")], Some(4)).as_deref(), Some("4000000u"));
        assert_eq!(grpc(&[("grpc-timeout", "500u")], None).as_deref(), Some("0u"));
        assert_eq!(grpc(&[kind, ("grpc-timeout", "1 S")], Some(4)).as_deref(), Some("4000000u"));
        let days = [kind, ("grpc-timeout", "48H"), ("bywash-deadline", "9000")];
        let week = Some(7 * 24 * 3600);
        assert_eq!(written(&days, week), [Some("8000".into()), Some("172799S".into())]);
        assert_eq!(grpc(&[kind, ("grpc-timeout", "3601S")], week).as_deref(), Some("3600000m"));
    }
}
