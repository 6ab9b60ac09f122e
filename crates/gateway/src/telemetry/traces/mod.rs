//! Traces: the trace that a request belongs to, and the request's span.
//!
//! The source is W3C Trace Context, level 1 (Recommendation of 2021-11-23, cited by section). A
//! request with one valid `traceparent` belongs to the trace that it names. A request with an
//! invalid one, or with more than one, belongs to no trace. Its `tracestate` is then removed as
//! well, because it means nothing alone (sections 3.2.2.5 and 3.3.1.2).
//!
//! **With traces on** (`log.traces`, in a build with the feature `traces`) every request is a span.
//! The upstream gets a `traceparent` with that span as the parent, in the client's trace or in a
//! new one. The span's number is the request's name, so it also stands in the log, in
//! `Bywash-Request` and in the output of `bywash explain`. A span is sampled if its parent is
//! sampled, or if it has no parent.
//!
//! **With traces off** a valid `traceparent` is forwarded unchanged (section 4.3). A span of the
//! gateway as the parent would be missing in the trace, because it is never exported.
//!
//! The number of a new trace is a keyed hash of the request's name. The key is random for each
//! process: the standard library gets it from the operating system at start. So trace numbers are
//! unpredictable and differ between processes, and no request has to wait for random numbers.

#[cfg(feature = "traces")]
mod export;
#[cfg(not(feature = "traces"))]
mod off;

use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, LazyLock};
use std::time::SystemTime;

use bywash_message::{Fields, Name};
use bywash_units::TimeSpan;

#[cfg(feature = "traces")]
pub(crate) use export::Tracer;
#[cfg(not(feature = "traces"))]
pub(crate) use off::Tracer;

use crate::telemetry::request_log::Entry;

/// Whether this build can export traces: it has the feature `traces`.
pub const EXPORTS_TRACES: bool = cfg!(feature = "traces");

/// The sender's span, from a request's `traceparent`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Parent {
    trace: u128,
    span: u64,
    is_sampled: bool,
}

impl Parent {
    fn of(fields: &Fields) -> Option<Self> {
        let mut all = fields.all(Name::Traceparent);
        let first = all.next()?;
        if all.next().is_some() { None } else { Self::parse(first) }
    }

    /// Parses a `traceparent` (sections 3.2.1 and 3.2.2). Only the known part is parsed if
    /// the version is later (section 3.2.4). Returns `None` if the field is invalid.
    fn parse(text: &[u8]) -> Option<Self> {
        let (known, later) = text.split_at_checked(LENGTH)?;
        let [v0, v1, b'-', rest @ ..] = known else { return None };
        let (trace, rest) = rest.split_at_checked(32)?;
        let (span, flags) = rest.strip_prefix(b"-")?.split_at_checked(16)?;
        let version = hexadecimal(&[*v0, *v1])?;
        let fits = match version {
            0 => later.is_empty(),
            0xff => false,
            _ => matches!(later, [] | [b'-', ..]),
        };
        let trace = hexadecimal(trace).filter(|trace| *trace != 0)?;
        let span = hexadecimal(span).filter(|span| *span != 0)? as u64;
        let flags = hexadecimal(flags.strip_prefix(b"-")?)?;
        fits.then_some(Self { trace, span, is_sampled: flags & 1 == 1 })
    }
}

/// The number of characters of a `traceparent`: version, trace, span and flags with hyphens
/// between.
const LENGTH: usize = 2 + 1 + 32 + 1 + 16 + 1 + 2;

/// Parses hexadecimal digits in lower case. Upper case is invalid in this field.
fn hexadecimal(digits: &[u8]) -> Option<u128> {
    digits.iter().try_fold(0, |number, digit| {
        let value = match digit {
            b'0'..=b'9' => digit - b'0',
            b'a'..=b'f' => digit - b'a' + 10,
            _ => return None,
        };
        Some(number << 4 | u128::from(value))
    })
}

/// The span of one request that has not ended.
#[allow(clippy::struct_field_names, reason = "the standard calls it the trace's id")]
pub(crate) struct Trace {
    tracer: Arc<Tracer>,
    trace: u128,
    span: u64,
    parent: Option<u64>,
    is_sampled: bool,
    begun: SystemTime,
}

/// A span that has ended and is to be exported.
#[cfg_attr(not(feature = "traces"), expect(dead_code, reason = "nobody reads it but the export"))]
pub(crate) struct Ended {
    trace: u128,
    span: u64,
    parent: Option<u64>,
    begun: SystemTime,
    taken: TimeSpan,
    entry: Arc<Entry>,
}

impl Trace {
    /// Begins the span of the request with this name and these header fields.
    pub(crate) fn begin(tracer: &Arc<Tracer>, fields: &Fields, name: u64) -> Self {
        static SECRET: LazyLock<[RandomState; 2]> = LazyLock::new(Default::default);
        // Zero is not a valid span number. The name 0 occurs once in the lives of 2^32 processes.
        let span = name.max(1);
        let parent = Parent::of(fields);
        let drawn = || {
            let [high, low] = SECRET.each_ref().map(|key| u128::from(key.hash_one(name)));
            (high << 64 | low).max(1)
        };
        Self {
            tracer: Arc::clone(tracer),
            trace: parent.map_or_else(drawn, |parent| parent.trace),
            span,
            parent: parent.map(|parent| parent.span),
            is_sampled: parent.is_none_or(|parent| parent.is_sampled),
            begun: SystemTime::now(),
        }
    }

    /// Ends the span, and exports it if it is sampled. `taken` is the time since the span began.
    pub(crate) fn end(self, taken: TimeSpan, entry: &Arc<Entry>) {
        if self.is_sampled {
            let Self { tracer, trace, span, parent, begun, .. } = self;
            tracer.export(Ended { trace, span, parent, begun, taken, entry: Arc::clone(entry) });
        }
    }

    /// Returns the value of `traceparent` for the upstream.
    pub(crate) fn traceparent(&self) -> String {
        format!("00-{:032x}-{:016x}-{:02x}", self.trace, self.span, u8::from(self.is_sampled))
    }
}

/// Replaces the client's trace fields by those for the upstream. `trace` is the request's span, or
/// `None` if traces are off.
pub(crate) fn propagate(fields: &mut Fields, trace: Option<&Trace>) {
    const STATE: &[u8] = b"tracestate";
    let goes_on = Parent::of(fields).is_some();
    if !goes_on {
        fields.remove(Name::Traceparent);
        if fields.named(STATE).next().is_some() {
            fields.remove_named(STATE);
        }
    }
    if let Some(trace) = trace {
        fields.set(b"traceparent", trace.traceparent().as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALID: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn a_valid_one_is_read() {
        let parent = Parent::parse(VALID.as_bytes()).unwrap();
        assert_eq!(parent.trace, 0x0af7_6519_16cd_43dd_8448_eb21_1c80_319c);
        assert_eq!(parent.span, 0xb7ad_6b71_6920_3331);
        assert!(parent.is_sampled);
        // Version 00 defines only the first flag.
        let flags = |flags: &str| Parent::parse(VALID.replace("-01", flags).as_bytes());
        assert!(!flags("-00").unwrap().is_sampled && !flags("-fe").unwrap().is_sampled);
        assert!(flags("-ff").unwrap().is_sampled);
    }

    #[test]
    fn a_later_version_may_say_more() {
        for text in [VALID.replacen("00", "01", 1), VALID.replacen("00", "cc", 1) + "-more"] {
            assert_eq!(Parent::parse(text.as_bytes()), Parent::parse(VALID.as_bytes()), "{text}");
        }
    }

    #[test]
    fn nothing_else_is_valid() {
        let wrong = [
            String::new(),
            VALID[..54].into(),
            format!("{VALID}-"),
            format!("{VALID}-more"),
            format!("{VALID}0"),
            VALID.to_uppercase(),
            VALID.replacen("00", "ff", 1),
            VALID.replacen("00", "0x", 1),
            VALID.replacen("00", "01", 1) + "more",
            VALID.replace("-b7", "_b7"),
            VALID.replace("-01", "-1 "),
            VALID.replace("0af7651916cd43dd8448eb211c80319c", &"0".repeat(32)),
            VALID.replace("b7ad6b7169203331", &"0".repeat(16)),
        ];
        for text in wrong {
            assert_eq!(Parent::parse(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn no_cut_and_no_byte_makes_a_reader_panic() {
        for end in 0..VALID.len() {
            assert_eq!(Parent::parse(&VALID.as_bytes()[..end]), None);
            let mut bytes = VALID.as_bytes().to_vec();
            bytes[end] = 0xff;
            assert_eq!(Parent::parse(&bytes), None);
        }
    }
}
