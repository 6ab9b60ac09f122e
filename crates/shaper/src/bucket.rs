//! A byte token bucket, for what shares a connection: streams of HTTP/2, which the kernel cannot
//! tell from each other, and for sums over connections where there is no HTB.
//!
//! It is the virtual scheduling form (GCRA, ITU-T I.371): one number, the moment at which the bucket
//! would be full again. Who asks always gets its bytes, and is told when it may send them, so each
//! asks once and whoever asked first goes first; a bucket that says "not yet, ask again" wakes all
//! who wait for one who may go. Pure: the moment comes in.

use bywash_units::{Span, Time};

use crate::bitrate::BitRate;

/// Bytes that may be sent, of all who share it.
#[derive(Clone, Debug)]
pub struct Bucket {
    rate: BitRate,
    burst: u32,
    /// When it is full again if nobody takes anything; what lies further ahead than the burst lasts
    /// is promised to those who were told to wait.
    full: Time,
}

impl Bucket {
    /// A full one. At most `burst` bytes go at once, however long nobody took any.
    pub const fn new(rate: BitRate, burst: u32) -> Self {
        Self { rate, burst, full: Time::ZERO }
    }

    /// Takes `bytes`, which may be sent at once (`None`) or at that moment. They are taken in either
    /// case; more than the burst at a time are allowed, and paid for by whoever comes next.
    #[must_use = "the bytes may not be sent before"]
    pub fn take(&mut self, now: Time, bytes: u32) -> Option<Time> {
        // What is missing from a full bucket before this.
        let missing = self.full.since(now);
        let allowed = self.lasts(u64::from(self.burst));
        self.full = now + missing + self.lasts(u64::from(bytes));
        let wait = Span::from_nanos(missing.as_nanos().saturating_sub(allowed.as_nanos()));
        (wait > Span::ZERO).then(|| now + wait)
    }

    /// Gives back bytes that were taken and will not be sent: the stream was reset while it waited.
    /// Those who have been told a moment keep it.
    pub fn give_back(&mut self, bytes: u32) {
        self.full = self.full - self.lasts(u64::from(bytes));
    }

    /// From now on another rate. Who has been told a moment keeps it; who comes next waits for their
    /// bytes at the new rate.
    pub fn set_rate(&mut self, now: Time, rate: BitRate) {
        let (old, new) = (self.rate.bytes_per_second(), rate.bytes_per_second());
        let missing = u128::from(self.full.since(now).as_nanos()) * u128::from(old);
        self.full = now + nanos(missing.div_ceil(u128::from(new)));
        self.rate = rate;
    }

    /// How long the rate needs for so many bytes; never less, or the sum would exceed it.
    fn lasts(&self, bytes: u64) -> Span {
        let rate = u128::from(self.rate.bytes_per_second());
        nanos((u128::from(bytes) * 1_000_000_000).div_ceil(rate))
    }
}

fn nanos(count: u128) -> Span {
    Span::from_nanos(u64::try_from(count).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rate(text: &str) -> BitRate {
        text.parse().unwrap()
    }

    fn at(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    /// 1,000 bytes in a millisecond.
    fn bucket() -> Bucket {
        Bucket::new(rate("8mbit"), 2_000)
    }

    #[test]
    fn a_full_bucket_gives_its_burst_at_once_and_then_its_rate() {
        let mut bucket = bucket();
        let moments = [None, None, None, Some(at(1)), Some(at(2))];
        for (number, moment) in moments.into_iter().enumerate() {
            assert_eq!(bucket.take(at(0), 1_000), moment, "take {number}");
        }
    }

    #[test]
    fn a_long_rest_saves_no_more_than_the_burst() {
        let mut bucket = bucket();
        let day = at(86_400_000);
        assert_eq!(bucket.take(day, 3_000), None);
        assert_eq!(bucket.take(day, 1), Some(day + Span::from_millis(1)));
    }

    #[test]
    fn what_is_given_back_is_there_for_the_next() {
        let mut bucket = bucket();
        let _ = bucket.take(at(0), 10_000);
        bucket.give_back(10_000);
        assert_eq!(bucket.take(at(0), 1), None);
    }

    #[test]
    fn at_a_new_rate_the_bytes_that_are_owed_stay_the_same() {
        let mut bucket = bucket();
        let _ = bucket.take(at(0), 10_000);
        bucket.set_rate(at(0), rate("16mbit"));
        // 10,000 bytes less the burst of 2,000, at 2,000 a millisecond.
        assert_eq!(bucket.take(at(0), 1), Some(at(4)));
    }

    proptest! {
        /// Whoever takes how much when: in any stretch no more is sent than the burst, what the rate
        /// gives meanwhile, and the one chunk that began it.
        #[test]
        fn nobody_gets_more_than_burst_and_rate(
            takes in prop::collection::vec((0_u64..3_000_000, 1_u32..20_000), 1..200)
        ) {
            let mut bucket = bucket();
            let (mut now, mut sent, mut last) = (Time::ZERO, Vec::new(), Time::ZERO);
            for (pause, bytes) in takes {
                now = now + Span::from_nanos(pause);
                let moment = bucket.take(now, bytes).unwrap_or(now);
                prop_assert!(moment >= last, "a later one goes before an earlier one");
                last = moment;
                sent.push((moment, u64::from(bytes)));
            }
            for first in 0..sent.len() {
                let mut bytes = 0;
                for (moment, more) in &sent[first..] {
                    let allowed = 2_000 + moment.since(sent[first].0).as_nanos() / 1_000 + 1;
                    prop_assert!(bytes <= allowed, "{bytes} bytes where {allowed} are allowed");
                    bytes += more;
                }
            }
        }
    }
}
