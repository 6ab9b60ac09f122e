//! `/v1/kinds`, `/v1/use` and `/v1/elephants/NUMBER/evidence`: which requests there are, what they use, and how that is
//! known.

use bywash_api::{Evidence, Kind, KindUse, Kinds, Use};
use bywash_control::{Elephant, Entry, Part, Spent, Watch};
use bywash_units::Time;

use super::answer::{Answered, Refused, document};
use super::elephants::number_of;
use crate::access_log::wall_clock_ms;
use crate::shared::Shared;

/// Every kind that is told apart.
pub(super) fn kinds(shared: &Shared) -> Kinds {
    let numbers: Vec<(u32, String)> = {
        let desk = shared.elephants.desk();
        desk.book().entries().iter().map(|entry| (entry.number, entry.pattern.clone())).collect()
    };
    let (kinds, others) = shared.elephants.watched().kinds();
    let kind = |part: Part| Kind {
        elephant: numbers.iter().find(|(_, pattern)| *pattern == part.pattern).map(|(n, _)| *n),
        pattern: part.pattern,
        requests_per_s: part.rate,
        lasts_s: part.lasts,
        slots: part.slots,
        bytes_per_s: part.bytes,
        by_one: part.by_one,
        transacts: part.transacts,
    };
    Kinds { kinds: kinds.into_iter().map(kind).collect(), others: kind(others) }
}

/// What was used of a resource, and by which of its elephants.
pub(super) fn used(shared: &Shared, resource: Option<&str>) -> Answered {
    let entries: Vec<Entry> = shared.elephants.desk().book().entries().to_vec();
    let watch = shared.elephants.watched();
    let named = |name: &str| watch.resources().any(|(watched, ..)| watched.name == name);
    let first = || watch.resources().next().map(|(watched, ..)| watched.name.clone());
    let name = match resource {
        Some(name) if named(name) => name.to_owned(),
        Some(_) => return Err(Refused::not_found("no resource of the file has this name")),
        None => first().ok_or_else(|| {
            Refused::not_found("no resource is looked at: name one in the file, [resource.NAME]")
        })?,
    };
    let of = of_resource(&entries, &name);
    let spent = spent(&watch, &name, &of)?;
    drop(watch);
    let mut kinds: Vec<KindUse> = of
        .iter()
        .enumerate()
        .map(|(at, (entry, found))| KindUse {
            number: entry.number,
            pattern: entry.pattern.clone(),
            used: spent
                .windows
                .iter()
                .map(|window| spent.share(found.cost, window.requests[at]))
                .collect(),
        })
        .collect();
    let sum = |kind: &KindUse| kind.used.iter().sum::<f64>();
    kinds.sort_by(|a, b| sum(b).total_cmp(&sum(a)));
    let residual = spent.windows.iter().enumerate().map(|(at, window)| {
        spent.of_capacity(window.used) - kinds.iter().map(|kind| kind.used[at]).sum::<f64>()
    });
    Ok(document(&Use {
        capacity: spent.capacity,
        step_s: spent.step,
        at_ms: moments(shared, &spent),
        used: spent.windows.iter().map(|window| spent.of_capacity(window.used)).collect(),
        residual: residual.collect(),
        kinds,
        resource: name,
    }))
}

/// The windows that an elephant's cost was read from.
pub(super) fn evidence(shared: &Shared, number: &str) -> Answered {
    let number = number_of(number)?;
    let (entry, entries) = {
        let desk = shared.elephants.desk();
        let entry = desk.book().entry(number).map_err(Refused::not_found)?.clone();
        (entry, desk.book().entries().to_vec())
    };
    let nothing =
        || Refused::not_found("it stands in the file, and was not found: there is no evidence");
    let found = entry.found.clone().ok_or_else(nothing)?;
    let of = of_resource(&entries, &found.resource);
    let watch = shared.elephants.watched();
    let spent = spent(&watch, &found.resource, &of)?;
    drop(watch);
    let own = of.iter().position(|(other, _)| other.number == number);
    let own = own.ok_or_else(nothing)?;
    let others = |requests: &[f64]| -> f64 {
        let others = of.iter().zip(requests).enumerate().filter(|(at, _)| *at != own);
        others.map(|(_, ((_, found), requests))| spent.share(found.cost, *requests)).sum()
    };
    let windows = &spent.windows;
    Ok(document(&Evidence {
        pattern: entry.pattern,
        step_s: spent.step,
        at_ms: moments(shared, &spent),
        requests_per_s: windows.iter().map(|window| window.requests[own] / spent.step).collect(),
        used: windows.iter().map(|window| spent.of_capacity(window.used)).collect(),
        without_others: windows
            .iter()
            .map(|window| spent.of_capacity(window.used) - others(&window.requests))
            .collect(),
        slope: found.cost / found.capacity,
        resource: found.resource,
    }))
}

fn of_resource<'e>(entries: &'e [Entry], resource: &str) -> Vec<(&'e Entry, &'e Elephant)> {
    let found = entries.iter().filter_map(|entry| Some((entry, entry.found.as_ref()?)));
    found.filter(|(_, found)| found.resource == resource).collect()
}

fn spent(watch: &Watch, resource: &str, of: &[(&Entry, &Elephant)]) -> Result<Spent, Refused> {
    let patterns: Vec<&str> = of.iter().map(|(entry, _)| entry.pattern.as_str()).collect();
    watch.spent(resource, &patterns).ok_or_else(|| {
        Refused::not_found("that is counted and not read: there are no windows of it")
    })
}

/// When each window was over, by the wall clock.
fn moments(shared: &Shared, spent: &Spent) -> Vec<u64> {
    let (now, shown): (Time, u64) = (shared.driver.now(), wall_clock_ms());
    let at = |until: Time| shown.saturating_sub(now.since(until).as_millis());
    spent.windows.iter().map(|window| at(window.until)).collect()
}
