//! Nothing outlives a measurement: not when it fails, panics, or is interrupted.
//!
//! Every [`crate::Running`] ends its processes when it is dropped, which an error and a panic
//! do. An interrupt does not: for it a thread waits and ends, by their numbers, all descendants of
//! this process. A program that hands over to its child and ends leaves that child to us
//! (`PR_SET_CHILD_SUBREAPER`, `prctl(2)`), so that a descendant stays one.

use crate::processes;
use crate::scratch::Scratch;
use crate::sys::{self, Interrupts, Signal};
use std::io::{self, Write};
use std::process;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// What shells expect of a program that a signal ended: this and the signal's number.
const SIGNALLED: i32 = 128;
/// Between two looks: what is being started while we look is found by the next.
const AGAIN: Duration = Duration::from_millis(20);

/// Set before anything is ended because of an interrupt.
static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// To be called before any thread or process is started.
pub fn take() -> io::Result<()> {
    sys::become_subreaper()?;
    let interrupts = Interrupts::block()?;
    thread::spawn(move || {
        let waited = interrupts.wait();
        INTERRUPTED.store(true, Ordering::SeqCst);
        for _ in 0..3 {
            end_below(process::id());
            thread::sleep(AGAIN);
        }
        Scratch::remove_all();
        // Nobody may be listening any more, which `eprintln!` would panic of.
        let _ = writeln!(io::stderr(), "interrupted; nothing is left behind");
        process::exit(waited.map_or(1, |signal| SIGNALLED + signal))
    });
    Ok(())
}

/// Lets an interrupt that is under way end the process. To be called by whoever has failed, before
/// it says so: a program that an interrupt has ended did not fail.
pub fn give_way() {
    while INTERRUPTED.load(Ordering::SeqCst) {
        thread::park();
    }
}

/// Kills the descendants of `pid`.
pub fn end_below(pid: u32) {
    for child in processes::descendants(pid).unwrap_or_default() {
        // It may have ended by itself meanwhile.
        let _ = sys::signal(child, Signal::Kill);
    }
}
