//! Measures how long the engine's lock is held while the table of sessions is copied.
//!
//! The gateway copies the table at every save and at an upgrade, in slices of [`SLICE`] sessions.
//! It holds the lock for one slice at a time. The output shows the median and the longest time of a
//! slice. For comparison, it also shows the time to copy all sessions at once.
//!
//! The sessions were last served in random order. All sessions are copied [`PASSES`] times, and the
//! shortest time of each slice counts, because on a busy machine the kernel preempts some of the
//! copies.

use std::hint::black_box;
use std::process::ExitCode;
use std::time::Instant;

use bywash_engine::session::Sessions;
use bywash_engine::{
    AddressKey, ClassId, ClassSet, Cursor, Remembered, Service, SessionKey, Slice,
};
use bywash_harness::machine::Machine;
use bywash_harness::splitmix64::SplitMix64;
use bywash_harness::stats;
use bywash_harness::table::Table;
use bywash_units::{Time, TimeSpan};

const SIZES: [u32; 3] = [65_536, 1_000_000, 10_000_000];

/// Number of sessions in a slice, as in the gateway's driver.
const SLICE: usize = 2048;

const PASSES: usize = 5;

fn main() -> ExitCode {
    println!("{}\n", Machine::here().line());
    let head = ["sessions", "slices", "median slice: µs", "longest: µs", "all at once: µs"];
    let mut table = Table::new(1, &head);
    for size in SIZES {
        let sessions = table_of(size);
        let slices = shortest(&sessions, SLICE);
        let of = |share| stats::percentile(&slices, share).unwrap_or(f64::NAN);
        let all = shortest(&sessions, size as usize);
        let mut cells = vec![size.to_string(), slices.len().to_string()];
        cells.extend([of(0.5), of(1.0), all[0]].map(|us| format!("{us:.1}")));
        table.row(cells);
    }
    println!("{table}");
    ExitCode::SUCCESS
}

/// Returns a table of `size` sessions, each of which was served at least once, in random order.
fn table_of(size: u32) -> Sessions {
    let proving = ClassSet::NONE.with(ClassId(1));
    let mut sessions = Sessions::new(size, TimeSpan::from_secs(3600), proving);
    let mut rng = SplitMix64::new(1);
    let service = |class, address| Service {
        address: Some(AddressKey(address)),
        ..Service::content(ClassId(class))
    };
    let key = |number: u64| SessionKey(number.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    for number in 0..u64::from(size) {
        sessions.served(Time::ZERO, key(number), service(0, number));
    }
    for number in 0..u64::from(size) {
        let now = Time::from_nanos(number);
        let session = rng.below(size.into());
        sessions.served(now, key(session), service(1, session));
    }
    sessions
}

/// Returns the time of each slice in microseconds: the minimum over all passes. A slice has at most
/// `most` sessions.
fn shortest(sessions: &Sessions, most: usize) -> Vec<f64> {
    let mut least = copy(sessions, most);
    for _ in 1..PASSES {
        for (least, time) in least.iter_mut().zip(copy(sessions, most)) {
            *least = least.min(time);
        }
    }
    least
}

/// Copies all sessions once and returns the time of each slice in microseconds. Between slices the
/// copy is moved elsewhere, as the gateway's driver does.
fn copy(sessions: &Sessions, most: usize) -> Vec<f64> {
    let (mut times, mut cursor) = (Vec::new(), Cursor::default());
    let mut all: Vec<Remembered> = Vec::new();
    let mut slice = Vec::with_capacity(most);
    loop {
        let start = Instant::now();
        let copied = sessions.copy(Time::ZERO, &mut cursor, most, &mut slice);
        times.push(start.elapsed().as_nanos() as f64 / 1e3);
        all.append(&mut slice);
        if copied == Slice::Last {
            black_box(all);
            return times;
        }
    }
}
