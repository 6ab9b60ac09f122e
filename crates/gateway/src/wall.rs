//! What time it is, for what operators decide: a clock that is set back makes nothing last longer.
//!
//! What ends at a moment of the wall clock would hold for a day more if that is set back by a day. So time goes on from
//! the start of the process by a clock that nobody sets, and only ever jumps forward: what is decided is an exception, and ends
//! early rather than late.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use bywash_control::Timestamp;

static START: LazyLock<(Timestamp, Instant)> = LazyLock::new(|| (Timestamp::now(), Instant::now()));

/// The later of what the wall clock shows and what it would show had nobody set it.
pub(crate) fn now() -> Timestamp {
    let (began, at) = *START;
    let now = later(Timestamp::now(), began, at.elapsed());
    // Nobody reads more digits.
    Timestamp::from_millisecond(now.as_millisecond()).unwrap_or(now)
}

fn later(shown: Timestamp, began: Timestamp, passed: Duration) -> Timestamp {
    began.checked_add(passed).map_or(shown, |steady| shown.max(steady))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_jumps_forward_and_never_back() {
        let at = |second: i64| Timestamp::from_second(1_800_000_000 + second).unwrap();
        let minute = Duration::from_secs(60);
        assert_eq!(later(at(60), at(0), minute), at(60));
        assert_eq!(later(at(-86_400), at(0), minute), at(60), "it was set back");
        assert_eq!(later(at(86_400), at(0), minute), at(86_400), "it was set forward");
    }
}
