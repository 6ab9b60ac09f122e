//! Ensures that no process outlives a measurement that fails, panics, or is interrupted.
//!
//! Every [`crate::Running`] ends its processes when it is dropped, which happens on an error and on
//! a panic. It does not happen on an interrupt. For that a thread waits, and kills all descendants
//! of this process by their process IDs. If a program hands over to its child and ends, that child
//! becomes ours (`PR_SET_CHILD_SUBREAPER`, `prctl(2)`), so that a descendant stays one.

use crate::processes;
use crate::scratch::Scratch;
use crate::sys::{self, Interrupts, Signal};
use std::io::{self, Write};
use std::process;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// The exit status that shells expect of a program that a signal ended: this plus the signal's
/// number.
const SIGNALLED: i32 = 128;
/// The time between two rounds. A process that starts during one round is found in the next.
const AGAIN: Duration = Duration::from_millis(20);

/// Whether an interrupt has come. It is set before any process is killed because of the interrupt.
static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Starts the guard of all processes that are started later. Call it before any thread or process
/// is started.
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
        // Standard error may be closed by now, and `eprintln!` would panic.
        let _ = writeln!(io::stderr(), "interrupted; all started processes have ended");
        process::exit(waited.map_or(1, |signal| SIGNALLED + signal))
    });
    Ok(())
}

/// Lets an interrupt that is in progress end the process. Call it after a failure, before reporting
/// it: a program that was interrupted did not fail.
pub fn wait_if_interrupted() {
    while INTERRUPTED.load(Ordering::SeqCst) {
        thread::park();
    }
}

/// Kills the descendants of `pid`.
pub fn kill_descendants(pid: u32) {
    for child in processes::descendants(pid).unwrap_or_default() {
        // The process may have ended by itself meanwhile.
        let _ = sys::signal(child, Signal::Kill);
    }
}
