//! One table of the file becomes values.
//!
//! Reading is total: a key that is missing or wrong is reported and has its default (or, if it
//! has none, its example), so that whatever depends on it can be checked in the same run.

use std::collections::BTreeMap;
use std::ops::Range;

use toml::de::{DeTable, DeValue};

use crate::code;
use crate::guess;
use crate::key::{Key, Presence, Section};
use crate::keys;
use crate::kind::Refusal;
use crate::report::{Finding, Report};
use crate::source::shown;
use crate::value::Value;

/// A table as it stands in the file.
#[derive(Clone)]
pub(crate) struct Table<'d, 't> {
    /// Its name for messages; empty for the keys above the first table.
    pub(crate) path: String,
    /// Where its name stands.
    pub(crate) at: Range<usize>,
    /// Nothing if it is not there.
    pub(crate) entries: Option<&'d DeTable<'t>>,
}

/// The values of a table.
pub(crate) struct Values {
    at: Range<usize>,
    found: BTreeMap<&'static str, Found>,
}

struct Found {
    value: Option<Value>,
    /// Where it stands, if it was given.
    at: Option<Range<usize>>,
    /// Whether it was given, and is wrong in itself or in one of its items.
    refused: bool,
}

impl Values {
    /// The value of a key that always has one.
    pub(crate) fn of(&self, key: &Key) -> &Value {
        self.get(key).expect("a key that is not optional has a default or an example")
    }

    /// The value of an optional key.
    pub(crate) fn get(&self, key: &Key) -> Option<&Value> {
        self.found.get(key.name).and_then(|found| found.value.as_ref())
    }

    /// The value and its place, if the file gives one.
    pub(crate) fn given(&self, key: &Key) -> Option<(&Value, Range<usize>)> {
        let found = self.found.get(key.name)?;
        Some((found.value.as_ref()?, found.at.clone()?))
    }

    /// Whether the file gives a value that was refused: what it would go with is not known.
    pub(crate) fn refused(&self, key: &Key) -> bool {
        self.found.get(key.name).is_some_and(|found| found.refused)
    }

    /// Where the name of the table stands.
    pub(crate) fn table(&self) -> Range<usize> {
        self.at.clone()
    }

    /// Where a value stands; the name of the table if it was not given.
    pub(crate) fn at(&self, key: &Key) -> Range<usize> {
        let at = self.found.get(key.name).and_then(|found| found.at.clone());
        at.unwrap_or_else(|| self.at.clone())
    }
}

/// Reads `keys`. What else stands in the table is for [`complain_of_strangers`].
pub(crate) fn values(table: &Table<'_, '_>, keys: &[Key], report: &mut Report) -> Values {
    let found = keys.iter().map(|key| (key.name, read(table, key, report)));
    Values { at: table.at.clone(), found: found.collect() }
}

fn read(table: &Table<'_, '_>, key: &Key, report: &mut Report) -> Found {
    let Some(given) = table.entries.and_then(|entries| entries.get(key.name)) else {
        if key.presence == Presence::Required && !report.is_broken() {
            report.add(missing(table, key));
        }
        return Found { value: fallback(key), at: None, refused: false };
    };
    let mut refusals = Vec::new();
    let value = key.kind.read(given, &mut refusals);
    let refused = !refusals.is_empty();
    for refusal in refusals {
        report.add(refusal_of(&key_path(&table.path, key.name), key, refusal));
    }
    match value {
        Some(value) => Found { value: Some(value), at: Some(given.span()), refused },
        None => Found { value: fallback(key), at: None, refused },
    }
}

/// What holds if the key was not given, or wrongly.
fn fallback(key: &Key) -> Option<Value> {
    (key.presence != Presence::Optional).then(|| {
        let literal = key.kind.literal(&key.text);
        let value = DeValue::parse(&literal).expect("texts in the table of keys are TOML");
        let read = key.kind.read(&value, &mut Vec::new());
        read.unwrap_or_else(|| unreachable!("`{}` does not take its own text", key.name))
    })
}

fn missing(table: &Table<'_, '_>, key: &Key) -> Finding {
    let path = key_path(&table.path, key.name);
    let message = format!("`{path}` is missing");
    let place = if table.path.is_empty() {
        "above the first table".to_string()
    } else {
        format!("under [{}]", table.path)
    };
    let help = format!("write {} {place}", key.line());
    Finding::new(&code::MISSING, table.at.clone(), message).help(help)
}

fn refusal_of(path: &str, key: &Key, refusal: Refusal) -> Finding {
    let message = format!("`{path}` takes {}, not {}", key.kind.takes(), refusal.given);
    Finding::new(refusal.code, refusal.at, message).help(refusal.help)
}

fn key_path(table: &str, key: &str) -> String {
    if table.is_empty() { key.to_string() } else { format!("{table}.{key}") }
}

/// What stands in the table under a name that is none of `keys`.
pub(crate) fn strangers<'d>(table: &Table<'d, '_>, keys: &[Key]) -> Vec<(&'d str, Range<usize>)> {
    let entries = table.entries.into_iter().flatten();
    let names = entries.map(|(name, _)| (name.get_ref().as_ref(), name.span()));
    names.filter(|(name, _)| keys.iter().all(|key| key.name != *name)).collect()
}

/// Reports every stranger.
pub(crate) fn complain_of_strangers(table: &Table<'_, '_>, keys: &[Key], report: &mut Report) {
    for (name, at) in strangers(table, keys) {
        report.add(stranger(table, keys, name, at));
    }
}

pub(crate) fn stranger(
    table: &Table<'_, '_>,
    keys: &[Key],
    name: &str,
    at: Range<usize>,
) -> Finding {
    let message = format!("unknown key `{}` in [{}]", shown(name), table.path);
    let names = || keys.iter().map(|key| key.name);
    let help = guess::did_you_mean(name, names())
        .or_else(|| home_of(name))
        .unwrap_or_else(|| format!("it takes `{}`", names().collect::<Vec<_>>().join("`, `")));
    Finding::new(&code::UNKNOWN_KEY, at, message).help(help)
}

/// «`limit` belongs under [upstream]», if some table has a key of just this name; if several
/// have one, all of them.
pub(crate) fn home_of(name: &str) -> Option<String> {
    let has_key = |section: &&Section| {
        let policies = section.policies();
        let mut parameters = policies.iter().flat_map(|policy| policy.parameters);
        let is_parameter = parameters.any(|parameter| parameter.name == name);
        is_parameter || section.keys.iter().any(|key| key.name == name)
    };
    let home = |section: &Section| match section.name {
        "" => "above the first table".to_string(),
        _ => format!("under {}", section.title()),
    };
    let homes: Vec<String> = keys::SECTIONS.into_iter().filter(has_key).map(home).collect();
    (!homes.is_empty()).then(|| format!("`{name}` belongs {}", homes.join(" or ")))
}
