//! Prints the populations of clients, and those that read one page a visit.

use std::fmt::Write;

use bywash_advise::{Population, Populations};
use bywash_terminal::text::excerpt;
use bywash_terminal::{Align, Table};

use super::report::percent;

/// The maximum number of rows in the table. Populations that read one page a visit are printed in
/// any case.
const ROWS: usize = 12;
/// The maximum number of characters that are shown of a user agent.
const WIDTH: usize = 120;

/// Returns the section of the report about populations of clients.
pub(super) fn populations(found: &Populations) -> String {
    let mut table = Table::new(&[
        ("of pages", Align::Right),
        (if found.has_times { "of time" } else { "of cost" }, Align::Right),
        ("requests", Align::Right),
        ("addresses", Align::Right),
        ("requests/address", Align::Right),
        ("visits", Align::Right),
        ("read on", Align::Right),
        ("lift", Align::Right),
        ("rare pages", Align::Right),
        ("finding", Align::Left),
        ("user agent", Align::Left),
    ]);
    let mut left_out = found.unlisted;
    for (number, one) in found.listed.iter().enumerate() {
        if number < ROWS || one.reads_one_page {
            table.push(row(one));
        } else {
            left_out += 1;
        }
    }
    let files = if found.has_files { " or file" } else { "" };
    let mut text = format!(
        "\nPopulations of clients, by user agent\n{table}  A visit reads on if its client got a \
         page and requested another page{files}: {} of all visits.\n  Lift compares with that: \
         readers have 1 or more. Fewer than 10 other clients asked for a rare page.\n",
        percent(found.reads_on)
    );
    if left_out > 0 {
        let _ = writeln!(text, "  {left_out} small populations are not shown.");
    }
    let finding = found.finding().map_or_else(
        || "No population with much of the load reads one page a visit as scrapers do.".to_owned(),
        |finding| {
            format!(
                "{finding}\n  Under overload, bywash ranks their first requests behind those of \
                 readers (identify.populations, on by default).\n  Below capacity it serves all."
            )
        },
    );
    let _ = writeln!(text, "  {finding}");
    text
}

fn row(one: &Population) -> Vec<String> {
    let finding = match (one.reads_one_page, one.is_declared) {
        (true, false) => "one page a visit",
        (true, true) => "one page a visit, declared robot",
        (false, true) => "declared robot",
        (false, false) => "",
    };
    let family = match one.family.as_deref() {
        None => "(families of which hardly any visit reads on)".to_owned(),
        Some("") => "(none)".to_owned(),
        Some(family) => excerpt(family, WIDTH),
    };
    vec![
        percent(one.share),
        percent(one.of_cost),
        one.requests.to_string(),
        one.addresses.to_string(),
        format!("{:.1}", one.per_address),
        one.visits.to_string(),
        percent(one.reads_on),
        format!("{:.2}", one.lift),
        percent(one.spread),
        finding.to_owned(),
        family,
    ]
}
