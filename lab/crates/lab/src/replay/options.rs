//! The options of a replay in addition to the log: workers, orders and service times. The names of
//! classes in the arguments are looked up in the configuration.

use bywash_config::Config;
use bywash_scenario::Class;
use bywash_sense::access_log::End;
use bywash_units::TimeSpan;

use super::reader::LoggedRequest;
use crate::args::{Replay, ServiceOf};

/// The options of a replay, in which classes are indices instead of names.
#[derive(Debug)]
pub(super) struct ReplayOptions {
    pub(super) workers: u32,
    /// Whether a success of a class is an order, one entry for each class.
    pub(super) orders: Vec<bool>,
    /// The given service time of each class, for requests whose service time the log does not have.
    pub(super) given: Vec<Option<TimeSpan>>,
    /// The given service time of all classes that `given` does not name.
    pub(super) any: Option<TimeSpan>,
}

impl ReplayOptions {
    /// Looks up the names of the arguments in the configuration.
    ///
    /// # Errors
    /// Fails if options do not fit the configuration. The message lists all errors.
    pub(super) fn new(args: &Replay, config: &Config) -> Result<Self, String> {
        let mut wrong = Vec::new();
        let names: Vec<&str> =
            config.classes.iter().map(|class| class.class.name.as_str()).collect();
        let mut find = |option: &str, name: &str| {
            let found = names.iter().position(|known| *known == name);
            if found.is_none() {
                wrong.push(format!(
                    "{option} {name}: there is no such class; the classes are {}",
                    names.join(", ")
                ));
            }
            found
        };
        let mut orders: Vec<bool> =
            config.classes.iter().map(|class| class.class.revenue.get() > 0.0).collect();
        if !args.order.is_empty() {
            orders = vec![false; names.len()];
            let chosen = args.order.iter().filter_map(|name| find("--order", name));
            chosen.for_each(|class| orders[class] = true);
        }
        let (mut given, mut any) = (vec![None; names.len()], None);
        for ServiceOf { class, time } in &args.service {
            match class {
                None => any = Some(*time),
                Some(name) => {
                    if let Some(class) = find("--service", name) {
                        given[class] = Some(*time);
                    }
                }
            }
        }
        let limit = &config.engine.limit;
        let fixed = (limit.name() == "fixed").then(|| limit.count("slots"));
        let workers = args.workers.or(fixed).unwrap_or_else(|| {
            let why = format!(
                "the limit policy of the configuration is `{}`, which has no fixed number",
                limit.name()
            );
            wrong.push(format!("--workers N is needed: {why}"));
            1
        });
        let options = Self { workers, orders, given, any };
        if wrong.is_empty() { Ok(options) } else { Err(wrong.join("\nbywash: ")) }
    }

    /// Returns whether successes of any class are orders.
    pub(super) fn has_orders(&self) -> bool {
        self.orders.contains(&true)
    }

    /// Returns the names of the classes whose successes are orders.
    pub(super) fn orders<'a>(&self, classes: &'a [Class]) -> Vec<&'a str> {
        let both = classes.iter().zip(&self.orders);
        both.filter(|(_, order)| **order).map(|(class, _)| class.name.as_str()).collect()
    }

    /// Returns whether this request was an order, or would have been an order if it had been
    /// served. The rule is the gateway's: a redirection is a success only if the method is not
    /// safe.
    pub(super) fn is_order(&self, request: &LoggedRequest) -> bool {
        let good = match request.end {
            End::Answered(status) | End::Late(status) => {
                (200..300).contains(&status) || (!request.safe && (300..400).contains(&status))
            }
            End::Refused | End::Left | End::Failed | End::Untold => true,
        };
        good && self.orders[usize::from(request.class)]
    }
}
