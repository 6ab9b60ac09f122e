//! Tests of every source of resource use, on copies of hosts' files, with real exporters and
//! databases, and with exporters that respond wrongly.
#![allow(missing_docs, reason = "a test's name is what it says")]
#![allow(clippy::unwrap_used, reason = "what a test sets up itself may panic like the test")]
#![allow(clippy::float_cmp, reason = "what is read is what was written")]

mod exporters;
mod hosts;
mod live;
mod processes;
mod sadf;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use bywash_sense::series::{Clock, Reading, Source, Taken, Unreadable};

/// Returns the path of a test file.
fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(name)
}

fn clock() -> Clock {
    Clock::since(Instant::now())
}

/// Reads a source that responds in the same call.
fn read(source: &mut impl Source) -> Vec<Reading> {
    source.read(&clock()).unwrap().expect("it does not wait for anybody").readings
}

/// Reads a source until it has received a response.
fn wait_for(source: &mut impl Source) -> Result<Taken, Unreadable> {
    let clock = clock();
    for _ in 0..3000 {
        if let Some(taken) = source.read(&clock).transpose() {
            return taken;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("{} has said nothing in half a minute", source.name());
}

/// Returns the name, the value and the capacity of each reading.
fn values_of(readings: &[Reading]) -> Vec<(&str, f64, Option<f64>)> {
    readings.iter().map(|one| (one.name.as_str(), one.value.get(), one.capacity)).collect()
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).unwrap();
        }
    }
}
