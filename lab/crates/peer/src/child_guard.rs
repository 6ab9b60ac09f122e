//! Ensures that no started process outlives a measurement that fails, panics, or is interrupted.
//!
//! Every [`crate::Running`] ends its processes when it is dropped, which happens on an error and on
//! a panic. It does not happen on an interrupt. Therefore a thread waits for interrupts, and then
//! kills all descendants of this process by their process IDs. If a program hands over to its child
//! and ends, this process becomes the child's parent (`PR_SET_CHILD_SUBREAPER`, `prctl(2)`). The
//! child is therefore still found.

use crate::processes;
use crate::scratch::Scratch;
use crate::sys::{self, Interrupts, Signal};
use std::io::{self, Write};
use std::process;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// The number that shells add to the number of a signal, to report as exit status that the signal
/// ended a program.
const SIGNALLED: i32 = 128;
/// The interval between two rounds of killing. A process that starts during one round is found in
/// the next round.
const AGAIN: Duration = Duration::from_millis(20);

/// Whether an interrupt has come. The guard sets it before it kills any process.
static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Starts the guard for all processes that are started later. It must be called before any thread
/// or process is started.
pub fn start() -> io::Result<()> {
    sys::become_subreaper()?;
    let interrupts = Interrupts::block()?;
    thread::spawn(move || {
        let waited = interrupts.wait();
        INTERRUPTED.store(true, Ordering::SeqCst);
        for _ in 0..3 {
            kill_descendants(process::id());
            thread::sleep(AGAIN);
        }
        Scratch::remove_all();
        // Writing may fail, because standard error may be closed. `eprintln!` would panic then.
        let _ = writeln!(io::stderr(), "interrupted; all started processes have ended");
        process::exit(waited.map_or(1, |signal| SIGNALLED + signal))
    });
    Ok(())
}

/// Waits for the end of this process if an interrupt is in progress. Call it after a failure and
/// before reporting the failure, because a program that was interrupted did not fail.
pub fn wait_if_interrupted() {
    while INTERRUPTED.load(Ordering::SeqCst) {
        thread::park();
    }
}

/// Kills all descendants of the process `pid`.
pub fn kill_descendants(pid: u32) {
    for child in processes::descendants(pid).unwrap_or_default() {
        // The process may have ended by itself, so an error does not matter.
        let _ = sys::signal(child, Signal::Kill);
    }
}
