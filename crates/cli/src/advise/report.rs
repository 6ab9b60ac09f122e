//! Prints the findings of `bywash advise` as text.

use std::fmt::Write;

use bywash_advise::{Advice, Quantiles};
use bywash_terminal::text::excerpt;
use bywash_terminal::{Align, Table};

use super::forecast::Forecast;
use super::populations::populations;
use super::reader::LogCounts;

/// The maximum number of rows in the table of templates.
const PAGES: usize = 20;
/// The maximum number of rows in the table of transitions.
const TRANSITIONS: usize = 12;

pub(super) fn text(
    advice: &Advice,
    log_counts: &LogCounts,
    forecast: Option<&Forecast>,
    is_written: bool,
) -> String {
    let mut text = head(advice, log_counts);
    let _ = write!(text, "\nProposed classes\n{}", classes(advice));
    let _ = write!(text, "\nTemplates of URLs\n{}", pages(advice));
    if !advice.ways.is_empty() {
        let _ = write!(text, "\nTransitions between templates\n{}", transitions(advice));
    }
    if let Some(found) = &advice.populations {
        text.push_str(&populations(found));
    }
    text.push_str(&patience(advice));
    if !advice.elephants.is_empty() {
        let _ = write!(text, "\nElephants\n{}", elephants(advice));
    }
    if let Some(forecast) = forecast {
        text.push_str(&forecast_text(forecast));
    }
    if !advice.notes.is_empty() {
        text.push_str("\nNotes\n");
        for note in &advice.notes {
            let _ = writeln!(text, "- {note}");
        }
    }
    if !is_written {
        text.push_str(
            "\n--out bywash.toml writes these classes as a configuration, with the reason for \
             each line.\n",
        );
    }
    text
}

fn head(advice: &Advice, log_counts: &LogCounts) -> String {
    let counts = &advice.counts;
    let percent = |part: u64| percent(part as f64 / counts.requests.max(1) as f64);
    let mut text = format!(
        "{} lines, {} requests in {} ({:.0} lines a second were read)\n",
        log_counts.lines,
        counts.requests,
        span(counts.lasted),
        log_counts.lines as f64 / log_counts.seconds.max(1e-3),
    );
    let _ = writeln!(text, "  durations are read as: {}", plain(&log_counts.units()));
    let _ = writeln!(
        text,
        "  files {}, left by their client {}, refused {}, failed {}, other 5xx {}",
        percent(counts.files),
        percent(counts.left),
        percent(counts.refused),
        percent(counts.failed),
        percent(counts.errors)
    );
    if counts.robots > 0 {
        let _ = writeln!(
            text,
            "  of robots {} ({}): they count for the load, and are in no session",
            counts.robots,
            percent(counts.robots)
        );
    }
    let clients = &advice.clients;
    let _ = writeln!(text, "{} sessions (a pause of 30 minutes ends one)", clients.sessions);
    let number = |found: Option<Quantiles>| {
        found.map_or("-".into(), |it| format!("{:.0} / {:.0} / {:.0}", it.p50, it.p90, it.p99))
    };
    let times = |found: Option<Quantiles>| {
        found.map_or("-".into(), |it| {
            format!("{} / {} / {}", span(it.p50), span(it.p90), span(it.p99))
        })
    };
    let _ = writeln!(
        text,
        "  50th, 90th and 99th percentile: pages {}, requests {}, think time {}, length {}",
        number(clients.pages),
        number(clients.requests),
        times(clients.think),
        times(clients.lasted)
    );
    if let Some(busy) = &advice.busy {
        let _ = write!(
            text,
            "Busiest minute: {:.1} requests/s, {:.1} for pages, {:.2} sessions/s began",
            busy.most.requests, busy.most.pages, busy.most.sessions
        );
        if let Some(at_once) = busy.fullest.at_once {
            let _ = write!(text, "; fullest minute: {at_once:.1} pages at once");
        }
        text.push('\n');
    }
    let policy = if advice.limit.is_start() { ", policy = \"slope\"" } else { "" };
    let _ = writeln!(text, "Limit: {}{policy}", advice.limit.slots);
    for reason in advice.limit.reasons() {
        let _ = writeln!(text, "  {reason}");
    }
    if let Some(order) = &advice.order {
        let how = if advice.order_was_told { "by --order" } else { "a guess" };
        let _ = writeln!(text, "Orders: {}, of {} ({how})", advice.orders, plain(order));
    }
    text
}

fn classes(advice: &Advice) -> Table {
    let mut table = Table::new(&[
        ("class", Align::Left),
        ("share", Align::Right),
        ("mean ms", Align::Right),
        ("p50", Align::Right),
        ("p99", Align::Right),
        ("quiet ms", Align::Right),
        ("errors", Align::Right),
        ("left", Align::Right),
        ("orders", Align::Right),
        ("tier", Align::Left),
        ("patterns", Align::Left),
    ]);
    for class in &advice.classes {
        let ms = |of: fn(&Quantiles) -> f64| {
            class.service.as_ref().map_or("-".into(), |it| millis(of(it)))
        };
        let shown =
            class.patterns.iter().take(3).map(|text| plain(text)).collect::<Vec<_>>().join(", ");
        let more = class.patterns.len().saturating_sub(3);
        table.push(vec![
            class.role.name().to_owned(),
            percent(class.share),
            ms(|it| it.mean),
            ms(|it| it.p50),
            ms(|it| it.p99),
            class.light.map_or("-".into(), millis),
            percent(class.errors),
            percent(class.left),
            class.worth.map_or("-".into(), percent),
            if class.transacts { "transaction" } else { "browsing" }.to_owned(),
            if more > 0 { format!("{shown} and {more} more") } else { shown },
        ]);
    }
    table
}

fn pages(advice: &Advice) -> Table {
    let mut table = Table::new(&[
        ("template", Align::Left),
        ("class", Align::Left),
        ("share", Align::Right),
        ("p50 ms", Align::Right),
        ("p99", Align::Right),
        ("exit", Align::Right),
        ("orders", Align::Right),
    ]);
    for page in advice.pages.iter().take(PAGES) {
        let ms = |of: fn(&Quantiles) -> f64| {
            page.service.as_ref().map_or("-".into(), |it| millis(of(it)))
        };
        table.push(vec![
            named(page.template.as_deref()),
            page.class.name().to_owned(),
            percent(page.share),
            ms(|it| it.p50),
            ms(|it| it.p99),
            page.exit.map_or("-".into(), percent),
            page.worth.map_or("-".into(), percent),
        ]);
    }
    table
}

fn transitions(advice: &Advice) -> Table {
    let mut table = Table::new(&[
        ("from", Align::Left),
        ("to", Align::Left),
        ("probability", Align::Right),
        ("times", Align::Right),
    ]);
    for transition in advice.ways.iter().take(TRANSITIONS) {
        table.push(vec![
            named(transition.from.as_deref()),
            named(transition.to.as_deref()),
            percent(transition.probability),
            transition.times.to_string(),
        ]);
    }
    table
}

fn patience(advice: &Advice) -> String {
    let found = &advice.patience;
    let Some(mean) = found.mean else { return String::new() };
    let half = found.median.map_or("fewer than half ever leave".into(), |half| {
        format!("half leave within {}", span(half))
    });
    format!(
        "\nPatience: {half}; the mean, if it is exponential, is {} ({} left, {} stayed; \
         Kaplan-Meier estimate)\n",
        span(mean),
        found.left,
        found.stayed
    )
}

fn elephants(advice: &Advice) -> Table {
    let mut table = Table::new(&[
        ("requests", Align::Left),
        ("resource", Align::Left),
        ("cost ms", Align::Right),
        ("from", Align::Right),
        ("to", Align::Right),
        ("per s", Align::Right),
        ("share", Align::Right),
        ("state", Align::Left),
    ]);
    for one in &advice.elephants {
        let is_bytes = one.resource.starts_with("host/net/");
        let cost = |cost: f64| {
            if is_bytes {
                format!("{:.0} KiB", cost / 1024.0)
            } else {
                format!("{:.1}", 1e3 * cost)
            }
        };
        let mut name = named(one.pattern.as_deref());
        for twin in &one.twins {
            let _ = write!(name, " or {}", plain(twin));
        }
        table.push(vec![
            name,
            plain(&one.resource),
            cost(one.cost),
            cost(one.interval[0]),
            cost(one.interval[1]),
            format!("{:.2}", one.rate),
            percent(one.share),
            if one.provisional { "provisional" } else { "found" }.to_owned(),
        ]);
    }
    table
}

fn forecast_text(forecast: &Forecast) -> String {
    let mut table = Table::new(&[
        ("times the peak", Align::Right),
        ("in front", Align::Left),
        ("load", Align::Right),
        ("goodput /s", Align::Right),
        ("answered", Align::Right),
        ("p99", Align::Right),
        ("orders", Align::Right),
    ]);
    for run in &forecast.runs {
        table.push(vec![
            run.times.to_string(),
            run.with.to_owned(),
            format!("{:.2}", run.rho),
            format!("{:.1}", run.goodput),
            percent(run.answered),
            run.p99.map_or("-".into(), span),
            run.of_orders.map_or("-".into(), percent),
        ]);
    }
    let mut assumed = if forecast.patience_was_assumed { ", assumed" } else { "" }.to_owned();
    if (forecast.patience_told - forecast.patience).abs() > 1e-6 {
        let _ = write!(assumed, ", clamped to {} for bywash", span(forecast.patience_told));
    }
    let of_places = if forecast.is_concurrency_given {
        "by --workers"
    } else {
        "an estimate; --workers gives the number"
    };
    let scale = if forecast.scale < 1.0 {
        format!(", at {} of the site's size", percent(forecast.scale))
    } else {
        String::new()
    };
    format!(
        "\nForecast by the simulator: {:.1} pages/s at the peak, {} slots ({of_places}), patience \
         {} (mean{assumed}), visitors of {}{scale}.\nIt assumes that the application does not slow \
         down under load, and that bywash sees departures: `bywash doctor --front` tests that.\n\
         {table}",
        forecast.pages,
        forecast.places,
        span(forecast.patience),
        span(forecast.seconds),
    )
}

fn named(template: Option<&str>) -> String {
    template.map_or("(all others)".into(), plain)
}

/// Returns the beginning of a text from the log, with control characters escaped.
fn plain(text: &str) -> String {
    excerpt(text, 80)
}

pub(super) fn percent(part: f64) -> String {
    let digits = usize::from(part < 0.0995);
    format!("{:.*} %", digits, 100.0 * part)
}

fn millis(seconds: f64) -> String {
    let ms = 1e3 * seconds;
    if ms < 10.0 { format!("{ms:.1}") } else { format!("{ms:.0}") }
}

fn span(seconds: f64) -> String {
    match seconds {
        s if s < 1.0 => format!("{:.0} ms", 1e3 * s),
        s if s < 120.0 => format!("{s:.1} s"),
        s if s < 7200.0 => format!("{:.0} min", s / 60.0),
        s if s < 172_800.0 => format!("{:.1} h", s / 3600.0),
        s => format!("{:.1} days", s / 86_400.0),
    }
}
