//! Which class a request is of: method and path against a list of patterns.
//!
//! A pattern is a method or `*`, a space, and a path: `GET /`, `POST /confirm`, `GET /p/*`,
//! `* /shop/*/reviews`. `GET` means `HEAD` as well. A `*` segment stands for one segment, at the
//! end for the rest of the path. The most specific pattern wins: compared segment by segment from
//! the left, a literal goes before `*`, and where paths are alike `HEAD` goes before `GET`, and a
//! method before `*`. Only the very same pattern twice is a tie, and that is an error when the list
//! is made.
//!
//! A path that applications read in more than one way ([`readings`]) is of the classes of all its
//! readings, and is treated as the strictest of them would be ([`strict`]): an odd spelling may
//! lower a request and never raise it, and it stays held by what holds the plain one.

mod pattern;
mod reading;
pub mod strict;

use alloc::string::ToString;
use alloc::vec::Vec;

use crate::request::{ClassId, ClassSet};

pub use pattern::{Pattern, PatternError};
pub use reading::{DEEPEST, PathReading, decoded, readings};

/// Patterns in the order in which they are tried.
#[derive(Clone, Debug)]
pub struct Classifier {
    rules: Vec<(Pattern, ClassId)>,
    default: ClassId,
    ignores_case: bool,
}

impl Classifier {
    /// Puts patterns in order.
    ///
    /// # Errors
    /// All ties at once.
    pub fn new(
        patterns: impl IntoIterator<Item = (Pattern, ClassId)>,
        default: ClassId,
    ) -> Result<Self, Vec<PatternError>> {
        let mut rules: Vec<(Pattern, ClassId)> = patterns.into_iter().collect();
        rules.sort_by(|(a, _), (b, _)| a.precedence(b));
        let tie = |pair: &[(Pattern, ClassId)]| (pair[0].0 == pair[1].0).then(|| pair_error(pair));
        let errors: Vec<PatternError> = rules.windows(2).filter_map(tie).collect();
        let classifier = Self { rules, default, ignores_case: false };
        if errors.is_empty() { Ok(classifier) } else { Err(errors) }
    }

    /// The same patterns for an application that ignores the case of a path, or regards it.
    #[must_use]
    pub fn ignoring_case(self, ignores_case: bool) -> Self {
        Self { ignores_case, ..self }
    }

    /// The same patterns for classes with other numbers.
    #[must_use]
    pub fn renumbered(&self, number: impl Fn(ClassId) -> ClassId) -> Self {
        let rules = self.rules.iter().map(|(pattern, class)| (pattern.clone(), number(*class)));
        let default = number(self.default);
        Self { rules: rules.collect(), default, ignores_case: self.ignores_case }
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

    /// The classes of all readings of a canonical path without its query: mostly one, never none.
    pub fn classes(&self, method: &str, path: &str) -> ClassSet {
        let other = ClassSet::NONE.with(self.default);
        let Some(readings) = self.readings(path) else {
            return self.rules.iter().fold(other, |all, (_, class)| all.with(*class));
        };
        let of = |reading| self.of_reading(method, &reading);
        let classes = readings.map(of).fold(ClassSet::NONE, ClassSet::union);
        if classes.is_empty() { other } else { classes }
    }

    /// The class of a path as it stands.
    pub fn class(&self, method: &str, path: &str) -> ClassId {
        let reading = PathReading::plain(path, self.ignores_case);
        let (exact, _) = reading.map_or((None, None), |reading| self.first(method, &reading));
        exact.unwrap_or(self.default)
    }

    fn of_reading(&self, method: &str, reading: &PathReading<'_>) -> ClassSet {
        let (exact, toggled) = self.first(method, reading);
        let set = ClassSet::NONE.with(exact.unwrap_or(self.default));
        let counts = exact.is_none() || reading.ends_with_slash();
        toggled.filter(|_| counts).map_or(set, |class| set.with(class))
    }

    /// The class of the first pattern that matches, and of the first that matches the path with a
    /// slash more or less at its end; of a path without one, only if nothing matches the path.
    fn first(&self, method: &str, reading: &PathReading<'_>) -> (Option<ClassId>, Option<ClassId>) {
        let (mut exact, mut toggled) = (None, None);
        for (pattern, class) in &self.rules {
            if !pattern.takes(method) {
                continue;
            }
            let fit = pattern.fits(reading);
            exact = exact.or(fit.exact.then_some(*class));
            toggled = toggled.or(fit.toggled.then_some(*class));
            if exact.is_some() && (toggled.is_some() || !reading.ends_with_slash()) {
                break;
            }
        }
        (exact, toggled)
    }
}

fn pair_error(pair: &[(Pattern, ClassId)]) -> PatternError {
    PatternError::Tie { pattern: pair[0].0.to_string(), first: pair[0].1, second: pair[1].1 }
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use super::*;

    const PATTERNS: [&str; 8] = [
        "GET /",
        "GET /p/*",
        "* /p/*",
        "GET /p/new",
        "* /shop/*/reviews",
        "* /shop/*",
        "POST /confirm",
        "* /*",
    ];

    fn classifier() -> Classifier {
        let rule = |(i, text): (usize, &&str)| (Pattern::parse(text).unwrap(), ClassId(i as u8));
        Classifier::new(PATTERNS.iter().enumerate().map(rule), ClassId(63)).unwrap()
    }

    #[test]
    fn the_most_specific_pattern_wins() {
        let cases = [
            ("GET", "/", "GET /"),
            ("POST", "/", "* /*"),
            ("GET", "/p/1", "GET /p/*"),
            ("GET", "/p/1/2", "GET /p/*"),
            ("PUT", "/p/1", "* /p/*"),
            ("GET", "/p/new", "GET /p/new"),
            ("GET", "/shop/7/reviews", "* /shop/*/reviews"),
            ("GET", "/shop/7/reviews/2", "* /shop/*"),
            ("POST", "/confirm", "POST /confirm"),
            ("GET", "/confirm", "* /*"),
        ];
        for (method, path, expected) in cases {
            let class = classifier().class(method, path);
            assert_eq!(PATTERNS[class.index()], expected, "{method} {path}");
        }
    }

    #[test]
    fn an_odd_spelling_is_of_the_default_class_and_of_the_plain_one() {
        let both = ClassSet::NONE.with(ClassId(63)).with(ClassId(6));
        let confirm = [(Pattern::parse("POST /confirm").unwrap(), ClassId(6))];
        let classifier = Classifier::new(confirm, ClassId(63)).unwrap();
        for path in
            ["//confirm", "/confirm;a", "/confirm%2F", "/;a/confirm", "/confirm%3Bx", "/confirm/"]
        {
            assert_eq!(classifier.classes("POST", path), both, "{path}");
            assert_eq!(classifier.class("POST", path), ClassId(63), "{path}");
        }
        for path in ["*", "", "/x/../confirm", "/confirmed", "/confirm/x", "/a//confirm"] {
            assert_eq!(
                classifier.classes("POST", path),
                ClassSet::NONE.with(ClassId(63)),
                "{path}"
            );
        }
    }

    #[test]
    fn what_the_file_says_of_a_slash_at_the_end_holds() {
        let class = |patterns: &[&str], path: &str| {
            let rule =
                |(i, text): (usize, &&str)| (Pattern::parse(text).unwrap(), ClassId(i as u8));
            let rules = patterns.iter().enumerate().map(rule);
            let classes = Classifier::new(rules, ClassId(9)).unwrap().classes("POST", path);
            classes.iter().map(|class| class.0).collect::<Vec<_>>()
        };
        assert_eq!(class(&["POST /pay/"], "/pay/"), [0], "a site whose paths end so");
        assert_eq!(class(&["POST /pay/"], "/pay"), [0, 9]);
        assert_eq!(class(&["* /p/*"], "/p/17/"), [0]);
        assert_eq!(class(&["* /p", "* /p/*"], "/p"), [0], "the file names it");
        assert_eq!(class(&["* /p", "* /p/*"], "/p/"), [0, 1]);
        assert_eq!(class(&["* /*", "* /p/*"], "/p"), [0]);
        assert_eq!(class(&["* /*"], "/"), [0]);
    }

    #[test]
    fn an_odd_path_that_is_too_long_to_be_read_may_be_anything() {
        let all = (0..PATTERNS.len()).fold(ClassSet::NONE, |all, at| all.with(ClassId(at as u8)));
        let all = all.with(ClassId(63));
        for path in ["/".repeat(66), format!("/{};x", "a".repeat(1024))] {
            assert_eq!(classifier().classes("GET", &path), all);
        }
        let long = format!("/p/{}", "%C3%A9".repeat(400));
        assert_eq!(classifier().classes("GET", &long), ClassSet::NONE.with(ClassId(1)));
    }

    #[test]
    fn escapes_that_hide_nothing_are_plain() {
        let only = |index: u8| ClassSet::NONE.with(ClassId(index));
        assert_eq!(classifier().classes("GET", "/p/caf%C3%A9"), only(1));
        let wiki = [(Pattern::parse("GET /wiki/Special:Search").unwrap(), ClassId(0))];
        let wiki = Classifier::new(wiki, ClassId(9)).unwrap();
        let both = only(0).with(ClassId(9));
        assert_eq!(wiki.classes("GET", "/wiki/Special%3ASearch"), both);
    }

    #[test]
    fn head_is_get_unless_a_pattern_names_it() {
        assert_eq!(classifier().class("HEAD", "/p/1"), ClassId(1));
        let rules = ["GET /p", "HEAD /p", "* /p"].iter().enumerate();
        let rules = rules.map(|(i, text)| (Pattern::parse(text).unwrap(), ClassId(i as u8)));
        let classifier = Classifier::new(rules, ClassId(9)).unwrap();
        let methods = ["GET", "HEAD", "POST"].map(|method| classifier.class(method, "/p").0);
        assert_eq!(methods, [0, 1, 2]);
    }

    #[test]
    fn case_is_ignored_where_the_application_ignores_it() {
        let classifier = classifier();
        assert_eq!(classifier.class("POST", "/CONFIRM"), ClassId(7));
        assert_eq!(classifier.ignoring_case(true).class("POST", "/CONFIRM"), ClassId(6));
    }

    #[test]
    fn the_same_pattern_in_two_classes_is_an_error() {
        let pattern = || Pattern::parse("GET /p/*").unwrap();
        let rules = [(pattern(), ClassId(0)), (pattern(), ClassId(1))];
        let errors = Classifier::new(rules, ClassId(2)).unwrap_err();
        assert_eq!(errors[0].to_string(), "`GET /p/*` stands in two classes");
    }

    #[test]
    fn nonsense_is_no_pattern() {
        for text in ["", "/", "GET", "GET p", "get /", "GET /a//b", "GET /a?b=1", "G T /"] {
            assert!(Pattern::parse(text).is_err(), "{text:?}");
        }
    }
}
