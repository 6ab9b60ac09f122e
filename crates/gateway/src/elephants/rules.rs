//! The rules for elephants in force, in the order in which requests are matched: the most specific
//! first.

use std::sync::{Arc, Mutex, PoisonError};

use bywash_control::InForce;
use bywash_engine::RuleId;
use bywash_engine::classify::{PathReading, Pattern, RequestLine};
use bywash_shaper::{BitRate, Bucket};
use bywash_units::{Rate, Time};

use super::bytes::SharedBucket;

/// The list of rules in force, the most specific first.
#[derive(Default)]
pub(crate) struct Rules(Vec<Rule>);

struct Rule {
    pattern: Pattern,
    /// The patterns of routes that `pattern` matches too, but to which the rule does not apply.
    exempt: Vec<Pattern>,
    id: RuleId,
    max_concurrency: u32,
    /// The maximum number of requests under the rule that start per second; `None` for no limit.
    rate: Option<f64>,
    /// The token bucket that paces answers under the rule; `None` if the rule does not limit bytes.
    bucket: Option<SharedBucket>,
}

/// The burst of a rule's token bucket: the maximum number of bytes that may be sent at once,
/// however long the pause before.
const BURST: u32 = 64 * 1024;

impl Rules {
    /// Builds the list of the rules that are in force. A rule whose pattern cannot be parsed
    /// applies to no request; another version of bywash may have written such a pattern. A rule
    /// that is also in `before` keeps its bucket, at the new rate, because answers in progress use
    /// it.
    pub(crate) fn new(in_force: &[InForce], before: &Self, now: Time) -> Self {
        let rule = |rule: &InForce| {
            let bucket = rule.bytes.and_then(BitRate::of_bytes);
            let bucket = bucket.map(|rate| before.bucket_at(rule.id, rate, now));
            let exempt = rule.exempt.iter().filter_map(|route| route.parse().ok()).collect();
            let pattern = rule.pattern.parse().ok()?;
            let (max_concurrency, rate) =
                (rule.rule.max_concurrency, rule.rule.rate.map(Rate::get));
            Some(Rule { pattern, exempt, id: rule.id, max_concurrency, rate, bucket })
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

    /// Returns the bucket that answers under this rule share; `None` if the rule is unknown or does
    /// not limit bytes.
    pub(crate) fn bucket_of(&self, id: RuleId) -> Option<SharedBucket> {
        self.0.iter().find(|rule| rule.id == id)?.bucket.clone()
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the rule that a request falls under; `None` if there is none.
    ///
    /// Applications may interpret the request's path in different ways, which `readings` lists.
    /// Each reading falls under the first rule that matches it. If none does, it falls under the
    /// first rule that matches it with the slash at its end added or removed. A reading that ends
    /// with a slash falls under both rules. The request gets the rule with the lowest limits
    /// ([`Rule::narrower`]) of all the rules found. `readings` is `None` if the path is too long to
    /// be interpreted. Then the request gets the rule with the lowest limits of all.
    pub(crate) fn of<'t>(
        &self,
        method: &'t str,
        target: &'t str,
        readings: Option<impl Iterator<Item = PathReading<'t>>>,
    ) -> Option<RuleId> {
        let Some(readings) = readings else {
            return self.0.iter().reduce(Rule::narrower).map(|rule| rule.id);
        };
        let mut line = RequestLine::new(method, target);
        let mut narrowest: Option<&Rule> = None;
        for reading in readings {
            line.read_as(reading);
            let found = self.first(&line);
            let toggled =
                reading.toggled().filter(|_| found.is_none() || reading.ends_with_slash());
            let other = toggled.and_then(|toggled| {
                line.read_as(toggled);
                self.first(&line)
            });
            narrowest = narrowest.into_iter().chain(found).chain(other).reduce(Rule::narrower);
        }
        narrowest.map(|rule| rule.id)
    }

    /// Returns the most specific rule that applies to this reading of a request; `None` if there is
    /// none.
    fn first(&self, line: &RequestLine<'_>) -> Option<&Rule> {
        self.0.iter().find(|rule| {
            rule.pattern.is_of(line) && !rule.exempt.iter().any(|route| route.is_of(line))
        })
    }
}

impl Rule {
    /// Returns the rule of the two with the lower maximum concurrency. If these are equal, returns
    /// the one with the lower rate of starts; if both are equal, `self`.
    fn narrower<'r>(&'r self, other: &'r Self) -> &'r Self {
        let rate = |rule: &Self| rule.rate.unwrap_or(f64::INFINITY);
        let rates = || rate(other).total_cmp(&rate(self));
        if other.max_concurrency.cmp(&self.max_concurrency).then_with(rates).is_lt() {
            other
        } else {
            self
        }
    }
}

#[cfg(test)]
mod tests {
    use bywash_engine::classify::readings;
    use bywash_engine::throttle;

    use super::*;

    fn rule(id: u32, pattern: &str, exempt: &[&str], max_concurrency: u32) -> InForce {
        InForce {
            id: RuleId(id),
            pattern: pattern.into(),
            exempt: exempt.iter().map(|route| (*route).into()).collect(),
            rule: throttle::Rule::max_concurrency(max_concurrency),
            bytes: None,
        }
    }

    fn of(rules: &Rules, method: &str, target: &str) -> Option<RuleId> {
        let path = target.split('?').next().unwrap();
        rules.of(method, target, readings(path, false))
    }

    #[test]
    fn what_a_rule_leaves_alone_comes_under_the_next_that_matches() {
        let in_force =
            [rule(1, "/*?q&...", &["/search?q", "/find?q=shoes"], 1), rule(2, "/**", &[], 1)];
        let rules = Rules::new(&in_force, &Rules::default(), Time::ZERO);
        for (target, id) in [
            ("/17?q=a", 1),
            ("/search?q=a", 2),
            ("/search?page=2&q=a", 1),
            ("/find?q=hats", 1),
            ("/find?q=shoes", 2),
            ("/a/b", 2),
        ] {
            assert_eq!(of(&rules, "GET", target), Some(RuleId(id)), "{target}");
        }
        assert_eq!(of(&rules, "POST", "/17?q=a"), None);
    }

    #[test]
    fn a_rule_holds_every_spelling_that_some_application_reads_as_its_own() {
        let rules = Rules::new(&[rule(1, "/search?q&...", &[], 1)], &Rules::default(), Time::ZERO);
        for path in ["/search", "//search", "/search/", "/search;x", "/search%2f", "/search;x//"] {
            for query in ["q=1", "%71=1", "q=1&_=7", "x&a%2A=1&q", &"x&".repeat(99)] {
                let target = format!("{path}?{query}");
                assert_eq!(of(&rules, "GET", &target), Some(RuleId(1)), "{target}");
                assert_eq!(of(&rules, "HEAD", &target), Some(RuleId(1)), "{target}");
            }
        }
        assert_eq!(of(&rules, "GET", &"/".repeat(99)), Some(RuleId(1)), "too long to be read");
        for target in ["/search", "/research?q", "/search/x?q", "/search%2fx?q", "/search?qq=1"] {
            assert_eq!(of(&rules, "GET", target), None, "{target}");
        }
    }

    #[test]
    fn of_the_rules_of_several_readings_the_narrowest_holds() {
        for (here, there) in [(1, 5), (5, 1)] {
            let in_force = [rule(1, "/a", &[], here), rule(2, "/a/b", &[], there)];
            let rules = Rules::new(&in_force, &Rules::default(), Time::ZERO);
            let narrowest = if here < there { 1 } else { 2 };
            assert_eq!(of(&rules, "GET", "/a;%2Fb"), Some(RuleId(narrowest)));
        }
    }
}
