//! The ordered list of rules, which gives each request its class or classes.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::ToString;
use alloc::vec::Vec;

use super::query::QueryFit;
use super::{Condition, PathReading, Pattern, RequestLine, RequestParts, Rule, Tie, readings};
use crate::request::{ClassId, ClassSet};

/// The rules that give requests their classes, in the order in which they are tried. Rules with
/// conditions on fields come first. Rules for named hosts follow, then those for hosts below a
/// domain, and those for any host. The search ends with the first rule that the request matches
/// exactly.
#[derive(Clone, Debug)]
pub struct Classifier {
    rules: Vec<Rule>,
    indexes: [Index; 4],
    default: ClassId,
    ignores_case: bool,
}

/// An index of rules by the first segment of their path, most specific first. It makes the time per
/// request independent of the number of patterns with other first segments.
#[derive(Clone, Debug, Default)]
struct Index {
    by_name: BTreeMap<Box<str>, Vec<u16>>,
    /// The rules whose path does not begin with a fixed name.
    others: Vec<u16>,
}

impl Classifier {
    /// Builds a classifier from rules in any order. Requests that match no rule have the class
    /// `default`. `ignores_case` says whether the application ignores the case of paths.
    ///
    /// # Errors
    /// Returns all ties at once: pairs of equal rules with different classes.
    pub fn new(
        rules: impl IntoIterator<Item = Rule>,
        default: ClassId,
        ignores_case: bool,
    ) -> Result<Self, Vec<Tie>> {
        let lowered = |rule: Rule| {
            let pattern = if ignores_case { rule.pattern.in_lower_case() } else { rule.pattern };
            Rule { pattern, ..rule }
        };
        let mut rules: Vec<Rule> = rules.into_iter().map(lowered).collect();
        rules.sort_by(|a, b| {
            let conditions = || b.condition.cmp(&a.condition);
            b.pattern.cmp(&a.pattern).then_with(conditions)
        });
        let is_tie = |pair: &[Rule]| {
            (pair[0].pattern == pair[1].pattern && pair[0].condition == pair[1].condition)
                .then(|| Tie { pattern: pair[0].pattern.to_string() })
        };
        let ties: Vec<Tie> = rules.windows(2).filter_map(is_tie).collect();
        let mut indexes = <[Index; 4]>::default();
        for (at, rule) in (0_u16..).zip(&rules) {
            let index = &mut indexes[rule.condition.precedence()];
            match rule.pattern.first_name() {
                Some(name) => index.by_name.entry(name.into()).or_default().push(at),
                None => index.others.push(at),
            }
        }
        let classifier = Self { rules, indexes, default, ignores_case };
        if ties.is_empty() { Ok(classifier) } else { Err(ties) }
    }

    /// Returns the same rules with each class replaced by the result of `number` for it.
    #[must_use]
    pub fn renumbered(&self, number: impl Fn(ClassId) -> ClassId) -> Self {
        let mut renumbered = self.clone();
        for rule in &mut renumbered.rules {
            rule.class = number(rule.class);
        }
        renumbered.default = number(self.default);
        renumbered
    }

    /// Returns the class of requests that match no rule.
    pub const fn default_class(&self) -> ClassId {
        self.default
    }

    /// Returns the condition of each rule, with the class of the rule.
    pub fn conditions(&self) -> impl Iterator<Item = (ClassId, &Condition)> {
        self.rules.iter().map(|rule| (rule.class, &rule.condition))
    }

    /// Returns the [`readings`] of a canonical path without a query. Letter case is ignored if the
    /// application ignores it. Returns `None` if the path exceeds the limits for paths with several
    /// readings.
    pub fn readings<'p>(
        &self,
        path: &'p str,
    ) -> Option<impl Iterator<Item = PathReading<'p>> + use<'p>> {
        readings(path, self.ignores_case)
    }

    /// Returns the classes of all readings of a request. The set is never empty, and usually has
    /// one class.
    pub fn classes(&self, parts: &RequestParts<'_>) -> ClassSet {
        let other = ClassSet::NONE.with(self.default);
        if self.rules.is_empty() {
            return other;
        }
        let Some(readings) = self.readings(parts.path()) else {
            return self.rules.iter().fold(other, |all, rule| all.with(rule.class));
        };
        let mut line = RequestLine::new(parts.method, parts.target);
        let mut classes = ClassSet::NONE;
        for reading in readings {
            classes = classes.union(self.of_reading(parts, &mut line, &reading));
        }
        if classes.is_empty() { other } else { classes }
    }

    /// Returns the class of a request whose path is read literally: the class of the most specific
    /// rule that the request matches.
    pub fn class(&self, parts: &RequestParts<'_>) -> ClassId {
        let mut line = RequestLine::new(parts.method, parts.target);
        let reading = PathReading::plain(parts.path(), self.ignores_case);
        let found = reading.and_then(|reading| self.find(parts, &mut line, &reading).exact);
        found.unwrap_or(self.default)
    }

    /// Returns the classes of one reading of the path. If the path ends with a slash, the classes
    /// of the path without that slash count as well. If it does not, the classes of the path with a
    /// slash count if no rule matches the path itself.
    fn of_reading<'t>(
        &self,
        parts: &RequestParts<'t>,
        line: &mut RequestLine<'t>,
        reading: &PathReading<'t>,
    ) -> ClassSet {
        let found = self.find(parts, line, reading);
        let set = found.classes.with(found.exact.unwrap_or(self.default));
        let counts = found.exact.is_none() || reading.ends_with_slash();
        match reading.toggled().filter(|_| counts) {
            Some(toggled) => {
                let toggled = self.find(parts, line, &toggled);
                let exact =
                    toggled.exact.map_or(ClassSet::NONE, |class| ClassSet::NONE.with(class));
                set.union(toggled.classes).union(exact)
            }
            None => set,
        }
    }

    fn find<'t>(
        &self,
        parts: &RequestParts<'t>,
        line: &mut RequestLine<'t>,
        reading: &PathReading<'t>,
    ) -> Found {
        line.read_as(*reading);
        let mut found = Found { classes: ClassSet::NONE, exact: None };
        let [with_fields, by_host @ ..] = &self.indexes;
        for rule in self.candidates(with_fields, reading) {
            if fit(rule, parts, line, reading) != QueryFit::No {
                found.classes = found.classes.with(rule.class);
            }
        }
        for index in by_host {
            found.add_fitting(self.candidates(index, reading), parts, line, reading);
            if found.exact.is_some() {
                break;
            }
        }
        found
    }

    /// Returns those rules of an index that may match this reading of a path.
    fn candidates<'r>(
        &'r self,
        index: &'r Index,
        reading: &PathReading<'_>,
    ) -> impl Iterator<Item = &'r Rule> {
        let named = reading.with_first_name(|name| index.by_name.get(name));
        let candidates = named.into_iter().flatten().chain(&index.others);
        candidates.map(|at| &self.rules[usize::from(*at)])
    }
}

/// Returns how the query of a request fits a rule. The result is [`QueryFit::No`] if any other part
/// of the request does not match the rule.
fn fit(
    rule: &Rule,
    parts: &RequestParts<'_>,
    line: &RequestLine<'_>,
    reading: &PathReading<'_>,
) -> QueryFit {
    let Rule { pattern, condition, .. } = rule;
    let is_meant =
        pattern.takes(parts.method) && pattern.matches_path(reading) && condition.is_met(parts);
    if is_meant { pattern.query_fit(line) } else { QueryFit::No }
}

/// The classes that the rules give to one reading of a request.
struct Found {
    /// The classes of all rules that fit the reading and that no other rule hides.
    classes: ClassSet,
    /// The class of the most specific rule that the request matches exactly.
    exact: Option<ClassId>,
}

impl Found {
    /// Adds the classes of those `rules` that fit a request. `rules` begins with the most specific.
    /// Once the request matches a rule exactly, only further rules with the same path are
    /// considered.
    fn add_fitting<'r>(
        &mut self,
        rules: impl Iterator<Item = &'r Rule>,
        parts: &RequestParts<'_>,
        line: &RequestLine<'_>,
        reading: &PathReading<'_>,
    ) {
        // The earlier rules for the path of `of_path` that fit the request.
        let mut before: Vec<&Rule> = Vec::new();
        let mut of_path: Option<&Rule> = None;
        for rule in rules {
            if of_path.is_none_or(|first| !first.pattern.has_path_of(&rule.pattern)) {
                if self.exact.is_some() {
                    return;
                }
                of_path = Some(rule);
                before.clear();
            }
            let fit = fit(rule, parts, line, reading);
            if fit == QueryFit::No || before.iter().any(|first| hides(first, rule, line)) {
                continue;
            }
            if rule.pattern.names_parameters() && line.parameters().are_too_many() {
                // With so many parameters every rule with this path fits, and none hides another.
                self.classes = self.classes.with(rule.class);
                continue;
            }
            self.classes = self.classes.with(rule.class);
            if takes(&rule.pattern, fit, line) {
                self.exact = self.exact.or(Some(rule.class));
                if !rule.pattern.names_parameters() {
                    return;
                }
            }
            before.push(rule);
        }
    }
}

/// Returns whether a request matches a pattern exactly: `fit` is exact, and applications do not
/// differ on the parameters that the pattern names.
fn takes(pattern: &Pattern, fit: QueryFit, line: &RequestLine<'_>) -> bool {
    let is_doubtful = || {
        let given = line.parameters();
        pattern.names_parameters() && (given.are_too_many() || pattern.is_doubtful_in(given))
    };
    fit == QueryFit::Exact && !is_doubtful()
}

/// Returns whether `first` hides `second`, for a request that fits both rules. This is so if the
/// request matches `first` exactly and `first` names all parameters that `second` names.
fn hides(first: &Rule, second: &Rule, line: &RequestLine<'_>) -> bool {
    first.pattern.narrows_query_of(&second.pattern)
        && takes(&first.pattern, first.pattern.query_fit(line), line)
}
