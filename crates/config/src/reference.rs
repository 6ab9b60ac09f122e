//! The reference of keys, policies and codes of problems in Markdown, for the documentation.

use std::fmt::Write as _;

use crate::code::{self, Code};
use crate::key::{Key, Presence, Section};
use crate::keys;

const ABOUT: &str = "\
This page is for operators who write the configuration file. After it, you know which values each key takes, its
default, and what it does.";

/// Returns the reference as Markdown. It has every key with its accepted values, its default and
/// its description, then the parameters of the policies and the codes of problems.
pub fn reference() -> String {
    let mut out = format!("# The configuration file\n\n{ABOUT}\n");
    for section in keys::SECTIONS {
        write(&mut out, section);
    }
    out.push_str("\n## Codes\n\n`E` prevents the start, `W` does not.\n\n| code | problem |\n");
    out.push_str("|---|---|\n");
    for Code { name, about } in code::ALL {
        let _ = writeln!(out, "| {name} | {about} |");
    }
    out.push_str(
        "\nCodes of former versions, which are never used again:\n\n| code | problem \
         |\n|---|---|\n",
    );
    for (name, about) in code::RETIRED {
        let _ = writeln!(out, "| {name} | {about} |");
    }
    out
}

fn write(out: &mut String, section: &Section) {
    let _ = match section.name {
        "" => writeln!(out, "\n## Top level\n\n{}\n", section.about),
        _ => writeln!(out, "\n## {}\n\n{}\n", section.title(), section.about),
    };
    table(out, section.keys);
    for policy in section.policies() {
        let (name, about, source) = (policy.name, policy.about, policy.source);
        let _ = writeln!(out, "\n### `{name}`\n\n{about} Source: {source}.\n");
        table(out, &keys::parameters(&policy));
    }
}

fn table(out: &mut String, keys: &[Key]) {
    out.push_str("| key | takes | default | description |\n|---|---|---|---|\n");
    for key in keys {
        row(out, key);
    }
}

fn row(out: &mut String, key: &Key) {
    let default = match key.presence {
        Presence::Required => "required".to_string(),
        Presence::Optional => "none".to_string(),
        Presence::Default => format!("`{}`", key.kind.literal(&key.text)),
    };
    let (name, takes, why) = (key.name, key.kind.takes(), key.why);
    let _ = writeln!(out, "| `{name}` | {} | {default} | {} |", cell(&takes), cell(why));
}

/// Escapes a text for a cell of a Markdown table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('*', "\\*")
}
