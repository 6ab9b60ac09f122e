//! Answers `/v1/routes`, `/v1/use`, `/v1/elephants/NUMBER/evidence` and `.../answers`: the routes,
//! their use of resources with the evidence for it, and the outcomes of their requests.

use bywash_api::{Answers, Evidence, Route, RouteUse, Routes, Use};
use bywash_control::{ANSWERS_WINDOW, Elephant, Entry, Part, Spent, Window};
use bywash_terminal::text::excerpt;
use bywash_units::Time;

use super::answer::{Answered, Refused, document};
use super::elephants::number_of;
use crate::decisions::watch::capacities;
use crate::process::wall_clock::unix_ms;
use crate::shared::Shared;

/// Returns every route that the watch distinguishes, and all others together.
pub(super) fn routes(shared: &Shared) -> Routes {
    let numbers: Vec<(u32, String)> = {
        let findings = shared.elephants.findings();
        findings
            .store
            .get()
            .entries()
            .iter()
            .map(|entry| (entry.number, entry.pattern.clone()))
            .collect()
    };
    let (routes, others) = shared.elephants.watched().routes();
    let route = |part: Part| Route {
        elephant: numbers.iter().find(|(_, pattern)| *pattern == part.pattern).map(|(n, _)| *n),
        pattern: part.pattern,
        requests_per_s: part.rate,
        lasts_s: part.lasts,
        slots: part.slots,
        bytes_per_s: part.bytes,
        by_one: part.by_one,
        one_client: part.one_client,
        transacts: part.transacts,
    };
    Routes { routes: routes.into_iter().map(route).collect(), others: route(others) }
}

/// Returns the use of a resource over time, in total and by each of its elephants. `resource` is
/// its name; `None` means the first resource that is measured. Returns an error if there is none.
pub(super) fn used(shared: &Shared, resource: Option<&str>) -> Answered {
    let name = match resource {
        Some(name) => name.to_owned(),
        None => first(shared)?,
    };
    let entries: Vec<Entry> = shared.elephants.findings().store.get().entries().to_vec();
    let of = of_resource(&entries, &name);
    let Spent { capacity, step, windows } = spent(shared, &name, &of)?;
    let route = |(at, (entry, _)): (usize, &(&Entry, &Elephant))| RouteUse {
        number: entry.number,
        pattern: entry.pattern.clone(),
        used: windows.iter().map(|window| window.routes[at].used).collect(),
    };
    let mut routes: Vec<RouteUse> = of.iter().enumerate().map(route).collect();
    let sum = |route: &RouteUse| route.used.iter().sum::<f64>();
    routes.sort_by(|a, b| sum(b).total_cmp(&sum(a)));
    let left =
        |window: &Window| window.used - window.routes.iter().map(|route| route.used).sum::<f64>();
    Ok(document(&Use {
        resource: name,
        capacity,
        step_s: step,
        at_ms: moments(shared, windows.iter().map(|window| window.until)),
        used: windows.iter().map(|window| window.used).collect(),
        routes,
        residual: windows.iter().map(left).collect(),
    }))
}

fn first(shared: &Shared) -> Result<String, Refused> {
    let resources = shared.elephants.findings().watch_report.resource_reports();
    let first = resources.into_iter().next().map(|resource| resource.name);
    first.ok_or_else(|| {
        Refused::not_found(
            "the gateway measures no resource: add a [resource.NAME] table to the configuration \
             file",
        )
    })
}

/// Returns the windows from which an elephant's cost was estimated. Returns an error if there is no
/// such elephant, or no evidence for it.
pub(super) fn evidence(shared: &Shared, number: &str) -> Answered {
    let number = number_of(number)?;
    let entries = shared.elephants.findings().store.get().entries().to_vec();
    let entry = entries.iter().find(|entry| entry.number == number);
    let entry = entry.ok_or_else(|| {
        Refused::not_found("no elephant has this number: /v1/elephants lists them all")
    })?;
    let nothing = || {
        Refused::not_found(
            "there is no evidence: the rule is in the configuration file, and the gateway has not \
             found these requests to be elephants",
        )
    };
    let found = entry.found.as_ref().ok_or_else(nothing)?;
    let of = of_resource(&entries, &found.resource);
    let own = of.iter().position(|(other, _)| other.number == number).ok_or_else(nothing)?;
    let Spent { step, windows, .. } = spent(shared, &found.resource, &of)?;
    let others = |window: &Window| -> f64 {
        let others = window.routes.iter().enumerate().filter(|(at, _)| *at != own);
        others.map(|(_, route)| route.used).sum()
    };
    Ok(document(&Evidence {
        pattern: entry.pattern.clone(),
        resource: found.resource.clone(),
        step_s: step,
        at_ms: moments(shared, windows.iter().map(|window| window.until)),
        requests_per_s: windows.iter().map(|window| window.routes[own].requests / step).collect(),
        used: windows.iter().map(|window| window.used).collect(),
        without_others: windows.iter().map(|window| window.used - others(window)).collect(),
        slope: found.cost / found.capacity,
    }))
}

fn of_resource<'e>(entries: &'e [Entry], resource: &str) -> Vec<(&'e Entry, &'e Elephant)> {
    let found = entries.iter().filter_map(|entry| Some((entry, entry.found.as_ref()?)));
    found.filter(|(_, found)| found.resource == resource).collect()
}

fn spent(shared: &Shared, resource: &str, of: &[(&Entry, &Elephant)]) -> Result<Spent, Refused> {
    let routes: Vec<(&str, f64)> =
        of.iter().map(|(entry, found)| (entry.pattern.as_str(), found.cost)).collect();
    let (slots, bytes) = capacities(shared);
    let spent = shared.elephants.watched().spent(resource, &routes, slots, bytes);
    spent.ok_or_else(|| {
        let name = excerpt(resource, 40);
        Refused::not_found(format!("no measured resource has the name `{name}`"))
    })
}

/// Returns the outcomes over time of an elephant's requests, and of all other requests. Returns an
/// error if there is no such elephant.
pub(super) fn answers(shared: &Shared, number: &str) -> Answered {
    let number = number_of(number)?;
    let entry = shared.elephants.findings().store.get().entry(number).cloned();
    let entry = entry.map_err(Refused::not_found)?;
    let answers = shared.elephants.watched().answers(&entry, shared.driver.now());
    Ok(document(&Answers {
        pattern: entry.pattern,
        step_s: ANSWERS_WINDOW.as_secs_f64(),
        at_ms: moments(shared, answers.iter().map(|window| window.until)),
        elephants: answers.iter().map(|window| window.elephants).collect(),
        ants: answers.iter().map(|window| window.ants).collect(),
    }))
}

/// Returns the end of each window by the wall clock, in milliseconds since 1970.
fn moments(shared: &Shared, until: impl Iterator<Item = Time>) -> Vec<u64> {
    let (now, shown): (Time, u64) = (shared.driver.now(), unix_ms());
    until.map(|until| shown.saturating_sub(now.since(until).as_millis())).collect()
}
