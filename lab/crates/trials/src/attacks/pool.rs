//! Many hostile connections on one thread. The thread opens them at a bounded rate, lets each do
//! its work once per period, and opens them again after the other side has closed them.

use super::attacker::Attacker;
use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use bywash_harness::client_socket;

const TICK: Duration = Duration::from_millis(10);
/// Maximum number of connections that are opened again in a tick. This allows 1,000 per second.
const AGAIN: usize = 10;

/// A function that opens a hostile connection, given its number and its source address.
pub(super) type Open = Arc<dyn Fn(usize, Ipv4Addr) -> io::Result<Box<dyn Attacker>> + Send + Sync>;

/// The hostile connections of an attack.
#[derive(Clone)]
pub(super) struct Attack {
    /// Number of concurrent connections to keep open.
    pub(super) connections: usize,
    /// Number of source addresses that the connections come from.
    pub(super) addresses: usize,
    /// Interval at which each connection acts.
    pub(super) period: Duration,
    /// Time over which the opening of all connections is spread.
    pub(super) opening: Duration,
    /// The function that opens one connection.
    pub(super) open: Open,
}

/// A running attack, which ends when the value is dropped.
pub(super) struct Pool {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    stop: AtomicBool,
    /// Number of connections that are open now.
    open: AtomicUsize,
    /// Number of connections opened since the start of the attack.
    opened: AtomicUsize,
}

impl Pool {
    /// Starts the attack on a thread of its own.
    pub(super) fn start(attack: &Attack) -> Self {
        let shared = Arc::new(Shared::default());
        let (attack, thread_shared) = (attack.clone(), Arc::clone(&shared));
        let thread = thread::spawn(move || run(&attack, &thread_shared));
        Self { shared, thread: Some(thread) }
    }

    /// Returns the number of connections that are open now.
    ///
    /// # Errors
    ///
    /// Fails if no connection could ever be opened, because then nothing was attacked.
    pub(super) fn open(&self) -> io::Result<usize> {
        if self.shared.opened.load(Ordering::Relaxed) == 0 {
            return Err(io::Error::other("no hostile connection could be opened"));
        }
        Ok(self.shared.open.load(Ordering::Relaxed))
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            eprintln!("attacks: the thread of the hostile connections panicked");
        }
    }
}

fn run(attack: &Attack, shared: &Shared) {
    let ticks = |time: Duration| (time.as_millis() / TICK.as_millis()).max(1) as usize;
    let (period, first) =
        (ticks(attack.period), attack.connections.div_ceil(ticks(attack.opening)));
    let mut slots: Vec<Option<Box<dyn Attacker>>> = Vec::new();
    let start = Instant::now();
    for tick in 0.. {
        if shared.stop.load(Ordering::Relaxed) {
            return;
        }
        let fresh = slots.len()..attack.connections.min(slots.len() + first);
        for number in fresh {
            slots.push(open(attack, number, shared));
        }
        let mut again = AGAIN;
        for number in (tick % period..slots.len()).step_by(period) {
            let slot = &mut slots[number];
            if let Some(attacker) = slot {
                if attacker.act().is_err() {
                    *slot = None;
                }
            } else if again > 0 {
                again -= 1;
                *slot = open(attack, number, shared);
            }
        }
        if tick % 10 == 0 {
            shared.open.store(slots.iter().flatten().count(), Ordering::Relaxed);
        }
        let due = start + TICK * (tick as u32 + 1);
        thread::sleep(due.saturating_duration_since(Instant::now()));
    }
}

/// Opens connection `number`, and lets it do the work of one period. Returns `None` if either
/// fails.
fn open(attack: &Attack, number: usize, shared: &Shared) -> Option<Box<dyn Attacker>> {
    let source = client_socket::address(number % attack.addresses);
    let mut attacker = (attack.open)(number, source).ok()?;
    attacker.act().ok()?;
    shared.opened.fetch_add(1, Ordering::Relaxed);
    Some(attacker)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    struct Once;

    impl Attacker for Once {
        fn act(&mut self) -> io::Result<()> {
            Err(io::ErrorKind::ConnectionAborted.into())
        }
    }

    #[test]
    fn connections_come_from_their_addresses_and_a_closed_one_is_opened_again() {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let thread_seen = Arc::clone(&seen);
        let attack = Attack {
            connections: 3,
            addresses: 2,
            period: TICK,
            opening: TICK,
            open: Arc::new(move |number, source| {
                thread_seen.lock().unwrap().push((number, source));
                Ok(Box::new(Once))
            }),
        };
        let pool = Pool::start(&attack);
        while seen.lock().unwrap().len() < 6 {
            thread::yield_now();
        }
        assert!(pool.open().is_err());
        drop(pool);
        let seen = seen.lock().unwrap();
        let [one, other] = [client_socket::address(0), client_socket::address(1)];
        assert_eq!(seen[..4], [(0, one), (1, other), (2, one), (0, one)]);
    }
}
