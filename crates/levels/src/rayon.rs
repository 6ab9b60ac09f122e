//! Code that is written for rayon, on slots of this pool.
//!
//! Parallel iterators run on threads of rayon's, of which nothing is known here. So a request takes its slots for as
//! long as such code runs, as many as nobody else wants, and it runs in a pool of rayon's with as many threads. Slots
//! do not change hands meanwhile: what can be written with [`Request::scope`](crate::Request::scope) shares better.
//!
//! Pools of rayon's are kept and used again. Their sizes are powers of two, so that there are few.

use parking_lot::Mutex;

/// Pools that nobody uses at the moment.
#[derive(Debug, Default)]
pub(crate) struct Shelf(Mutex<Vec<rayon::ThreadPool>>);

impl Shelf {
    /// One of so many threads.
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

    /// It is free again.
    pub(crate) fn put(&self, pool: rayon::ThreadPool) {
        self.0.lock().push(pool);
    }
}

/// The greatest power of two that is not above this.
pub(crate) fn size(threads: u32) -> u32 {
    1 << threads.max(1).ilog2()
}
