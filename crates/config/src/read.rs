//! Reads one table of the file into values.
//!
//! Reading never fails. A key that is missing or wrong is reported, and gets its default or, if it
//! has none, its example. So checks that depend on the key run in the same pass.

use std::collections::BTreeMap;
use std::ops::Range;

use toml::de::{DeTable, DeValue};

use crate::code;
use crate::key::{Key, Presence, Section};
use crate::keys;
use crate::kind::Refusal;
use crate::renamed;
use crate::report::{Finding, Report};
use crate::source::shown;
use crate::spelling;
use crate::value::Value;

/// A table of the file before it is read.
#[derive(Clone)]
pub(crate) struct Table<'d, 't> {
    /// The name of the table for messages; empty for the keys above the first table.
    pub(crate) path: String,
    /// The position of the table's name in the file.
    pub(crate) at: Range<usize>,
    /// The entries of the table; `None` if the file does not have the table.
    pub(crate) entries: Option<&'d DeTable<'t>>,
}

/// The values of the keys of one table.
pub(crate) struct Values {
    at: Range<usize>,
    found: BTreeMap<&'static str, Found>,
}

struct Found {
    value: Option<Value>,
    /// The position of the value in the file; `None` if the file does not give one.
    at: Option<Range<usize>>,
    /// Whether the file gives a value that was rejected in whole or in part.
    refused: bool,
}

impl Values {
    /// Returns the value of a key that always has one: from the file, or the default.
    pub(crate) fn of(&self, key: &Key) -> &Value {
        self.get(key).expect("a key that is not optional has a default or an example")
    }

    /// Returns the value of an optional key; `None` if it has none.
    pub(crate) fn get(&self, key: &Key) -> Option<&Value> {
        self.found.get(key.name).and_then(|found| found.value.as_ref())
    }

    /// Returns the value of a key and its position; `None` if the file does not give the key.
    pub(crate) fn given(&self, key: &Key) -> Option<(&Value, Range<usize>)> {
        let found = self.found.get(key.name)?;
        Some((found.value.as_ref()?, found.at.clone()?))
    }

    /// Returns whether the file gives a value of the key that was rejected. If so, checks that
    /// compare other values with this one are skipped.
    pub(crate) fn refused(&self, key: &Key) -> bool {
        self.found.get(key.name).is_some_and(|found| found.refused)
    }

    /// Returns the position of the table's name in the file.
    pub(crate) fn table(&self) -> Range<usize> {
        self.at.clone()
    }

    /// Returns the position of a key's value in the file, or that of the table's name if the file
    /// does not give the key.
    pub(crate) fn at(&self, key: &Key) -> Range<usize> {
        let at = self.found.get(key.name).and_then(|found| found.at.clone());
        at.unwrap_or_else(|| self.at.clone())
    }
}

/// Reads the values of `keys` from a table. Problems are reported, and a default replaces an
/// unusable value. Other entries of the table are left to [`complain_of_strangers`].
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
        report.add(refusal_of(&table.path, key, refusal));
    }
    match value {
        Some(value) => Found { value: Some(value), at: Some(given.span()), refused },
        None => Found { value: fallback(key), at: None, refused },
    }
}

/// Returns the value of a key that is missing or wrong: its default or, for a required key, its
/// example.
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
    let position = if table.path.is_empty() {
        "above the first table".to_string()
    } else {
        format!("under [{}]", table.path)
    };
    let help = format!("write {} {position}", key.line());
    Finding::new(&code::MISSING, table.at.clone(), message).help(help)
}

fn refusal_of(table: &str, key: &Key, refusal: Refusal) -> Finding {
    let path = key_path(table, key.name);
    let message = format!("`{path}` takes {}, not {}", key.kind.takes(), refusal.given);
    let help = renamed::value(table, key.name, &refusal.given).or(refusal.help);
    Finding::new(refusal.code, refusal.at, message).help(help)
}

fn key_path(table: &str, key: &str) -> String {
    if table.is_empty() { key.to_string() } else { format!("{table}.{key}") }
}

/// Returns the names and positions of the table's entries that are not in `keys`.
pub(crate) fn unknown_keys<'d>(
    table: &Table<'d, '_>,
    keys: &[Key],
) -> Vec<(&'d str, Range<usize>)> {
    let entries = table.entries.into_iter().flatten();
    let names = entries.map(|(name, _)| (name.get_ref().as_ref(), name.span()));
    names.filter(|(name, _)| keys.iter().all(|key| key.name != *name)).collect()
}

/// Reports every key of a table that is not in `keys`.
pub(crate) fn complain_of_strangers(table: &Table<'_, '_>, keys: &[Key], report: &mut Report) {
    for (name, at) in unknown_keys(table, keys) {
        report.add(unknown_key(table, keys, name, at));
    }
}

pub(crate) fn unknown_key(
    table: &Table<'_, '_>,
    keys: &[Key],
    name: &str,
    at: Range<usize>,
) -> Finding {
    let message = format!("unknown key `{}` in [{}]", shown(name), table.path);
    let names = || keys.iter().map(|key| key.name);
    let help = renamed::key(&table.path, name)
        .or_else(|| spelling::did_you_mean(name, names()))
        .or_else(|| other_tables_with(name))
        .unwrap_or_else(|| {
            format!("this table takes `{}`", names().collect::<Vec<_>>().join("`, `"))
        });
    Finding::new(&code::UNKNOWN_KEY, at, message).help(help)
}

/// Returns the help «`limit` belongs under [upstream]» if another table has a key of exactly this
/// name. If there are several such tables, the help names all. Returns `None` if there is none.
pub(crate) fn other_tables_with(name: &str) -> Option<String> {
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
