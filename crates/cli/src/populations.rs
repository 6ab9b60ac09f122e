//! `bywash populations`: which clients look alike, what their sessions do, and what they were
//! given.

use bywash_api::{Population, Populations};
use bywash_command::Failure;
use bywash_terminal::text::{escaped, excerpt};
use bywash_terminal::{Align, Table};

use crate::args::Read;
use crate::read::read;

/// The maximum number of characters of a browser's name in the table.
const BROWSER: usize = 70;

pub(crate) fn populations(args: &Read) -> Result<(), Failure> {
    read(args, "/v1/populations", |found: &Populations| {
        format!("{}\n{}", headline(found), table(found))
    })
}

fn headline(found: &Populations) -> String {
    let state = if found.ranks {
        "in mode enforce, first requests rank by level, 0 first, while requests wait"
    } else {
        "levels have no effect: they need identify.populations and the policy session-first"
    };
    format!(
        "{} populations of clients: {state}\n\
         requests, slot time: share of all first requests, of the last minutes · given: those that \
         got a slot ·\nread on: sessions that asked for anything after their first request · lift: \
         that, divided by the mean\nof all sessions\n",
        found.count
    )
}

fn table(found: &Populations) -> Table {
    let mut table = Table::new(&[
        ("population", Align::Left),
        ("requests", Align::Right),
        ("slot time", Align::Right),
        ("given", Align::Right),
        ("refused", Align::Right),
        ("sessions", Align::Right),
        ("read on", Align::Right),
        ("lift", Align::Right),
        ("level", Align::Right),
        ("browser", Align::Left),
    ]);
    let all = || found.populations.iter().chain([&found.others]);
    let sum = |of: fn(&Population) -> f64| all().map(of).sum::<f64>();
    let requests = sum(|population| population.requests);
    let service = sum(|population| population.service_s);
    for one in all().filter(|one| one.requests >= 0.5 || one.sessions >= 0.5) {
        table.push(vec![
            if one.name.is_empty() { "others".to_owned() } else { escaped(&one.name) },
            percent(one.requests, requests),
            percent(one.service_s, service),
            percent(one.started, one.requests),
            percent(one.refused, one.requests),
            format!("{:.0}", one.sessions),
            percent(one.read_on, one.sessions),
            format!("{:.2}", one.lift),
            format!("{}{}", one.level, mark(one)),
            match (&one.agent, one.user_agent.as_deref()) {
                (Some(agent), _) => {
                    let appointment = one.appointment.as_deref();
                    let state = appointment.map_or_else(String::new, |it| format!(" ({it})"));
                    format!("agent {}{}", escaped(agent), escaped(&state))
                }
                (None, None) => "—".to_owned(),
                (None, Some("")) => "(none)".to_owned(),
                (None, Some(name)) => excerpt(name, BROWSER),
            },
        ]);
    }
    table
}

/// Returns the mark of a level that does not follow from the lift of the population itself.
fn mark(one: &Population) -> &'static str {
    match one.overridden {
        Some(_) => " set",
        None if one.agent.is_some() || one.known || one.name.is_empty() => "",
        None => " *",
    }
}

/// Formats a part of a whole, or a dash if there is no whole.
fn percent(part: f64, whole: f64) -> String {
    if whole < 0.5 { "—".to_owned() } else { format!("{:.0} %", 100.0 * (part / whole).min(1.0)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_of_all_populations_and_texts_are_escaped() {
        let one = |name: &str, requests, browser: &str| Population {
            name: name.to_owned(),
            user_agent: Some(browser.to_owned()),
            requests,
            started: requests / 4.0,
            sessions: 8.0,
            read_on: 2.0,
            lift: 0.5,
            level: 1,
            known: name == "aa",
            ..Population::default()
        };
        let agent = Population {
            agent: Some("archive".to_owned()),
            appointment: Some("early".to_owned()),
            ..one("cc", 1.0, "curl/0")
        };
        let populations =
            vec![one("aa", 30.0, "Fire\u{9b}fox/0"), one("bb", 59.0, "curl/0"), agent];
        let others = Population { requests: 10.0, ..Population::default() };
        let shown = table(&Populations { ranks: true, count: 2, populations, others }).to_string();
        let rows: Vec<Vec<&str>> =
            shown.lines().rev().map(|line| line.split_whitespace().collect()).collect();
        let first = ["aa", "30", "%", "—", "25", "%", "0", "%", "8", "25", "%"];
        assert!(rows[3].starts_with(&first), "{shown}");
        assert!(rows[3].ends_with(&["0.50", "1", "Fire\\u{9b}fox/0"]), "{shown}");
        assert!(rows[2].ends_with(&["1", "*", "curl/0"]), "{shown}");
        assert!(rows[1].ends_with(&["0.50", "1", "agent", "archive", "(early)"]), "{shown}");
        assert!(rows[0].starts_with(&["others", "10", "%"]), "{shown}");
    }
}
