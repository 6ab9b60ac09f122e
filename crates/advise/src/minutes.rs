//! Load, minute by minute: requests, and how many were being worked on.
//!
//! A request over many minutes is written down at its ends, and what lies between follows from a difference: so a
//! log full of requests that took a day costs no more than any other.

use std::collections::BTreeMap;

use bywash_units::{Span, Time};
use serde::Serialize;

/// Minutes that are looked at: nine months without a pause.
pub const MOST: usize = 400_000;

const MINUTE: u64 = 60_000_000_000;

#[derive(Clone, Copy, Debug, Default)]
struct Cell {
    requests: u32,
    /// Of these, those that ask for no file.
    pages: u32,
    sessions: u32,
    /// Seconds that were worked in it, by requests that began or ended in it.
    edges: f32,
    /// How many more requests fill this minute whole than the one before it.
    whole: i32,
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct Minutes {
    cells: BTreeMap<u32, Cell>,
    /// Requests for which there was no room.
    pub(crate) beyond: u64,
}

/// The busiest minute.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Peak {
    /// When it began: seconds since 1970.
    pub at: u64,
    /// Requests a second in it.
    pub requests: f64,
    /// Of these, those that ask for no file.
    pub pages: f64,
    /// Sessions that began in a second of it.
    pub sessions: f64,
    /// Requests that were being worked on at once, on average (Little's law: of the same minute); `None`: the log
    /// has no durations.
    pub at_once: Option<f64>,
}

impl Minutes {
    /// A file was asked for then. Whoever is in front serves files: they take no place in the application.
    pub(crate) fn file(&mut self, began: Time) {
        match self.cell(began.as_nanos() / MINUTE) {
            Some(cell) => cell.requests = cell.requests.saturating_add(1),
            None => self.beyond += 1,
        }
    }

    /// A page was asked for then and was worked on for so long, if that is known.
    pub(crate) fn page(&mut self, began: Time, service: Option<Span>) {
        let Some(cell) = self.cell(began.as_nanos() / MINUTE) else {
            self.beyond += 1;
            return;
        };
        cell.requests = cell.requests.saturating_add(1);
        cell.pages = cell.pages.saturating_add(1);
        let Some(service) = service else { return };
        let end = began + service;
        let (first, last) = (began.as_nanos() / MINUTE, end.as_nanos() / MINUTE);
        let seconds = |nanos: u64| nanos as f32 / 1e9;
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

    /// A session began then.
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

    /// The minute with most requests, and the one in which most were worked on at once. `seconds`: what was seen, of
    /// a log that is shorter than a minute.
    pub(crate) fn peaks(&self, seconds: f64, has_durations: bool) -> Option<(Peak, Peak)> {
        let length = seconds.clamp(1.0, 60.0);
        let mut whole = 0_i64;
        let mut peaks: Option<(Peak, Peak)> = None;
        for (minute, cell) in &self.cells {
            whole += i64::from(cell.whole);
            let busy = f64::from(cell.edges) + 60.0 * whole.max(0) as f64;
            let peak = Peak {
                at: u64::from(*minute) * 60,
                requests: f64::from(cell.requests) / length,
                pages: f64::from(cell.pages) / length,
                sessions: f64::from(cell.sessions) / length,
                at_once: has_durations.then_some(busy / length),
            };
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
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Time {
        Time::ZERO + Span::from_secs(seconds)
    }

    fn peaks(of: &[(u64, u64)]) -> (Peak, Peak) {
        let mut minutes = Minutes::default();
        for (from, to) in of {
            minutes.page(at(*from), Some(Span::from_secs(to - from)));
        }
        minutes.peaks(3600.0, true).unwrap()
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
    fn what_there_is_no_room_for_is_counted() {
        let mut minutes = Minutes::default();
        for minute in 0..MOST as u64 + 5 {
            minutes.page(at(60 * minute), Some(Span::from_secs(86_400)));
        }
        assert!(minutes.cells.len() <= MOST);
        assert!(minutes.beyond >= 5);
    }
}
