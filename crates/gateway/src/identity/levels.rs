//! Service levels in force: determines the level of a request, and sends it to the application.
//!
//! A request gets the better of two levels: that of its class and that of its customer. Without
//! either it gets the default level. Only a hop of `listen.trusted_proxies` can name the customer's
//! level. It must name exactly one: with two values, or with a value that is not a level, the
//! class's level applies.
//!
//! A client never sets its own level. The gateway removes every field whose name begins with
//! `bywash-` from a request, and the field for the customer's level, in every spelling. It does not
//! forward the customer's field of a trusted hop either: the application gets the level in the
//! gateway's own, signed field.
//!
//! **Not in mode `observe`, nor while bypassed.** In these states the gateway must change nothing.
//! It counts and logs the level, adds no field, and forwards the field of a trusted hop unchanged.
//!
//! **The level is signed when the request is sent,** not when it arrives. Therefore a wait in the
//! queue does not use up the signature's lifetime.

use std::sync::Arc;

use bywash_config::{Config, Level};
use bywash_message::Fields;
use bywash_token::{UnixTime, sign_level};

use crate::process::wall_clock::unix_ms;
use crate::telemetry::metrics::{CustomerLevel, LevelMetrics, Metrics};

/// The name of the field that tells the application the level.
const FIELD: &[u8] = b"Bywash-Level";

/// The service levels of the configuration, with their counters.
#[derive(Clone)]
pub(crate) struct Levels {
    config: bywash_config::Levels,
    /// The name of the field in which a trusted hop gives the customer's level.
    customer_header: Option<Arc<str>>,
    /// The levels with their names and counters, the best level first.
    named: Vec<Named>,
}

/// The counters of one level, and its name in the form that the request log stores.
#[derive(Clone)]
struct Named {
    name: Arc<str>,
    metrics: LevelMetrics,
}

impl Levels {
    /// Builds the levels of a configuration. Returns `None` if it has no `[levels]`.
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

    /// Returns what a request's fields say about the customer's level. `is_trusted` says whether
    /// the sender is a trusted hop.
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

    /// Returns the level of a request: the better of its class's level and the level `claimed` for
    /// its customer. Without either, returns the default level.
    pub(crate) fn level(&self, class: Option<Level>, claimed: CustomerLevel) -> Level {
        let customer = match claimed {
            CustomerLevel::Level(level) => Some(level),
            CustomerLevel::Nothing | CustomerLevel::Unknown | CustomerLevel::Untrusted => None,
        };
        // A smaller value of `Level` is a better level, so `min` picks the best.
        class.into_iter().chain(customer).min().unwrap_or(self.config.default)
    }

    /// Returns the name of the field that names the customer's level. The gateway removes this
    /// field from requests even if a trusted hop sends it: see `Fields::remove_alike`.
    pub(crate) fn customer_header(&self) -> Option<Arc<str>> {
        self.customer_header.clone()
    }

    /// Sets the field that tells the application the level. Its signed value contains the present
    /// time and expires, so call this just before the request is sent.
    pub(crate) fn set_field(&self, fields: &mut Fields, level: Level) {
        let now = UnixTime::from_millis(unix_ms());
        let text = sign_level(&self.config.keys, self.name(level), now);
        let text = text.expect("the configuration has seen that it is a level's name");
        fields.set(FIELD, text.as_bytes());
    }

    /// Returns the level's name in the form that the request log stores.
    pub(crate) fn name(&self, level: Level) -> &Arc<str> {
        &self.named[level.index()].name
    }

    pub(crate) fn metrics(&self, level: Level) -> &LevelMetrics {
        &self.named[level.index()].metrics
    }
}
