//! Paces answers under a rule that limits bytes. All answers under one rule share one token bucket.
//! Answers in a lane of the network device take nothing from the bucket.
//!
//! A piece that is not due waits here, and the upstream waits behind it. So no answer is buffered,
//! and a throttled request keeps its slot for as long as its answer takes. The concurrency of the
//! rule bounds the number of these slots.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use bywash_shaper::Bucket;
use bywash_units::Time;
use tokio::time::Sleep;

/// The token bucket that all answers under a rule share.
pub(crate) type SharedBucket = Arc<Mutex<Bucket>>;

/// The pacing of one answer under a rule that limits bytes.
pub(crate) struct Paced {
    bucket: SharedBucket,
    /// The piece that is not due yet, with the timer until it is; `None` if no piece waits.
    held: Option<(Bytes, Pin<Box<Sleep>>)>,
    /// Whether the answer is in a lane, so that the kernel throttles it.
    has_lane: bool,
}

impl Paced {
    pub(crate) const fn new(bucket: SharedBucket) -> Self {
        Self { bucket, held: None, has_lane: false }
    }

    /// Notes that the answer's connection is in a lane. From now on its pieces do not wait here.
    pub(crate) const fn enter_lane(&mut self) {
        self.has_lane = true;
    }

    /// Returns whether the answer is still in its lane. `there_are` says whether any lanes exist.
    /// If not, the bucket paces the rest of the answer, even if lanes exist again later.
    pub(crate) const fn is_still_in_lane(&mut self, there_are: bool) -> bool {
        self.has_lane = self.has_lane && there_are;
        self.has_lane
    }

    /// Returns whether a piece waits until it is due.
    pub(crate) const fn holds(&self) -> bool {
        self.held.is_some()
    }

    /// Takes a piece of the answer at time `now`. Returns it at once if it may be sent now.
    /// Otherwise keeps it until it is due, and returns `None`. No other piece may wait then.
    pub(crate) fn take(&mut self, now: Time, piece: Bytes) -> Option<Bytes> {
        let many = u32::try_from(piece.len()).unwrap_or(u32::MAX);
        let Some(due) = self.bucket().take(now, many) else { return Some(piece) };
        let sleep = tokio::time::sleep(due.since(now).to_std());
        self.held = Some((piece, Box::pin(sleep)));
        None
    }

    /// Waits until the kept piece is due, and returns it; `None` at once if no piece is kept.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let Some((_, sleep)) = &mut self.held else { return Poll::Ready(None) };
        ready!(sleep.as_mut().poll(cx));
        Poll::Ready(self.held.take().map(|(piece, _)| piece))
    }

    fn bucket(&self) -> MutexGuard<'_, Bucket> {
        self.bucket.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Gives the bytes of a waiting piece back to the bucket, because they will not be sent.
impl Drop for Paced {
    fn drop(&mut self) {
        if let Some((piece, _)) = self.held.take() {
            self.bucket().give_back(u32::try_from(piece.len()).unwrap_or(u32::MAX));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::time::Duration;

    use bywash_shaper::BitRate;
    use bywash_units::TimeSpan;

    use super::*;

    fn at(millis: u64) -> Time {
        Time::ZERO + TimeSpan::from_millis(millis)
    }

    /// Returns a bucket with 8,000 bytes per second and a burst of 10,000 bytes.
    fn bucket() -> SharedBucket {
        Arc::new(Mutex::new(Bucket::new(BitRate::LEAST, 10_000)))
    }

    fn piece(bytes: usize) -> Bytes {
        vec![7; bytes].into()
    }

    #[tokio::test(start_paused = true)]
    async fn a_piece_that_is_not_due_waits_and_comes_whole() {
        let mut paced = Paced::new(bucket());
        assert!(paced.take(at(0), piece(10_000)).is_some(), "a burst");
        assert!(paced.take(at(0), piece(4_000)).is_some(), "paid for by the next");
        assert!(paced.take(at(0), piece(8_000)).is_none() && paced.holds());
        let begun = tokio::time::Instant::now();
        let came = poll_fn(|cx| paced.poll(cx)).await;
        assert_eq!((came.map(|piece| piece.len()), paced.holds()), (Some(8_000), false));
        assert_eq!(begun.elapsed().as_millis(), Duration::from_millis(500).as_millis());
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_loses_its_lane_waits_from_then_on() {
        let mut paced = Paced::new(bucket());
        assert!(!paced.is_still_in_lane(true), "it has none yet");
        paced.enter_lane();
        assert!(paced.is_still_in_lane(true) && paced.is_still_in_lane(true));
        assert!(!paced.is_still_in_lane(false));
        assert!(!paced.is_still_in_lane(true), "one that comes back is the next answer's");
        assert!(paced.take(at(0), piece(20_000)).is_some(), "nothing was taken before");
        assert!(paced.take(at(0), piece(1)).is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn all_answers_under_a_rule_share_its_rate_and_who_leaves_takes_nothing_along() {
        let bucket = bucket();
        let [mut one, mut other] = [(); 2].map(|()| Paced::new(Arc::clone(&bucket)));
        assert!(one.take(at(0), piece(18_000)).is_some());
        assert!(one.take(at(0), piece(80_000)).is_none());
        drop(one);
        // The bucket is one second in debt. The ten seconds of the dropped piece were given back.
        assert!(other.take(at(0), piece(1)).is_none() && other.holds());
        let begun = tokio::time::Instant::now();
        assert!(poll_fn(|cx| other.poll(cx)).await.is_some());
        assert_eq!(begun.elapsed().as_secs(), 1);
    }
}
