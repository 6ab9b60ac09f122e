//! The live view: two lines that change in place on a terminal, plain lines elsewhere.

use std::io::{IsTerminal, Write};
use std::sync::Mutex;

use bywash_load::Progress;

use super::side::Kind;
use crate::lab::line;

pub(super) struct Screen {
    terminal: bool,
    lines: Mutex<Lines>,
}

#[derive(Default)]
struct Lines {
    plain: String,
    bywash: String,
    drawn: bool,
    /// Whole seconds since the last plain line, where there is no terminal.
    told: u64,
}

/// Seconds between plain lines.
const EVERY: u64 = 5;

impl Screen {
    pub(super) fn new() -> Self {
        Self { terminal: std::io::stderr().is_terminal(), lines: Mutex::default() }
    }

    /// How one side stands.
    pub(super) fn show(&self, kind: Kind, progress: &Progress) {
        let text = format!("{:<12} {}", kind.label(), line(progress));
        // A poisoned lock means that the other side's thread has panicked; it will say so itself.
        let Ok(mut lines) = self.lines.lock() else { return };
        match kind {
            Kind::Plain => lines.plain = text,
            Kind::Bywash => lines.bywash = text,
        }
        if self.terminal {
            lines.redraw();
        } else if kind == Kind::Bywash {
            lines.tell(progress.elapsed.as_secs_f64() as u64);
        }
    }

    pub(super) fn close(&self) {
        eprintln!();
    }
}

impl Lines {
    fn redraw(&mut self) {
        let up = if self.drawn { "\x1b[2A" } else { "" };
        self.drawn = true;
        let mut out = std::io::stderr().lock();
        // A terminal that has gone away is no reason to stop.
        let _ = writeln!(out, "{up}\x1b[2K{}\n\x1b[2K{}", self.plain, self.bywash);
    }

    fn tell(&mut self, second: u64) {
        if second >= self.told + EVERY {
            self.told = second - second % EVERY;
            eprintln!("{}\n{}", self.plain, self.bywash);
        }
    }
}
