//! `[limit]`, and `upstream.limit`, which is short for the number that it starts with.

use bywash_engine::catalog::{LIMITS, LimitSettings, Limits};

use super::policy::{self, Chosen};
use crate::code;
use crate::document::Document;
use crate::keys;
use crate::read::Values;
use crate::report::{Finding, Report};

pub(super) fn settings(
    document: &Document<'_>,
    upstream: &Values,
    report: &mut Report,
) -> LimitSettings {
    let chosen = policy::chosen(document, &keys::LIMIT, &LIMITS, report);
    check_bounds(&chosen, report);
    let Some((short, at)) = upstream.given(&keys::SLOTS) else {
        return chosen.settings;
    };
    let (slots, first) = (short.whole() as u32, chosen.settings.first());
    let key = chosen.key(first).expect("every limit has a parameter that it starts with");
    if let Some((_, there)) = chosen.values.given(key) {
        if chosen.settings.start() != slots {
            let message = format!(
                "`upstream.limit` is {slots} and `limit.{first}` is {}",
                chosen.settings.start()
            );
            let help = "both say how many slots there are to start with: keep one".to_string();
            let finding = Finding::new(&code::SLOTS, at, message).help(help);
            report.add(finding.elsewhere(there, "the other"));
        }
        return chosen.settings;
    }
    chosen.settings.starting_with(slots)
}

fn check_bounds(chosen: &Chosen<Limits>, report: &mut Report) {
    let (Some(least), Some(most)) = (chosen.key("min"), chosen.key("max")) else {
        return;
    };
    let (min, max) = (chosen.values.of(least).whole(), chosen.values.of(most).whole());
    if min > max {
        let message = format!("`limit.min` {min} lies above `limit.max` {max}");
        let at = chosen.values.given(least).map_or_else(|| chosen.values.at(most), |(_, at)| at);
        let help = format!("set `min` to {max} or less");
        report.add(Finding::new(&code::BOUNDS, at, message).help(help));
    }
}
