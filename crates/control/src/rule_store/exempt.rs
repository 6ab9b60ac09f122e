//! Exempts the requests that an elephant's rule does not apply to.
//!
//! A pattern can match more requests than its elephant has. `/*` is the route of all requests
//! without a route of their own, and it also matches `/cart`. The elephant's cost is that of its
//! own requests, so an operator's decision is about those alone. All other known routes that the
//! pattern matches are exempt. A rule in the configuration file applies to all requests that its
//! pattern matches.

use super::RuleStore;
use crate::entry::{Origin, State};
use crate::watch::{MOST_EXEMPT, Watch};

impl RuleStore {
    /// Exempts from each elephant's rule the other routes that the rule's pattern matches, as far
    /// as `watch` knows them. Returns whether an exemption has changed.
    pub fn exempt(&mut self, watch: &Watch) -> bool {
        let mut rules = Vec::new();
        for entry in &mut self.entries {
            if let State::Ruled(rule) = &mut entry.state
                && rule.origin != Origin::File
            {
                rules.push((entry.pattern.as_str(), &mut rule.exempt));
            }
        }
        if rules.is_empty() {
            return false;
        }
        let patterns: Vec<&str> = rules.iter().map(|(pattern, _)| *pattern).collect();
        let mut has_changed = false;
        for (mut known, (pattern, exempt)) in watch.within(&patterns).into_iter().zip(rules) {
            if !watch.is_route(pattern) {
                continue;
            }
            // Soon after a restart most routes are not known yet, so earlier exemptions are kept.
            if !watch.is_settled() {
                known.extend(exempt.iter().cloned());
                known.sort_unstable();
                known.dedup();
                known.truncate(MOST_EXEMPT);
            }
            has_changed |= *exempt != known;
            *exempt = known;
        }
        has_changed
    }
}
