//! A token bucket that counts bytes. It is for responses that share a connection: streams of
//! HTTP/2, which the kernel cannot distinguish. It also limits the sum over connections where there
//! is no HTB.
//!
//! The bucket has the virtual scheduling form (GCRA, ITU-T I.371). Its state is one number: the
//! time at which the bucket would be full again. A caller always gets its bytes, with the time from
//! which it may send them. So each caller asks only once, and callers are served in the order in
//! which they asked. A bucket that answers "not yet, ask again" would wake all waiting callers for
//! one that may send. The bucket has no clock: callers pass the present time.

use bywash_units::{Time, TimeSpan};

use crate::bitrate::BitRate;

/// A token bucket of bytes that all its callers together may send.
#[derive(Clone, Debug)]
pub struct Bucket {
    rate: BitRate,
    burst: u32,
    /// The time at which the bucket is full again if no more bytes are taken. If this time is
    /// further ahead than the time that an empty bucket takes to refill, some callers are still
    /// waiting to send.
    full: Time,
}

impl Bucket {
    /// Creates a full bucket that refills at `rate`. At most `burst` bytes may be sent at once,
    /// even after a long pause.
    pub const fn new(rate: BitRate, burst: u32) -> Self {
        Self { rate, burst, full: Time::ZERO }
    }

    /// Takes `bytes` from the bucket. Returns `None` if the caller may send them at once, or the
    /// time from which it may send them. The bytes are taken in either case. A caller may take more
    /// than the burst, and then the next callers wait longer.
    #[must_use = "the bytes may not be sent before"]
    pub fn take(&mut self, now: Time, bytes: u32) -> Option<Time> {
        // The time that the bucket needs to be full again, before this call.
        let missing = self.full.since(now);
        let allowed = self.sending_time(u64::from(self.burst));
        self.full = now + missing + self.sending_time(u64::from(bytes));
        let wait = TimeSpan::from_nanos(missing.as_nanos().saturating_sub(allowed.as_nanos()));
        (wait > TimeSpan::ZERO).then(|| now + wait)
    }

    /// Gives back bytes that were taken and will not be sent, because their stream was reset while
    /// it waited. Callers that already have a time keep it.
    pub fn give_back(&mut self, bytes: u32) {
        self.full = self.full - self.sending_time(u64::from(bytes));
    }

    /// Sets another rate. Callers that already have a time keep it. The next caller waits until
    /// their bytes are sent, at the new rate.
    pub fn set_rate(&mut self, now: Time, rate: BitRate) {
        let (old, new) = (self.rate.bytes_per_second(), rate.bytes_per_second());
        let missing = u128::from(self.full.since(now).as_nanos()) * u128::from(old);
        self.full = now + nanos(missing.div_ceil(u128::from(new)));
        self.rate = rate;
    }

    /// Returns the time in which `bytes` are sent at the present rate. The time is rounded up, so
    /// that many small calls do not exceed the rate.
    fn sending_time(&self, bytes: u64) -> TimeSpan {
        let rate = u128::from(self.rate.bytes_per_second());
        nanos((u128::from(bytes) * 1_000_000_000).div_ceil(rate))
    }
}

fn nanos(count: u128) -> TimeSpan {
    TimeSpan::from_nanos(u64::try_from(count).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rate(text: &str) -> BitRate {
        text.parse().unwrap()
    }

    fn at(millis: u64) -> Time {
        Time::ZERO + TimeSpan::from_millis(millis)
    }

    /// Returns a bucket with a rate of 1,000 bytes per millisecond and a burst of 2,000 bytes.
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
        assert_eq!(bucket.take(day, 1), Some(day + TimeSpan::from_millis(1)));
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
        // 10,000 bytes minus the burst of 2,000, at 2,000 per millisecond.
        assert_eq!(bucket.take(at(0), 1), Some(at(4)));
    }

    proptest! {
        /// Checks the bound on the bytes that are sent in any interval. It is the sum of three
        /// amounts: the burst, the rate times the interval, and the chunk at its start. The bound
        /// holds for any sequence of callers.
        #[test]
        fn nobody_gets_more_than_burst_and_rate(
            takes in prop::collection::vec((0_u64..3_000_000, 1_u32..20_000), 1..200)
        ) {
            let mut bucket = bucket();
            let (mut now, mut sent, mut last) = (Time::ZERO, Vec::new(), Time::ZERO);
            for (pause, bytes) in takes {
                now = now + TimeSpan::from_nanos(pause);
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
