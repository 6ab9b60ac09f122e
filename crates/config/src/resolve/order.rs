//! `[order]`: the policy, and the parameters that the engine's catalogue gives it.

use bywash_engine::catalog::{self, POLICIES, Policy, Settings, Value};
use bywash_units::Share;

use crate::code;
use crate::document::Document;
use crate::guess;
use crate::key::Key;
use crate::keys;
use crate::read::{self, Table, Values};
use crate::report::{Finding, Report};
use crate::source::shown;

pub(super) fn settings(document: &Document<'_>, report: &mut Report) -> Settings {
    let table = document.table(&keys::ORDER);
    let (policy, is_known) = policy(&table, report);
    let parameters = keys::parameters(policy);
    let strangers = read::strangers(&table, &parameters);
    for (name, at) in strangers.into_iter().filter(|(name, _)| *name != keys::POLICY.name) {
        // Without a known policy, nobody can say whose parameter it should be.
        if is_known || owners(name).is_empty() {
            let finding = Finding::new(code_of(name), at, message(name, policy));
            report.add(finding.help(help(name, policy)));
        }
    }
    let values = read::values(&table, &parameters, report);
    let settings = with_parameters(policy, &parameters, &values, report);
    check_thresholds(&settings, &values, &parameters, report);
    settings
}

/// The policy, or the one that was probably meant.
fn policy(table: &Table<'_, '_>, report: &mut Report) -> (&'static Policy, bool) {
    let given = table.entries.and_then(|entries| entries.get(keys::POLICY.name));
    let text = given.and_then(|given| given.get_ref().as_str());
    let values = read::values(table, &[keys::POLICY], report);
    let read = values.of(&keys::POLICY).text();
    let is_known = given.is_none() || text == Some(read);
    let names = POLICIES.iter().map(|policy| policy.name);
    let meant = text.and_then(|text| guess::name(text, names)).unwrap_or(read);
    let policy = catalog::find(meant).expect("both come from the catalogue");
    (policy, is_known)
}

/// The policies that have a parameter of this name.
fn owners(name: &str) -> Vec<&'static str> {
    let has = |policy: &&Policy| policy.parameters.iter().any(|parameter| parameter.name == name);
    POLICIES.iter().filter(has).map(|policy| policy.name).collect()
}

fn code_of(name: &str) -> &'static code::Code {
    if owners(name).is_empty() { &code::UNKNOWN_KEY } else { &code::FOREIGN_PARAMETER }
}

fn message(name: &str, policy: &Policy) -> String {
    let owners = owners(name);
    if owners.is_empty() {
        format!("unknown key `{}` in [order]: `{}` has no such parameter", shown(name), policy.name)
    } else {
        format!("`{name}` is a parameter of `{}`, not of `{}`", owners.join("`, `"), policy.name)
    }
}

fn help(name: &str, policy: &Policy) -> String {
    let names = || policy.parameters.iter().map(|parameter| parameter.name);
    let known = || names().chain([keys::POLICY.name]);
    guess::did_you_mean(name, known()).unwrap_or_else(|| {
        format!("`{}` takes `{}`", policy.name, names().collect::<Vec<_>>().join("`, `"))
    })
}

fn with_parameters(
    policy: &'static Policy,
    parameters: &[Key],
    values: &Values,
    report: &mut Report,
) -> Settings {
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

/// The two thresholds of `engine::overload::Cpu`: with the lower one above, there would be no
/// calm to come back to.
fn check_thresholds(settings: &Settings, values: &Values, keys: &[Key], report: &mut Report) {
    let (Some(lower), Some(upper)) = (share(settings, "lower"), share(settings, "upper")) else {
        return;
    };
    if lower <= upper {
        return;
    }
    let given = |name: &str| {
        let key = keys.iter().find(|key| key.name == name)?;
        values.given(key).map(|(_, at)| at)
    };
    let (lower, upper) = (lower.get(), upper.get());
    let message = format!("`order.lower` {lower} lies above `order.upper` {upper}");
    let at = given("lower").or_else(|| given("upper")).unwrap_or_else(|| values.table());
    let mut finding = Finding::new(&code::THRESHOLDS, at, message)
        .help(format!("calm returns below `lower`: set it to {upper} or less"));
    if let (Some(_), Some(at)) = (given("lower"), given("upper")) {
        finding = finding.elsewhere(at, "upper");
    }
    report.add(finding);
}

fn share(settings: &Settings, name: &str) -> Option<Share> {
    let (_, value) = settings.values().find(|(parameter, _)| parameter.name == name)?;
    match value {
        Value::Share(share) => Some(share),
        Value::Count(_) | Value::Span(_) | Value::Choice(_) => None,
    }
}
