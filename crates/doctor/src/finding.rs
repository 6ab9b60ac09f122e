//! The result of a check: its verdict, its numbers with units, and the remedy.

use std::fmt::{self, Write};

use serde_json::{Map, Value, json};

/// The verdict of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Ok,
    /// The subject works, but should be corrected.
    Warning,
    /// The subject does not work, or not correctly.
    Problem,
    /// The subject was not checked, or the check had no result.
    Unknown,
}

impl Verdict {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Problem => "problem",
            Self::Unknown => "unknown",
        }
    }
}

/// The result of one check.
#[derive(Clone, Debug)]
pub(super) struct Finding {
    pub(super) check: &'static str,
    pub(super) verdict: Verdict,
    /// The result as text, in which every number has its unit.
    pub(super) found: String,
    /// The remedy as text; `None` if none is needed.
    pub(super) remedy: Option<String>,
    /// The numbers of the result, for JSON output. The name of each ends with its unit.
    numbers: Map<String, Value>,
}

impl Finding {
    pub(super) fn ok(check: &'static str, found: impl Into<String>) -> Self {
        Self { check, verdict: Verdict::Ok, found: found.into(), remedy: None, numbers: Map::new() }
    }

    pub(super) fn warning(
        check: &'static str,
        found: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        let remedy = Some(remedy.into());
        Self { verdict: Verdict::Warning, remedy, ..Self::ok(check, found) }
    }

    pub(super) fn problem(
        check: &'static str,
        found: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self { verdict: Verdict::Problem, ..Self::warning(check, found, remedy) }
    }

    /// Creates a finding for a check without a result. `remedy` says how to get one.
    pub(super) fn unknown(
        check: &'static str,
        found: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self { verdict: Verdict::Unknown, ..Self::warning(check, found, remedy) }
    }

    /// Adds a number of the result, for JSON output.
    pub(super) fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.numbers.insert(name.to_owned(), value.into());
        self
    }
}

/// The findings of all checks.
pub(super) struct Findings(pub(super) Vec<Finding>);

impl Findings {
    pub(super) fn count(&self, verdict: Verdict) -> usize {
        self.0.iter().filter(|finding| finding.verdict == verdict).count()
    }

    pub(super) fn to_json(&self) -> Value {
        let check = |finding: &Finding| {
            json!({
                "check": finding.check,
                "verdict": finding.verdict.name(),
                "found": finding.found,
                "remedy": finding.remedy,
                "numbers": finding.numbers,
            })
        };
        json!({
            "checks": self.0.iter().map(check).collect::<Vec<_>>(),
            "problems": self.count(Verdict::Problem),
            "warnings": self.count(Verdict::Warning),
        })
    }
}

/// The maximum width of a line in columns. A terminal is rarely narrower.
const WIDTH: usize = 100;
const VERDICT: usize = 9;
const CHECK: usize = 16;

impl fmt::Display for Findings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (indent, room) = (" ".repeat(VERDICT + CHECK), WIDTH - VERDICT - CHECK);
        for finding in &self.0 {
            let verdict = finding.verdict.name();
            write!(f, "{verdict:<VERDICT$}{:<CHECK$}", finding.check)?;
            let found = wrapped(&finding.found, room);
            writeln!(f, "{}", found.join(&format!("\n{indent}")))?;
            if let Some(remedy) = &finding.remedy {
                let remedy = wrapped(remedy, room - 2).join(&format!("\n{indent}  "));
                writeln!(f, "{indent}→ {remedy}")?;
            }
        }
        Ok(())
    }
}

/// Splits a text into lines of at most `width` characters. A longer word gets its own line.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("there is one from the beginning");
        if line.is_empty() {
            line.push_str(word);
        } else if line.chars().count() + 1 + word.chars().count() <= width {
            let _ = write!(line, " {word}");
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_ends_before_the_word_that_would_be_too_much() {
        assert_eq!(wrapped("ab cd efg hi", 5), ["ab cd", "efg", "hi"]);
        assert_eq!(wrapped("abcdefgh i", 5), ["abcdefgh", "i"]);
        assert_eq!(wrapped("", 5), [""]);
    }

    #[test]
    fn what_to_do_stands_under_what_was_found() {
        let long = "word ".repeat(40);
        let text = Findings(vec![Finding::problem("files", long.as_str(), "raise it")]).to_string();
        assert!(text.starts_with("problem  files           word"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        assert_eq!(text.lines().last(), Some("                         → raise it"));
    }

    #[test]
    fn programs_read_verdicts_and_numbers() {
        let warning = Finding::warning("clock", "slow", "mend it").with("drift_ms", 3);
        let json = Findings(vec![Finding::ok("files", "many"), warning]).to_json();
        assert_eq!((&json["problems"], &json["warnings"]), (&0.into(), &1.into()));
        assert_eq!(json["checks"][1]["numbers"]["drift_ms"], 3);
        assert_eq!(json["checks"][0]["remedy"], Value::Null);
    }
}
