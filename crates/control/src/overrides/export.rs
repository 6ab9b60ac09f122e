//! Exports overrides in the syntax of the configuration file.

use std::fmt::Write;

use bywash_terminal::text::toml_string;

use super::{Override, Target};

/// Returns a TOML table for each class with an override. A bypass does not belong in the
/// configuration file and is left out.
pub(super) fn toml(list: &[Override]) -> String {
    let mut text = String::new();
    for one in list {
        let Target::Class { class, mode, enforce_percent } = &one.target else { continue };
        let Override { by, why, since, until, .. } = one;
        let (by, why) = (toml_string(by), toml_string(why));
        // Class names need no quoting: they consist of letters, digits, `-` and `_`.
        let _ = write!(
            text,
            "# {by}, since {since}, until {until}: {why}\n[class.{class}]\nmode = \"{}\"\n",
            mode.name()
        );
        if *enforce_percent < 100 {
            let _ = writeln!(text, "enforce_percent = {enforce_percent}");
        }
        text.push('\n');
    }
    text
}
