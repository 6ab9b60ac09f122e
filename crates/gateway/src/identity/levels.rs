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
use bywash_message::Fields;
use bywash_token::{UnixTime, sign_level};

use crate::process::wall_clock::unix_ms;
use crate::telemetry::metrics::{CustomerLevel, LevelMetrics, Metrics};

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

/// A level's counters and its name as the request log keeps it.
#[derive(Clone)]
struct Named {
    name: Arc<str>,
    metrics: LevelMetrics,
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
    pub(crate) fn customer_level(&self, fields: &Fields, is_trusted: bool) -> CustomerLevel {
        let Some(header) = &self.customer_header else { return CustomerLevel::Nothing };
        let mut values = fields.named(header.as_bytes());
        match (values.next(), values.next()) {
            (None | Some(b""), None) => CustomerLevel::Nothing,
            (Some(_), _) if !is_trusted => CustomerLevel::Untrusted,
            (Some(name), None) => {
                self.config.named(name).map_or(CustomerLevel::Unknown, CustomerLevel::Level)
            }
            (_, Some(_)) => CustomerLevel::Unknown,
        }
    }

    /// Returns the level of a request, from the level of its class and the one named for its
    /// customer.
    pub(crate) fn level(&self, class: Option<Level>, claimed: CustomerLevel) -> Level {
        let customer = match claimed {
            CustomerLevel::Level(level) => Some(level),
            CustomerLevel::Nothing | CustomerLevel::Unknown | CustomerLevel::Untrusted => None,
        };
        // A lower value is a better level.
        class.into_iter().chain(customer).min().unwrap_or(self.config.default)
    }

    /// The field that names the customer's level. It is never forwarded, not even from a trusted
    /// hop: see `Fields::remove_alike`.
    pub(crate) fn customer_header(&self) -> Option<Arc<str>> {
        self.customer_header.clone()
    }

    /// Sets the field for the application, signed now.
    pub(crate) fn set_field(&self, fields: &mut Fields, level: Level) {
        let now = UnixTime::from_millis(unix_ms());
        let text = sign_level(&self.config.keys, self.name(level), now);
        let text = text.expect("the configuration has seen that it is a level's name");
        fields.set(FIELD, text.as_bytes());
    }

    /// The level's name, as the request log keeps it.
    pub(crate) fn name(&self, level: Level) -> &Arc<str> {
        &self.named[level.index()].name
    }

    pub(crate) fn metrics(&self, level: Level) -> &LevelMetrics {
        &self.named[level.index()].metrics
    }
}
