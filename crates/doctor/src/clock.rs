//! Checks the clocks of the machine. bywash uses only the monotonic clock for scheduling. It uses
//! the wall clock in the log, and to decide whether a certificate is valid.

use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::finding::Finding;

const CHECK: &str = "clock";

/// The times of both clocks, read one right after the other.
#[derive(Clone, Copy, Debug)]
struct Reading {
    /// The monotonic time, counted from an arbitrary start.
    monotonic: Duration,
    wall: SystemTime,
}

/// The time between the two readings of the clocks.
const WATCHED: Duration = Duration::from_millis(50);

pub(super) fn clocks() -> Finding {
    let start = Instant::now();
    let read = || Reading { monotonic: start.elapsed(), wall: SystemTime::now() };
    let before = read();
    std::thread::sleep(WATCHED);
    judge(before, read())
}

/// The range of plausible wall-clock times, in seconds since 1970: from 2026-01-01 to 2100-01-01.
/// An earlier time is wrong, because this version of bywash is newer. A later time is a wrong
/// setting.
const SANE: std::ops::Range<u64> = 1_767_225_600..4_102_444_800;

/// The maximum difference between the clocks that is not reported as a step of the wall clock. The
/// drift between the clocks during the check is smaller, and so is the likely delay between reading
/// one clock and the other.
const STEP: Duration = Duration::from_millis(500);

fn judge(before: Reading, after: Reading) -> Finding {
    let passed = after.monotonic.saturating_sub(before.monotonic);
    let (forward, ahead) = match after.wall.duration_since(before.wall) {
        Ok(wall) => (wall.saturating_sub(passed), passed.saturating_sub(wall)),
        Err(back) => (Duration::ZERO, back.duration().saturating_add(passed)),
    };
    let stepped = forward.max(ahead);
    let seconds = after.wall.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let finding = if passed < WATCHED {
        let found = format!("CLOCK_MONOTONIC advanced by {passed:?} in a sleep of {WATCHED:?}");
        let remedy = "choose another clock source (/sys/devices/system/clocksource)";
        Finding::problem(CHECK, found, remedy)
    } else if !SANE.contains(&seconds) {
        let found =
            format!("the wall clock shows {}: no certificate is valid at that time", date(seconds));
        Finding::problem(CHECK, found, "set it: `timedatectl set-ntp true`")
    } else if stepped > STEP {
        let found = format!("the wall clock jumped by {} ms during the check", stepped.as_millis());
        let remedy = "let one program alone adjust it, in small steps (chrony, systemd-timesyncd)";
        Finding::warning(CHECK, found, remedy)
    } else {
        Finding::ok(
            CHECK,
            format!("it is {}, and both clocks advance at the same rate", date(seconds)),
        )
    };
    finding.with("wall_clock_s", seconds).with("stepped_ms", stepped.as_millis() as u64)
}

/// Formats a time, in seconds since 1970, in UTC to the minute. The conversion of days to a date
/// follows Howard Hinnant's `civil_from_days`. Its years begin in March, so that a leap day is the
/// last of its year.
fn date(seconds: u64) -> String {
    let (days, minutes) = (seconds / 86_400 + 719_468, seconds % 86_400 / 60);
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = era * 400 + year + u64::from(month <= 2);
    format!("{year}-{month:02}-{day:02} {:02}:{:02} UTC", minutes / 60, minutes % 60)
}

const SYNC: &str = "time sync";

/// Checks whether a service synchronises the clock. systemd-timesyncd creates a file when it has
/// set the clock, and the other daemons have a PID file while they run.
pub(super) fn synchronised(exists: impl Fn(&Path) -> bool) -> Finding {
    if exists(Path::new("/run/systemd/timesync/synchronized")) {
        return Finding::ok(SYNC, "systemd-timesyncd has set the clock");
    }
    let daemons = [
        ("/run/chrony/chronyd.pid", "chronyd", "`chronyc tracking`"),
        ("/run/chronyd.pid", "chronyd", "`chronyc tracking`"),
        ("/run/ntpd.pid", "ntpd", "`ntpq -p`"),
    ];
    match daemons.iter().find(|(file, ..)| exists(Path::new(file))) {
        Some((_, name, ask)) => Finding::ok(SYNC, format!("{name} runs; {ask} shows its state")),
        None => Finding::unknown(
            SYNC,
            "no service that keeps the clock was found (in a container, the host keeps it)",
            "look with `timedatectl` on the host",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::super::finding::Verdict;
    use super::*;

    /// Judges two readings. `monotonic` and `wall` are in milliseconds; the wall clock counts from
    /// 2026-11-20.
    fn judged(monotonic: [u64; 2], wall: [i64; 2]) -> Finding {
        let base = UNIX_EPOCH + Duration::from_secs(1_795_132_800);
        let reading = |monotonic: u64, wall: i64| Reading {
            monotonic: Duration::from_millis(monotonic),
            wall: if wall < 0 {
                base - Duration::from_millis(wall.unsigned_abs())
            } else {
                base + Duration::from_millis(wall.unsigned_abs())
            },
        };
        judge(reading(monotonic[0], wall[0]), reading(monotonic[1], wall[1]))
    }

    #[test]
    fn clocks_that_advance_alike_are_all_right() {
        assert_eq!(judged([0, 50], [0, 50]).verdict, Verdict::Ok);
        assert_eq!(judged([0, 3050], [0, 3100]).verdict, Verdict::Ok);
    }

    #[test]
    fn a_monotonic_clock_that_stands_still_is_a_problem() {
        assert_eq!(judged([7, 7], [0, 50]).verdict, Verdict::Problem);
    }

    #[test]
    fn a_wall_clock_that_jumps_in_either_direction_is_a_warning() {
        assert_eq!(judged([0, 50], [0, 5000]).verdict, Verdict::Warning);
        assert_eq!(judged([0, 50], [0, -5000]).verdict, Verdict::Warning);
    }

    #[test]
    fn a_wall_clock_in_1970_is_a_problem() {
        let reading = |millis| Reading {
            monotonic: Duration::from_millis(millis),
            wall: UNIX_EPOCH + Duration::from_millis(millis),
        };
        let finding = judge(reading(0), reading(50));
        assert_eq!(finding.verdict, Verdict::Problem);
        assert!(finding.found.contains("1970-01-01 00:00 UTC"), "{}", finding.found);
    }

    #[test]
    fn dates_are_right_around_leap_days() {
        for (seconds, text) in [
            (0, "1970-01-01 00:00 UTC"),
            (951_782_399, "2000-02-28 23:59 UTC"),
            (951_782_400, "2000-02-29 00:00 UTC"),
            (1_709_251_200, "2024-03-01 00:00 UTC"),
            (1_767_225_600, "2026-01-01 00:00 UTC"),
            (4_102_444_799, "2099-12-31 23:59 UTC"),
        ] {
            assert_eq!(date(seconds), text);
        }
    }

    #[test]
    fn who_keeps_the_clock_is_seen_by_its_files() {
        let with = |file: &'static str| synchronised(move |path| path == Path::new(file));
        assert_eq!(with("/run/systemd/timesync/synchronized").verdict, Verdict::Ok);
        assert!(with("/run/chrony/chronyd.pid").found.contains("chronyc"));
        assert_eq!(with("/none").verdict, Verdict::Unknown);
    }
}
