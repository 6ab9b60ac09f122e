//! The next quiet time of a site: when it was quiet a day before.

use std::ops::Range;

use bywash_units::TimeSpan;

use crate::row::Row;

/// The length of the parts of a day that are compared, in milliseconds.
const PART: u64 = 15 * 60 * 1000;
/// The minimum number of rows of a part. With fewer, it is unknown how busy the site was.
const ROWS: u32 = 10;
/// The wait of a request from which on a time is not quiet.
const LONG_WAIT: TimeSpan = TimeSpan::from_secs(1);
/// The maximum part of the slots that is in use in a quiet time.
const QUIET: f64 = 0.5;
/// The maximum number of parts of one quiet time: an hour.
const MOST_PARTS: u64 = 4;
const DAY: u64 = 24 * 3600 * 1000;

/// The sums over the rows of a part of a day.
#[derive(Clone, Copy, Debug, Default)]
struct Part {
    rows: u32,
    limit: u64,
    running: u64,
    /// Whether a request waited for long, or the gateway was bypassed, in any of the rows.
    is_busy: bool,
}

impl Part {
    fn add(&mut self, row: &Row) {
        let engine = &row.gauges.engine;
        self.rows += 1;
        self.limit += u64::from(engine.limit);
        self.running += u64::from(engine.running);
        self.is_busy |= engine.oldest >= LONG_WAIT || row.gauges.bypassed;
    }

    fn is_quiet(&self) -> bool {
        let used = self.running as f64 / self.limit.max(1) as f64;
        self.rows >= ROWS && !self.is_busy && used <= QUIET
    }
}

/// Returns the next quiet time after `now`, as times in milliseconds since 1970, if the next day is
/// like the last one. `rows` are those of minutes. Returns `None` if no time of the last day is
/// known to have been quiet.
pub(crate) fn next<'r>(rows: impl Iterator<Item = &'r Row>, now: u64) -> Option<Range<u64>> {
    // A day after the present part of the day has begun, that part has begun as well.
    let first = (now.checked_sub(DAY)? / PART) + 1;
    let mut parts = [Part::default(); (DAY / PART) as usize];
    for row in rows {
        // The time of a row is that of its end.
        let index = (row.at.saturating_sub(1) / PART).checked_sub(first);
        let part = index.and_then(|index| parts.get_mut(usize::try_from(index).ok()?));
        if let Some(part) = part {
            part.add(row);
        }
    }
    let begin = parts.iter().position(Part::is_quiet)?;
    let parts = parts[begin..].iter().take_while(|part| part.is_quiet()).count() as u64;
    let begin = (first + begin as u64) * PART + DAY;
    Some(begin..begin + parts.min(MOST_PARTS) * PART)
}

#[cfg(test)]
mod tests {
    use bywash_engine::Status;

    use super::*;
    use crate::counts::Gauges;

    const MINUTE: u64 = 60_000;
    const HOUR: u64 = 60 * MINUTE;
    /// A time at which a part of a day begins.
    const NOW: u64 = 20_000 * DAY;

    /// Returns a row that ended a number of minutes before [`NOW`].
    fn row(minutes: u64, running: u32, oldest: TimeSpan) -> Row {
        let engine = Status { limit: 10, running, oldest, ..Status::default() };
        let gauges = Gauges { engine, ..Gauges::default() };
        Row { number: 0, at: NOW - minutes * MINUTE, lasted: 60_000, gauges, classes: Vec::new() }
    }

    /// Returns the rows of the last day, with the number of running requests at a minute before now.
    fn day(running: impl Fn(u64) -> u32) -> Vec<Row> {
        (0..24 * 60).rev().map(|minutes| row(minutes, running(minutes), TimeSpan::ZERO)).collect()
    }

    fn next_of(rows: &[Row]) -> Option<Range<u64>> {
        next(rows.iter(), NOW)
    }

    #[test]
    fn the_next_quiet_time_is_a_day_after_the_last_one() {
        // The site was quiet from twenty hours before now to seventeen and a half hours before now.
        let is_quiet = |minutes| (1050..1200).contains(&minutes);
        let rows = day(|minutes| if is_quiet(minutes) { 5 } else { 6 });
        assert_eq!(next_of(&rows), Some(NOW + 4 * HOUR..NOW + 5 * HOUR));
    }

    #[test]
    fn a_short_quiet_time_ends_with_it() {
        let rows = day(|minutes| if (120..150).contains(&minutes) { 0 } else { 9 });
        assert_eq!(next_of(&rows), Some(NOW + 21 * HOUR + 30 * MINUTE..NOW + 22 * HOUR));
    }

    #[test]
    fn a_time_in_which_a_request_waited_for_long_is_not_quiet() {
        let mut rows = day(|_| 0);
        // A request waited in the second quarter of an hour after the present time of the day.
        rows[20] = row(24 * 60 - 21, 0, LONG_WAIT);
        let expected = NOW + 30 * MINUTE;
        assert_eq!(next_of(&rows).map(|quiet| quiet.start), Some(expected));
    }

    #[test]
    fn an_unknown_time_is_not_quiet() {
        assert_eq!(next_of(&[]), None);
        assert_eq!(next_of(&day(|_| 10)), None);
        let few = day(|_| 0).into_iter().step_by(2).collect::<Vec<_>>();
        assert_eq!(next_of(&few), None, "eight rows in a quarter of an hour");
        assert_eq!(next(day(|_| 0).iter(), 5), None);
        let mut rows = day(|_| 0);
        for row in &mut rows {
            row.gauges.bypassed = true;
        }
        assert_eq!(next_of(&rows), None);
    }

    #[test]
    fn rows_of_any_time_do_no_harm() {
        let mut rows = day(|_| 0);
        rows.iter_mut().step_by(3).for_each(|row| row.at = u64::MAX);
        rows.iter_mut().skip(1).step_by(3).for_each(|row| row.at = 0);
        assert_eq!(next_of(&rows), None);
    }
}
