//! The rules that hold, as requests are held against them: the most specific first.

use std::sync::{Arc, Mutex, PoisonError};

use bywash_control::InForce;
use bywash_discover::template::{Line, Pattern};
use bywash_engine::throttle::RuleId;
use bywash_shaper::{BitRate, Bucket};
use bywash_units::Time;

use super::bytes::SharedBucket;

/// See the module.
#[derive(Default)]
pub(crate) struct Rules(Vec<Rule>);

struct Rule {
    pattern: Pattern,
    /// Kinds of their own that the pattern matches too.
    exempt: Vec<Pattern>,
    id: RuleId,
    /// If bytes of answers are held back.
    bucket: Option<SharedBucket>,
}

/// Bytes that may go at once, however long none did.
const BURST: u32 = 64 * 1024;

impl Rules {
    /// Of a book. A pattern that is none any more, from a book that another version has written, holds nobody back.
    /// Answers that are on their way share what they had `before`, at the new rate.
    pub(crate) fn new(in_force: &[InForce], before: &Self, now: Time) -> Self {
        let rule = |rule: &InForce| {
            let bucket = rule.bytes.and_then(BitRate::of_bytes);
            let bucket = bucket.map(|rate| before.bucket_at(rule.id, rate, now));
            let exempt = rule.exempt.iter().filter_map(|kind| kind.parse().ok()).collect();
            Some(Rule { pattern: rule.pattern.parse().ok()?, exempt, id: rule.id, bucket })
        };
        let mut rules: Vec<_> = in_force.iter().filter_map(rule).collect();
        rules.sort_unstable_by(|a, b| b.pattern.cmp(&a.pattern));
        Self(rules)
    }

    fn bucket_at(&self, id: RuleId, rate: BitRate, now: Time) -> SharedBucket {
        let Some(bucket) = self.bucket_of(id) else {
            return Arc::new(Mutex::new(Bucket::new(rate, BURST)));
        };
        bucket.lock().unwrap_or_else(PoisonError::into_inner).set_rate(now, rate);
        bucket
    }

    /// What answers under this rule share, if their bytes are held back.
    pub(crate) fn bucket_of(&self, id: RuleId) -> Option<SharedBucket> {
        self.0.iter().find(|rule| rule.id == id)?.bucket.clone()
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The rule for a request, if there is one.
    pub(crate) fn of(&self, method: &str, target: &str) -> Option<RuleId> {
        let line = Line::new(method, target);
        let holds = |rule: &&Rule| {
            rule.pattern.is_of(&line) && !rule.exempt.iter().any(|kind| kind.is_of(&line))
        };
        let found = self.0.iter().find(holds);
        found.map(|rule| rule.id)
    }
}

#[cfg(test)]
mod tests {
    use bywash_engine::throttle;

    use super::*;

    #[test]
    fn what_a_rule_leaves_alone_comes_under_the_next_that_matches() {
        let rule = |id, pattern: &str, exempt: &[&str]| InForce {
            id: RuleId(id),
            pattern: pattern.into(),
            exempt: exempt.iter().map(|kind| (*kind).into()).collect(),
            rule: throttle::Rule::at_once(1),
            bytes: None,
        };
        let in_force =
            [rule(1, "/*?q&...", &["/search?q", "/find?q=shoes"]), rule(2, "/**?...", &[])];
        let rules = Rules::new(&in_force, &Rules::default(), Time::ZERO);
        for (target, id) in [
            ("/17?q=a", 1),
            ("/search?q=a", 2),
            ("/search?page=2&q=a", 1),
            ("/find?q=hats", 1),
            ("/find?q=shoes", 2),
            ("/a/b", 2),
        ] {
            assert_eq!(rules.of("GET", target), Some(RuleId(id)), "{target}");
        }
        assert_eq!(rules.of("POST", "/17?q=a"), None);
    }
}
