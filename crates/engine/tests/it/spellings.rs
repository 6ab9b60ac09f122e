//! No spelling of a path is treated better than the plain one, whatever the configuration.

use bywash_engine::classify::{Classifier, Pattern, strict};
use bywash_engine::terminate::Bounds;
use bywash_engine::{Class, ClassId, ClassSet, Tier};
use bywash_units::{Span, Utility};
use proptest::prelude::*;

const WORDS: [&str; 3] = ["a", "b", "c"];
const OTHER: ClassId = ClassId(7);

fn class() -> impl Strategy<Value = Class> {
    (any::<bool>(), 0..4_u8, proptest::option::of((1..4_u64, 4..9_u64))).prop_map(
        |(transacts, utility, stop)| Class {
            name: String::new(),
            tier: if transacts { Tier::Transact } else { Tier::Browse },
            utility: Utility::new(f64::from(utility)),
            earns: Utility::default(),
            queue: None,
            after: ClassSet::NONE,
            stop: stop
                .map(|(min, max)| Bounds { min: Span::from_secs(min), max: Span::from_secs(max) }),
            pinned: None,
        },
    )
}

/// Three to seven patterns, each with a class of its own.
fn patterns() -> impl Strategy<Value = Vec<String>> {
    let segment = prop_oneof![4 => 0..3_usize, 1 => Just(3)];
    let segment = segment.prop_map(|at| WORDS.get(at).copied().unwrap_or("*"));
    let path = (proptest::collection::vec(segment, 1..4), any::<bool>());
    let pattern = (prop_oneof![Just("GET"), Just("*"), Just("POST")], path);
    let text = pattern.prop_map(|(method, (segments, slash))| {
        format!("{method} /{}{}", segments.join("/"), if slash { "/" } else { "" })
    });
    proptest::collection::btree_set(text, 3..8).prop_map(|all| all.into_iter().collect())
}

/// A plain path, and another spelling of it. The slash at its end, if any, is the same in both.
fn spellings() -> impl Strategy<Value = (String, String)> {
    let slash = prop_oneof![
        4 => Just("/"), 2 => Just("//"), 1 => Just("%2F"), 1 => Just("%5C"), 1 => Just("/;x=1/"),
    ];
    let end = prop_oneof![3 => Just(""), 1 => Just(";x"), 1 => Just(";y=%2F"), 1 => Just("%3Bz")];
    let part = (slash, 0..3_usize, end);
    proptest::collection::vec(part, 1..4).prop_map(|parts| {
        let (mut plain, mut odd) = (String::new(), String::new());
        for (at, (slash, word, end)) in parts.into_iter().enumerate() {
            plain.extend(["/", WORDS[word]]);
            // A path begins with a slash.
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
    let rule = |(at, text): (usize, &String)| {
        (Pattern::parse(text).expect("it is a pattern"), ClassId(at as u8))
    };
    Classifier::new(patterns.iter().enumerate().map(rule), OTHER)
        .expect("they are no contradiction")
}

/// How a request is treated: the greater, the better for it.
#[derive(Debug)]
struct Treated {
    rank: (bool, f64),
    is_free: bool,
    runs: Option<Span>,
}

fn treated(set: ClassSet, classes: &[Class], enforced: u8) -> Treated {
    let class = |id: ClassId| &classes[id.index()];
    let lowest = strict::lowest(set, class).expect("there is one at least");
    let stops_as = strict::stops_as(lowest, set.without(lowest), class);
    Treated {
        rank: (class(lowest).tier == Tier::Transact, class(lowest).utility.get()),
        is_free: set.iter().all(|id| enforced & (1 << id.0) == 0),
        runs: class(stops_as).stop.map(|bounds| bounds.max),
    }
}

/// Whether the first is in no respect better than the second.
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
        method in prop_oneof![Just("GET"), Just("HEAD"), Just("POST")],
    ) {
        let classifier = classifier(&patterns);
        let [of_plain, of_odd] =
            [&plain, &odd].map(|path| classifier.classes(method, path));
        prop_assert_eq!(of_plain.union(of_odd), of_odd, "{} {}", plain, odd);
        let [plain_is, odd_is] =
            [of_plain, of_odd].map(|set| treated(set, &classes, enforced));
        prop_assert!(is_no_better(&odd_is, &plain_is), "{plain} {plain_is:?}, {odd} {odd_is:?}");
        // Nor better than an application that takes the spelling as it stands would want it.
        prop_assert!(of_odd.meets(ClassSet::NONE.with(classifier.class(method, &odd))));
    }

    #[test]
    fn a_slash_at_the_end_gains_nothing_where_the_file_names_the_path_without_it(
        patterns in patterns(),
        (plain, odd) in spellings(),
    ) {
        let classifier = classifier(&patterns);
        let named = classifier.class("GET", &plain);
        if named == OTHER {
            return Ok(());
        }
        for path in [&plain, &odd] {
            let set = classifier.classes("GET", &format!("{path}/"));
            prop_assert!(set.meets(ClassSet::NONE.with(named)), "{path}/ is not held as {plain}");
        }
    }

    #[test]
    fn any_bytes_are_read_within_bounds(path in "/[ab/;%2F3BcC5]{0,200}") {
        let read = bywash_engine::classify::readings(&path, true);
        let read = read.map(Iterator::count);
        prop_assert!(read.is_none_or(|read| (1..=13).contains(&read)), "{read:?}");
        prop_assert!(!classifier(&["* /a/*".into()]).classes("GET", &path).is_empty());
    }
}
