//! Turns findings into actions: proposals, operators' decisions, and rules that end.
//!
//! Discovery reports which requests cause the load. That is evidence. By itself it does not justify
//! holding a client back, because only the operator knows whether the page may be slow [paper 5.5].
//! A finding becomes a *proposal*, with its evidence and the predicted effect of a rule. An
//! operator approves the proposal with their name, a reason and a duration. The proposal is then a
//! *rule*, until the rule ends, is undone, or is replaced by the configuration file. A *trial* is a
//! short rule whose effect is measured.
//!
//! Nothing in this crate reads a clock or a file. The time is an argument, and [`RuleStore::text`]
//! returns the text to be stored.
//!
//! # Trust
//!
//! The evidence comes from requests that any client can send. One client can make a page look heavy
//! by requesting it whenever the site is busy. So each finding states how much of its page's work
//! one client caused ([`Elephant::by_one`]). If that is much, nothing is done without an operator.
//! A rule for transactions is rejected, no matter who asks for it. There are at most [`MOST_RULES`]
//! rules and [`MOST_ENTRIES`] entries.
//!
//! # Modules
//!
//! The lowest come first. A module uses only those above it in this list, which
//! `scripts/check-modules` checks.
//! - `text.rs`: durations and revisions as text. `time.rs`: when decisions begin and end.
//!   `mode.rs`: the mode of a class.
//! - `decision_meta.rs`: the author, reason and duration of a decision. `refused.rs`: why one is
//!   rejected.
//! - `clients.rs`, `slot_use.rs`, `tally.rs`: what each client, and each route, has used.
//!   `part.rs`: the load of one route.
//! - `elephant.rs`: a finding, which is the evidence. `rule_limits.rs`: the content of a rule.
//!   `effect.rs`: its predicted effect and its measured one.
//! - `spent.rs`: time series of the use of resources, for charts. `recent.rs`: the last minutes,
//!   from which effects are measured.
//! - `note.rs`: a line of the audit log.
//! - `entry.rs`: an elephant with all decisions about it.
//! - `watch/`: derives evidence from requests and from the use of resources.
//! - `rule_store/`: stores the entries, and is the only module that changes them.
//! - `overrides/`: the other settings that operators change for a limited time, such as the mode of
//!   a class.
//! - `fleet_decisions.rs`: the decisions that hold at all gateways of a fleet.
#![forbid(unsafe_code)]

mod clients;
mod decision_meta;
mod effect;
mod elephant;
mod entry;
mod fleet_decisions;
mod mode;
mod note;
mod overrides;
mod part;
mod recent;
mod refused;
mod rule_limits;
mod rule_store;
mod slot_use;
mod spent;
mod tally;
mod text;
mod time;
mod watch;

pub use clients::{Client, OneClient};
pub use decision_meta::{DecisionMeta, DecisionMetaError};
pub use effect::{Effect, Gauge, ResponseStats, Unpredicted};
pub use elephant::{Elephant, Resource};
pub use entry::{Ended, Entry, Origin, Rule, State, Trial};
pub use fleet_decisions::FleetDecisions;
pub use jiff::Timestamp;
pub use mode::Mode;
pub use note::{BYWASH, CONFIG_FILE, FleetStamp, Note, Subject, What, is_reserved};
pub use overrides::{MOST_OVERRIDES, NotOverridden, Override, Overrides, OverridesError, Target};
pub use part::Part;
pub use recent::{Answers, WINDOW as ANSWERS_WINDOW};
pub use refused::{MOST_ENTRIES, MOST_RULES, Refused};
pub use rule_limits::{Change, Limit, RuleLimits};
pub use rule_store::{Act, FileRule, InForce, RuleStore, RuleStoreError};
pub use spent::{RouteUse, Spent, Window};
pub use watch::{BYTES, MOST_EXEMPT, OLDEST_SECOND, RouteSum, SLOTS, Second, Seen, Watch, Watched};
