//! The rules that hold, as requests are held against them: the most specific first.

use bywash_control::InForce;
use bywash_discover::template::Pattern;
use bywash_engine::throttle::RuleId;

/// See the module.
#[derive(Default)]
pub(crate) struct Rules(Vec<(Pattern, RuleId)>);

impl Rules {
    /// Of a book. A pattern that is none any more, from a book that another version has written, holds nobody back.
    pub(crate) fn new(in_force: &[InForce]) -> Self {
        let rule = |rule: &InForce| Some((rule.pattern.parse::<Pattern>().ok()?, rule.id));
        let mut rules: Vec<_> = in_force.iter().filter_map(rule).collect();
        rules.sort_unstable_by(|a, b| b.0.cmp(&a.0));
        Self(rules)
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The rule for a request, if there is one.
    pub(crate) fn of(&self, method: &str, target: &str) -> Option<RuleId> {
        let found = self.0.iter().find(|(pattern, _)| pattern.matches(method, target));
        found.map(|(_, id)| *id)
    }
}
