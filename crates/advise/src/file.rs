//! Writes the proposed configuration, with the reason for each line next to it.
//!
//! Text from clients appears in two places of the file only. Patterns contain it, but the
//! classifier has parsed each of them. Comments contain it, but there it is escaped and kept on one
//! line.

use std::fmt::Write;

use bywash_terminal::text::toml_string;
use jiff::Timestamp;

use crate::advice::{Advice, plain};
use crate::classes::Proposed;
use crate::load::Seen;
use crate::patience::PatienceSetting;
use crate::populations::Populations;
use crate::role::Role;
use crate::tally::Answers;

/// Facts for the configuration that are not in the advice.
#[derive(Clone, Copy, Debug)]
pub struct Around<'a> {
    /// The name of the log, for the comments.
    pub log: &'a str,
    /// The address of the application, for the upstream.
    pub server: &'a str,
    /// Whether the log shows that nginx noticed the departures of clients (status 499).
    pub nginx_saw_departures: bool,
}

/// The share of PHP pages beyond which the application is assumed to be a PHP application.
const PHP_SHARE: f64 = 0.5;

/// Returns the text of the proposed configuration, in mode `observe`.
pub fn file(advice: &Advice, around: &Around<'_>) -> String {
    let mut text = head(advice, around);
    text.push_str(&limit(advice, around));
    text.push_str(&scheduler(advice));
    text.push_str(
        "[identify]\n\
         # A log does not name the cookie of your sessions, so the gateway picks it. If you\n\
         # know it, write \"cookie:NAME\".\n\
         session = \"auto\"\n",
    );
    if let Some(found) = advice.populations.as_ref().and_then(Populations::finding) {
        let _ = write!(
            text,
            "# {found}\n\
             # Under overload, their first requests rank behind those of readers. That is the key\n\
             # `populations`, which is on by default.\n"
        );
    }
    text.push('\n');
    text.push_str(&guess(advice));
    for class in &advice.classes {
        text.push_str(&one(class, advice));
    }
    if has_costly(advice) && advice.classes.iter().all(|class| class.role != Role::Other) {
        text.push_str("[class.other]\nutility = 1\n\n");
    }
    text.push_str(&elephants(&advice.elephants));
    while text.ends_with("\n\n") {
        text.pop();
    }
    text
}

fn head(advice: &Advice, around: &Around<'_>) -> String {
    let timestamp = |seconds: u64| {
        let seconds = i64::try_from(seconds).unwrap_or(i64::MAX);
        Timestamp::from_second(seconds)
            .map_or_else(|_| "?".into(), |timestamp| timestamp.to_string())
    };
    let counts = &advice.counts;
    format!(
        "# Proposed by `bywash advise` from {}:\n# {} requests in {} sessions, {} to {}.\n\
         # The classes are guesses from words of URLs: read each one before you trust it.\n\
         # `bywash check` reports mistakes in this file, and `bywash example` prints every key.\n\
         version = 1\n\n\
         # observe: bywash decides and records, and changes nothing. enforce: its decisions take\n\
         # effect.\n\
         mode = \"observe\"\n\n\
         [listen]\nhttp = \"127.0.0.1:8080\"\nadmin = \"127.0.0.1:7070\"\n\
         # The front web server, so that its header fields about clients are trusted.\n\
         trusted_proxies = [\"127.0.0.1\", \"::1\"]\n\n",
        plain(around.log),
        counts.requests,
        advice.clients.sessions,
        timestamp(counts.from),
        timestamp(counts.to),
    )
}

fn limit(advice: &Advice, around: &Around<'_>) -> String {
    let mut text =
        format!("[upstream]\n# Your application.\nserver = {}\n", toml_string(around.server));
    text.push_str(&departures(advice, around));
    if let Some(several) = advice.several_hosts() {
        let _ = writeln!(text, "# {several}");
    }
    for reason in advice.limit.reasons() {
        let _ = writeln!(text, "# {reason}");
    }
    let _ = write!(text, "limit = {}\n\n", advice.limit.slots);
    if advice.limit.is_start() {
        text.push_str(
            "[concurrency]\n# Finds the limit while requests wait.\npolicy = \"slope\"\n\n",
        );
    }
    text
}

/// Returns the line for `upstream.departures`. The line tells the gateway that the application
/// continues to work after a client has left, which a log does not show. It is proposed if most
/// pages are PHP, or if nginx is between the gateway and the application. Otherwise it is only a
/// comment.
fn departures(advice: &Advice, around: &Around<'_>) -> String {
    if advice.php <= PHP_SHARE && around.nginx_saw_departures {
        return "# nginx wrote status 499: it closes the connection when a client leaves. gunicorn, uWSGI,\n\
                # Puma and PHP-FPM behind it work on. So a request holds its slot until its answer\n\
                # begins, or for response_timeout. Remove the line if the application stops when its\n\
                # client leaves, or if the gateway is to reach the application without nginx.\n\
                departures = \"unnoticed\"\n"
            .into();
    }
    if advice.php <= PHP_SHARE {
        return "# If a web server there passes requests to PHP-FPM, gunicorn, uWSGI or Puma:\n\
                # departures = \"unnoticed\"\n"
            .into();
    }
    format!(
        "# {:.0} % of the pages are of PHP (.php). PHP works on when its client has left, and a web\n\
         # server in front of PHP-FPM does not report it. So a request holds its slot until its\n\
         # answer begins, or for response_timeout. Remove the line if the application stops when\n\
         # its client leaves.\n\
         departures = \"unnoticed\"\n",
        100.0 * advice.php
    )
}

fn scheduler(advice: &Advice) -> String {
    let mut text =
        "[scheduler]\n# Transactions of proven sessions first, then sessions in progress, then new \
         ones.\npolicy = \"session-first\"\n"
            .to_owned();
    let found = &advice.patience;
    match (found.median, found.mean) {
        (None, None) => text
            .push_str("# The log does not show how long visitors wait.\n# patience = \"20s\"\n\n"),
        (Some(patience), _) | (None, Some(patience)) => {
            let setting = PatienceSetting::of(patience);
            let why = if found.median.is_some() {
                "the median"
            } else {
                "the mean of an exponential distribution"
            };
            let _ = write!(
                text,
                "# How long visitors wait: {patience:.1} s ({why}; {} left, {} stayed to the \
                 end).\n\
                 {}patience = \"{}ms\"\n\n",
                found.left,
                found.stayed,
                setting.clamped.map_or(String::new(), |why| format!("# {why}\n")),
                (1e3 * setting.seconds).round(),
            );
        }
    }
    text
}

fn guess(advice: &Advice) -> String {
    let Some(order) = &advice.order else {
        return "# No order was found in the log, so the worth of a request is unknown. Name the\n\
                # order with `--order 'POST /PATH'`, or set utilities yourself.\n\n"
            .into();
    };
    let how =
        if advice.order_was_told { "By --order" } else { "By its words and its place in sessions" };
    format!(
        "# {how}, the order is {}: {} succeeded.\n\
         # A utility is 1000 times the probability that a session at this class ends in an \
         order.\n\n",
        plain(order),
        advice.orders
    )
}

fn one(class: &Proposed, advice: &Advice) -> String {
    let name = class.role.name();
    let costly = costly(class, advice);
    let utility = match (has_costly(advice), costly) {
        (true, Some(_)) => Some(0.5),
        (true, None) if class.role == Role::Other => Some(1.0),
        (_, None) if class.role == Role::Other => least(class, &advice.classes),
        _ => utility(class, &advice.classes),
    };
    if class.patterns.is_empty() && (class.role != Role::Other || utility.is_none()) {
        return String::new();
    }
    let mut text = remarks(class, costly, utility);
    let _ = writeln!(text, "[class.{name}]");
    if !class.patterns.is_empty() {
        let patterns: Vec<String> =
            class.patterns.iter().map(|pattern| toml_string(pattern)).collect();
        let _ = match &patterns[..] {
            [one] => writeln!(text, "match = [{one}]"),
            many => writeln!(text, "match = [\n    {},\n]", many.join(",\n    ")),
        };
    }
    if class.transacts {
        text.push_str("tier = \"transaction\"\n");
    }
    if let Some(utility) = utility {
        let _ = writeln!(text, "utility = {utility}");
    }
    if !class.requires.is_empty() {
        let names: Vec<String> =
            class.requires.iter().map(|role| toml_string(role.name())).collect();
        let _ = writeln!(
            text,
            "# Nearly all sessions come here from these classes.\nrequires = [{}]",
            names.join(", ")
        );
    }
    if class.role == Role::Order {
        text.push_str(
            "# The average revenue of an order. Any number will do while only one class has \
             revenue.\nrevenue = 1\n",
        );
        text.push_str(&success(advice.order_answers));
    }
    text.push('\n');
    text
}

/// Returns the line for `success`. Many applications answer an order with a redirection, and a
/// faulty form with a page. If the log shows that, the line makes the redirection the condition.
/// Otherwise a comment explains how to name another condition.
fn success(answers: Answers) -> String {
    let Answers { shown, redirected } = answers;
    if answers.differ_by_redirection() {
        format!(
            "# In the log {redirected} answers are 302 or 303, and {shown} are 200. Many \
             applications redirect after an\n# order, and show a form with a mistake again \
             (200). Remove the line if yours does not.\nsuccess = [\"status 302\", \"status 303\"]\n"
        )
    } else if shown > 0 {
        format!(
            "# In the log {shown} answers are 200, and {redirected} are 302 or 303. If a refused \
             order gets 200 as well,\n# name a header field or a field of the JSON body that only \
             an order has:\n# success = [\"header x-order-id\"]\n# success = [\"json result: success\"]\n"
        )
    } else {
        String::new()
    }
}

/// Returns comments for the operator about a class.
fn remarks(class: &Proposed, costly: Option<f64>, utility: Option<f64>) -> String {
    let mut text = format!("# {:.1} % of the requests", 100.0 * class.share);
    if let Some(service) = &class.service {
        let _ = write!(
            text,
            ", median {:.0} ms, 99th percentile {:.0} ms",
            1e3 * service.p50,
            1e3 * service.p99
        );
    }
    text.push_str(".\n");
    if 20 * class.mismatched > class.requests {
        let _ = writeln!(
            text,
            "# By their words, {} of {} are for something else. The patterns match them \
             nevertheless.",
            class.mismatched, class.requests
        );
    }
    if class.role == Role::Static && utility.is_some() {
        text.push_str("# A page needs its files, so they are worth what pages are worth.\n");
    }
    if let Some(times) = costly {
        let _ = writeln!(
            text,
            "# A request takes {times:.1} times as long as the average. Under overload first requests \
             of this\n# class go last, because it is worth less than `other`."
        );
    }
    text
}

/// Returns the utility of the class `other`: the lowest utility of the proposed browsing classes.
/// With a lower utility, the first requests of sessions in the class `other` would always go last.
fn least(class: &Proposed, all: &[Proposed]) -> Option<f64> {
    let browsing = all.iter().filter(|one| !one.transacts);
    let lowest = browsing.filter_map(|one| utility(one, all)).reduce(f64::min);
    utility(class, all).and(lowest)
}

/// The ratio from which on a class is costly: the mean service time of its requests, divided by
/// that of all requests.
const COSTLY: f64 = 2.0;

/// Returns the ratio of the mean service time of a class to that of all requests. Returns `None` if
/// the ratio is below [`COSTLY`]. Also returns `None` if the order is known, because then the
/// utility already shows whether the class is worth its time.
fn costly(class: &Proposed, advice: &Advice) -> Option<f64> {
    let is_other = matches!(class.role, Role::Other | Role::Static) || class.patterns.is_empty();
    if advice.order.is_some() || class.transacts || is_other {
        return None;
    }
    let known = advice.classes.iter().filter_map(|one| Some((one.light?, one.requests as f64)));
    let (sum, all) = known
        .fold((0.0, 0.0), |(sum, all), (light, requests)| (sum + light * requests, all + requests));
    let times = class.light? / (sum / all);
    (times >= COSTLY).then_some(times)
}

fn has_costly(advice: &Advice) -> bool {
    advice.classes.iter().any(|class| costly(class, advice).is_some())
}

/// Returns the utility of a class, rounded to three significant digits; `None` if its worth is
/// unknown.
fn utility(class: &Proposed, all: &[Proposed]) -> Option<f64> {
    let worth = match class.role {
        Role::Static => {
            let pages = all.iter().filter(|one| one.role != Role::Static && !one.transacts);
            let (sum, requests) = pages.fold((0.0, 0.0), |(sum, all), one| {
                (
                    sum + one.worth.unwrap_or_default() * one.requests as f64,
                    all + one.requests as f64,
                )
            });
            class.worth.map(|_| if requests > 0.0 { sum / requests } else { 0.0 })
        }
        _ => class.worth,
    }?;
    let digits = format!("{:.2e}", 1e3 * worth.clamp(0.0, 1.0));
    digits.parse().ok()
}

/// Returns rules for the elephants, as comments of the configuration that an operator can activate.
fn elephants(found: &[Seen]) -> String {
    let mut text = String::new();
    let may = found.iter().filter(|one| !one.transacts);
    for (number, one) in (1..).zip(may) {
        let Some(pattern) = &one.pattern else { continue };
        let _ = write!(
            text,
            "# {} causes {:.0} % of the use of {}. This rule would let one run at once:\n\
             # [throttle.elephant-{number}]\n# match = {}\n# why = \"found in the log\"\n\
             # max_concurrency = 1\n\n",
            plain(pattern),
            100.0 * one.share,
            plain(&one.resource),
            toml_string(pattern),
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_stays_within_its_string() {
        let seen = Seen {
            pattern: Some("/x\n[class.y]".into()),
            twins: Vec::new(),
            resource: "host\n/cpu".into(),
            cost: 1.0,
            interval: [1.0; 2],
            share: 0.5,
            rate: 1.0,
            provisional: false,
            transacts: false,
        };
        let text = elephants(std::slice::from_ref(&seen));
        assert!(text.lines().all(|line| line.is_empty() || line.starts_with("# ")), "{text}");
        assert_eq!(elephants(&[Seen { transacts: true, ..seen }]), "");
    }
}
