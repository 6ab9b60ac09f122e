//! The schedule of health probes.
//!
//! Every server is probed once per interval, at a fixed phase of the interval. If a server responds
//! late or not at all, or if the gateway stalls, probes are skipped but never shifted. The phases
//! are spread over the interval. Otherwise a hundred gateways that each probe all their servers at
//! once would load the servers in bursts. The phase of server n is the fractional part of n/φ of
//! the interval, where φ is the golden ratio. Such points are nearly evenly spaced for any number
//! of servers (three-gap theorem), and need no random numbers.
//!
//! A probe is `Due` at a time, and then `Sent` until its response or its deadline. This type does
//! no I/O. Its owner, one task, calls `expired` and `due` at the time `next` and sends the probes.
//! The owner drops the probes that have expired, so that a late response is not taken for the
//! response to the next probe.

use bywash_units::{Time, TimeSpan};

/// 2⁶⁴/φ. The wrapping multiples of this number are the fractional parts of n/φ in units of 2⁻⁶⁴.
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// The shortest interval between two probes of a server. A shorter one would load the servers. The
/// configuration's minimum is a hundred times as long.
const LEAST_INTERVAL: TimeSpan = TimeSpan::from_millis(1);

/// The schedule of the probes of one upstream's servers.
#[derive(Debug)]
pub(crate) struct Schedule {
    interval: TimeSpan,
    timeout: TimeSpan,
    probes: Vec<Probe>,
}

#[derive(Clone, Copy, Debug)]
enum Probe {
    Due { at: Time },
    Sent { at: Time, deadline: Time },
}

impl Schedule {
    /// Creates a schedule for `count` servers. Server 0 is due now, and each of the others within
    /// the interval.
    pub(crate) fn new(count: usize, interval: TimeSpan, timeout: TimeSpan, now: Time) -> Self {
        let interval = interval.max(LEAST_INTERVAL);
        let probe = |index| Probe::Due { at: now + phase(index, interval) };
        Self { interval, timeout, probes: (0..count as u64).map(probe).collect() }
    }

    /// Returns the servers that must be probed now, and marks their probes as sent. The caller
    /// sends the probes.
    pub(crate) fn due(&mut self, now: Time) -> impl Iterator<Item = usize> {
        let timeout = self.timeout;
        self.probes.iter_mut().enumerate().filter_map(move |(server, probe)| match *probe {
            Probe::Due { at } if at <= now => {
                *probe = Probe::Sent { at, deadline: now + timeout };
                Some(server)
            }
            Probe::Due { .. } | Probe::Sent { .. } => None,
        })
    }

    /// Returns the servers that have not answered their probe in time, and schedules their next
    /// probe. The caller counts a failure for each. Before the call, process all responses that
    /// have already arrived: otherwise, after a pause of the gateway's machine, healthy servers
    /// would count as failed.
    pub(crate) fn expired(&mut self, now: Time) -> impl Iterator<Item = usize> {
        let interval = self.interval;
        self.probes.iter_mut().enumerate().filter_map(move |(server, probe)| match *probe {
            Probe::Sent { at, deadline } if deadline <= now => {
                *probe = Probe::Due { at: following(at, interval, now) };
                Some(server)
            }
            Probe::Due { .. } | Probe::Sent { .. } => None,
        })
    }

    /// Records that the probe of this server is over, with any result, and schedules the next one.
    /// Returns false if the probe has already expired: the caller must then ignore the result.
    pub(crate) fn answered(&mut self, server: usize, now: Time) -> bool {
        let Some(probe) = self.probes.get_mut(server) else { return false };
        match *probe {
            Probe::Sent { at, .. } => {
                *probe = Probe::Due { at: following(at, self.interval, now) };
                true
            }
            Probe::Due { .. } => false,
        }
    }

    /// Returns the time at which the next server is due or the next probe expires. Returns the far
    /// future if there is no server.
    pub(crate) fn next(&self) -> Time {
        let moments = self.probes.iter().map(|probe| match probe {
            Probe::Due { at } => *at,
            Probe::Sent { deadline, .. } => *deadline,
        });
        moments.min().unwrap_or(Time::ZERO + TimeSpan::MAX)
    }
}

fn phase(index: u64, interval: TimeSpan) -> TimeSpan {
    let product = u128::from(index.wrapping_mul(GOLDEN)) * u128::from(interval.as_nanos());
    TimeSpan::from_nanos((product >> 64) as u64)
}

/// Returns a server's first probe time after `now`. `beat` is one of its earlier probe times.
fn following(beat: Time, interval: TimeSpan, now: Time) -> Time {
    let passed = now.since(beat).as_nanos() / interval.as_nanos();
    beat + interval * passed.saturating_add(1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const INTERVAL: TimeSpan = TimeSpan::from_secs(2);
    const TIMEOUT: TimeSpan = TimeSpan::from_secs(1);

    fn schedule(count: usize) -> Schedule {
        Schedule::new(count, INTERVAL, TIMEOUT, Time::ZERO)
    }

    fn at(milliseconds: u64) -> Time {
        Time::ZERO + TimeSpan::from_millis(milliseconds)
    }

    fn due(schedule: &mut Schedule, now: Time) -> Vec<usize> {
        schedule.due(now).collect()
    }

    /// Runs the schedule until `end`, with servers that respond at once. Returns each probe as its
    /// server and its time.
    fn run(schedule: &mut Schedule, end: Time) -> Vec<(usize, Time)> {
        let mut asked = Vec::new();
        while schedule.next() < end {
            let now = schedule.next();
            for server in due(schedule, now) {
                asked.push((server, now));
                assert!(schedule.answered(server, now));
            }
        }
        asked
    }

    #[test]
    fn every_server_is_probed_once_in_every_interval() {
        let asked = run(&mut schedule(5), Time::ZERO + INTERVAL * 100);
        for server in 0..5 {
            let times: Vec<Time> =
                asked.iter().filter(|(asked, _)| *asked == server).map(|(_, at)| *at).collect();
            assert_eq!(times.len(), 100);
            assert!(times.windows(2).all(|pair| pair[1].since(pair[0]) == INTERVAL));
        }
    }

    #[test]
    fn probes_are_spread_over_the_interval_however_many_there_are() {
        for count in 2..=64 {
            let mut times: Vec<Time> =
                run(&mut schedule(count), at(2_000)).into_iter().map(|(_, at)| at).collect();
            assert_eq!(times.len(), count);
            times.push(at(2_000));
            let even = INTERVAL / count as u64;
            let gaps = times.windows(2).map(|pair| pair[1].since(pair[0]));
            let (least, most) = gaps.fold((TimeSpan::MAX, TimeSpan::ZERO), |(least, most), gap| {
                (least.min(gap), most.max(gap))
            });
            assert!(least > even.scale(0.38) && most < even.scale(2.1), "{count}: {least}, {most}");
        }
    }

    #[test]
    fn the_beat_of_a_server_does_not_depend_on_the_others() {
        let beat = |count| run(&mut schedule(count), at(2_000)).into_iter().find(|(s, _)| *s == 3);
        assert_eq!(beat(4), beat(64));
    }

    #[test]
    fn a_server_is_not_asked_again_before_it_has_answered() {
        let mut schedule = schedule(1);
        assert_eq!(due(&mut schedule, at(0)), [0]);
        assert!(due(&mut schedule, at(900)).is_empty());
        assert_eq!(schedule.next(), at(1_000), "the deadline");
    }

    #[test]
    fn no_answer_in_time_is_a_bad_one_and_the_beat_goes_on() {
        let mut schedule = schedule(1);
        assert_eq!(due(&mut schedule, at(3)), [0]);
        assert_eq!(schedule.expired(at(1_002)).count(), 0);
        assert_eq!(schedule.expired(at(1_003)).collect::<Vec<_>>(), [0]);
        assert_eq!(schedule.expired(at(1_003)).count(), 0, "it is bad once");
        assert_eq!(schedule.next(), at(2_000));
    }

    #[test]
    fn an_answer_after_the_deadline_or_from_nowhere_does_not_count() {
        let mut schedule = schedule(1);
        assert!(!schedule.answered(0, at(0)), "nobody was asked");
        assert_eq!(due(&mut schedule, at(0)), [0]);
        assert_eq!(schedule.expired(at(1_000)).count(), 1);
        assert!(!schedule.answered(0, at(1_001)));
        assert!(!schedule.answered(9, at(1_001)));
    }

    #[test]
    fn a_timeout_longer_than_the_interval_leaves_beats_out() {
        let mut schedule = Schedule::new(1, INTERVAL, TimeSpan::from_secs(5), Time::ZERO);
        assert_eq!(due(&mut schedule, at(0)), [0]);
        assert!(due(&mut schedule, at(2_000)).is_empty());
        assert_eq!(schedule.expired(at(5_000)).count(), 1);
        assert_eq!(schedule.next(), at(6_000));
    }

    #[test]
    fn after_a_standstill_each_server_is_probed_once_and_not_for_every_beat_missed() {
        let mut schedule = schedule(3);
        run(&mut schedule, at(2_000));
        assert_eq!(due(&mut schedule, at(11_900)), [0, 1, 2]);
        (0..3).for_each(|server| assert!(schedule.answered(server, at(11_900))));
        assert!(due(&mut schedule, at(11_900)).is_empty());
        assert_eq!(schedule.next(), at(12_000));
    }

    #[test]
    fn without_servers_nothing_is_ever_due() {
        assert_eq!(schedule(0).next(), Time::ZERO + TimeSpan::MAX);
    }

    #[test]
    fn an_interval_of_nothing_is_not_an_endless_loop() {
        let mut schedule = Schedule::new(2, TimeSpan::ZERO, TimeSpan::ZERO, Time::ZERO);
        assert_eq!(run(&mut schedule, at(10)).len(), 20);
    }

    proptest! {
        /// No server is probed more than once per interval, and none is skipped for good, whatever
        /// is late.
        #[test]
        fn no_server_is_asked_twice_in_a_beat_or_forgotten(
            count in 1..10_usize,
            steps in prop::collection::vec((0..3_000_u64, any::<u16>()), 1..200),
        ) {
            let mut schedule = schedule(count);
            let (mut now, mut asked) = (Time::ZERO, vec![0_u64; count]);
            for (passed, answering) in steps {
                now = now + TimeSpan::from_millis(passed);
                prop_assert!(schedule.next() <= now + INTERVAL.max(TIMEOUT));
                schedule.expired(now).for_each(drop);
                for server in due(&mut schedule, now) {
                    asked[server] += 1;
                    if answering >> server & 1 == 1 {
                        prop_assert!(schedule.answered(server, now));
                    }
                }
                prop_assert!(schedule.next() > now, "all that was due has been dealt with");
            }
            let beats = now.since(Time::ZERO).as_nanos() / INTERVAL.as_nanos() + 1;
            prop_assert!(asked.iter().all(|asked| *asked <= beats), "{asked:?} in {beats} beats");
        }
    }
}
