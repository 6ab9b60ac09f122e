//! Carries the messages of a fleet of gateways over NATS.
//!
//! [`bywash_fleet`] decides which gateway has how many slots. This crate runs its state machines
//! for one gateway: it measures the gateway's demand in each heartbeat, sends and receives the
//! messages, and tells the gateway how many slots it has. Requests never wait for it. If the
//! servers cannot be reached, the gateway uses its own share of the slots.
//!
//! Each message is signed with the fleet's key ([`bywash_token::FleetKeys`]). A message that is too
//! long, not signed, of another version or not understood is ignored and counted, and the first of
//! each kind is logged.
//!
//! # Modules
//!
//! The lowest come first. A module uses only modules before it in this list, which
//! `scripts/check-modules` checks.
//! - `documents.rs`: documents that operators and gateways read at other gateways.
//! - `reading.rs`: reads the observations of other gateways.
//! - `message.rs`: the text of the messages.
//! - `node.rs`: the state machines of one gateway, without input and output.
//! - `liveness.rs`: proves that the process of a gateway has ended.
//! - `link.rs`: the connection to the servers.
#![forbid(unsafe_code)]

mod documents;
mod link;
mod liveness;
mod message;
mod node;
mod reading;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bywash_api::Fleet as FleetStatus;
use bywash_control::Note;
use bywash_engine::Offered;
use bywash_fleet::Holding;
use bywash_units::{Time, TimeSpan};
use tokio::sync::oneshot;
use tokio::time::timeout;

use documents::Asked;

pub use documents::Unread;
pub use link::{Start, run, show_life};

/// Returns a digest of a text: the first eight bytes of its SHA-256.
fn digest(text: &str) -> u64 {
    let hash = ring::digest::digest(&ring::digest::SHA256, text.as_bytes());
    let first = hash.as_ref().first_chunk().expect("SHA-256 has 32 bytes");
    u64::from_be_bytes(*first)
}

/// The gateway, as far as its fleet needs it.
pub trait Gateway: Send + Sync + 'static {
    /// Returns the time on a clock that also goes on while the machine is suspended.
    fn now(&self) -> Time;

    /// Returns the configured number of slots of all gateways together.
    fn limit(&self) -> u32;

    /// Returns the work that clients offer.
    fn offered(&self) -> Offered;

    /// Returns the number of requests that hold a slot.
    fn running(&self) -> u32;

    /// Sets the slots that the gateway has from now on. The gateway must start no request beyond
    /// them, also after `holding.until`.
    fn hold(&self, holding: Holding);

    /// Returns the wall clock, in milliseconds since 1970.
    fn clock(&self) -> u64;

    /// Returns a text of the settings that must be the same at all gateways.
    fn settings(&self) -> String;

    /// Returns a text that is the same at gateways that know the same decisions.
    fn decisions(&self) -> String;

    /// Returns the decisions that the gateway knows.
    fn known_decisions(&self) -> Vec<Note>;

    /// Returns the decisions that operators have made at this gateway since the last call.
    fn take_unsent_decisions(&self) -> Vec<Note>;

    /// Returns the path of the document with the observations of another gateway that this one does
    /// not know yet.
    fn observed(&self, gateway: &str) -> String;

    /// Takes such a document of another gateway. `age` is the estimated time since it was written.
    /// Returns whether the document had the gateway's last requests and this gateway has taken them.
    fn learn(&self, gateway: &str, document: &str, age: TimeSpan) -> bool;

    /// Returns the document with this path, for another gateway or an operator there; `None` if
    /// there is none.
    fn document(&self, path: &str) -> Option<String>;

    /// Puts a decision of another gateway in force, unless a newer one about its subject is known.
    fn follow(&self, decision: Note);
}

/// The state of the fleet as this gateway sees it, for operators. All clones share one state.
#[derive(Clone, Debug, Default)]
pub struct Board(Arc<Mutex<Shown>>);

#[derive(Debug, Default)]
struct Shown {
    status: FleetStatus,
    /// The questions that the next heartbeat sends.
    asked: Vec<Asked>,
}

impl Board {
    /// Returns the present state.
    pub fn status(&self) -> FleetStatus {
        self.lock().status.clone()
    }

    /// Reads the document of the API with this path at another gateway.
    ///
    /// # Errors
    /// Returns an error if the fleet has no such gateway, or if it does not answer within 2 s.
    pub async fn read(&self, gateway: &str, path: &str) -> Result<String, Unread> {
        let (answer, answered) = oneshot::channel();
        {
            let mut shown = self.lock();
            if shown.asked.len() >= MOST_ASKED {
                return Err(Unread::Busy);
            }
            let (gateway, path) = (gateway.to_owned(), path.to_owned());
            shown.asked.push(Asked { gateway, path, answer });
        }
        let answered = timeout(Duration::from_millis(2_600), answered).await;
        answered.ok().and_then(Result::ok).unwrap_or(Err(Unread::Silent))
    }

    fn take_asked(&self) -> Vec<Asked> {
        std::mem::take(&mut self.lock().asked)
    }

    fn change(&self, change: impl FnOnce(&mut FleetStatus)) {
        change(&mut self.lock().status);
    }

    fn lock(&self) -> MutexGuard<'_, Shown> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The maximum number of questions that wait for a heartbeat.
const MOST_ASKED: usize = 16;
