//! Tests that no spelling of a path is treated better than the plain one, whatever the
//! configuration.

use bywash_engine::Bounds;
use bywash_engine::classify::{Classifier, RequestParts, Rule, strict};
use bywash_engine::{Class, ClassId, ClassSet, Tier};
use bywash_units::{TimeSpan, Utility};
use proptest::prelude::*;

const WORDS: [&str; 3] = ["a", "b", "c"];
const OTHER: ClassId = ClassId(7);

fn class() -> impl Strategy<Value = Class> {
    (any::<bool>(), 0..4_u8, proptest::option::of((1..4_u64, 4..9_u64))).prop_map(
        |(transacts, utility, stop)| Class {
            name: String::new(),
            tier: if transacts { Tier::Transaction } else { Tier::Browsing },
            utility: Utility::new(f64::from(utility)),
            revenue: Utility::default(),
            queue: None,
            requires: ClassSet::NONE,
            stop: stop.map(|(min, max)| Bounds {
                min: TimeSpan::from_secs(min),
                max: TimeSpan::from_secs(max),
            }),
            fixed_value: None,
        },
    )
}

const QUERIES: [&str; 7] = ["", "?", "?a", "?a=b*&...", "?a=c&...", "?b&...", "?a&b"];

/// Draws three to seven patterns, each with a class of its own.
fn patterns() -> impl Strategy<Value = Vec<String>> {
    let segment = prop_oneof![4 => 0..3_usize, 1 => Just(3)];
    let segment = segment.prop_map(|at| WORDS.get(at).copied().unwrap_or("*"));
    let end = prop_oneof![2 => Just(""), 1 => Just("/"), 1 => Just("/**")];
    let path = (proptest::collection::vec(segment, 1..3), end);
    let query = prop_oneof![1 => Just(0), 2 => 0..QUERIES.len()];
    let pattern = (prop_oneof![Just("GET"), Just("*"), Just("POST")], path, query);
    let text = pattern.prop_map(|(method, (segments, end), query)| {
        format!("{method} /{}{end}{}", segments.join("/"), QUERIES[query])
    });
    proptest::collection::btree_set(text, 3..8).prop_map(|all| all.into_iter().collect())
}

/// Draws a query and another spelling of it: reordered, escaped, with parameters that no pattern
/// names, or with a repeated name.
fn queries() -> impl Strategy<Value = (String, String)> {
    let pair = (
        prop_oneof![Just("a"), Just("b")],
        prop_oneof![Just("b"), Just("bc"), Just("c"), Just("x")],
    );
    let plain = proptest::collection::btree_map(pair.0, pair.1, 0..3);
    let more = prop_oneof![
        Just(""),
        Just("&x=1"),
        Just("&%61=b"),
        Just("&b[]=c"),
        Just("&a=c&x"),
        Just("&+a=b"),
        Just("&%20b=c")
    ];
    (plain, more, any::<bool>(), any::<bool>()).prop_map(|(plain, more, turns, encodes)| {
        // A spelling must not add a parameter that a pattern names and the plain query lacks,
        // because that asks for another page.
        let is_there = |name: &str| plain.contains_key(name);
        let adds = ["b=", "b["].iter().any(|name| more.contains(name)) && !is_there("b")
            || ["a=", "%61"].iter().any(|name| more.contains(name)) && !is_there("a");
        let more = if adds { "" } else { more };
        let mut pairs: Vec<String> =
            plain.into_iter().map(|(name, value)| format!("{name}={value}")).collect();
        let query = pairs.join("&");
        if turns {
            pairs.reverse();
        }
        let odd = pairs.join("&");
        let odd = if encodes { odd.replace('b', "%62") } else { odd };
        (query, format!("{odd}{more}"))
    })
}

/// Draws a plain path and another spelling of it. Both end with a slash, or neither does.
fn spellings() -> impl Strategy<Value = (String, String)> {
    let slash = prop_oneof![
        4 => Just("/"), 2 => Just("//"), 1 => Just("%2F"), 1 => Just("%5C"), 1 => Just("/;x=1/"),
    ];
    let end = prop_oneof![3 => Just(""), 1 => Just(";x"), 1 => Just(";y=%2F"), 1 => Just("%3Bz")];
    let part = (slash, 0..3_usize, end);
    proptest::collection::vec(part, 1..4).prop_map(|parts| {
        let (mut plain, mut odd) = (String::new(), String::new());
        let last = parts.len() - 1;
        for (at, (slash, word, end)) in parts.into_iter().enumerate() {
            // An escaped slash at the end would make the other spelling end with a slash.
            let end = if at == last { end.trim_end_matches("%2F") } else { end };
            plain.extend(["/", WORDS[word]]);
            // The first character of a path is a plain slash.
            odd.extend([
                if at == 0 && slash.starts_with('%') { "/" } else { slash },
                WORDS[word],
                end,
            ]);
        }
        (plain, odd)
    })
}

fn classifier(patterns: &[String]) -> Classifier {
    let rule =
        |(at, text): (u8, &String)| Rule::new(text.parse().expect("it is a pattern"), ClassId(at));
    Classifier::new((0..).zip(patterns).map(rule), OTHER, false).expect("they are no contradiction")
}

/// How a request is treated in each respect. A greater value is better for the request.
#[derive(Debug)]
struct Treated {
    rank: (bool, f64),
    is_free: bool,
    runs: Option<TimeSpan>,
}

fn treated(set: ClassSet, classes: &[Class], enforced: u8) -> Treated {
    let class = |id: ClassId| &classes[id.index()];
    let lowest = strict::lowest(set, class).expect("there is one at least");
    let stops_as = strict::stops_as(lowest, set.without(lowest), class);
    Treated {
        rank: (class(lowest).tier == Tier::Transaction, class(lowest).utility.get()),
        is_free: set.iter().all(|id| enforced & (1 << id.0) == 0),
        runs: class(stops_as).stop.map(|bounds| bounds.max),
    }
}

/// Returns whether the first treatment is in no respect better than the second.
fn is_no_better(odd: &Treated, plain: &Treated) -> bool {
    let stops_no_later = match (odd.runs, plain.runs) {
        (_, None) => true,
        (None, Some(_)) => false,
        (Some(odd), Some(plain)) => odd <= plain,
    };
    odd.rank <= plain.rank && odd.is_free <= plain.is_free && stops_no_later
}

proptest! {
    #[test]
    fn no_spelling_is_treated_better_than_the_plain_one(
        patterns in patterns(),
        classes in proptest::collection::vec(class(), 8),
        enforced in any::<u8>(),
        (plain, odd) in spellings(),
        (query, odd_query) in queries(),
        method in prop_oneof![Just("GET"), Just("HEAD"), Just("POST")],
    ) {
        let classifier = classifier(&patterns);
        let (plain, odd) = (format!("{plain}?{query}"), format!("{odd}?{odd_query}"));
        let [of_plain, of_odd] =
            [&plain, &odd].map(|target| classifier.classes(&RequestParts::new(method, target)));
        prop_assert_eq!(of_plain.union(of_odd), of_odd, "{} {}", plain, odd);
        let [plain_is, odd_is] =
            [of_plain, of_odd].map(|set| treated(set, &classes, enforced));
        prop_assert!(is_no_better(&odd_is, &plain_is), "{plain} {plain_is:?}, {odd} {odd_is:?}");
        // It is not treated better than by an application that takes the spelling literally.
        prop_assert!(of_odd.meets(ClassSet::NONE.with(classifier.class(&RequestParts::new(method, &odd)))));
    }

    #[test]
    fn a_slash_at_the_end_gains_nothing_where_the_file_names_the_path_without_it(
        patterns in patterns(),
        (plain, odd) in spellings(),
    ) {
        let classifier = classifier(&patterns);
        let named = classifier.class(&RequestParts::new("GET", &plain));
        if named == OTHER {
            return Ok(());
        }
        for path in [&plain, &odd] {
            let target = format!("{path}/");
            let set = classifier.classes(&RequestParts::new("GET", &target));
            prop_assert!(set.meets(ClassSet::NONE.with(named)), "{path}/ is not held as {plain}");
        }
    }

    #[test]
    fn any_bytes_are_read_within_bounds(path in "/[ab/;%2F3BcC5]{0,200}") {
        let read = bywash_engine::classify::readings(&path, true);
        let read = read.map(Iterator::count);
        prop_assert!(read.is_none_or(|read| (1..=13).contains(&read)), "{read:?}");
        prop_assert!(!classifier(&["* /a/**".into()]).classes(&RequestParts::new("GET", &path)).is_empty());
    }
}
