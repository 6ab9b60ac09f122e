//! The application's client of the stop daemon (`bywash stopd`). It tells the daemon which request
//! uses which connection, and that a request must be stopped. The contract is in `sdk/README.md`,
//! "Down to the query".
//!
//! The daemon is optional. Without a daemon, a lease only reads the clock, and the process tries to
//! connect at most once every 200 ms. The crate `log` gets one warning of each cause for which
//! nothing cancels queries.

mod conversation;
mod warnings;

use std::env;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bywash_lease::{Answer, Command, RequestId, Scope};
use parking_lot::Mutex;
use tokio::net::UnixStream;
use tokio::time::{Instant, timeout};

use crate::terminated::Reason;
use conversation::converse;
pub(crate) use conversation::{Conversation, Silence};
use warnings::Warnings;

/// The minimum time between a failed attempt to connect to the daemon and the next attempt.
const AGAIN_AFTER: Duration = Duration::from_millis(200);
/// The maximum time to wait for an answer of the daemon. A later answer ends the conversation.
const ANSWER_WITHIN: Duration = Duration::from_millis(100);

/// The total counts of a [`StopClient`] since its creation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StopClientStats {
    /// The number of leases that the daemon has confirmed.
    pub leased: u64,
    /// The number of leases that did not begin because their request was over.
    pub stopped: u64,
    /// The number of leases that the daemon refused because another client had leased the same
    /// connection.
    pub taken: u64,
    /// The number of leases that the daemon refused for any other reason, for example an unknown
    /// database name, plus the number of stops that it refused.
    pub refused: u64,
    /// The number of leases for requests without a name, which nothing can stop. The layer names
    /// each request of a class.
    pub unnamed: u64,
    /// The number of leases that were not requested or not answered in time, because the daemon was
    /// absent or too slow.
    pub unreachable: u64,
    /// The number of connections that were closed, because a cancellation may be aimed at them or
    /// because they were dropped without a release.
    pub closed: u64,
    /// The number of requests that the daemon has agreed to stop.
    pub stops: u64,
}

/// A client of the stop daemon. One process needs only one: clones share the same client.
#[derive(Clone)]
pub struct StopClient(Arc<Shared>);

struct Shared {
    socket: PathBuf,
    current: Mutex<Current>,
    /// The lock that a task holds while it connects. Other tasks wait for it instead of connecting
    /// too.
    connecting: tokio::sync::Mutex<()>,
    stats: Mutex<StopClientStats>,
    warnings: Warnings,
    /// The number for the next lease of work in this process.
    numbers: AtomicU64,
}

#[derive(Default)]
struct Current {
    conversation: Option<Conversation>,
    /// The time before which no attempt to connect is made.
    not_before: Option<Instant>,
}

impl StopClient {
    /// Creates a client of the daemon whose socket is named by the environment variable
    /// `BYWASH_STOPD`, or else is `/run/bywash-stopd/stopd.sock`. The client does not connect
    /// before the first lease.
    pub fn new() -> Self {
        let named = env::var_os("BYWASH_STOPD").filter(|path| !path.is_empty());
        Self::at(named.unwrap_or_else(|| "/run/bywash-stopd/stopd.sock".into()))
    }

    /// Creates a client of the daemon that listens on the Unix socket at this path.
    pub fn at(socket: impl Into<PathBuf>) -> Self {
        Self(Arc::new(Shared {
            socket: socket.into(),
            current: Mutex::default(),
            connecting: tokio::sync::Mutex::default(),
            stats: Mutex::default(),
            warnings: Warnings::default(),
            numbers: AtomicU64::new(1),
        }))
    }

    /// Returns the counts of this client and all its clones.
    pub fn stats(&self) -> StopClientStats {
        *self.0.stats.lock()
    }

    pub(crate) fn count(&self, what: impl FnOnce(&mut StopClientStats) -> &mut u64) {
        *what(&mut self.0.stats.lock()) += 1;
    }

    pub(crate) fn number(&self) -> u64 {
        self.0.numbers.fetch_add(1, Ordering::Relaxed)
    }

    /// Returns the conversation with the daemon, and connects if necessary. Returns `None` if there
    /// is no daemon, or during the pause after a failed attempt.
    pub(crate) async fn conversation(&self) -> Option<Conversation> {
        let known = self.0.current.lock().look();
        if !matches!(known, Known::MayConnect) {
            return known.conversation();
        }
        let _one = self.0.connecting.lock().await;
        let known = self.0.current.lock().look();
        if !matches!(known, Known::MayConnect) {
            return known.conversation();
        }
        let connected = timeout(ANSWER_WITHIN, UnixStream::connect(&self.0.socket)).await;
        // The client owns the conversation, so the conversation does not keep the client alive.
        let client = Arc::downgrade(&self.0);
        let stopped = move |answer: &Answer| {
            if let Some(client) = client.upgrade().map(Self) {
                client.count_stop_answer(answer);
            }
        };
        let begun = connected.ok().and_then(Result::ok).map(|stream| converse(stream, stopped));
        let mut current = self.0.current.lock();
        current.conversation.clone_from(&begun);
        if begun.is_none() {
            current.not_before = Some(Instant::now() + AGAIN_AFTER);
        }
        begun
    }

    /// Tells the daemon that a request with leases is over. It does not block, and does not wait
    /// until the line is sent, because the caller holds the request's lock.
    pub(crate) fn stop(&self, request: Option<&RequestId>, reason: Reason) {
        // Without a conversation, the daemon knows no lease that could be stopped.
        let (Some(request), Some(conversation)) =
            (request, self.0.current.lock().conversation.clone())
        else {
            return;
        };
        let (request, reason) = (request.clone(), reason.in_line());
        conversation.say(Command::Stop {
            request,
            reason,
            scope: Scope::Own,
            not_after: None,
            traceparent: None,
        });
    }
}

/// The state of the connection to the daemon, as far as it is known without an attempt to connect.
enum Known {
    Talks(Conversation),
    TooSoon,
    MayConnect,
}

impl Known {
    fn conversation(self) -> Option<Conversation> {
        match self {
            Self::Talks(conversation) => Some(conversation),
            Self::TooSoon | Self::MayConnect => None,
        }
    }
}

impl Current {
    fn look(&mut self) -> Known {
        if let Some(conversation) = &self.conversation {
            if !conversation.is_over() {
                return Known::Talks(conversation.clone());
            }
            self.not_before = Some(Instant::now() + AGAIN_AFTER);
            self.conversation = None;
        }
        let too_soon = self.not_before.is_some_and(|moment| Instant::now() < moment);
        if too_soon { Known::TooSoon } else { Known::MayConnect }
    }
}

impl Default for StopClient {
    fn default() -> Self {
        Self::new()
    }
}

impl PartialEq for StopClient {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl fmt::Debug for StopClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StopClient")
            .field("socket", &self.0.socket)
            .field("stats", &self.stats())
            .finish_non_exhaustive()
    }
}

impl Reason {
    fn in_line(self) -> bywash_lease::Reason {
        match self {
            Self::RanTooLong => bywash_lease::Reason::RanTooLong,
            Self::ClientLeft => bywash_lease::Reason::ClientLeft,
            Self::Deadline => bywash_lease::Reason::Deadline,
        }
    }

    pub(crate) fn of_line(reason: bywash_lease::Reason) -> Self {
        match reason {
            bywash_lease::Reason::RanTooLong => Self::RanTooLong,
            bywash_lease::Reason::ClientLeft => Self::ClientLeft,
            bywash_lease::Reason::Deadline => Self::Deadline,
        }
    }
}
