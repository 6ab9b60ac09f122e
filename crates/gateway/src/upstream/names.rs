//! Resolves the addresses of servers that are configured by name.
//!
//! One task looks up every name at intervals (`upstream.resolve_every`), so only the first request
//! waits for a name server. The look-up is that of the C library (`getaddrinfo`), which uses
//! `/etc/hosts`, search domains and any other source of names on this host. `getaddrinfo` gives no
//! TTL, hence the fixed interval. If a look-up fails, the last addresses stay in use.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use bywash_terminal::stderr::say;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::MissedTickBehavior;

use super::UpstreamError;
use super::dial::{dial, in_order};
use crate::telemetry::metrics::{Metrics, NameFailure};

/// The maximum number of addresses that are used for one name.
const MOST: usize = 64;

/// The name of one server, with its addresses.
pub(crate) struct Name {
    host: String,
    port: u16,
    known: watch::Sender<Known>,
    /// The number of connections so far. It determines the address that the next connection tries
    /// first.
    turn: AtomicUsize,
    /// Whether IPv4 addresses are tried first: the last look-up returned one first, or the last
    /// connection was made over IPv4.
    v4_first: AtomicBool,
}

/// The result of the look-ups of a name so far.
#[derive(Debug)]
enum Known {
    /// The name has not been looked up yet.
    Nothing,
    /// The addresses that were found. `fails` says whether the last look-up has failed, so that the
    /// addresses are from an earlier one.
    Addresses {
        all: Arc<[SocketAddr]>,
        fails: bool,
    },
    Failed(NameFailure),
}

impl Name {
    pub(super) fn new(host: &str, port: u16) -> Self {
        let known = match host.parse::<IpAddr>() {
            Ok(ip) => Known::Addresses { all: Arc::new([SocketAddr::new(ip, port)]), fails: false },
            Err(_) => Known::Nothing,
        };
        let (known, turn, v4_first) = (watch::channel(known).0, AtomicUsize::new(0), true.into());
        Self { host: host.to_owned(), port, known, turn, v4_first }
    }

    pub(super) fn host(&self) -> &str {
        &self.host
    }

    pub(super) fn is_looked_up(&self) -> bool {
        !matches!(&*self.known.borrow(), Known::Nothing)
    }

    pub(super) fn is(&self, host: &str, port: u16) -> bool {
        self.host == host && self.port == port
    }

    /// Connects to one of the addresses. Waits if the first look-up has not ended yet.
    ///
    /// # Errors
    /// Returns an error if the name has never resolved, or if no address accepts the connection.
    pub(super) async fn connect(&self) -> Result<TcpStream, UpstreamError> {
        let addresses = self.addresses().await.map_err(UpstreamError::Name)?;
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let addresses = in_order(&addresses, turn, self.v4_first.load(Ordering::Relaxed));
        let (stream, address) = dial(&addresses).await.map_err(UpstreamError::of_connect)?;
        self.v4_first.store(address.is_ipv4(), Ordering::Relaxed);
        Ok(stream)
    }

    async fn addresses(&self) -> Result<Arc<[SocketAddr]>, NameFailure> {
        let mut known = self.known.subscribe();
        let is_known = |known: &Known| !matches!(known, Known::Nothing);
        match &*known.wait_for(is_known).await.expect("its sender is here") {
            Known::Addresses { all, .. } => Ok(Arc::clone(all)),
            Known::Failed(cause) => Err(*cause),
            Known::Nothing => Err(NameFailure::Other),
        }
    }

    /// Looks the name up at once, and then forever at the interval `every`. `metrics` count the
    /// failures.
    pub(crate) async fn keep(&self, every: Duration, metrics: &Metrics) {
        if self.host.parse::<IpAddr>().is_ok() {
            return;
        }
        let mut interval = tokio::time::interval(every);
        interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            interval.tick().await;
            let found = tokio::net::lookup_host((self.host.as_str(), self.port)).await;
            if let Err(cause) = self.found(found.map(|all| all.take(MOST).collect())) {
                metrics.name_failed(cause);
            }
        }
    }

    /// Stores the result of a look-up, and logs a change between success and failure.
    fn found(&self, found: io::Result<Vec<SocketAddr>>) -> Result<(), NameFailure> {
        let (found, why) = match found {
            Ok(all) if all.is_empty() => {
                (Err(NameFailure::UnknownName), "the name has no address".to_owned())
            }
            Ok(all) => (Ok(all), String::new()),
            Err(error) => (Err(cause_of(&error)), error.to_string()),
        };
        let host = &self.host;
        let result = found.as_ref().map(|_| ()).map_err(|cause| *cause);
        self.known.send_modify(|known| match (&mut *known, found) {
            (Known::Addresses { fails: true, .. } | Known::Failed(_), Ok(all)) => {
                say(format!("the server's name {host} resolves again"));
                *known = Known::Addresses { all: all.into(), fails: false };
            }
            (Known::Addresses { .. } | Known::Nothing, Ok(all)) => {
                *known = Known::Addresses { all: all.into(), fails: false };
            }
            (Known::Addresses { fails, .. }, Err(_)) => {
                if !std::mem::replace(fails, true) {
                    say(format!(
                        "the server's name {host} does not resolve ({why}); the gateway continues \
                         to use its last addresses"
                    ));
                }
            }
            (Known::Nothing, Err(cause)) => {
                say(format!(
                    "the server's name {host} does not resolve ({why}); the gateway can send no \
                     request there"
                ));
                *known = Known::Failed(cause);
            }
            (Known::Failed(_), Err(cause)) => *known = Known::Failed(cause),
        });
        if let Known::Addresses { all, fails: false } = &*self.known.borrow() {
            self.v4_first
                .store(all.iter().next().is_some_and(SocketAddr::is_ipv4), Ordering::Relaxed);
        }
        result
    }
}

/// Returns the cause of a failed look-up. The standard library gives no error number, so the cause
/// is read from the untranslated message of glibc or musl.
fn cause_of(error: &io::Error) -> NameFailure {
    let text = error.to_string();
    let says = |words: &[&str]| words.iter().any(|words| text.contains(words));
    if says(&["Temporary failure", "Try again"]) {
        NameFailure::Temporary
    } else if says(&["not known", "not resolve", "No address", "no usable address"]) {
        NameFailure::UnknownName
    } else {
        NameFailure::Other
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, last], 80))
    }

    fn failure(text: &str) -> io::Result<Vec<SocketAddr>> {
        Err(io::Error::other(format!("failed to lookup address information: {text}")))
    }

    #[test]
    fn an_address_needs_no_look_up() {
        let name = Name::new("127.0.0.1", 80);
        let known = name.known.borrow();
        assert!(matches!(&*known, Known::Addresses { all, .. } if **all == [address(1)]));
    }

    #[tokio::test]
    async fn the_last_addresses_stay_when_a_look_up_fails() {
        let name = Name::new("app", 80);
        assert_eq!(name.found(Ok(vec![address(1), address(2)])), Ok(()));
        let failed = name.found(failure("Temporary failure in name resolution"));
        assert_eq!(failed, Err(NameFailure::Temporary));
        assert_eq!(*name.addresses().await.unwrap(), [address(1), address(2)]);
        assert_eq!(name.found(Ok(vec![address(3)])), Ok(()));
        assert_eq!(*name.addresses().await.unwrap(), [address(3)]);
    }

    #[tokio::test]
    async fn a_name_that_has_never_resolved_says_why_until_it_does() {
        let name = Name::new("app", 80);
        let first = name.addresses();
        let found = async { name.found(failure("Name or service not known")) };
        assert_eq!(
            tokio::join!(first, found).0,
            Err(NameFailure::UnknownName),
            "it waits for the first"
        );
        assert_eq!(name.found(Ok(Vec::new())), Err(NameFailure::UnknownName));
        assert_eq!(name.found(failure("Try again")), Err(NameFailure::Temporary));
        assert_eq!(name.addresses().await, Err(NameFailure::Temporary));
        assert_eq!(name.found(failure("out of memory")), Err(NameFailure::Other));
        assert_eq!(name.found(Ok(vec![address(1)])), Ok(()));
        assert_eq!(*name.addresses().await.unwrap(), [address(1)]);
    }

    #[tokio::test]
    async fn connections_take_turns_among_the_addresses() {
        let all = ["127.0.0.1:0", "127.0.0.2:0", "127.0.0.3:0"];
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let listen = |address: &str| {
            std::net::TcpListener::bind((address.split(':').next().unwrap(), port)).unwrap()
        };
        let _listeners = all.map(listen);
        let name = Name::new("app", port);
        let found = [1, 2, 3].map(|last| SocketAddr::from(([127, 0, 0, last], port)));
        name.found(Ok(found.to_vec())).unwrap();
        let mut reached = Vec::new();
        for _ in 0..6 {
            let stream = name.connect().await.unwrap();
            reached.push(stream.peer_addr().unwrap());
        }
        assert_eq!(reached, [found, found].concat());
    }
}
