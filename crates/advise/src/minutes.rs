//! The load in each minute of a log: requests, and their concurrency.
//!
//! A request that lasts many minutes is recorded only in its first and its last minute. For the
//! minutes in between, a running count of such requests is changed at both ends. So a request that
//! took a day costs no more than any other.

use std::collections::BTreeMap;

use bywash_units::{Time, TimeSpan};
use serde::Serialize;

use crate::groups::GROUPS;
use crate::limit::{PARTS, Window};

/// The maximum number of minutes with requests that are recorded: nine months without a pause.
pub const MOST: usize = 400_000;

const MINUTE: u64 = 60_000_000_000;

#[derive(Clone, Copy, Debug, Default)]
struct Cell {
    requests: u32,
    /// The number of requests for pages, without files.
    pages: u32,
    sessions: u32,
    /// The time in seconds that requests spent inside the application during this minute. Only
    /// requests that began or ended in the minute count.
    edges: f32,
    /// The number of pages answered in each part of the minute, by group.
    answered: [[u32; GROUPS]; PARTS],
    /// The total duration of the answered pages in seconds, by group.
    took: [f32; GROUPS],
    /// The number of pages whose clients left.
    left: u32,
    /// The number of requests that cover this whole minute, minus the number that cover the
    /// previous one.
    whole: i32,
}

/// The load in each minute of a log.
#[derive(Clone, Debug, Default)]
pub(crate) struct Minutes {
    cells: BTreeMap<u32, Cell>,
    /// The number of requests that were not recorded because [`MOST`] minutes were recorded
    /// already.
    pub(crate) beyond: u64,
}

/// The load in a peak minute.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Peak {
    /// The start of the minute in seconds since 1970.
    pub at: u64,
    /// The number of requests per second.
    pub requests: f64,
    /// The number of requests for pages per second, without files.
    pub pages: f64,
    /// The number of sessions that began, per second.
    pub sessions: f64,
    /// The mean concurrency in this minute (Little's law); `None` if the log has no durations.
    pub at_once: Option<f64>,
}

impl Minutes {
    /// Counts a request for a file in the minute of its beginning. A web server in front of the
    /// application delivers files, so they use no capacity of the application.
    pub(crate) fn file(&mut self, began: Time) {
        match self.cell(began.as_nanos() / MINUTE) {
            Some(cell) => cell.requests = cell.requests.saturating_add(1),
            None => self.beyond += 1,
        }
    }

    /// Counts a request for a page. The request began at `began` and waited outside the application
    /// for `waited`. Then the application worked on it for `service`, if that is known.
    pub(crate) fn page(&mut self, began: Time, waited: TimeSpan, service: Option<TimeSpan>) {
        let Some(cell) = self.cell(began.as_nanos() / MINUTE) else {
            self.beyond += 1;
            return;
        };
        cell.requests = cell.requests.saturating_add(1);
        cell.pages = cell.pages.saturating_add(1);
        let Some(service) = service else { return };
        let began = began + waited;
        let end = began + service;
        let (first, last) = (began.as_nanos() / MINUTE, end.as_nanos() / MINUTE);
        let seconds = |nanos: u64| nanos as f32 / 1e9;
        let Some(cell) = self.cell(first) else { return };
        if first == last {
            cell.edges += seconds(service.as_nanos());
            return;
        }
        cell.edges += seconds((first + 1) * MINUTE - began.as_nanos());
        if let Some(cell) = self.cell(last) {
            cell.edges += seconds(end.as_nanos() - last * MINUTE);
            cell.whole -= 1;
            if let Some(cell) = self.cell(first + 1) {
                cell.whole += 1;
            }
        }
    }

    /// Counts an answered page in the minute of its end, by group and with its duration.
    pub(crate) fn answered(&mut self, ended: Time, group: usize, took: TimeSpan) {
        if let Some(cell) = self.cell(ended.as_nanos() / MINUTE) {
            let part = (ended.as_nanos() % MINUTE) as usize / (MINUTE as usize / PARTS);
            let count = &mut cell.answered[part.min(PARTS - 1)][group];
            *count = count.saturating_add(1);
            cell.took[group] += took.as_secs_f64() as f32;
        }
    }

    /// Counts a page whose client left at `ended`.
    pub(crate) fn left(&mut self, ended: Time) {
        if let Some(cell) = self.cell(ended.as_nanos() / MINUTE) {
            cell.left = cell.left.saturating_add(1);
        }
    }

    /// Returns all recorded minutes in ascending order, each with its number.
    pub(crate) fn each(&self) -> impl Iterator<Item = (u32, Window)> + '_ {
        let mut whole = 0_i64;
        self.cells.iter().map(move |(minute, cell)| {
            whole += i64::from(cell.whole);
            let window = Window {
                minutes: 1,
                seconds: 60.0,
                busy: cell.busy(whole, 60.0),
                pages: std::array::from_fn(|group| {
                    cell.answered.iter().fold(0_u32, |all, part| all.saturating_add(part[group]))
                }),
                parts: cell.answered,
                took: cell.took,
                left: cell.left,
            };
            (*minute, window)
        })
    }

    /// Counts a session that began at `began`.
    pub(crate) fn session(&mut self, began: Time) {
        if let Some(cell) = self.cell(began.as_nanos() / MINUTE) {
            cell.sessions = cell.sessions.saturating_add(1);
        }
    }

    fn cell(&mut self, minute: u64) -> Option<&mut Cell> {
        let minute = u32::try_from(minute).ok()?;
        if self.cells.len() >= MOST && !self.cells.contains_key(&minute) {
            return None;
        }
        Some(self.cells.entry(minute).or_default())
    }

    /// Returns the minute with the most requests, and the minute with the highest concurrency.
    /// Returns `None` if nothing was counted.
    ///
    /// `log` is the start and the end of the log. The first and the last minute count only for the
    /// part that the log covers, but for at least 30 s. A log shorter than a minute is one peak.
    pub(crate) fn peaks(&self, log: (Time, Time), has_durations: bool) -> Option<(Peak, Peak)> {
        if log.1.since(log.0).as_nanos() < MINUTE {
            return self.all(log, has_durations);
        }
        let mut whole = 0_i64;
        let mut peaks: Option<(Peak, Peak)> = None;
        for (minute, cell) in &self.cells {
            whole += i64::from(cell.whole);
            let begin = u64::from(*minute) * MINUTE;
            let seen =
                log.1.as_nanos().min(begin + MINUTE).saturating_sub(log.0.as_nanos().max(begin));
            let peak = cell.peak(*minute, whole, (seen as f64 / 1e9).max(30.0), has_durations);
            let (most, fullest) = peaks.get_or_insert((peak, peak));
            if peak.requests > most.requests {
                *most = peak;
            }
            if peak.at_once > fullest.at_once {
                *fullest = peak;
            }
        }
        peaks
    }

    /// Returns the sum of all minutes as one peak, for a log that is shorter than a minute.
    fn all(&self, log: (Time, Time), has_durations: bool) -> Option<(Peak, Peak)> {
        let (first, _) = self.cells.first_key_value()?;
        let mut all = Cell::default();
        for cell in self.cells.values() {
            all.requests = all.requests.saturating_add(cell.requests);
            all.pages = all.pages.saturating_add(cell.pages);
            all.sessions = all.sessions.saturating_add(cell.sessions);
            all.edges += cell.edges;
        }
        let seconds = log.1.since(log.0).as_secs_f64().max(1.0);
        let peak = all.peak(*first, 0, seconds, has_durations);
        Some((peak, peak))
    }
}

impl Cell {
    /// Returns the time in seconds that requests were inside the application during this minute.
    /// The log covers `seconds` of the minute, and `whole` requests were inside throughout.
    fn busy(&self, whole: i64, seconds: f64) -> f64 {
        f64::from(self.edges) + seconds * whole.max(0) as f64
    }

    /// Returns this minute as a peak. The log covers `seconds` of the minute, and `whole` requests
    /// were inside the application throughout.
    fn peak(&self, minute: u32, whole: i64, seconds: f64, has_durations: bool) -> Peak {
        let busy = self.busy(whole, seconds);
        Peak {
            at: u64::from(minute) * 60,
            requests: f64::from(self.requests) / seconds,
            pages: f64::from(self.pages) / seconds,
            sessions: f64::from(self.sessions) / seconds,
            at_once: has_durations.then_some(busy / seconds),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Time {
        Time::ZERO + TimeSpan::from_secs(seconds)
    }

    fn peaks(of: &[(u64, u64)]) -> (Peak, Peak) {
        let mut minutes = Minutes::default();
        for (from, to) in of {
            minutes.page(at(*from), TimeSpan::ZERO, Some(TimeSpan::from_secs(to - from)));
        }
        minutes.peaks((at(0), at(3600)), true).unwrap()
    }

    #[test]
    fn a_request_is_at_work_in_each_of_its_minutes() {
        let (most, fullest) = peaks(&[(30, 330), (190, 190), (195, 195)]);
        assert_eq!((most.at, most.requests), (180, 2.0 / 60.0));
        assert!((fullest.at_once.unwrap() - 1.0).abs() < 1e-6);
        let (_, fullest) = peaks(&[(0, 60), (60, 90), (60, 90), (80, 90)]);
        assert_eq!(fullest.at, 60);
        assert!((fullest.at_once.unwrap() - 70.0 / 60.0).abs() < 1e-6);
    }

    #[test]
    fn the_peak_of_a_short_log_is_over_what_was_seen() {
        // Two requests begin per second, and each lasts one second.
        let rate = |from: u64, to: u64| {
            let mut minutes = Minutes::default();
            for second in from..to {
                (0..2).for_each(|_| {
                    minutes.page(at(second), TimeSpan::ZERO, Some(TimeSpan::from_secs(1)));
                });
            }
            let (most, fullest) = minutes.peaks((at(from), at(to)), true).unwrap();
            (most.requests, fullest.at_once.unwrap())
        };
        for (from, to) in [(0, 10), (40, 80), (59, 61), (25, 95), (50, 130), (0, 600)] {
            let (requests, at_once) = rate(from, to);
            assert!((requests - 2.0).abs() < 1e-6, "{from} to {to}: {requests}");
            assert!((at_once - 2.0).abs() < 1e-5, "{from} to {to}: {at_once}");
        }
        // A burst in the last second of a log is not scaled to a minute.
        let mut minutes = Minutes::default();
        (0..120).for_each(|second| minutes.page(at(second), TimeSpan::ZERO, None));
        (0..3).for_each(|_| minutes.page(at(120), TimeSpan::ZERO, None));
        let (most, _) = minutes.peaks((at(0), at(121)), false).unwrap();
        assert!((most.requests - 1.0).abs() < 1e-6, "{most:?}");
    }

    #[test]
    fn what_there_is_no_room_for_is_counted() {
        let mut minutes = Minutes::default();
        for minute in 0..MOST as u64 + 5 {
            minutes.page(at(60 * minute), TimeSpan::ZERO, Some(TimeSpan::from_secs(86_400)));
        }
        assert!(minutes.cells.len() <= MOST);
        assert!(minutes.beyond >= 5);
    }
}
