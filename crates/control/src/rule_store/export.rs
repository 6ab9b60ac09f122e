//! Exports rules in force in the syntax of the configuration file.

use std::fmt::Write;

use bywash_terminal::text::toml_string;

use super::RuleStore;
use crate::entry::{Entry, Origin, Rule, State};

impl RuleStore {
    /// Returns the rules in force that are not in the configuration file, in the syntax of that
    /// file.
    pub fn exported(&self) -> String {
        let mut text = String::new();
        for entry in &self.entries {
            if let State::Ruled(rule) = &entry.state
                && rule.origin != Origin::File
            {
                write(&mut text, entry, rule);
            }
        }
        text
    }
}

fn write(to: &mut String, entry: &Entry, rule: &Rule) {
    let until =
        rule.until.map_or_else(|| "without an end".to_owned(), |until| format!("until {until}"));
    let mut line = |text: String| {
        to.push_str(&text);
        to.push('\n');
    };
    line(format!("# {}, since {}, {until}", toml_string(&rule.by), rule.since));
    line(format!("[throttle.elephant-{}]", entry.number));
    line(format!("match = {}", toml_string(&entry.pattern)));
    line(format!("why = {}", toml_string(&rule.why)));
    // The exported rule has its own mode, so that it is enforced even if the file's mode is
    // `observe`.
    line("mode = \"enforce\"".to_owned());
    if !rule.exempt.is_empty() {
        let exempt: Vec<String> = rule.exempt.iter().map(|name| toml_string(name)).collect();
        line(format!("# in the file, the rule also applies to: {}", exempt.join(", ")));
    }
    let limits = &rule.limits;
    line(format!("max_concurrency = {}", limits.max_concurrency));
    if let Some(rate) = limits.rate {
        line(format!("rate = {rate:?}"));
    }
    line(format!("queue = {}", limits.queue));
    line(format!("wait = \"{}\"", limits.wait));
    if let Some(bytes) = limits.bytes {
        line(format!("bytes = {bytes}"));
    }
    let _ = writeln!(to);
}
