//! Elephants and the evidence about them, as text.

use std::fmt::Write;

use bywash_control::Timestamp;
use bywash_terminal::text::escaped;
use bywash_terminal::{Align, Table};
use serde_json::Value;

use crate::plain::plain_value;

/// Returns the answer of `/v1/elephants` as text: the state of the resources, and a table.
pub fn listing(all: &Value) -> String {
    let entries = all["elephants"].as_array().map_or(&[][..], Vec::as_slice);
    let mut headline = headline(all, entries.is_empty());
    if entries.iter().any(|entry| entry["lanes"].is_object()) {
        let _ = writeln!(headline, "Bytes are limited {}.", lanes(&all["lanes"]));
    }
    if entries.is_empty() {
        return headline;
    }
    format!("{headline}\n{}", table(entries))
}

fn headline(all: &Value, none: bool) -> String {
    let mut words = String::new();
    let resources = all["resources"].as_array().map_or(&[][..], Vec::as_slice);
    if resources.is_empty() {
        return "No resource has been read yet. The first reading comes about ten seconds after the \
                start; if none comes, name one in the file: [resource.NAME] read = \"host/cpu\".\n"
            .into();
    }
    let seen = number(&all["seen_s"]);
    let _ = writeln!(
        words,
        "Observed for {}; {}",
        minutes(seen),
        if seen < 900.0 {
            "findings before 15 minutes are provisional"
        } else {
            "costs are per request, with their 95 % interval"
        }
    );
    for resource in resources {
        let state = match (resource["trouble"].as_str(), resource["used"].as_f64()) {
            (Some(trouble), _) => escaped(trouble),
            (None, Some(used)) if used > 1.0 && resource["name"] == bywash_control::SLOTS => {
                let percent = 100.0 * used;
                format!(
                    "{percent:.0} % of the present limit: the limit was higher before, or requests \
                     that are only observed run beyond it"
                )
            }
            (None, Some(used)) => format!("{:.0} % used", 100.0 * used),
            (None, None) => "not read yet".into(),
        };
        let _ = writeln!(words, "  {}: {state}", plain_value(&resource["name"]));
    }
    if none {
        words.push_str(
            "No route stands out: none uses a twentieth of a measured resource, or a fifth of the \
             slots with requests that each run longer than others.\n",
        );
    }
    words
}

fn table(entries: &[Value]) -> Table {
    let mut table = Table::new(&[
        ("", Align::Right),
        ("requests", Align::Left),
        ("resource", Align::Left),
        ("cost", Align::Right),
        ("per s", Align::Right),
        ("share", Align::Right),
        ("state", Align::Left),
    ]);
    for entry in entries {
        let found = &entry["found"];
        let cost = |value: &Value| {
            let unit = Unit::of(found);
            value
                .as_f64()
                .map_or("—".into(), |cost| format!("{} {}", unit.amount(cost), unit.name))
        };
        let percent = |value: &Value| {
            value.as_f64().map_or("—".into(), |part| format!("{:.0} %", 100.0 * part))
        };
        table.push(vec![
            plain_value(&entry["number"]),
            plain_value(&entry["pattern"]),
            plain_value(&found["resource"]),
            cost(&found["cost"]),
            found["rate"].as_f64().map_or("—".into(), |rate| format!("{rate:.2}")),
            percent(&found["share"]),
            state(entry),
        ]);
    }
    table
}

fn state(entry: &Value) -> String {
    let state = &entry["state"];
    if let Some(rule) = state.get("ruled") {
        let until = rule["until"]
            .as_str()
            .map_or("without an end".into(), |until| format!("until {}", escaped(until)));
        return format!("{} {until}", plain_value(&rule["origin"]));
    }
    if let Some(rejected) = state.get("rejected") {
        return format!("rejected until {}", plain_value(&rejected["until"]));
    }
    let mut words = String::from("proposed");
    if entry["found"]["provisional"] == true {
        words.push_str(", provisional");
    }
    let left_alone = entry["left_alone"].as_str().and_then(|until| until.parse().ok());
    if let Some(until) = left_alone.filter(|until| Timestamp::now() < *until) {
        let _ = write!(words, "; \"auto\" leaves it alone until {until}");
    }
    words
}

/// Returns all that is known about one elephant.
pub fn told(entry: &Value) -> String {
    let mut words =
        format!("{} {}\n", plain_value(&entry["number"]), plain_value(&entry["pattern"]));
    let found = &entry["found"];
    if found.is_object() {
        words.push_str(&evidence(found));
    }
    if entry["remark"].is_string() {
        let _ = writeln!(words, "remark    {}", plain_value(&entry["remark"]));
    }
    let _ = writeln!(words, "state     {}", state(entry));
    if let Some(rule) = entry["state"].get("ruled") {
        let _ = writeln!(
            words,
            "by        {}: {}",
            plain_value(&rule["by"]),
            plain_value(&rule["why"])
        );
        let _ = writeln!(words, "rule      {}", grants(&rule["grants"]));
        if entry["lanes"].is_object() {
            let _ = writeln!(words, "bytes     {}", lanes(&entry["lanes"]));
        }
        let count = |name: &str| entry[name].as_u64().unwrap_or(0);
        let _ = writeln!(words, "now       {} wait, {} run", count("waiting"), count("running"));
    } else if entry["proposed"].is_object() {
        let _ = writeln!(words, "proposed  {}", grants(&entry["proposed"]));
    }
    words.push_str(&others(entry));
    if let Some(evaded) = entry["evaded"].as_str() {
        let _ = writeln!(words, "evaded    {}", escaped(evaded));
    }
    let effect = &entry["effect"];
    let held_back = number(&effect["held_back"]);
    if effect.is_object() {
        let _ = writeln!(
            words,
            "effect    they use {:.0} % of the resource, and under this rule up to {:.0} %{}",
            100.0 * number(&effect["elephants_now"]),
            100.0 * number(&effect["elephants_most"]),
            if held_back > 0.0 {
                format!("; at least {held_back:.2} a second would wait longer or be refused")
            } else {
                String::new()
            },
        );
    } else if let Some(why) = entry["unpredicted"].as_str() {
        let _ = writeln!(words, "effect    {}", escaped(why));
    }
    if entry["trial"].is_object() {
        words.push_str(&trial(&entry["trial"]));
    }
    words
}

/// Names the separate routes that the pattern also matches, and says whether they are throttled
/// with it.
fn others(entry: &Value) -> String {
    let rule = entry["state"].get("ruled");
    let is_of_file = rule.is_some_and(|rule| rule["origin"] == "file");
    let kinds = rule.filter(|_| !is_of_file).map_or(&entry["within"], |rule| &rule["exempt"]);
    let kinds = kinds.as_array().map_or(&[][..], Vec::as_slice);
    if kinds.is_empty() {
        return String::new();
    }
    let names = kinds.iter().map(plain_value).collect::<Vec<_>>().join(", ");
    if is_of_file {
        format!("with      {names}: separate routes, but the file's pattern matches them\n")
    } else {
        format!("but not   {names}: separate routes\n")
    }
}

/// The unit in which a cost is shown.
struct Unit {
    name: &'static str,
    /// The number of these units in one of what is counted.
    times: f64,
}

impl Unit {
    fn of(found: &Value) -> Self {
        match found["consists_of"].as_str() {
            Some("processors" | "slots") => Self { name: "ms", times: 1e3 },
            Some("bytes") => Self { name: "kB", times: 1e-3 },
            // Seconds of a disk, bytes received, waiting tasks: shown as they are read.
            _ => Self { name: "units", times: 1.0 },
        }
    }

    fn amount(&self, cost: f64) -> String {
        let cost = cost * self.times;
        let is_small = self.name == "units" && cost < 10.0;
        if is_small { format!("{cost:.4}") } else { format!("{cost:.1}") }
    }
}

fn evidence(found: &Value) -> String {
    let unit = Unit::of(found);
    let amount = |value: &Value| unit.amount(number(value));
    let mut words = format!(
        "cost      {} {} of {} ({} to {}){}\n",
        amount(&found["cost"]),
        unit.name,
        plain_value(&found["resource"]),
        amount(&found["interval"][0]),
        amount(&found["interval"][1]),
        if found["provisional"] == true { ", provisional: probably too low" } else { "" },
    );
    let _ = writeln!(
        words,
        "share     {:.0} % of the used amount, which is {:.0} % of the capacity; {:.2} requests a \
         second",
        100.0 * number(&found["share"]),
        100.0 * number(&found["used"]),
        number(&found["rate"]),
    );
    let lasts = number(&found["lasts"]);
    let is_too_short = found["consists_of"] == "processors" && number(&found["cost"]) > lasts;
    let _ = writeln!(
        words,
        "lasts     {:.1} ms{}",
        1e3 * lasts,
        if is_too_short {
            ", too short for that cost: other work at the same time, or work after the answer"
        } else {
            ""
        },
    );
    let at_most = 100.0 * number(&found["by_one"]);
    let _ = match found["one_client"]["at_least"].as_f64() {
        Some(at_least) => {
            let at_least = format!("{:.0}", 100.0 * at_least);
            let to = if format!("{at_most:.0}") == at_least {
                at_least
            } else {
                format!("{at_least} to {at_most:.0}")
            };
            let address = plain_value(&found["one_client"]["address"]);
            writeln!(words, "clients   {address} causes {to} % of their service time")
        }
        None => {
            writeln!(words, "clients   none causes more than {at_most:.0} % of their service time")
        }
    };
    let twins = found["twins"].as_array().map_or(&[][..], Vec::as_slice);
    if !twins.is_empty() {
        let twins = twins.iter().map(plain_value).collect::<Vec<_>>().join(", ");
        let _ = writeln!(words, "or        {twins}: these always come together");
    }
    if let Some(seed) = found["correlation"].as_array() {
        let of = |at: usize| seed.get(at).map_or(0.0, number);
        let _ = writeln!(words, "Pearson   r = {:.3}, p = {:.1e}", of(0), of(1));
    }
    words
}

fn grants(grants: &Value) -> String {
    let mut words = format!("{} at once", plain_value(&grants["at_once"]));
    if let Some(rate) = grants["rate"].as_f64() {
        let _ = write!(words, ", {rate} a second");
    }
    let _ = write!(words, ", {} may wait, up to {}", grants["queue"], plain_value(&grants["wait"]));
    if let Some(bytes) = grants["bytes"].as_u64() {
        let _ = write!(words, ", {bytes} bytes a second");
    }
    words
}

/// Returns what limits the bytes of answers, and why no better means is used.
fn lanes(lanes: &Value) -> String {
    if lanes["in_force"] == true {
        "by a lane of the network device, at its rates; on HTTP/2 and other devices by a bucket"
            .into()
    } else {
        format!("by a bucket: {}", escaped(lanes["why"].as_str().unwrap_or("—")))
    }
}

fn trial(trial: &Value) -> String {
    let mut words = format!("trial     {}\n", grants(&trial["grants"]));
    for when in ["before", "during"] {
        let gauge = &trial[when];
        if !gauge.is_object() {
            let _ = writeln!(words, "  {when}  not over yet");
            continue;
        }
        if number(&gauge["seconds"]) <= 0.0 {
            let _ = writeln!(words, "  {when}  not measured");
            continue;
        }
        let lot = |name: &str| {
            let lot = &gauge[name];
            let times = match (lot["p50"].as_f64(), lot["p99"].as_f64()) {
                (Some(p50), Some(p99)) => format!(" in {:.0} ms (p99 {:.0})", 1e3 * p50, 1e3 * p99),
                _ => String::new(),
            };
            format!(
                "{name} {:.1}/s{times}, {:.1}/s not answered",
                number(&lot["answered"]),
                number(&lot["refused"]),
            )
        };
        let used = gauge["used"].as_f64();
        let used = used.map_or(String::new(), |used| format!("{:.0} % used; ", 100.0 * used));
        let _ = writeln!(words, "  {when}  {used}{}; {}", lot("ants"), lot("elephants"));
    }
    words
}

fn minutes(seconds: f64) -> String {
    if seconds < 120.0 { format!("{seconds:.0} s") } else { format!("{:.0} min", seconds / 60.0) }
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn slots_beyond_the_limit_are_explained() {
        let head = |used: f64| {
            let slots = json!({ "name": "slots", "used": used, "seen_s": 60.0 });
            headline(&json!({ "seen_s": 60.0, "resources": [slots] }), false)
        };
        assert!(head(0.87).contains("slots: 87 % used\n"), "{}", head(0.87));
        assert!(head(2.87).contains("slots: 287 % of the present limit: "), "{}", head(2.87));
    }
}
