//! Resolves tables that consist of a policy and its parameters from the engine's catalogue.

use bywash_engine::catalog::{Decides, Entry, Policy, Settings};

use crate::code;
use crate::document::Document;
use crate::key::{Key, Section};
use crate::keys;
use crate::read::{self, Table, Values};
use crate::renamed;
use crate::report::{Finding, Report};
use crate::source::shown;
use crate::spelling;

/// A policy that a table of the file selects.
pub(super) struct Chosen<D: Decides> {
    pub(super) settings: Settings<D>,
    /// The values of the policy's parameters that the file gives.
    pub(super) values: Values,
    pub(super) parameters: Vec<Key>,
}

impl<D: Decides> Chosen<D> {
    /// Returns the key of a parameter of this policy; `None` if it has no such parameter.
    pub(super) fn key(&self, name: &str) -> Option<&Key> {
        self.parameters.iter().find(|key| key.name == name)
    }
}

/// Returns the policy that the table `section` selects, one of `all`. The first key of such a table
/// names the policy.
pub(super) fn chosen<D: Decides>(
    document: &Document<'_>,
    section: &'static Section,
    all: &'static [Policy<D>],
    report: &mut Report,
) -> Chosen<D> {
    let (table, key) = (document.table(section), &section.keys[0]);
    let (policy, is_known) = policy(&table, key, all, report);
    let entry = policy.entry();
    let parameters = keys::parameters(&entry);
    let unknown_keys = read::unknown_keys(&table, &parameters);
    for (name, at) in unknown_keys.into_iter().filter(|(name, _)| *name != key.name) {
        let owners = owners(name, section);
        // If the policy is unknown, it cannot be determined whether the parameter belongs to it.
        if is_known || owners.is_empty() {
            let code =
                if owners.is_empty() { &code::UNKNOWN_KEY } else { &code::FOREIGN_PARAMETER };
            let finding = Finding::new(code, at, message(name, section, &owners, &entry));
            report.add(finding.help(help(name, section, &entry)));
        }
    }
    let values = read::values(&table, &parameters, report);
    let settings = with_parameters(policy, &parameters, &values, report);
    Chosen { settings, values, parameters }
}

/// Returns the policy, and whether its name is known. For an unknown name, returns the policy that
/// was probably meant.
fn policy<D: Decides>(
    table: &Table<'_, '_>,
    key: &Key,
    all: &'static [Policy<D>],
    report: &mut Report,
) -> (&'static Policy<D>, bool) {
    let given = table.entries.and_then(|entries| entries.get(key.name));
    let text = given.and_then(|given| given.get_ref().as_str());
    let values = read::values(table, std::slice::from_ref(key), report);
    let read = values.of(key).text();
    let is_known = given.is_none() || text == Some(read);
    let names = all.iter().map(|policy| policy.name);
    let meant = text.and_then(|text| spelling::name(text, names)).unwrap_or(read);
    let policy = all.iter().find(|policy| policy.name == meant);
    (policy.expect("both come from the catalogue"), is_known)
}

/// Returns the names of the policies of a table that have a parameter of this name.
fn owners(name: &str, section: &Section) -> Vec<&'static str> {
    let has = |policy: &Entry| policy.parameters.iter().any(|parameter| parameter.name == name);
    section.policies().into_iter().filter(has).map(|policy| policy.name).collect()
}

fn message(name: &str, section: &Section, owners: &[&str], policy: &Entry) -> String {
    let (table, policy) = (section.name, policy.name);
    if owners.is_empty() {
        format!("unknown key `{}` in [{table}]: `{policy}` has no such parameter", shown(name))
    } else {
        format!("`{name}` is a parameter of `{}`, not of `{policy}`", owners.join("`, `"))
    }
}

fn help(name: &str, section: &Section, policy: &Entry) -> String {
    let names = || policy.parameters.iter().map(|parameter| parameter.name);
    let known = || names().chain([section.keys[0].name]);
    let meant = renamed::key(section.name, name);
    meant.or_else(|| spelling::did_you_mean(name, known())).unwrap_or_else(|| {
        let names = names().collect::<Vec<_>>().join("`, `");
        match policy.parameters {
            [] => format!("`{}` has no parameters", policy.name),
            _ => format!("`{}` takes `{names}`", policy.name),
        }
    })
}

fn with_parameters<D: Decides>(
    policy: &'static Policy<D>,
    parameters: &[Key],
    values: &Values,
    report: &mut Report,
) -> Settings<D> {
    let text = |key: &Key| values.given(key).map(|(value, _)| (key.name, value.parameter()));
    let given: Vec<(&str, String)> = parameters.iter().filter_map(text).collect();
    let settings = policy.settings(given.iter().map(|(name, text)| (*name, text.as_str())));
    settings.unwrap_or_else(|errors| {
        for error in errors {
            let error = shown(&error.to_string());
            report.add(Finding::new(&code::BAD_VALUE, values.table(), error));
        }
        policy.settings([]).expect("defaults lie in their ranges")
    })
}
