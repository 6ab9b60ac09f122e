//! When decisions begin and end.

use bywash_units::TimeSpan;
use jiff::Timestamp;

/// Returns the time `span` after `at`, or the latest time that can be represented.
pub(crate) fn after(at: Timestamp, span: TimeSpan) -> Timestamp {
    let span = jiff::SignedDuration::try_from(span.to_std()).unwrap_or(jiff::SignedDuration::MAX);
    at.checked_add(span).unwrap_or(Timestamp::MAX)
}

/// Returns the beginning and the end of a decision, corrected if they lie too far in the future.
/// The beginning is at most `now`, and the duration does not exceed what the operator asked for.
pub(crate) fn began_by(
    now: Timestamp,
    since: Timestamp,
    until: Timestamp,
) -> (Timestamp, Timestamp) {
    let lasts = until.duration_since(since);
    let ends = now.checked_add(lasts).unwrap_or(until);
    (since.min(now), until.min(ends))
}
