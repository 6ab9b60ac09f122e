//! Resolves `[concurrency]` and `upstream.limit`, which is a short form of the initial limit.

use std::ops::Range;

use bywash_engine::catalog::{LIMITS, LimitSettings, Limits};

use super::policy::{self, Chosen};
use crate::code;
use crate::document::Document;
use crate::key::Key;
use crate::keys;
use crate::read::Values;
use crate::report::{Finding, Report};

pub(super) fn settings(
    document: &Document<'_>,
    upstream: &Values,
    report: &mut Report,
) -> LimitSettings {
    let chosen = policy::chosen(document, &keys::CONCURRENCY, &LIMITS, report);
    let first = chosen.settings.first();
    let key = chosen.key(first).expect("every limit has a parameter that it starts with");
    let number = |of: &Values, key: &Key| of.given(key).map(|(value, at)| (value.whole(), at));
    let (named, short) = (number(&chosen.values, key), number(upstream, &keys::SLOTS));
    if let (Some((there, elsewhere)), Some((slots, at))) = (&named, &short)
        && there != slots
    {
        let message = format!("`upstream.limit` is {slots} and `concurrency.{first}` is {there}");
        let help = "both set the initial number of slots: keep one".to_string();
        let finding = Finding::new(&code::SLOTS, at.clone(), message).help(help);
        report.add(finding.elsewhere(elsewhere.clone(), "the other"));
    }
    let start = match (named, short) {
        (Some((slots, at)), _) => Some((format!("concurrency.{first}"), slots, at)),
        (None, Some((slots, at))) => Some(("upstream.limit".to_string(), slots, at)),
        (None, None) => None,
    };
    check_bounds(&chosen, start.as_ref(), report);
    match start {
        Some((_, slots, _)) => chosen.settings.starting_with(slots as u32),
        None => chosen.settings,
    }
}

/// The initial limit: the name of the key that sets it, its value, and its position in the file.
type Start = (String, u64, Range<usize>);

fn check_bounds(chosen: &Chosen<Limits>, start: Option<&Start>, report: &mut Report) {
    let (Some(least), Some(most)) = (chosen.key("min"), chosen.key("max")) else {
        return;
    };
    if chosen.values.refused(least) || chosen.values.refused(most) {
        return;
    }
    let (min, max) = (chosen.values.of(least).whole(), chosen.values.of(most).whole());
    if min > max {
        let message = format!("`concurrency.min` {min} is above `concurrency.max` {max}");
        let at = chosen.values.given(least).map_or_else(|| chosen.values.at(most), |(_, at)| at);
        let help = format!("set `min` to {max} or less");
        report.add(Finding::new(&code::BOUNDS, at, message).help(help));
        return;
    }
    let Some((name, slots, at)) = start else { return };
    let (bound, message, help) = if *slots > max {
        let message = format!("`{name}` {slots} is above `concurrency.max` {max}");
        (
            most,
            message,
            format!("write max = {slots} or more under [concurrency], or start with fewer slots"),
        )
    } else if *slots < min {
        let message = format!("`{name}` {slots} is below `concurrency.min` {min}");
        (least, message, format!("set `min` to {slots} or less, or start with more slots"))
    } else {
        return;
    };
    let finding = Finding::new(&code::START, at.clone(), message).help(help);
    report.add(match chosen.values.given(bound) {
        Some((_, there)) => finding.elsewhere(there, "the bound"),
        None => finding,
    });
}
