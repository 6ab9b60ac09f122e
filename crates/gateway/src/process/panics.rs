//! Counts panics of the gateway's threads.
//!
//! tokio contains the panic of a task, so only a panic hook sees every one. There is one hook for
//! the process. Each thread of a gateway names its counter when it starts. So the threads of two
//! gateways in one process, and threads that are not a gateway's, are told apart. The hook calls
//! the previous hook, which prints the panic.

use std::cell::RefCell;
use std::sync::Once;

use prometheus_client::metrics::counter::Counter;

/// A kind of thread of the gateway: the label of the count.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Thread {
    Worker,
    Admin,
    Timekeeper,
    Elephants,
    Probes,
    AccessLog,
    StateWriter,
}

impl Thread {
    /// The label values, in the order of the variants.
    pub(crate) const NAMES: [&str; 7] =
        ["worker", "admin", "timekeeper", "elephants", "probes", "access-log", "state-writer"];

    /// The label value.
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
            // A thread that is ending has no thread-local values any more.
            let _ = COUNTER.try_with(|counter| counter.borrow().as_ref().map(Counter::inc));
            before(panic);
        }));
    });
    COUNTER.set(Some(counter));
}

/// Places in which a test makes the gateway panic or hang.
#[cfg(test)]
#[derive(Debug, Default)]
pub(crate) struct Traps {
    set: std::sync::Mutex<Vec<Trap>>,
    /// While a test holds this, no worker is restarted.
    pub(crate) restart: std::sync::Mutex<()>,
    /// While a test holds this, a worker that meets [`Trap::Hang`] hangs.
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

    /// Springs the trap once, if it is set here.
    pub(crate) fn pass(&self, here: Trap) {
        let mut set = self.set.lock().unwrap();
        let Some(index) = set.iter().position(|trap| *trap == here) else { return };
        set.swap_remove(index);
        drop(set);
        assert!(here == Trap::Hang, "a test has set a trap at {here:?}");
        drop(self.hang.lock().unwrap());
    }
}
