//! The catalogue: the only list of all policies with their parameters.
//!
//! The command line, the configuration schema, the reference and the console read this list. To add
//! a policy, write its file in `queue/`, `limit/` or `terminate/`. Then add one entry to
//! [`POLICIES`], [`LIMITS`] or [`TERMINATIONS`], and one scenario to `lab/`.

mod limits;
mod schedulers;
mod terminations;

pub use limits::{LIMITS, LimitPolicy, find_limit};
pub use schedulers::{POLICIES, find};
pub use terminations::{TERMINATIONS, TerminationPolicy, find_termination};

pub use crate::limit::{LimitSettings, Limits};
pub use crate::parameters::{Decides, Domain, Entry, Parameter, ParameterError, Value};
pub use crate::queue::Schedulers;
pub use crate::terminate::{TerminationSettings, Terminations};

/// A policy of the catalogue. It is a scheduler by default, a concurrency policy with [`Limits`],
/// and a termination policy with [`Terminations`].
pub type Policy<D = Schedulers> = crate::parameters::Policy<D>;

/// A policy with a value for each of its parameters; a scheduler by default.
pub type Settings<D = Schedulers> = crate::parameters::Settings<D>;

#[cfg(test)]
mod tests {
    use alloc::string::{String, ToString};
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn every_policy_can_be_made_from_its_defaults() {
        for policy in &POLICIES {
            let settings = policy.settings([]).unwrap();
            assert!(!settings.scheduler(&[]).lifo(), "{} starts calm", policy.name);
        }
    }

    #[test]
    fn every_default_reads_back_and_lies_in_its_range() {
        let limits = LIMITS.iter().flat_map(|policy| policy.parameters);
        let terminations = TERMINATIONS.iter().flat_map(|policy| policy.parameters);
        let orders = POLICIES.iter().flat_map(|policy| policy.parameters);
        for parameter in orders.chain(limits).chain(terminations) {
            let text = parameter.domain.default_text();
            assert_eq!(parameter.domain.read(&text), Some(parameter.domain.default()), "{text}");
        }
    }

    #[test]
    fn all_mistakes_come_at_once() {
        let policy = find("session-first").unwrap();
        let given = [("capacity", "0"), ("florr_share", "0.1"), ("signal", "moon")];
        let errors = policy.settings(given).unwrap_err();
        let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(texts[0], "`capacity` takes a whole number from 1 to 1000000, not `0`");
        assert_eq!(texts[1], "there is no parameter `florr_share`");
        assert_eq!(
            texts[2],
            "`signal` takes one of \"head-age\", \"sojourn\", \"loss\", \"cpu\", \"pressure\", not `moon`"
        );
    }
}
