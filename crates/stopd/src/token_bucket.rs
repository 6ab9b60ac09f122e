//! Limits the rate of statements that are sent to a database.
//!
//! The limit is a token bucket. A full bucket has the tokens of a tenth of a second, but at least
//! one. Therefore the bucket never delays a single stop, but it limits a burst of many stops.

use bywash_units::{Time, TimeSpan};

#[derive(Debug)]
pub(crate) struct TokenBucket {
    per_second: f64,
    most: f64,
    tokens: f64,
    at: Time,
}

impl TokenBucket {
    pub(crate) fn new(per_second: u32, now: Time) -> Self {
        let per_second = f64::from(per_second);
        let most = (per_second / 10.0).max(1.0);
        Self { per_second, most, tokens: most, at: now }
    }

    /// Takes tokens for statements that are sent. The call never blocks, so the number of tokens
    /// may become negative.
    pub(crate) fn spend(&mut self, now: Time, statements: usize) {
        self.fill(now);
        self.tokens -= statements as f64;
    }

    /// Returns the time until the next statement may be sent.
    pub(crate) fn wait(&mut self, now: Time) -> TimeSpan {
        self.fill(now);
        TimeSpan::from_secs_f64(((1.0 - self.tokens) / self.per_second).max(0.0))
    }

    fn fill(&mut self, now: Time) {
        self.tokens += now.since(self.at).as_secs_f64() * self.per_second;
        self.tokens = self.tokens.min(self.most);
        self.at = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Time {
        Time::from_nanos(millis * 1_000_000)
    }

    #[test]
    fn a_tenth_of_a_second_is_saved_up_and_no_more() {
        let mut bucket = TokenBucket::new(100, at(0));
        bucket.spend(at(60_000), 9);
        assert_eq!(bucket.wait(at(60_000)), TimeSpan::ZERO);
        bucket.spend(at(60_000), 1);
        assert_eq!(bucket.wait(at(60_000)), TimeSpan::from_millis(10));
        assert_eq!(bucket.wait(at(60_010)), TimeSpan::ZERO);
    }

    #[test]
    fn what_was_spent_beyond_is_missing_afterwards() {
        let mut bucket = TokenBucket::new(10, at(0));
        bucket.spend(at(0), 3);
        assert_eq!(bucket.wait(at(0)), TimeSpan::from_millis(300));
    }

    #[test]
    fn one_a_second_is_one_at_a_time() {
        let mut bucket = TokenBucket::new(1, at(0));
        assert_eq!(bucket.wait(at(5000)), TimeSpan::ZERO);
        bucket.spend(at(5000), 1);
        assert_eq!(bucket.wait(at(5400)), TimeSpan::from_millis(600));
    }
}
