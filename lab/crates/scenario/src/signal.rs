//! Entry signals: properties that some visitors, and more often buyers, show from their first
//! request.
//!
//! Examples are a returning customer's cookie, a referrer, or a login that is still valid. No
//! signal proves that the visitor will buy, but buyers have signals more often. The lab measures
//! how much a signal helps a shop under overload. For this, a scenario sets how often buyers and
//! others carry each signal.
//!
//! The probabilities have no source: they are assumptions, which the scenario states.

use serde::Deserialize;

use crate::distribution::Stream;
use crate::error::ScenarioError;
use crate::lines::Lines;
use crate::problems::Problems;

/// The maximum number of signals in a scenario: as many as a request of the engine can show.
const MOST: usize = 4;

/// The maximum length of a cookie or header line of a signal, in bytes.
const LONGEST: usize = 256;

/// A property that a visitor shows in every request of a session or in none.
#[derive(Clone, Debug, PartialEq)]
pub struct Signal {
    /// The name of the signal.
    pub name: String,
    /// The form in which a live visitor shows the signal.
    pub shown: Shown,
    /// The probability that a visitor that means to order shows the signal.
    pub buyers: f64,
    /// The probability that any other visitor shows the signal.
    pub others: f64,
}

/// The form of a signal in a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shown {
    /// A cookie that the client already has.
    Cookie {
        /// The cookie's name: a token of RFC 9110.
        name: String,
        /// The cookie's value: cookie octets of RFC 6265.
        value: String,
    },
    /// A request header.
    Header {
        /// The header's name: a token of RFC 9110, in lower case.
        name: String,
        /// The header's value: visible ASCII with inner spaces.
        value: String,
    },
}

impl Shown {
    /// Returns the part of the request that carries the signal: its kind and its name. No two
    /// signals may use the same part.
    fn key(&self) -> (&'static str, &str) {
        match self {
            Self::Cookie { name, .. } => ("cookie", name),
            Self::Header { name, .. } => ("header", name),
        }
    }
}

/// Draws the indices of the signals that one visitor shows. Draws one random number for each
/// signal, whether the visitor shows it or not. The probability of one signal therefore does not
/// affect the signals after it.
pub(crate) fn carried(signals: &[Signal], buyer: bool, stream: &mut Stream) -> Vec<usize> {
    let chance = |signal: &Signal| if buyer { signal.buyers } else { signal.others };
    let drawn = signals.iter().map(|signal| stream.unit() < chance(signal));
    drawn.enumerate().filter_map(|(index, carries)| carries.then_some(index)).collect()
}

/// The form of a signal in a scenario file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawSpec {
    name: String,
    #[serde(default)]
    cookie: Option<String>,
    #[serde(default)]
    header: Option<String>,
    buyers: f64,
    others: f64,
}

/// Converts the file's form into signals. Reports every error to `problems`.
pub(crate) fn resolve(
    raw: Vec<RawSpec>,
    lines: &Lines<'_>,
    problems: &mut Problems,
) -> Vec<Signal> {
    let some = raw.len() <= MOST;
    let why = format!("a scenario has at most {MOST} signals, not {}", raw.len());
    problems.at(None).require(some, why);
    let mut signals: Vec<Signal> = Vec::new();
    for (i, raw) in raw.into_iter().enumerate() {
        let Some(signal) = problems.at(lines.nth("signal", i)).part(resolve_one(raw)) else {
            continue;
        };
        signals
            .iter()
            .filter_map(|earlier| clash(earlier, &signal))
            .for_each(|why| problems.add(why));
        signals.push(signal);
    }
    signals
}

/// Returns an error text if the gateway could not tell the two signals apart in a request;
/// otherwise `None`.
fn clash(earlier: &Signal, signal: &Signal) -> Option<String> {
    if earlier.name == signal.name {
        return Some(format!("signal `{}` is defined twice", signal.name));
    }
    let (kind, key) = signal.shown.key();
    (earlier.shown.key() == (kind, key))
        .then(|| format!("signals `{}` and `{}` have the same {kind}", earlier.name, signal.name))
}

fn resolve_one(raw: RawSpec) -> Result<Signal, ScenarioError> {
    let RawSpec { name, cookie, header, buyers, others } = raw;
    let mut problems = Problems::default();
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let named = (1..=64).contains(&name.len()) && name.chars().all(plain);
    problems.require(
        named,
        format!("signal `{name}`: write a name of 1 to 64 letters, digits, `-` or `_`"),
    );
    for (key, chance) in [("buyers", buyers), ("others", others)] {
        let right = (0.0..=1.0).contains(&chance);
        problems
            .require(right, format!("{key} of signal `{name}` must be a probability from 0 to 1"));
    }
    let shown = match (cookie, header) {
        (Some(text), None) => as_cookie(&text)
            .ok_or_else(|| format!("cookie of signal `{name}`: write it like `returning=1`")),
        (None, Some(text)) => as_header(&text)
            .ok_or_else(|| format!("header of signal `{name}`: write it like `referer: mail`")),
        _ => Err(format!("signal `{name}` needs either `cookie` or `header`")),
    };
    let shown = problems.part(shown.map_err(ScenarioError::Invalid));
    problems.whole(shown).map(|shown| Signal { name, shown, buyers, others })
}

fn as_cookie(text: &str) -> Option<Shown> {
    let (name, value) = text.split_once('=')?;
    // RFC 6265 §4.1.1: no controls, spaces, quotes, commas, semicolons or backslashes.
    let octet = |c: char| c.is_ascii_graphic() && !matches!(c, '"' | ',' | ';' | '\\');
    let good = text.len() <= LONGEST && is_token(name) && value.chars().all(octet);
    good.then(|| Shown::Cookie { name: name.into(), value: value.into() })
}

fn as_header(text: &str) -> Option<Shown> {
    let (name, value) = text.split_once(':')?;
    let value = value.trim_matches(' ');
    let visible = |c: char| c.is_ascii_graphic() || c == ' ';
    let good = text.len() <= LONGEST && is_token(name) && value.chars().all(visible);
    (good && !value.is_empty())
        .then(|| Shown::Header { name: name.to_ascii_lowercase(), value: value.into() })
}

/// Returns whether `text` is a token of RFC 9110 §5.6.2.
fn is_token(text: &str) -> bool {
    let mark = |c: char| "!#$%&'*+-.^_`|~".contains(c);
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || mark(c))
}

#[cfg(test)]
mod tests {
    use bywash_units::Time;

    use super::*;
    use crate::Visitor;
    use crate::file::Scenario;
    use crate::file::tests::{SMALL, small};

    fn with(signals: &str) -> Result<Scenario, ScenarioError> {
        Scenario::parse(&format!("{SMALL}\n{signals}"), std::path::Path::new("."))
    }

    fn refused(signals: &str) -> String {
        with(signals).expect_err("no such signals").to_string()
    }

    const RETURNING: &str = r#"
        [[signal]]
        name = "returning"
        cookie = "returning=1"
        buyers = 0.6
        others = 0.1
        [[signal]]
        name = "mail"
        header = "Referer: https://mail.example/letter 7"
        buyers = 0.3
        others = 0.3
    "#;

    #[test]
    fn a_signal_is_a_cookie_or_a_header() {
        let signals = with(RETURNING).unwrap().signals;
        let cookie = Shown::Cookie { name: "returning".into(), value: "1".into() };
        let value = "https://mail.example/letter 7".into();
        let header = Shown::Header { name: "referer".into(), value };
        assert_eq!(signals.iter().map(|s| &s.shown).collect::<Vec<_>>(), [&cookie, &header]);
    }

    #[test]
    fn buyers_and_others_carry_it_as_often_as_the_file_says() {
        let scenario = with(RETURNING).unwrap();
        // Indexed by whether the visitor is a buyer. Each entry counts visitors, visitors with the
        // first signal, and visitors with the second.
        let mut seen = [[0.0_f64; 3]; 2];
        for index in 0..50_000 {
            let visitor = Visitor::new(&scenario, 3, index);
            let row = &mut seen[usize::from(visitor.planned_orders() > 0)];
            row[0] += 1.0;
            visitor.signals().iter().for_each(|&signal| row[1 + signal] += 1.0);
        }
        for (row, expected) in seen.iter().zip([[0.1, 0.3], [0.6, 0.3]]) {
            assert!(row[0] > 5000.0, "{seen:?}");
            for (carriers, expected) in row[1..].iter().zip(expected) {
                assert!((carriers / row[0] - expected).abs() < 0.02, "{seen:?}");
            }
        }
    }

    #[test]
    fn signals_change_nothing_else_about_a_visitor() {
        let (plain, marked) = (small(), with(RETURNING).unwrap());
        for index in 0..200 {
            let mut one = Visitor::new(&plain, 1, index);
            let mut other = Visitor::new(&marked, 1, index);
            assert_eq!(one.attempt(&plain), other.attempt(&marked));
            let work = |visitor: &Visitor| visitor.planned_work(&plain.servers, Time::ZERO);
            assert_eq!(work(&one), work(&other));
            assert_eq!(one.signals(), [0_usize; 0]);
        }
    }

    #[test]
    fn every_mistake_about_signals_is_named() {
        let one = |line: &str, chances: &str| {
            refused(&format!("[[signal]]\nname = \"a\"\n{line}\n{chances}\n"))
        };
        let fair = "buyers = 0.5\nothers = 0.5";
        assert!(one("", fair).contains("either `cookie` or `header`"));
        assert!(one("cookie = \"a=1\"\nheader = \"a: 1\"", fair).contains("either"));
        for cookie in ["a", "=1", "a b=1", "a=1; b=2", "a=ä"] {
            assert!(one(&format!("cookie = \"{cookie}\""), fair).contains("cookie of"), "{cookie}");
        }
        for header in ["a", ": 1", "a b: 1", "a: ", "a: 1\\r\\nb: 2"] {
            assert!(one(&format!("header = \"{header}\""), fair).contains("header of"), "{header}");
        }
        let both = one("cookie = \"a\"", "buyers = 1.5\nothers = nan");
        for part in ["buyers of", "others of", "cookie of"] {
            assert!(both.contains(part), "{both}");
        }
        assert!(refused(&RETURNING.repeat(2)).contains("signal `returning` is defined twice"));
        let same = RETURNING.replace("name = \"returning\"", "name = \"again\"");
        assert!(refused(&format!("{RETURNING}{same}")).contains("have the same cookie"));
        let seven = (0..7).map(|i| {
            format!("[[signal]]\nname = \"s{i}\"\ncookie = \"c{i}=1\"\nbuyers = 1\nothers = 0\n")
        });
        assert!(refused(&seven.collect::<String>()).contains("at most 4 signals, not 7"));
    }
}
