//! Tests of the contract in `sdk/README.md`, one file for each part of the contract.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod admission;
mod conformance;
mod controller;
mod databases;
mod layer;
mod request;
mod server;
mod stop_client;
mod token;
mod warnings;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bywash_tower::{Class, Controller, Handle, Stats};

/// A class with `run_min` 1 s and `run_max` 9 s, and a clock that the test advances.
struct Search {
    class: Handle,
    controller: Controller,
    now: Arc<AtomicU64>,
}

impl Search {
    fn new() -> Self {
        Self::of(Class::new("search", secs(1), secs(9)))
    }

    fn of(class: Class) -> Self {
        let now = Arc::new(AtomicU64::new(77));
        let clock = now.clone();
        let read = move || Duration::from_nanos(clock.load(Ordering::Relaxed));
        let other = Class { name: "other".into(), ..class.clone() };
        let controller = Controller::with_clock([class, other], read).unwrap();
        Self { class: controller.class("search").unwrap(), controller, now }
    }

    fn goes(&self, span: Duration) {
        self.now.fetch_add(span.as_nanos() as u64, Ordering::Relaxed);
    }

    fn load(&self, arrived: u32, lost: u32) {
        (0..arrived).for_each(|_| self.class.arrived());
        (0..lost).for_each(|_| self.class.lost());
    }

    fn stats(&self) -> Stats {
        self.class.stats()
    }
}

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn millis(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}
