//! What an elephant's rule leaves alone.
//!
//! A pattern matches more than its elephant: `/*` is the name of what has no name of its own, and matches `/cart`. The
//! elephant's cost is of its own requests only, and so is an operator's word about it; others that have a kind of their own
//! are left alone, as far as they are known now. In the file a pattern means what it says.

use super::Book;
use crate::entry::{Origin, State};
use crate::watch::{MOST_EXEMPT, Watch};

impl Book {
    /// Rules of elephants leave alone what this watch knows as kinds of their own. Whether that is another than before.
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
            if !watch.is_kind(pattern) {
                continue;
            }
            // After a restart most are not known yet.
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
