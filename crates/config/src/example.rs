//! The commented configuration file that `bywash example` prints.
//!
//! Every key appears with its default, so that a reader sees the effective value. Keys without a
//! default are commented out, and so is the table of an agent, which would need a file.

use std::fmt::Write as _;

use bywash_engine::catalog::Entry;

use crate::key::{Key, Presence, Section};
use crate::keys;

/// The width at which comments are wrapped, in columns.
const WIDTH: usize = 92;

/// Returns a complete configuration file, which is read without a problem.
pub fn example() -> String {
    let mut out = String::new();
    for section in keys::SECTIONS {
        write(&mut out, section);
    }
    out
}

fn write(out: &mut String, section: &Section) {
    if section.name.is_empty() {
        comment(
            out,
            "The configuration of bywash. Every key has its default here. Unknown keys are errors.",
        );
    } else {
        out.push('\n');
        comment(out, section.about);
        let off = if section.name == keys::AGENT.name { "# " } else { "" };
        let _ = writeln!(out, "{off}{}", section.heading());
    }
    for key in section.keys {
        entry(out, key, section.name == keys::AGENT.name);
    }
    for (index, policy) in section.policies().iter().enumerate() {
        parameters(out, policy, index == 0);
    }
}

fn entry(out: &mut String, key: &Key, is_off: bool) {
    comment(out, &format!("{} Takes {}.", key.why, key.kind.takes()));
    let off = if is_off || key.presence == Presence::Optional { "# " } else { "" };
    let _ = writeln!(out, "{off}{}", key.line());
}

/// Appends the parameters of a policy. `holds` is true for the default policy, whose parameters are
/// active lines. The lines of other policies are commented out.
fn parameters(out: &mut String, policy: &Entry, holds: bool) {
    out.push('\n');
    comment(out, &format!("{} ({}): {}", policy.name, policy.source, policy.about));
    for key in keys::parameters(policy) {
        if holds {
            entry(out, &key, false);
        } else {
            let _ = writeln!(out, "# {}", key.line());
        }
    }
}

/// Appends a text as comment lines, wrapped between words.
fn comment(out: &mut String, text: &str) {
    let mut line = String::from("#");
    for word in text.split_whitespace() {
        if line.len() + 1 + word.len() > WIDTH {
            let _ = writeln!(out, "{line}");
            line.truncate(1);
        }
        line.push(' ');
        line.push_str(word);
    }
    let _ = writeln!(out, "{line}");
}
