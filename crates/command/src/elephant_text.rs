//! Formats elephants and the evidence about them as text.

use std::fmt::Write;

use bywash_api::{Elephant, Elephants, Lanes};
use bywash_control::{
    Elephant as Found, Entry, OneClient, Origin, Resource, ResponseStats, RuleLimits, State,
    Timestamp, Trial,
};
use bywash_terminal::text::escaped;
use bywash_terminal::{Align, Table};

/// Formats the answer of `/v1/elephants` as text: the state of the resources, and a table of
/// elephants.
pub fn listing(all: &Elephants) -> String {
    let mut headline = headline(all);
    if all.elephants.iter().any(|elephant| elephant.lanes.is_some()) {
        let _ = writeln!(headline, "Bytes are limited {}.", lanes(&all.lanes));
    }
    if all.elephants.is_empty() {
        return headline;
    }
    format!("{headline}\n{}", table(&all.elephants))
}

fn headline(all: &Elephants) -> String {
    let mut words = String::new();
    if all.resources.is_empty() {
        return "No resource has been read yet. The first reading comes about ten seconds after the \
                start; if none comes, name one in the file: [resource.NAME] read = \"host/cpu\".\n"
            .into();
    }
    let _ = writeln!(
        words,
        "Observed for {}; {}",
        minutes(all.seen_s),
        if all.seen_s < 900.0 {
            "findings before 15 minutes are provisional"
        } else {
            "costs are per request, with their 95 % interval"
        }
    );
    for resource in &all.resources {
        let state = match (resource.trouble.as_deref(), resource.used) {
            (Some(trouble), _) => escaped(trouble),
            (None, Some(used)) if used > 1.0 && resource.name == bywash_control::SLOTS => {
                let percent = 100.0 * used;
                format!(
                    "{percent:.0} % of the present limit: the limit was higher before, or requests \
                     that are only observed run beyond it"
                )
            }
            (None, Some(used)) => format!("{:.0} % used", 100.0 * used),
            (None, None) => "not read yet".into(),
        };
        let _ = writeln!(words, "  {}: {state}", escaped(&resource.name));
    }
    if !all.unread.is_empty() {
        let names: Vec<_> = all.unread.iter().map(|name| escaped(name)).collect();
        let _ = writeln!(
            words,
            "The comparison lacks the requests of these gateways: {}. So costs may be too high.",
            names.join(", ")
        );
    }
    if all.elephants.is_empty() {
        words.push_str(
            "No route stands out: none uses a twentieth of a measured resource, or a fifth of the \
             slots with requests that each run longer than others.\n",
        );
    }
    words
}

fn table(elephants: &[Elephant]) -> Table {
    let mut table = Table::new(&[
        ("", Align::Right),
        ("requests", Align::Left),
        ("resource", Align::Left),
        ("cost", Align::Right),
        ("per s", Align::Right),
        ("share", Align::Right),
        ("state", Align::Left),
    ]);
    for Elephant { entry, .. } in elephants {
        let found = entry.found.as_ref();
        let figure = |text: fn(&Found) -> String| found.map_or("—".to_owned(), text);
        table.push(vec![
            entry.number.to_string(),
            escaped(&entry.pattern),
            found.map_or("-".to_owned(), |found| escaped(&found.resource)),
            figure(|found| {
                let unit = Unit::of(found.consists_of);
                format!("{} {}", unit.amount(found.cost), unit.name)
            }),
            figure(|found| format!("{:.2}", found.rate)),
            figure(|found| format!("{:.0} %", 100.0 * found.share)),
            state(entry),
        ]);
    }
    table
}

fn state(entry: &Entry) -> String {
    match &entry.state {
        State::Ruled(rule) => {
            let until =
                rule.until.map_or("without an end".to_owned(), |until| format!("until {until}"));
            format!("{} {until}", rule.origin.name())
        }
        State::Rejected { until, .. } => format!("rejected until {until}"),
        State::Proposed => {
            let mut words = String::from("proposed");
            if entry.found.as_ref().is_some_and(|found| found.provisional) {
                words.push_str(", provisional");
            }
            if let Some(until) = entry.left_alone.filter(|until| Timestamp::now() < *until) {
                let _ = write!(words, "; \"auto\" leaves it alone until {until}");
            }
            words
        }
    }
}

/// Formats all that is known about one elephant as text.
pub fn details(elephant: &Elephant) -> String {
    let entry = &elephant.entry;
    let mut words = format!("{} {}\n", entry.number, escaped(&entry.pattern));
    if let Some(found) = &entry.found {
        words.push_str(&evidence(found));
    }
    if let Some(remark) = &elephant.remark {
        let _ = writeln!(words, "remark    {}", escaped(remark));
    }
    let _ = writeln!(words, "state     {}", state(entry));
    if let State::Ruled(rule) = &entry.state {
        let _ = writeln!(words, "by        {}: {}", escaped(&rule.by), escaped(&rule.why));
        let _ = writeln!(words, "rule      {}", limits(&rule.limits));
        if let Some(means) = &elephant.lanes {
            let _ = writeln!(words, "bytes     {}", lanes(means));
        }
        let (waiting, running) = (elephant.waiting.unwrap_or(0), elephant.running.unwrap_or(0));
        let _ = writeln!(words, "now       {waiting} wait, {running} run");
    } else if let Some(proposed) = &elephant.proposed {
        let _ = writeln!(words, "proposed  {}", limits(proposed));
    }
    words.push_str(&others(elephant));
    if let Some(evaded) = &elephant.evaded {
        let _ = writeln!(words, "evaded    {}", escaped(evaded));
    }
    if let Some(effect) = &elephant.effect {
        let held_back = effect.held_back;
        let _ = writeln!(
            words,
            "effect    they use {:.0} % of the resource, and under this rule up to {:.0} %{}",
            100.0 * effect.elephants_now,
            100.0 * effect.elephants_most,
            if held_back > 0.0 {
                format!("; at least {held_back:.2} a second would wait longer or be refused")
            } else {
                String::new()
            },
        );
    } else if let Some(why) = &elephant.unpredicted {
        let _ = writeln!(words, "effect    {}", escaped(why));
    }
    if let Some(tried) = &entry.trial {
        words.push_str(&trial(tried));
    }
    words
}

/// Returns a text that names the other routes that the elephant's pattern matches, and says whether
/// they are throttled with it.
fn others(elephant: &Elephant) -> String {
    let within = elephant.within.as_deref().unwrap_or_default();
    let (routes, is_of_file) = match &elephant.entry.state {
        State::Ruled(rule) if rule.origin == Origin::File => (within, true),
        State::Ruled(rule) => (rule.exempt.as_slice(), false),
        State::Proposed | State::Rejected { .. } => (within, false),
    };
    if routes.is_empty() {
        return String::new();
    }
    let names = list(routes);
    if is_of_file {
        format!("with      {names}: separate routes, but the file's pattern matches them\n")
    } else {
        format!("but not   {names}: separate routes\n")
    }
}

fn list(names: &[String]) -> String {
    names.iter().map(|name| escaped(name)).collect::<Vec<_>>().join(", ")
}

/// The unit in which the cost of a request is shown.
struct Unit {
    name: &'static str,
    /// The number of these units in one unit of the resource.
    times: f64,
}

impl Unit {
    const fn of(resource: Resource) -> Self {
        match resource {
            Resource::Processors | Resource::Slots => Self { name: "ms", times: 1e3 },
            Resource::Bytes => Self { name: "kB", times: 1e-3 },
            // These resources (seconds of a disk, bytes received, waiting tasks) are shown in the
            // unit of their readings.
            Resource::Other => Self { name: "units", times: 1.0 },
        }
    }

    fn amount(&self, cost: f64) -> String {
        let cost = cost * self.times;
        let is_small = self.name == "units" && cost < 10.0;
        if is_small { format!("{cost:.4}") } else { format!("{cost:.1}") }
    }
}

fn evidence(found: &Found) -> String {
    let unit = Unit::of(found.consists_of);
    let [low, high] = found.interval;
    let mut words = format!(
        "cost      {} {} of {} ({} to {}){}\n",
        unit.amount(found.cost),
        unit.name,
        escaped(&found.resource),
        unit.amount(low),
        unit.amount(high),
        if found.provisional { ", provisional: probably too low" } else { "" },
    );
    let _ = writeln!(
        words,
        "share     {:.0} % of the used amount, which is {:.0} % of the capacity; {:.2} requests a \
         second",
        100.0 * found.share,
        100.0 * found.used,
        found.rate,
    );
    let _ = writeln!(
        words,
        "lasts     {:.1} ms{}",
        1e3 * found.lasts,
        if found.is_plausible() {
            ""
        } else {
            ", too short for that cost: other work at the same time, or work after the answer"
        },
    );
    let at_most = format!("{:.0}", 100.0 * found.by_one);
    let _ = match &found.one_client {
        Some(OneClient { address, at_least }) => {
            let at_least = format!("{:.0}", 100.0 * at_least);
            let to =
                if at_most == at_least { at_least } else { format!("{at_least} to {at_most}") };
            let address = escaped(address);
            writeln!(words, "clients   {address} causes {to} % of their service time")
        }
        None => {
            writeln!(words, "clients   none causes more than {at_most} % of their service time")
        }
    };
    if !found.twins.is_empty() {
        let twins = list(&found.twins);
        let _ = writeln!(words, "or        {twins}: these always come together");
    }
    if let Some([r, p]) = found.correlation {
        let _ = writeln!(words, "Pearson   r = {r:.3}, p = {p:.1e}");
    }
    words
}

fn limits(limits: &RuleLimits) -> String {
    let mut words = format!("{} at once", limits.max_concurrency);
    if let Some(rate) = limits.rate {
        let _ = write!(words, ", {rate} a second");
    }
    let _ = write!(words, ", {} may wait, up to {}", limits.queue, limits.wait);
    if let Some(bytes) = limits.bytes {
        let _ = write!(words, ", {bytes} bytes a second");
    }
    words
}

/// Returns a text that says whether a lane or a bucket limits the bytes of responses, and why no
/// lane is used.
fn lanes(lanes: &Lanes) -> String {
    if lanes.in_force {
        "by a lane of the network device, at its rates; on HTTP/2 and other devices by a bucket"
            .into()
    } else {
        format!("by a bucket: {}", escaped(lanes.why.as_deref().unwrap_or("—")))
    }
}

fn trial(trial: &Trial) -> String {
    let mut words = format!("trial     {}\n", limits(&trial.limits));
    for (when, gauge) in [("before", Some(&trial.before)), ("during", trial.during.as_ref())] {
        let Some(gauge) = gauge else {
            let _ = writeln!(words, "  {when}  not over yet");
            continue;
        };
        if gauge.seconds <= 0.0 {
            let _ = writeln!(words, "  {when}  not measured");
            continue;
        }
        let group = |name: &str, group: ResponseStats| {
            let times = match (group.p50, group.p99) {
                (Some(p50), Some(p99)) => format!(" in {:.0} ms (p99 {:.0})", 1e3 * p50, 1e3 * p99),
                _ => String::new(),
            };
            format!("{name} {:.1}/s{times}, {:.1}/s not answered", group.answered, group.refused)
        };
        let used = gauge.used;
        let used = used.map_or(String::new(), |used| format!("{:.0} % used; ", 100.0 * used));
        let (ants, elephants) = (group("ants", gauge.ants), group("elephants", gauge.elephants));
        let _ = writeln!(words, "  {when}  {used}{ants}; {elephants}");
    }
    words
}

fn minutes(seconds: f64) -> String {
    if seconds < 120.0 { format!("{seconds:.0} s") } else { format!("{:.0} min", seconds / 60.0) }
}

#[cfg(test)]
mod tests {
    use bywash_api::WatchedResource;
    use serde_json::json;

    use super::*;

    #[test]
    fn slots_beyond_the_limit_are_explained() {
        let head = |used: f64| {
            let slots = WatchedResource {
                name: "slots".into(),
                used: Some(used),
                ..WatchedResource::default()
            };
            headline(&Elephants { resources: vec![slots], ..Elephants::default() })
        };
        assert!(head(0.87).contains("slots: 87 % used\n"), "{}", head(0.87));
        assert!(head(2.87).contains("slots: 287 % of the present limit: "), "{}", head(2.87));
    }

    #[test]
    fn a_rule_of_the_file_is_listed_without_evidence() {
        let at = "2026-01-02T03:04:05Z";
        let elephant = json!({
            "number": 4, "pattern": "/all", "found": null, "since": at, "seen": at, "trial": null,
            "state": { "ruled": {
                "limits": { "max_concurrency": 1, "queue": 0, "wait": "5s" }, "origin": "file",
                "by": "the file", "why": "so", "since": at, "until": null
            } }
        });
        let text = listing(&Elephants {
            resources: vec![WatchedResource::default()],
            elephants: vec![serde_json::from_value(elephant).unwrap()],
            ..Elephants::default()
        });
        let row: Vec<&str> = text.lines().next_back().unwrap().split_whitespace().collect();
        assert_eq!(
            row,
            ["4", "/all", "-", "—", "—", "—", "file", "without", "an", "end"],
            "{text}"
        );
    }

    #[test]
    fn all_that_is_known_about_an_elephant_is_told() {
        let at = "2026-01-02T03:04:05Z";
        let group =
            |p50: Option<f64>| json!({ "answered": 20.0, "refused": 1.5, "p50": p50, "p99": 1.2 });
        let elephant = json!({
            "number": 3, "pattern": "/slow", "since": at, "seen": at,
            "found": {
                "pattern": "/slow", "twins": ["/x"], "resource": "cpu", "consists_of": "processors",
                "capacity": 2.0, "used": 0.9, "cost": 0.25, "interval": [0.2, 0.3], "share": 0.7,
                "rate": 5.04, "lasts": 0.1, "provisional": false, "by_one": 0.2,
                "one_client": { "address": "192.0.2.7", "at_least": 0.12 }, "transacts": false,
                "correlation": [0.57, 1e-9]
            },
            "state": { "ruled": {
                "limits": {
                    "max_concurrency": 2, "rate": 0.5, "queue": 9, "wait": "1.001s", "bytes": 8000
                },
                "exempt": ["/slow/a\u{9b}"], "origin": "trial", "by": "ana", "why": "too much",
                "since": at, "until": "2026-01-02T03:05:05Z"
            } },
            "trial": {
                "limits": { "max_concurrency": 1, "queue": 0, "wait": "5s" }, "predicted": null,
                "before": {
                    "seconds": 60.0, "used": 0.9, "elephants": group(Some(0.4)), "ants": group(None)
                },
                "during": null
            },
            "effect": { "elephants_most": 0.25, "elephants_now": 0.63, "held_back": 1.5 },
            "lanes": { "in_force": false, "why": "no device" }, "waiting": 4, "running": 2,
            "evaded": "by &x=1"
        });
        let expected = "\
            3 /slow\n\
            cost      250.0 ms of cpu (200.0 to 300.0)\n\
            share     70 % of the used amount, which is 90 % of the capacity; 5.04 requests \
            a second\n\
            lasts     100.0 ms, too short for that cost: other work at the same time, or work \
            after the answer\n\
            clients   192.0.2.7 causes 12 to 20 % of their service time\n\
            or        /x: these always come together\n\
            Pearson   r = 0.570, p = 1.0e-9\n\
            state     trial until 2026-01-02T03:05:05Z\n\
            by        ana: too much\n\
            rule      2 at once, 0.5 a second, 9 may wait, up to 1.001s, 8000 bytes a second\n\
            bytes     by a bucket: no device\n\
            now       4 wait, 2 run\n\
            but not   /slow/a\\u{9b}: separate routes\n\
            evaded    by &x=1\n\
            effect    they use 63 % of the resource, and under this rule up to 25 %; at least \
            1.50 a second would wait longer or be refused\n\
            trial     1 at once, 0 may wait, up to 5s\n  \
            before  90 % used; ants 20.0/s, 1.5/s not answered; elephants 20.0/s in 400 ms \
            (p99 1200), 1.5/s not answered\n  \
            during  not over yet\n";
        assert_eq!(details(&serde_json::from_value(elephant).unwrap()), expected);
    }
}
