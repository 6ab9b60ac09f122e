//! Service levels in force: the level of a request, and the field that tells the application.
//!
//! A request has the better of its class's level and its customer's level, else the default. Only a
//! hop of `listen.trusted_proxies` can name the customer's level, and it must name exactly one: two
//! values, or a value that is not a level, count as none, and the class's level applies.
//!
//! A client never sets its own level: every field whose name begins with `bywash-` is removed from
//! its request, and so is the customer's field, in every spelling. The field of a trusted hop is
//! not forwarded either: the application gets the level in the gateway's own, signed field.
//!
//! **Not in mode observe,** which promises to change nothing, nor while bypassed: then the level is
//! counted and logged, the gateway adds no field, and the field of a trusted hop is forwarded
//! unchanged.
//!
//! **Signed when the request is sent,** not when it arrives: a wait in the queue does not use up
//! the signature's lifetime.

use std::sync::Arc;

use bywash_config::{Config, Level};
use bywash_message::{Fields, alike};
use bywash_token::{Moment, sign_level};

use crate::access_log::wall_clock_ms;
use crate::metrics::{LevelMetrics, Metrics};

/// The field that tells the application.
const FIELD: &[u8] = b"Bywash-Level";

/// The levels in force.
#[derive(Clone)]
pub(crate) struct Levels {
    config: bywash_config::Levels,
    /// The name of the field in which a trusted hop gives the customer's level.
    customer_header: Option<Arc<str>>,
    /// Best first.
    named: Vec<Named>,
}

/// A level's counters and its name as the journal keeps it.
#[derive(Clone)]
struct Named {
    name: Arc<str>,
    metrics: LevelMetrics,
}

/// The level that a request names for its customer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Said {
    #[default]
    Nothing,
    /// A trusted hop names this level.
    Level(Level),
    /// A trusted hop sends something else than one level.
    Unknown,
    /// The sender is not a trusted hop.
    Untrusted,
}

impl Said {
    /// The label values in metrics, in the order of [`Self::number`].
    pub(crate) const NAMES: [&'static str; 3] = ["known", "unknown", "untrusted"];

    /// The index of its label value; `None` if it is not counted.
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
    /// Returns the levels of the configuration; `None` if it has none.
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

    /// Reads the customer's level from a request's fields.
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

    /// Returns the level of a request, from the level of its class and the one named for its
    /// customer.
    pub(crate) fn level(&self, class: Option<Level>, said: Said) -> Level {
        let customer = match said {
            Said::Level(level) => Some(level),
            Said::Nothing | Said::Unknown | Said::Untrusted => None,
        };
        // A lower value is a better level.
        class.into_iter().chain(customer).min().unwrap_or(self.config.default)
    }

    /// The field that names the customer's level. It is never forwarded, not even from a trusted
    /// hop: see [`take_out`].
    pub(crate) fn customer_header(&self) -> Option<Arc<str>> {
        self.customer_header.clone()
    }

    /// Sets the field for the application, signed now.
    pub(crate) fn tell(&self, fields: &mut Fields, level: Level) {
        let now = Moment::from_millis(wall_clock_ms());
        let text = sign_level(&self.config.keys, self.name(level), now);
        let text = text.expect("the configuration has seen that it is a level's name");
        fields.set(FIELD, text.as_bytes());
    }

    /// The level's name, as the journal keeps it.
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
