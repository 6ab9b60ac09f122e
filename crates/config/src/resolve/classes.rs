//! Resolves `[class.NAME]`: the classes in the order of the file, their patterns, and the classes
//! that they require.

use std::collections::HashMap;
use std::collections::hash_map::Entry as Slot;
use std::ops::Range;

use bywash_engine::classify::{Classifier, Condition, Field, HostPattern, Pattern, Rule};
use bywash_engine::{Class, ClassId, ClassSet, Tier};
use bywash_units::Utility;
use toml::Spanned;

use super::levels::Names;
use super::{fields, server, terminate, timeouts};
use crate::code::{self, Code};
use crate::config::ClassConfig;
use crate::document::{Document, Entry};
use crate::key::Key;
use crate::keys;
use crate::levels::Level;
use crate::mode::Mode;
use crate::read::{self, Table, Values};
use crate::report::{Finding, Report};
use crate::source::shown;
use crate::spelling;
use crate::success::Success;
use crate::token::is_token;
use crate::upstream::Timeouts;
use crate::value::Value;

/// A class whose values are read, but whose references to other classes are not resolved yet.
struct Draft {
    name: String,
    /// The position of the class's name in the file; `None` for an `other` that is not in the file.
    at: Option<Range<usize>>,
    values: Values,
}

/// The settings of other tables that apply to a class which does not override them.
pub(super) struct Inherited<'a> {
    pub(super) mode: Mode,
    pub(super) timeouts: Timeouts,
    /// Whether the application ignores the case of paths, if the file declares it.
    pub(super) ignore_case: Option<bool>,
    pub(super) max_body_bytes: u64,
    /// The names of the service levels.
    pub(super) names: &'a Names,
}

pub(super) fn classes(
    document: &Document<'_>,
    file: &Inherited<'_>,
    report: &mut Report,
) -> (Vec<ClassConfig>, Classifier) {
    let drafts = drafts(document, report);
    let classifier = classifier(&drafts, file.ignore_case == Some(true), report);
    let classes: Vec<ClassConfig> =
        drafts.iter().map(|draft| resolve(draft, &drafts, file, report)).collect();
    check_utilities(&drafts, report);
    if file.ignore_case.is_none() {
        check_spellings(&classes, &drafts, report);
    }
    (classes, classifier)
}

/// Returns the classes of the file in its order, with `other` last. Classes beyond the allowed
/// number are reported and left out.
fn drafts(document: &Document<'_>, report: &mut Report) -> Vec<Draft> {
    let mut entries = document.entries(&keys::CLASS, report);
    let other = entries.iter().position(|entry| entry.name == keys::OTHER);
    let other = other.map(|index| entries.remove(index));
    if let Some(first) = entries.get(keys::CLASSES) {
        let message = format!(
            "there are {} classes, and at most {} are allowed",
            entries.len(),
            keys::CLASSES
        );
        report.add(Finding::new(&code::CLASSES, first.at.clone(), message));
    }
    entries.truncate(keys::CLASSES);
    let mut drafts: Vec<Draft> = entries.iter().map(|entry| draft(entry, report)).collect();
    drafts.push(draft_of_other(other.as_ref(), report));
    drafts
}

fn draft(entry: &Entry<'_, '_>, report: &mut Report) -> Draft {
    check_name(entry, report);
    let table = entry.table();
    read::complain_of_strangers(&table, keys::CLASS.keys, report);
    let values = read::values(&table, keys::CLASS.keys, report);
    Draft { name: entry.name.to_string(), at: Some(entry.at.clone()), values }
}

fn draft_of_other(entry: Option<&Entry<'_, '_>>, report: &mut Report) -> Draft {
    let nowhere = Table { path: format!("class.{}", keys::OTHER), at: 0..0, entries: None };
    let table = entry.map_or(nowhere, Entry::table);
    let keys = keys::of_other();
    for (name, at) in read::unknown_keys(&table, &keys) {
        report.add(if name == keys::MATCH.name {
            let message = "`class.other` takes no `match`".to_string();
            let help = "`other` gets the requests that no pattern matches; give the patterns to \
                        another class";
            Finding::new(&code::OTHER_MATCH, at, message).help(help.to_string())
        } else {
            read::unknown_key(&table, &keys, name, at)
        });
    }
    let values = read::values(&table, &keys, report);
    Draft { name: keys::OTHER.to_string(), at: entry.map(|entry| entry.at.clone()), values }
}

fn check_name(entry: &Entry<'_, '_>, report: &mut Report) {
    let is_fit = |name: &str| {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || c == '-';
        let starts = name.starts_with(|c: char| c.is_ascii_lowercase());
        starts && name.len() <= 32 && name.chars().all(plain)
    };
    if !is_fit(entry.name) {
        let message = format!("`{}` is not a valid name of a class", shown(entry.name));
        let meant = entry.name.to_lowercase().replace([' ', '.'], "-");
        let help = if is_fit(&meant) {
            format!("did you mean `{meant}`?")
        } else {
            "begin with a to z, and go on with a to z, 0 to 9, _ and -, at most 32 characters"
                .to_string()
        };
        report.add(Finding::new(&code::CLASS_NAME, entry.at.clone(), message).help(help));
    }
}

fn resolve(
    draft: &Draft,
    drafts: &[Draft],
    file: &Inherited<'_>,
    report: &mut Report,
) -> ClassConfig {
    let values = &draft.values;
    let path = format!("class.{}", shown(&draft.name));
    let mode = check_enforce_percent(&path, values, file.mode, report);
    let timeouts = timeouts::of_class(&path, values, file.timeouts, report);
    terminate::check_reach(&draft.name, values, timeouts.response, report);
    ClassConfig {
        class: Class {
            name: draft.name.clone(),
            tier: values.of(&keys::TIER).word(),
            utility: Utility::new(values.of(&keys::UTILITY).number()),
            revenue: Utility::new(values.of(&keys::REVENUE).number()),
            fixed_value: values.get(&keys::FIXED_VALUE).map(|value| Utility::new(value.number())),
            stop: terminate::bounds(&draft.name, values, report),
            queue: values.get(&keys::PLACES).map(|places| places.whole() as u32),
            requires: requires(draft, drafts, report),
        },
        patterns: patterns(values),
        mode,
        enforce_percent: values.of(&keys::ENFORCE_PERCENT).whole() as u8,
        patience: values.get(&keys::PATIENCE).map(Value::span),
        level: level(draft, file.names, report),
        revenue_header: revenue_header(draft, report),
        success: success(draft, drafts, mode, report),
        max_body_bytes: values
            .get(&keys::CLASS_MAX_BODY_BYTES)
            .map_or(file.max_body_bytes, Value::whole),
        timeouts,
        line: draft.at.as_ref().map(|at| report.line(at)),
        is_removed: false,
    }
}

fn patterns(values: &Values) -> Vec<String> {
    let given = values.given(&keys::MATCH).map(|(value, _)| value.texts());
    given.into_iter().flatten().map(|text| text.get_ref().clone()).collect()
}

/// Returns the mode of the class whose table is `path`, such as `class.home`. Warns of
/// `enforce_percent` in a class that only observes, because the key has no effect there.
fn check_enforce_percent(path: &str, values: &Values, mode: Mode, report: &mut Report) -> Mode {
    let mode = values.get(&keys::CLASS_MODE).map_or(mode, Value::word);
    if let (Mode::Observe, Some((percent, at))) = (mode, values.given(&keys::ENFORCE_PERCENT))
        && percent.whole() < 100
    {
        let message = format!("`{path}.enforce_percent` has no effect: the class only observes");
        let help =
            "write mode = \"enforce\" in the same table, or remove `enforce_percent`".to_string();
        report.add(Finding::new(&code::ENFORCE_PERCENT_OBSERVED, at, message).help(help));
    }
    mode
}

fn level(draft: &Draft, names: &Names, report: &mut Report) -> Option<Level> {
    let (value, at) = draft.values.given(&keys::CLASS_LEVEL)?;
    names.level(&format!("class.{}.level", shown(&draft.name)), (value.text(), at), report)
}

/// Returns the name of the header field that carries the revenue of an answer; `None` if there is
/// none or its name is invalid, which is reported.
fn revenue_header(draft: &Draft, report: &mut Report) -> Option<String> {
    let (value, at) = draft.values.given(&keys::REVENUE_HEADER)?;
    let path = format!("class.{}.revenue_header", shown(&draft.name));
    let name = fields::taken_away(&path, value.text(), at.clone(), report);
    if has_no_revenue(draft) {
        let message = format!("`{path}` is limited to 100 times `revenue`, which is 0");
        let help = "set `revenue` to the average revenue of a success".to_string();
        report.add(Finding::new(&code::NO_REVENUE, at, message).help(help));
    }
    name
}

/// Returns whether a successful request of the class brings no revenue.
fn has_no_revenue(draft: &Draft) -> bool {
    let revenue = draft.values.of(&keys::REVENUE).number();
    revenue <= 0.0 && !draft.values.refused(&keys::REVENUE)
}

/// Returns whether another class names this class in its `requires`.
fn is_required(draft: &Draft, drafts: &[Draft]) -> bool {
    let names_it = |other: &Draft| {
        let requires = other.values.given(&keys::REQUIRES).map(|(value, _)| value.texts());
        requires.into_iter().flatten().any(|name| *name.get_ref() == draft.name)
    };
    drafts.iter().any(|other| other.name != draft.name && names_it(other))
}

/// Returns the conditions on which an answer counts as a success. Invalid conditions are reported
/// and left out.
fn success(draft: &Draft, drafts: &[Draft], mode: Mode, report: &mut Report) -> Success {
    let mut success = Success::default();
    let Some((value, at)) = draft.values.given(&keys::SUCCESS) else { return success };
    for text in value.texts() {
        if !success.add(text.get_ref()) {
            let message = format!("\"{}\" is not a condition on an answer", shown(text.get_ref()));
            let help =
                "write \"status 302\", \"header location: /thanks*\" or \"json result: success\"";
            report.add(Finding::new(&code::SUCCESS, text.span(), message).help(help.to_string()));
        }
    }
    let path = format!("class.{}.success", shown(&draft.name));
    let enforce_percent = draft.values.of(&keys::ENFORCE_PERCENT).whole();
    if (mode == Mode::Observe || enforce_percent < 100) && !success.json.is_empty() {
        let why = match mode {
            Mode::Observe => "the class only observes".to_string(),
            Mode::Enforce => {
                format!("the class only observes {} of 100 clients", 100 - enforce_percent)
            }
        };
        let message = format!("`{path}` does not see JSON in compressed answers: {why}");
        let help = "enforce the class for all clients, or let the application not compress these \
                    answers"
            .to_string();
        report.add(Finding::new(&code::JSON_OBSERVED, at.clone(), message).help(help));
    }
    if has_no_revenue(draft) && !is_required(draft, drafts) {
        let message = format!(
            "`{path}` has no effect: the class has no revenue, and no other class names it in \
             `requires`"
        );
        let help = "set `revenue` to the average revenue of a success, or name the class in the \
                    `requires` of another"
            .to_string();
        report.add(Finding::new(&code::NO_REVENUE, at, message).help(help));
    }
    success
}

/// Returns the classes in `requires`, one of which a session must have been served. Unknown names
/// are reported and left out.
fn requires(draft: &Draft, drafts: &[Draft], report: &mut Report) -> ClassSet {
    let Some((value, at)) = draft.values.given(&keys::REQUIRES) else {
        return ClassSet::NONE;
    };
    if draft.values.of(&keys::TIER).word::<Tier>() == Tier::Browsing {
        let message =
            format!("`class.{}.requires` has no effect on a class of browsing", shown(&draft.name));
        let help = format!("write tier = \"{}\", or remove `requires`", Tier::Transaction.name());
        report.add(Finding::new(&code::REQUIRES_OF_BROWSING, at, message).help(help));
    }
    let mut set = ClassSet::NONE;
    for name in value.texts() {
        match drafts.iter().position(|other| other.name == *name.get_ref()) {
            Some(index) if drafts[index].name != draft.name => {
                set = set.with(ClassId(index as u8));
            }
            Some(_) => report.add(requires_itself(name)),
            None => report.add(requires_nothing(name, drafts)),
        }
    }
    set
}

fn requires_itself(name: &Spanned<String>) -> Finding {
    let message = format!("`class.{0}.requires` names `{0}` itself", shown(name.get_ref()));
    let help =
        "give the first step of the purchase a class of its own, and name that one".to_string();
    Finding::new(&code::REQUIRES, name.span(), message).help(help)
}

fn requires_nothing(name: &Spanned<String>, drafts: &[Draft]) -> Finding {
    let message = format!("there is no class `{}`", shown(name.get_ref()));
    let names = drafts.iter().map(|draft| draft.name.as_str());
    let help = spelling::did_you_mean(name.get_ref(), names);
    Finding::new(&code::REQUIRES, name.span(), message).help(help)
}

/// Returns the classifier of all usable patterns. Each unusable pattern is reported and left out.
fn classifier(drafts: &[Draft], ignores_case: bool, report: &mut Report) -> Classifier {
    let mut rules = Vec::new();
    let mut seen: HashMap<(String, Condition), Range<usize>> = HashMap::new();
    for (index, draft) in drafts.iter().enumerate() {
        let Some((value, _)) = draft.values.given(&keys::MATCH) else {
            continue;
        };
        let condition = condition(draft, report);
        for text in value.texts() {
            let Some(pattern) = pattern(text, report) else {
                continue;
            };
            let mut name = pattern.to_string();
            if ignores_case {
                // Only the path is converted: the case of parameters always counts.
                let path = name.find('?').unwrap_or(name.len());
                name[..path].make_ascii_lowercase();
            }
            match seen.entry((name, condition.clone())) {
                Slot::Occupied(first) => report.add(tie(text, first.get().clone())),
                Slot::Vacant(place) => {
                    place.insert(text.span());
                    let (condition, class) = (condition.clone(), ClassId(index as u8));
                    rules.push(Rule { pattern, condition, class });
                }
            }
        }
    }
    let other = ClassId((drafts.len() - 1) as u8);
    Classifier::new(rules, other, ignores_case)
        .expect("patterns that occur twice are left out above")
}

/// Returns the host and the header fields that requests of a class must have.
fn condition(draft: &Draft, report: &mut Report) -> Condition {
    let help = "write \"shop.example.com\", or \"*.example.com\" for all hosts below it; no port";
    let hosts = all_of(draft, &keys::HOSTS, host, (&code::HOST, "host", help), report);
    let help = "write \"x-requested-with\", or \"x-kind: crawler\" for one with this value";
    let fields = all_of(draft, &keys::HEADERS, field, (&code::FIELD, "header field", help), report);
    Condition { hosts, fields }
}

/// Returns the sorted values of a list. Each invalid text is left out and reported; `what`
/// describes the expected form.
fn all_of<T: Ord>(
    draft: &Draft,
    key: &Key,
    parse: impl Fn(&str) -> Option<T>,
    (code, what, help): (&'static Code, &str, &str),
    report: &mut Report,
) -> Vec<T> {
    let mut found = Vec::new();
    for text in draft.values.given(key).into_iter().flat_map(|(value, _)| value.texts()) {
        if let Some(value) = parse(text.get_ref()) {
            found.push(value);
        } else {
            let message = format!("\"{}\" is not a {what}", shown(text.get_ref()));
            report.add(Finding::new(code, text.span(), message).help(help.to_string()));
        }
    }
    found.sort_unstable();
    found
}

fn host(text: &str) -> Option<HostPattern> {
    let text = text.to_ascii_lowercase();
    match text.strip_prefix('*') {
        Some(domain) => {
            let name = domain.strip_prefix('.').filter(|name| server::is_name(name))?;
            Some(HostPattern::Below(format!(".{name}")))
        }
        None => server::is_name(&text).then_some(HostPattern::Host(text)),
    }
}

fn field(text: &str) -> Option<Field> {
    let (name, value) = match text.split_once(':') {
        Some((name, value)) => (name, Some(value.trim().to_string())),
        None => (text, None),
    };
    is_token(name).then(|| Field { name: name.to_ascii_lowercase(), value })
}

fn tie(text: &Spanned<String>, first: Range<usize>) -> Finding {
    let message = format!("the pattern \"{}\" occurs twice", shown(text.get_ref()));
    let help = "a request has one class: keep one of them".to_string();
    Finding::new(&code::TIE, text.span(), message).help(help).elsewhere(first, "first here")
}

fn pattern(text: &Spanned<String>, report: &mut Report) -> Option<Pattern> {
    let help = match text.get_ref().parse::<Pattern>() {
        Ok(pattern) if pattern.has_one_reading() => return Some(pattern),
        Ok(_) => "write a path that can be read in only one way: without //, %, ; and segments . \
                  or .."
            .into(),
        Err(why) => meant_pattern(text.get_ref()).unwrap_or_else(|| why.to_string()),
    };
    let message = format!("\"{}\" is not a pattern", shown(text.get_ref()));
    report.add(Finding::new(&code::PATTERN, text.span(), message).help(help));
    None
}

/// Returns the help for a pattern such as `get /` or `GET p`: the pattern that was probably meant.
fn meant_pattern(text: &str) -> Option<String> {
    let (method, path) = text.trim().split_once(' ').unwrap_or(("GET", text.trim()));
    let meant = format!("{} /{}", method.to_ascii_uppercase(), path.trim().trim_start_matches('/'));
    let is_one = meant.parse::<Pattern>().is_ok_and(|pattern| pattern.has_one_reading());
    is_one.then(|| format!("did you mean \"{}\"?", shown(&meant)))
}

/// Warns if a request can escape an enforced class because its path is written in another case. A
/// path in another case matches no pattern, so its request belongs to `other`. If `other` only
/// observes, the request does not wait.
///
/// Paths are normalised, which covers all other known spellings. Case remains, because only the
/// operator knows whether the application distinguishes it.
fn check_spellings(classes: &[ClassConfig], drafts: &[Draft], report: &mut Report) {
    let is_held = |class: &&ClassConfig| class.mode == Mode::Enforce;
    let Some(enforced) = classes.iter().find(is_held) else { return };
    if classes.last().as_ref().is_none_or(is_held) {
        return;
    }
    let name = &enforced.class.name;
    let Some(draft) = drafts.iter().find(|draft| draft.name == *name) else { return };
    let message = format!(
        "`{}` is enforced and `other` only observes: if the application ignores case, a page of \
         this class escapes control when its path is written in another case",
        shown(name)
    );
    let help = "set `upstream.ignore_case` to true if the application ignores case and to false \
                if not, or enforce `other` as well";
    let at = draft.at.clone().unwrap_or(0..0);
    report.add(Finding::new(&code::SPELLING, at, message).help(help.to_string()));
}

/// Warns of a transaction class with a lower utility than a browsing class. Requests of the
/// transaction class would be served after browsing.
fn check_utilities(drafts: &[Draft], report: &mut Report) {
    let tier = |draft: &&Draft| draft.values.of(&keys::TIER).word::<Tier>();
    let worth = |draft: &Draft| draft.values.of(&keys::UTILITY).number();
    let browsing = drafts.iter().filter(|draft| tier(draft) == Tier::Browsing);
    let Some(best) = browsing.max_by(|a, b| worth(a).total_cmp(&worth(b))) else {
        return;
    };
    for draft in drafts.iter().filter(|draft| tier(draft) == Tier::Transaction) {
        if worth(draft) < worth(best) {
            report.add(low_utility(draft, best, worth(draft), worth(best)));
        }
    }
}

fn low_utility(draft: &Draft, best: &Draft, worth: f64, most: f64) -> Finding {
    let (name, browsing) = (shown(&draft.name), shown(&best.name));
    let message = format!(
        "`{name}` is a transaction of utility {worth}, and `{browsing}` is browsing of utility \
         {most}"
    );
    let help = format!("set `utility` of `{name}` to more than {most}");
    let finding = Finding::new(&code::UTILITY, draft.values.at(&keys::UTILITY), message).help(help);
    match best.values.given(&keys::UTILITY) {
        Some((_, at)) => finding.elsewhere(at, "the higher utility"),
        None => finding,
    }
}
