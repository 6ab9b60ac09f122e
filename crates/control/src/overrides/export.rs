//! Overrides as they would stand in the configuration.

use std::fmt::Write;

use super::{Override, Target};
use crate::text::quoted;

/// A table for each class; that nothing is decided does not belong in a file.
pub(super) fn toml(list: &[Override]) -> String {
    let mut text = String::new();
    for one in list {
        let Target::Class { class, mode, percent } = &one.target else { continue };
        let Override { by, why, since, until, .. } = one;
        let (by, why) = (quoted(by), quoted(why));
        // Names of classes are letters, digits, `-` and `_`.
        let _ = write!(
            text,
            "# {by}, since {since}, until {until}: {why}\n[class.{class}]\nmode = \"{}\"\n",
            mode.name()
        );
        if *percent < 100 {
            let _ = writeln!(text, "percent = {percent}");
        }
        text.push('\n');
    }
    text
}
