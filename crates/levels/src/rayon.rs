//! Runs code that is written for rayon on slots of the pool.
//!
//! Parallel iterators run on rayon's threads, about which the pool knows nothing. So while such
//! code runs, its request holds several slots: those that its level allows and no other request
//! wants when the code begins. The code runs in a rayon pool with the same number of threads. These
//! slots do not change hands before the code ends. Code written with
//! [`Request::scope`](crate::Request::scope) shares slots better.
//!
//! Rayon pools are kept and reused. Their sizes are powers of two, so that there are few different
//! ones.

use parking_lot::Mutex;

/// The rayon pools that are not in use at present.
#[derive(Debug, Default)]
pub(crate) struct PoolCache(Mutex<Vec<rayon::ThreadPool>>);

impl PoolCache {
    /// Takes an unused rayon pool with `threads` threads, or builds one. Returns an error if a
    /// thread cannot be started.
    pub(crate) fn take(
        &self,
        threads: u32,
    ) -> Result<rayon::ThreadPool, rayon::ThreadPoolBuildError> {
        let mut pools = self.0.lock();
        let fits = |pool: &rayon::ThreadPool| pool.current_num_threads() == threads as usize;
        if let Some(index) = pools.iter().position(fits) {
            return Ok(pools.swap_remove(index));
        }
        drop(pools);
        let name = move |index| format!("levels-rayon-{threads}-{index}");
        rayon::ThreadPoolBuilder::new().num_threads(threads as usize).thread_name(name).build()
    }

    /// Puts a rayon pool back for reuse.
    pub(crate) fn put(&self, pool: rayon::ThreadPool) {
        self.0.lock().push(pool);
    }
}

/// Returns the largest power of two that is not above `threads`.
pub(crate) fn size(threads: u32) -> u32 {
    1 << threads.max(1).ilog2()
}
