//! Which class a request is of: its method and target against a list of patterns.
//!
//! A [`Pattern`] says which requests are meant: `GET /p/**`, `POST /confirm`, `/index.php?route=checkout/*&...`. The most
//! specific pattern wins: paths are compared segment by segment from the left, where a name goes before an ending
//! (`*.html`), that before `*`, and `*` before `**`; of one path the pattern goes first that fixes more values of parameters, then more
//! letters of them, then more names; of one target `HEAD` goes before `GET`, and a method before `*`. Only the very same pattern twice is a tie, and
//! that is an error when the list is made.
//!
//! A request that applications read in more than one way is of the classes of all its readings, and is treated as the
//! strictest of them would be ([`strict`]): an odd spelling may lower a request and never raise it, and it stays held by
//! what holds the plain one. That is so for
//!
//! - paths ([`readings`]),
//! - **parameters that a pattern does not allow**: an application ignores those that it does not know, so the class of the
//!   pattern is one of the request's classes, beside the class of the pattern that takes the request as it is;
//! - **parameters that are there twice**, lists (`a[]`) and more parameters than are read: one application takes the first
//!   value and another takes the last, so all patterns of the path that any of the values fits count, and the one without
//!   parameters as well;
//! - **parameters of several pages**: of two patterns of one path where neither has all parameters of the other, both
//!   count if both fit. Which parameter decides only the application knows;
//! - **fields**: anybody may send any, so a class with [`Condition::fields`] counts beside the class that the request would have
//!   without it.

mod condition;
mod parameters;
mod pattern;
mod reading;
pub mod strict;

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use crate::request::{ClassId, ClassSet};

pub use condition::{Condition, Field, HostPattern};
pub use parameters::Parameters;
pub use pattern::{BadPattern, Line, Pattern, is_reading};
pub use reading::{DEEPEST, PathReading, decoded, readings};

use pattern::QueryFit;

/// A request, as far as its class depends on it.
#[derive(Clone, Copy)]
pub struct Asked<'t> {
    /// Its method.
    pub method: &'t str,
    /// Its canonical path and its query.
    pub target: &'t str,
    /// The host that it is for, perhaps with a port.
    pub host: &'t str,
    /// Its fields.
    pub fields: &'t dyn HasField,
}

/// Fields of a request.
pub trait HasField {
    /// Whether there is a field of this name, in lower case, with a value that `is_value`.
    fn has(&self, name: &str, is_value: &dyn Fn(&[u8]) -> bool) -> bool;
}

/// None are known.
impl HasField for () {
    fn has(&self, _: &str, _: &dyn Fn(&[u8]) -> bool) -> bool {
        false
    }
}

impl<'t> Asked<'t> {
    /// A request of which only this is known.
    pub const fn new(method: &'t str, target: &'t str) -> Self {
        Self { method, target, host: "", fields: &() }
    }

    fn path(&self) -> &'t str {
        self.target.split_once('?').map_or(self.target, |(path, _)| path)
    }
}

impl fmt::Debug for Asked<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}{}", self.method, self.host, self.target)
    }
}

/// A pattern leads to a class, perhaps under a condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Which requests are meant.
    pub pattern: Pattern,
    /// What else they must have.
    pub condition: Condition,
    /// Their class.
    pub class: ClassId,
}

impl Rule {
    /// A rule without a condition.
    pub fn new(pattern: Pattern, class: ClassId) -> Self {
        Self { pattern, condition: Condition::default(), class }
    }
}

/// The same pattern under the same condition leads to two classes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tie {
    /// The pattern.
    pub pattern: String,
}

impl fmt::Display for Tie {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` stands in two classes", self.pattern)
    }
}

impl core::error::Error for Tie {}

/// Rules in the order in which they are tried: all that ask for fields, then those for named hosts, those for hosts below
/// a domain and those for any host, up to the first that takes a request.
#[derive(Clone, Debug)]
pub struct Classifier {
    rules: Vec<Rule>,
    indexes: [Index; 4],
    default: ClassId,
    ignores_case: bool,
}

/// Rules by the first segment of their path, most specific first. So the time that a request takes does not depend on
/// how many patterns there are for other first segments.
#[derive(Clone, Debug, Default)]
struct Index {
    by_name: BTreeMap<Box<str>, Vec<u16>>,
    /// Rules whose path begins with `*`.
    others: Vec<u16>,
}

impl Classifier {
    /// Puts rules in order, for an application that `ignores_case` of paths or regards it.
    ///
    /// # Errors
    /// All ties at once.
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

    /// The same rules for classes with other numbers.
    #[must_use]
    pub fn renumbered(&self, number: impl Fn(ClassId) -> ClassId) -> Self {
        let mut renumbered = self.clone();
        for rule in &mut renumbered.rules {
            rule.class = number(rule.class);
        }
        renumbered.default = number(self.default);
        renumbered
    }

    /// The class of what no pattern matches.
    pub const fn default_class(&self) -> ClassId {
        self.default
    }

    /// The [`readings`] of a canonical path without its query.
    pub fn readings<'p>(
        &self,
        path: &'p str,
    ) -> Option<impl Iterator<Item = PathReading<'p>> + use<'p>> {
        readings(path, self.ignores_case)
    }

    /// The classes of all readings of a request: mostly one, never none.
    pub fn classes(&self, asked: &Asked<'_>) -> ClassSet {
        let other = ClassSet::NONE.with(self.default);
        let Some(readings) = self.readings(asked.path()) else {
            return self.rules.iter().fold(other, |all, rule| all.with(rule.class));
        };
        let mut line = Line::new(asked.method, asked.target);
        let mut classes = ClassSet::NONE;
        for reading in readings {
            classes = classes.union(self.of_reading(asked, &mut line, &reading));
        }
        if classes.is_empty() { other } else { classes }
    }

    /// The class of a request as it stands: of the most specific pattern that takes it.
    pub fn class(&self, asked: &Asked<'_>) -> ClassId {
        let mut line = Line::new(asked.method, asked.target);
        let reading = PathReading::plain(asked.path(), self.ignores_case);
        let found = reading.and_then(|reading| self.find(asked, &mut line, &reading).exact);
        found.unwrap_or(self.default)
    }

    /// The classes of one reading of the path. A slash at its end is no reading by itself: of a path with one, the classes
    /// of the path without it count as well; of a path without one, those of the path with it if nothing takes the path.
    fn of_reading<'t>(
        &self,
        asked: &Asked<'t>,
        line: &mut Line<'t>,
        reading: &PathReading<'t>,
    ) -> ClassSet {
        let found = self.find(asked, line, reading);
        let set = found.classes.with(found.exact.unwrap_or(self.default));
        let counts = found.exact.is_none() || reading.ends_with_slash();
        match reading.toggled().filter(|_| counts) {
            Some(toggled) => {
                let toggled = self.find(asked, line, &toggled);
                let exact =
                    toggled.exact.map_or(ClassSet::NONE, |class| ClassSet::NONE.with(class));
                set.union(toggled.classes).union(exact)
            }
            None => set,
        }
    }

    fn find<'t>(&self, asked: &Asked<'t>, line: &mut Line<'t>, reading: &PathReading<'t>) -> Found {
        line.read_as(*reading);
        let mut found = Found { classes: ClassSet::NONE, exact: None };
        let [with_fields, by_host @ ..] = &self.indexes;
        for rule in self.candidates(with_fields, reading) {
            if fit(rule, asked, line, reading) != QueryFit::No {
                found.classes = found.classes.with(rule.class);
            }
        }
        for index in by_host {
            found.look(self.candidates(index, reading), asked, line, reading);
            if found.exact.is_some() {
                break;
            }
        }
        found
    }

    /// The rules of an index that may be for this path.
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

/// How the query of a request fits a rule; not at all if anything else of it does not.
fn fit(rule: &Rule, asked: &Asked<'_>, line: &Line<'_>, reading: &PathReading<'_>) -> QueryFit {
    let Rule { pattern, condition, .. } = rule;
    let is_meant =
        pattern.takes(asked.method) && pattern.matches_path(reading) && condition.is_met(asked);
    if is_meant { pattern.query_fit(line) } else { QueryFit::No }
}

/// What a reading of a request is of.
struct Found {
    /// All classes that count.
    classes: ClassSet,
    /// The class of the most specific pattern that takes it as it stands.
    exact: Option<ClassId>,
}

impl Found {
    /// Looks through rules, the most specific first, up to those for the path of the first that takes the request as it
    /// stands.
    fn look<'r>(
        &mut self,
        rules: impl Iterator<Item = &'r Rule>,
        asked: &Asked<'_>,
        line: &Line<'_>,
        reading: &PathReading<'_>,
    ) {
        // Of one path: rules that the request fits.
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
            let fit = fit(rule, asked, line, reading);
            if fit == QueryFit::No || before.iter().any(|first| hides(first, rule, line)) {
                continue;
            }
            if rule.pattern.names_parameters() && line.parameters().are_too_many() {
                // All patterns for the path fit, and none hides another.
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

/// Whether a pattern that a request fits takes it as it stands, whatever the application makes of it.
fn takes(pattern: &Pattern, fit: QueryFit, line: &Line<'_>) -> bool {
    let is_doubtful = || {
        let given = line.parameters();
        pattern.names_parameters() && (given.are_repeated() || given.are_too_many())
    };
    fit == QueryFit::Exact && !is_doubtful()
}

/// Whether the second of two rules for a path does not count for a request that fits both: the first takes the request as
/// it stands, and asks for all parameters that the second asks for.
fn hides(first: &Rule, second: &Rule, line: &Line<'_>) -> bool {
    first.pattern.narrows_query_of(&second.pattern)
        && takes(&first.pattern, first.pattern.query_fit(line), line)
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use super::*;

    fn rules(patterns: &[&str]) -> Vec<Rule> {
        let rule = |(class, text): (u8, &&str)| Rule::new(text.parse().unwrap(), ClassId(class));
        (0..).zip(patterns).map(rule).collect()
    }

    /// One class for each pattern, 63 for the rest.
    fn of(patterns: &[&str]) -> Classifier {
        Classifier::new(rules(patterns), ClassId(63), false).unwrap()
    }

    fn classes(patterns: &[&str], method: &str, target: &str) -> Vec<u8> {
        of(patterns).classes(&Asked::new(method, target)).iter().map(|class| class.0).collect()
    }

    fn class(patterns: &[&str], method: &str, target: &str) -> u8 {
        of(patterns).class(&Asked::new(method, target)).0
    }

    const PATTERNS: [&str; 8] = [
        "GET /",
        "GET /p/**",
        "* /p/**",
        "GET /p/new",
        "* /shop/*/reviews",
        "* /shop/**",
        "POST /confirm",
        "* /**",
    ];

    #[test]
    fn the_most_specific_pattern_wins() {
        let cases = [
            ("GET", "/", "GET /"),
            ("POST", "/", "* /**"),
            ("GET", "/p/1", "GET /p/**"),
            ("GET", "/p/1/2?q", "GET /p/**"),
            ("PUT", "/p/1", "* /p/**"),
            ("GET", "/p/new", "GET /p/new"),
            ("GET", "/shop/7/reviews", "* /shop/*/reviews"),
            ("GET", "/shop/7/reviews/2", "* /shop/**"),
            ("POST", "/confirm", "POST /confirm"),
            ("GET", "/confirm", "* /**"),
        ];
        for (method, target, expected) in cases {
            let class = class(&PATTERNS, method, target);
            assert_eq!(PATTERNS[usize::from(class)], expected, "{method} {target}");
        }
    }

    #[test]
    fn an_odd_spelling_is_of_the_default_class_and_of_the_plain_one() {
        let confirm = ["POST /confirm"];
        for path in
            ["//confirm", "/confirm;a", "/confirm%2F", "/;a/confirm", "/confirm%3Bx", "/confirm/"]
        {
            assert_eq!(classes(&confirm, "POST", path), [0, 63], "{path}");
            assert_eq!(class(&confirm, "POST", path), 63, "{path}");
        }
        for path in ["*", "", "/x/../confirm", "/confirmed", "/confirm/x", "/a//confirm"] {
            assert_eq!(classes(&confirm, "POST", path), [63], "{path}");
        }
    }

    #[test]
    fn what_the_file_says_of_a_slash_at_the_end_holds() {
        assert_eq!(classes(&["POST /pay/"], "POST", "/pay/"), [0], "a site whose paths end so");
        assert_eq!(classes(&["POST /pay/"], "POST", "/pay"), [0, 63]);
        assert_eq!(classes(&["* /p/**"], "POST", "/p/17/"), [0]);
        assert_eq!(classes(&["* /p", "* /p/**"], "POST", "/p"), [0], "the file names it");
        assert_eq!(classes(&["* /p", "* /p/**"], "POST", "/p/"), [0, 1]);
        assert_eq!(classes(&["* /**", "* /p/**"], "POST", "/p"), [0]);
        assert_eq!(classes(&["* /**"], "POST", "/"), [0]);
    }

    #[test]
    fn an_odd_path_that_is_too_long_to_be_read_may_be_anything() {
        let all: Vec<u8> = (0..8).chain([63]).collect();
        for path in ["/".repeat(66), format!("/{};x", "a".repeat(1024))] {
            assert_eq!(classes(&PATTERNS, "GET", &path), all);
        }
        let long = format!("/p/{}", "%C3%A9".repeat(400));
        assert_eq!(classes(&PATTERNS, "GET", &long), [1]);
    }

    #[test]
    fn escapes_that_hide_nothing_are_plain() {
        assert_eq!(classes(&PATTERNS, "GET", "/p/caf%C3%A9"), [1]);
        assert_eq!(
            classes(&["GET /wiki/Special:Search"], "GET", "/wiki/Special%3ASearch"),
            [0, 63]
        );
        assert_eq!(classes(&["GET /wiki/a"], "GET", "/%77iki/a"), [0, 63]);
    }

    #[test]
    fn head_is_get_unless_a_pattern_names_it() {
        assert_eq!(class(&PATTERNS, "HEAD", "/p/1"), 1);
        let methods = ["GET", "HEAD", "POST"]
            .map(|method| class(&["GET /p", "HEAD /p", "* /p"], method, "/p"));
        assert_eq!(methods, [0, 1, 2]);
        assert_eq!(class(&["/p"], "GET", "/p"), 0, "GET may be left out");
        assert_eq!(class(&["/p"], "POST", "/p"), 63);
    }

    #[test]
    fn case_is_ignored_where_the_application_ignores_it() {
        let class = |ignores_case| {
            let classifier =
                Classifier::new(rules(&["POST /Confirm/It"]), ClassId(9), ignores_case);
            classifier.unwrap().class(&Asked::new("POST", "/cONFIRM/IT")).0
        };
        assert_eq!([class(false), class(true)], [9, 0]);
    }

    #[test]
    fn the_same_pattern_in_two_classes_is_an_error() {
        let ties =
            Classifier::new(rules(&["GET /p/**", "/p/**?..."]), ClassId(2), false).unwrap_err();
        assert_eq!(ties[0].to_string(), "`/p/**` stands in two classes");
    }

    #[test]
    fn nonsense_is_no_pattern() {
        for text in
            ["", "GET", "GET p", "get /", "G T /", "/**/a", "/a*", "/?a=*b", "/?=1", "/?a&a"]
        {
            assert!(text.parse::<Pattern>().is_err(), "{text:?}");
        }
        for text in ["/a//b", "/a%2Fb", "/a;b", "/../a", "/a/./b", "//**"] {
            assert!(!text.parse::<Pattern>().unwrap().has_one_reading(), "{text:?}");
        }
        for text in ["/", "/a/", "/**", "/*/a.html?b=%2F"] {
            assert!(text.parse::<Pattern>().unwrap().has_one_reading(), "{text:?}");
        }
    }

    const ROUTED: [&str; 5] = [
        "/index.php?route=checkout/*&...",
        "/index.php?route=product/search&...",
        "/index.php?route=common/home",
        "/index.php",
        "/?s&...",
    ];

    #[test]
    fn parameters_tell_the_class() {
        let cases: [(&str, &[u8]); 12] = [
            ("/index.php?route=checkout/cart", &[0]),
            ("/index.php?language=en&route=checkout%2Fconfirm", &[0]),
            ("/index.php?%72oute=checkout/", &[0]),
            ("/index.php?route=product/search&search=a", &[1]),
            ("/index.php?route=common/home", &[2]),
            ("/index.php?route=other", &[3]),
            ("/index.php", &[3]),
            ("/index.php?checkout/cart", &[3]),
            ("/?s=shoes&paged=2", &[4]),
            ("/?s", &[4]),
            ("/", &[63]),
            ("/?p=1", &[63]),
        ];
        for (target, expected) in cases {
            assert_eq!(classes(&ROUTED, "GET", target), expected, "{target}");
        }
    }

    #[test]
    fn further_parameters_do_not_take_a_request_out_of_its_class() {
        assert_eq!(classes(&ROUTED, "GET", "/index.php?route=common/home&x=1"), [2, 3]);
        assert_eq!(class(&ROUTED, "GET", "/index.php?route=common/home&x=1"), 3);
        assert_eq!(classes(&["/a?"], "GET", "/a?x"), [0, 63]);
        let names: Vec<String> = (0..65).map(|name| format!("x{name}")).collect();
        let distinct = names.join("&");
        for many in ["x&".repeat(1000), distinct.clone(), distinct + "&route=checkout/cart"] {
            let target = format!("/index.php?{many}");
            assert_eq!(classes(&ROUTED, "GET", &target), [0, 1, 2, 3], "it may be any of them");
            assert_eq!(class(&ROUTED, "GET", &target), 3);
        }
    }

    #[test]
    fn a_parameter_that_is_there_twice_has_both_values_and_none() {
        let twice = "/index.php?route=checkout/cart&route=product/search";
        assert_eq!(classes(&ROUTED, "GET", twice), [0, 1, 3]);
        assert_eq!(classes(&ROUTED, "GET", "/index.php?route=checkout/a&route[]=x"), [0, 3]);
        // A list is no value to an application that expects one.
        for list in ["route[x]=checkout/a", "route%5B%5D=checkout/a"] {
            assert_eq!(classes(&ROUTED, "GET", &format!("/index.php?{list}")), [0, 3], "{list}");
        }
    }

    #[test]
    fn of_parameters_that_name_two_pages_both_count() {
        let pages = ["/?s&...", "/?page&...", "/?page=cart&...", "/?page&id&..."];
        assert_eq!(classes(&pages, "GET", "/?s=a&page=b"), [0, 1]);
        assert_eq!(
            classes(&pages, "GET", "/?page=cart&x"),
            [2],
            "it asks for all that the wider one asks for"
        );
        assert_eq!(classes(&pages, "GET", "/?page=cart&id=1"), [2, 3]);
    }

    fn under(
        text: &str,
        class: u8,
        hosts: &[HostPattern],
        fields: &[(&str, Option<&str>)],
    ) -> Rule {
        let field = |(name, value): &(&str, Option<&str>)| Field {
            name: (*name).into(),
            value: value.map(String::from),
        };
        let condition =
            Condition { hosts: hosts.to_vec(), fields: fields.iter().map(field).collect() };
        Rule { condition, ..Rule::new(text.parse().unwrap(), ClassId(class)) }
    }

    #[test]
    fn a_host_goes_before_a_path() {
        let host = |name: &str| HostPattern::Host(name.into());
        let below = HostPattern::Below(".example.com".into());
        let rules = [
            under("/**", 0, &[host("admin.example.com")], &[]),
            under("/p/**", 1, &[below], &[]),
            under("/p/**", 2, &[], &[]),
        ];
        let classifier = Classifier::new(rules, ClassId(9), false).unwrap();
        let class = |host, target| {
            let asked = Asked { host, ..Asked::new("GET", target) };
            classifier.classes(&asked).iter().map(|class| class.0).collect::<Vec<_>>()
        };
        for host in ["admin.example.com", "ADMIN.example.com.:8080"] {
            assert_eq!(class(host, "/p/1"), [0], "{host}");
        }
        assert_eq!(class("shop.example.com", "/p/1"), [1]);
        assert_eq!(class("shop.example.com", "/q"), [9]);
        for host in ["example.com", "badexample.com", "", "[::1]:80"] {
            assert_eq!(class(host, "/p/1"), [2], "{host}");
        }
    }

    struct Fields(&'static [(&'static str, &'static [u8])]);

    impl HasField for Fields {
        fn has(&self, name: &str, is_value: &dyn Fn(&[u8]) -> bool) -> bool {
            self.0.iter().any(|(known, value)| *known == name && is_value(value))
        }
    }

    const CRAWLER: &[(&str, &[u8])] = &[("x-kind", b" crawler"), ("x-any", b"")];

    #[test]
    fn a_field_adds_a_class_and_takes_none_away() {
        let crawls = [("x-kind", Some("Crawler")), ("x-any", None)];
        let host = [HostPattern::Host("shop".into())];
        let rules =
            [under("/**", 0, &[], &crawls), under("/p", 1, &[], &[]), under("/p", 2, &host, &[])];
        let classifier = Classifier::new(rules, ClassId(9), false).unwrap();
        let class = |host, fields: &'static [(&'static str, &'static [u8])]| {
            let asked = Asked { host, fields: &Fields(fields), ..Asked::new("GET", "/p") };
            classifier.classes(&asked).iter().map(|class| class.0).collect::<Vec<_>>()
        };
        assert_eq!(class("", CRAWLER), [0, 1], "although its path is less specific");
        assert_eq!(class("shop", CRAWLER), [0, 2]);
        assert_eq!(class("", &[("x-kind", b"crawler")]), [1]);
        assert_eq!(class("shop", &[]), [2]);
    }
}
