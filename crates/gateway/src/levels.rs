//! Levels as they are in force: which one a request has, and the field that tells the application.
//!
//! A request has the better of its class's level and of its customer's, else the default. Only a hop of
//! `listen.trusted_proxies` is believed about its customer, and only if it says one thing: two values, or
//! one that is no level, are none, and the class's holds.
//!
//! A customer never sets the level for itself: every field whose name begins with `bywash-` is removed from
//! what clients send, and so is the customer's field, in every spelling. A trusted hop's goes no further
//! either: what the application is to know stands, signed, in ours.
//!
//! **Not in mode observe,** which promises to change nothing, nor while bypassed: then the level is counted
//! and logged, nothing is sent, and the field of a trusted hop goes on as it came.
//!
//! **Signed when it is sent,** not when it comes: a wait in the queue takes nothing of the text's lifetime.

use std::sync::Arc;

use bywash_config::{Config, Level};
use bywash_message::{Fields, alike};
use bywash_token::{Moment, sign_level};

use crate::access_log::wall_clock_ms;
use crate::metrics::{LevelMetrics, Metrics};

/// The field that tells the application.
const FIELD: &[u8] = b"Bywash-Level";

/// What is in force.
#[derive(Clone)]
pub(crate) struct Levels {
    config: bywash_config::Levels,
    /// In which a trusted hop names the customer's.
    customer_header: Option<Arc<str>>,
    /// The best first.
    named: Vec<Named>,
}

/// A level's counters and its name as the journal keeps it.
#[derive(Clone)]
struct Named {
    name: Arc<str>,
    metrics: LevelMetrics,
}

/// What is said of a request's customer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Said {
    #[default]
    Nothing,
    /// By a trusted hop.
    Level(Level),
    /// A trusted hop says something else than one level.
    Unknown,
    /// Who says it is not believed.
    Untrusted,
}

impl Said {
    /// The words for it in metrics, in the order of [`Self::number`].
    pub(crate) const NAMES: [&'static str; 3] = ["known", "unknown", "untrusted"];

    /// The place of its word; `None`: nothing is counted.
    pub(crate) const fn number(self) -> Option<usize> {
        match self {
            Self::Nothing => None,
            Self::Level(_) => Some(0),
            Self::Unknown => Some(1),
            Self::Untrusted => Some(2),
        }
    }
}

impl Levels {
    /// `None`: there are none.
    pub(crate) fn of(config: &Config, metrics: &Metrics) -> Option<Self> {
        let config = config.levels.clone()?;
        let named = |(_, name): (Level, &str)| Named {
            name: Arc::from(name),
            metrics: metrics.level(name),
        };
        let named = config.all().map(named).collect();
        let customer_header = config.customer_header.as_deref().map(Arc::from);
        Some(Self { config, customer_header, named })
    }

    /// What a request with these fields says of its customer.
    pub(crate) fn said(&self, fields: &Fields, is_trusted: bool) -> Said {
        let Some(header) = &self.customer_header else { return Said::Nothing };
        let mut values = fields.named(header.as_bytes());
        match (values.next(), values.next()) {
            (None | Some(b""), None) => Said::Nothing,
            (Some(_), _) if !is_trusted => Said::Untrusted,
            (Some(name), None) => self.config.named(name).map_or(Said::Unknown, Said::Level),
            (_, Some(_)) => Said::Unknown,
        }
    }

    /// The level of a request of a class with this one, of whose customer this is said.
    pub(crate) fn level(&self, class: Option<Level>, said: Said) -> Level {
        let customer = match said {
            Said::Level(level) => Some(level),
            Said::Nothing | Said::Unknown | Said::Untrusted => None,
        };
        // The lesser is the better one.
        class.into_iter().chain(customer).min().unwrap_or(self.config.default)
    }

    /// The field that names the customer's. Whoever says it, it goes no further: see [`take_out`].
    pub(crate) fn customer_header(&self) -> Option<Arc<str>> {
        self.customer_header.clone()
    }

    /// Tells the application, signed now.
    pub(crate) fn tell(&self, fields: &mut Fields, level: Level) {
        let now = Moment::from_millis(wall_clock_ms());
        let text = sign_level(&self.config.keys, self.name(level), now);
        let text = text.expect("the configuration has seen that it is a level's name");
        fields.set(FIELD, text.as_bytes());
    }

    /// Its name, as the journal keeps it.
    pub(crate) fn name(&self, level: Level) -> &Arc<str> {
        &self.named[level.index()].name
    }

    pub(crate) fn metrics(&self, level: Level) -> &LevelMetrics {
        &self.named[level.index()].metrics
    }
}

/// Removes a field in every spelling that some application takes for it.
pub(crate) fn take_out(fields: &mut Fields, name: &str) {
    let is_it = |spelled: &[u8]| alike(spelled, name.as_bytes());
    if fields.iter().any(|field| is_it(field.spelled)) {
        fields.retain(|field| !is_it(field.spelled));
    }
}
