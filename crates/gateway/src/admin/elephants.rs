//! `/v1/elephants`: what was found, what was decided of it, and decisions.
//!
//! What changes anything is a `POST` to `/v1/elephants/NUMBER/DECISION`; who decides, why and for how long stand in the
//! query, percent-encoded as forms are.

use std::collections::BTreeMap;

use bywash_control::{Change, Effect, Entry, Grants, State, Timestamp, Word};
use bywash_engine::throttle::RuleId;
use bywash_units::Span;
use http::StatusCode;
use serde_json::{Value, json};

use super::{json, plain};
use crate::elephants::Undecided;
use crate::reply::Reply;
use crate::shared::Shared;

/// All that was found, with what was seen.
pub(super) fn list(shared: &Shared) -> Reply {
    let throttled = shared.driver.throttled();
    let desk = shared.elephants.desk();
    let entries = desk.book().entries().iter();
    let described = |entry| described(shared, entry, &throttled);
    let entries: Vec<Value> = entries.map(described).collect();
    let mut answer = desk.sight.json();
    answer["lanes"] = shared.elephants.lanes.json();
    answer["kept"] = desk.is_kept().into();
    answer["elephants"] = entries.into();
    drop(desk);
    json(StatusCode::OK, &answer)
}

/// One of them, with the kinds of their own that its pattern matches too.
pub(super) fn show(shared: &Shared, number: &str) -> Reply {
    let throttled = shared.driver.throttled();
    let found = number.parse().map_err(|_| NO_NUMBER.to_owned()).and_then(|number| {
        let desk = shared.elephants.desk();
        let entry = desk.book().entry(number).map_err(|why| why.to_string());
        entry.map(|entry| {
            let within = shared.elephants.watched().within(&[&entry.pattern]);
            let mut value = described(shared, entry, &throttled);
            value["within"] = within.into_iter().flatten().collect::<Vec<_>>().into();
            value
        })
    });
    match found {
        Ok(entry) => json(StatusCode::OK, &entry),
        Err(why) => plain(StatusCode::NOT_FOUND, &why),
    }
}

const NO_NUMBER: &str = "an elephant is called by its number: /v1/elephants/3";

/// Rules that hold, as they would stand in the file.
pub(super) fn export(shared: &Shared) -> Reply {
    let text = shared.elephants.desk().book().exported();
    json(StatusCode::OK, &json!({ "toml": text }))
}

/// An operator decides.
pub(super) fn decide(shared: &Shared, what: &str, query: &str) -> Reply {
    match decided(shared, what, query) {
        Ok(number) => show(shared, &number),
        Err((status, why)) => plain(status, &why),
    }
}

type Refusal = (StatusCode, String);

fn wrong(why: &dyn std::fmt::Display) -> Refusal {
    (StatusCode::BAD_REQUEST, why.to_string())
}

/// The number of the elephant that something was decided of.
fn decided(shared: &Shared, what: &str, query: &str) -> Result<String, Refusal> {
    let (number, decision) = what.split_once('/').ok_or_else(|| wrong(&NO_NUMBER))?;
    let id: u32 = number.parse().map_err(|_| wrong(&NO_NUMBER))?;
    let given = Given::read(query)?;
    let (word, change, now) = (given.word()?, given.change()?, Timestamp::now());
    let desk = &shared.elephants;
    let done = match decision {
        "approve" => desk.decide(&shared.driver, |book| {
            book.approve(now, id, change, word).map(|note| vec![note])
        }),
        "try" => {
            let before = desk.gauge_of(id, word.lasts, shared.driver.now());
            desk.decide(&shared.driver, |book| {
                book.try_out(now, id, change, word, before).map(|note| vec![note])
            })
        }
        "reject" => {
            desk.decide(&shared.driver, |book| book.reject(now, id, word).map(|note| vec![note]))
        }
        "undo" => {
            desk.decide(&shared.driver, |book| book.undo(now, id, word).map(|note| vec![note]))
        }
        _ => {
            let words = "there are approve, try, reject and undo";
            return Err((StatusCode::NOT_FOUND, words.to_owned()));
        }
    };
    match done {
        Ok(_) => Ok(number.to_owned()),
        Err(why @ Undecided::Refused(_)) => Err(wrong(&why)),
        Err(why @ (Undecided::NotKept(_) | Undecided::GivenAway)) => {
            Err((StatusCode::SERVICE_UNAVAILABLE, why.to_string()))
        }
    }
}

/// What stands in a decision's query.
struct Given(BTreeMap<String, String>);

const KNOWN: [&str; 8] = ["by", "why", "for", "at_once", "rate", "queue", "wait", "bytes"];

impl Given {
    fn read(query: &str) -> Result<Self, Refusal> {
        let pairs = form_urlencoded::parse(query.as_bytes());
        let given: BTreeMap<String, String> = pairs.into_owned().collect();
        match given.keys().find(|name| !KNOWN.contains(&name.as_str())) {
            Some(name) => {
                let name: String = name.chars().take(40).flat_map(char::escape_debug).collect();
                Err(wrong(&format!("`{name}` is none of {}", KNOWN.join(", "))))
            }
            None => Ok(Self(given)),
        }
    }

    fn text(&self, name: &str) -> String {
        self.0.get(name).cloned().unwrap_or_default()
    }

    fn word(&self) -> Result<Word, Refusal> {
        let lasts = self.0.get("for").map_or(Ok(Span::from_secs(3600)), |text| text.parse());
        Ok(Word {
            by: self.text("by"),
            why: self.text("why"),
            lasts: lasts.map_err(|why| wrong(&why))?,
        })
    }

    fn number<T: std::str::FromStr>(&self, name: &str) -> Result<Option<T>, Refusal> {
        let Some(text) = self.0.get(name) else { return Ok(None) };
        text.parse().map(Some).map_err(|_| wrong(&format!("`{name}` is a number")))
    }

    fn change(&self) -> Result<Change, Refusal> {
        let wait: Option<Result<Span, _>> = self.0.get("wait").map(|text| text.parse());
        Ok(Change {
            at_once: self.number("at_once")?,
            rate: self.number("rate")?,
            queue: self.number("queue")?,
            wait_ms: wait.transpose().map_err(|why| wrong(&why))?.map(Span::as_millis),
            bytes: self.number("bytes")?,
        })
    }
}

/// An entry, what a rule would do, how many wait and run under the one that holds, and what holds their bytes back.
fn described(shared: &Shared, entry: &Entry, throttled: &[(RuleId, u32, u32)]) -> Value {
    let mut value = serde_json::to_value(entry).expect("an entry is made of numbers and texts");
    let grants = match &entry.state {
        State::Ruled(rule) => Some(rule.grants),
        State::Proposed | State::Rejected { .. } => entry.found.as_ref().map(Grants::proposed),
    };
    if let State::Ruled(rule) = &entry.state
        && rule.grants.bytes.is_some()
    {
        value["lanes"] = shared.elephants.lanes.json();
    }
    if let (Some(found), Some(grants)) = (&entry.found, grants) {
        value["proposed"] = serde_json::to_value(grants).expect("as above");
        match Effect::of(found, &grants) {
            Ok(effect) => value["effect"] = serde_json::to_value(effect).expect("as above"),
            Err(why) => value["unpredicted"] = why.to_string().into(),
        }
    }
    if let Some((_, waiting, running)) = throttled.iter().find(|(id, ..)| id.0 == entry.number) {
        value["waiting"] = (*waiting).into();
        value["running"] = (*running).into();
    }
    value
}
