//! Counts the panics of the gateway's threads.
//!
//! tokio catches the panic of a task, so only a panic hook sees every panic. The process has one
//! hook, and each thread of a gateway sets its own counter when it starts. So panics of two
//! gateways in one process are counted separately, and those of other threads are not counted. The
//! hook then calls the previous hook, which prints the panic.

use std::cell::RefCell;
use std::sync::Once;

use prometheus_client::metrics::counter::Counter;

/// The kind of a gateway's thread, which is the value of the metric's label.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Thread {
    Worker,
    Admin,
    Timekeeper,
    Elephants,
    #[cfg_attr(not(feature = "fleet"), expect(dead_code, reason = "no gateway belongs to a fleet"))]
    Fleet,
    Probes,
    AccessLog,
    StateWriter,
}

impl Thread {
    /// The values of the label, in the order of the variants.
    pub(crate) const NAMES: [&str; 8] = [
        "worker",
        "admin",
        "timekeeper",
        "elephants",
        "fleet",
        "probes",
        "access-log",
        "state-writer",
    ];

    /// Returns the value of the label.
    pub(crate) const fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }
}

thread_local! {
    static COUNTER: RefCell<Option<Counter>> = const { RefCell::new(None) };
}

/// Counts panics of the calling thread in `counter` from now on.
pub(crate) fn count(counter: Counter) {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            // A thread that is ending has destroyed its thread-local values.
            let _ = COUNTER.try_with(|counter| counter.borrow().as_ref().map(Counter::inc));
            before(panic);
        }));
    });
    COUNTER.set(Some(counter));
}

/// The points in the code at which a test makes the gateway panic or hang.
#[cfg(test)]
#[derive(Debug, Default)]
pub(crate) struct Traps {
    set: std::sync::Mutex<Vec<Trap>>,
    /// A lock that prevents the restart of workers while a test holds it.
    pub(crate) restart: std::sync::Mutex<()>,
    /// A lock that makes a worker hang at [`Trap::Hang`] while a test holds it.
    pub(crate) hang: std::sync::Mutex<()>,
}

#[cfg(test)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trap {
    Accept,
    Connection,
    Tick,
    Hang,
}

#[cfg(test)]
impl Traps {
    pub(crate) fn set(&self, trap: Trap) {
        self.set.lock().unwrap().push(trap);
    }

    pub(crate) fn is_set(&self, trap: Trap) -> bool {
        self.set.lock().unwrap().contains(&trap)
    }

    /// Panics, or hangs at [`Trap::Hang`], if a test has set a trap for this point. The trap is
    /// then removed.
    pub(crate) fn pass(&self, here: Trap) {
        let mut set = self.set.lock().unwrap();
        let Some(index) = set.iter().position(|trap| *trap == here) else { return };
        set.swap_remove(index);
        drop(set);
        assert!(here == Trap::Hang, "a test has set a trap at {here:?}");
        drop(self.hang.lock().unwrap());
    }
}
