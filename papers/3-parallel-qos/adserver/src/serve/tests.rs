use std::collections::BTreeMap;
use std::sync::Arc;

use super::*;
use crate::ids::{BannerId, ConceptId, ContractId};
use crate::snapshot::{Banner, Concept, Contract, Register, Snapshot, Tally};
use crate::trial::chi_square;
use crate::values::{Flight, Keyword, Landing, Name, Size, Timestamp};

const FLIGHT: Flight = Flight { from: Timestamp(0), to: Timestamp(1_000) };
/// The last second of the test banners' flight, when all impressions are due.
const NOW: Timestamp = Timestamp(999);
const SEED: u64 = 3;

struct Sign {
    owed: u64,
    concepts: &'static [u32],
    category: Option<&'static str>,
}

fn sign(owed: u64, concepts: &'static [u32]) -> Sign {
    Sign { owed, concepts, category: None }
}

fn concept(number: u32) -> Concept {
    let keyword = Keyword::parse(&format!("concept-{number}")).unwrap();
    Concept { id: ConceptId::new(number).unwrap(), keyword }
}

fn snapshot(signs: &[Sign], selection: Selection) -> Snapshot {
    let mut register = Register::default();
    for (number, sign) in (1..).zip(signs) {
        // Contract twice the impressions that are owed, so that contracted and owed impressions
        // differ.
        let tally = Tally::new(2 * sign.owed, FLIGHT, sign.owed, 0);
        tally.reserve(2 * sign.owed);
        let banner = Banner {
            id: BannerId::new(number).unwrap(),
            contract: ContractId::new(number).unwrap(),
            landing: Landing::parse("https://example.com/").unwrap(),
            size: Size::parse(if number % 2 == 0 { "468x60" } else { "120x60" }).unwrap(),
            category: sign.category.and_then(Keyword::parse),
            concepts: sign.concepts.iter().copied().map(concept).collect(),
            tally: Arc::new(tally),
        };
        register.insert(Contract {
            id: banner.contract,
            advertiser: Name::parse("someone").unwrap(),
            flight: FLIGHT,
            cancelled_at: None,
            banners: vec![Arc::new(banner)],
        });
    }
    Snapshot::new(register, selection == Selection::Wheels, NOW)
}

/// Returns the ids of the banners that a page gets for these concepts, if it wants `count` banners.
fn page(snapshot: &Snapshot, selector: &mut Selector, concepts: &[u32], count: usize) -> Vec<u32> {
    let concepts: Vec<_> = concepts.iter().copied().map(concept).collect();
    let mut page = Page::default();
    selector.select(
        snapshot,
        SelectionRequest { concepts: &concepts, size: None, count },
        &mut page,
        None,
    );
    page.banners.iter().map(|banner| banner.id.number()).collect()
}

fn each(test: impl Fn(Selection, &mut Selector)) {
    for selection in [Selection::Scan, Selection::Wheels] {
        println!("{selection:?}, seed {SEED}");
        test(selection, &mut Selector::new(RandomStream::seeded(SEED)));
    }
}

/// Asserts that the counts `seen` agree with the expected ones, by a chi-square test. A fair
/// roulette fails this test for one seed in a thousand, but not for the seed of these tests.
fn assert_drawn_as(expected: &[f64], seen: &[u64]) {
    let found = chi_square::test(expected, seen);
    assert!(found.p > 0.001, "{found:?}");
}

#[test]
fn banners_are_chosen_in_proportion_to_what_is_owed_whatever_concepts_they_share() {
    let sets: [&[u32]; 6] = [&[1], &[2], &[1, 2], &[1, 2, 3], &[3], &[4]];
    each(|selection, selector| {
        let signs: Vec<_> =
            (0..30).map(|n| sign(1_000_000_000 + n * 400_000_000, sets[n as usize % 6])).collect();
        let snapshot = snapshot(&signs, selection);
        let mut seen = vec![0; signs.len()];
        for _ in 0..200_000 {
            seen[page(&snapshot, selector, &[1, 2, 3], 1)[0] as usize - 1] += 1;
        }
        let matching = |n: &usize| n % 6 != 5;
        assert!((0..30).filter(|n| !matching(n)).all(|n| seen[n] == 0), "{seen:?}");
        let total: u64 = (0..30).filter(matching).map(|n| signs[n].owed).sum();
        let expected: Vec<_> = (0..30)
            .filter(matching)
            .map(|n| 200_000.0 * signs[n].owed as f64 / total as f64)
            .collect();
        let seen: Vec<_> = (0..30).filter(matching).map(|n| seen[n]).collect();
        assert_drawn_as(&expected, &seen);
    });
}

/// Checks that two of three banners are drawn without replacement. The first is drawn by its
/// weight, the second by its weight among the remaining banners.
#[test]
fn the_second_choice_is_by_the_weights_of_those_left() {
    let weights = [1.0, 2.0, 5.0];
    each(|selection, selector| {
        let owed = weights.map(|weight| weight as u64 * 10_000_000_000);
        let snapshot = snapshot(&owed.map(|owed| sign(owed, &[1, 2])), selection);
        let mut seen: BTreeMap<Vec<u32>, u64> = BTreeMap::new();
        for _ in 0..200_000 {
            *seen.entry(page(&snapshot, selector, &[1, 2], 2)).or_default() += 1;
        }
        let probability = |pair: &Vec<u32>| {
            let [first, second] = [pair[0], pair[1]].map(|number| weights[number as usize - 1]);
            200_000.0 * first / 8.0 * second / (8.0 - first)
        };
        assert_eq!(seen.len(), 6);
        let expected: Vec<_> = seen.keys().map(probability).collect();
        assert_drawn_as(&expected, &seen.into_values().collect::<Vec<_>>());
    });
}

#[test]
fn weights_follow_what_was_delivered() {
    each(|selection, selector| {
        let snapshot = snapshot(&[sign(3, &[1]), sign(1, &[1])], selection);
        let mut seen = [0, 0];
        for _ in 0..4 {
            seen[page(&snapshot, selector, &[1], 1)[0] as usize - 1] += 1;
        }
        assert_eq!(seen, [3, 1]);
        assert!(page(&snapshot, selector, &[1], 1).is_empty());
    });
}

#[test]
fn no_page_has_a_banner_twice_or_two_that_contradict_each_other() {
    each(|selection, selector| {
        let rival = |owed, category| Sign { owed, concepts: &[1, 2], category: Some(category) };
        let signs = [
            rival(1_000_000_000, "cars"),
            rival(1_000_000_000, "cars"),
            rival(1_000, "phones"),
            sign(1_000, &[1]),
        ];
        let snapshot = snapshot(&signs, selection);
        for _ in 0..300 {
            let mut chosen = page(&snapshot, selector, &[1, 2], 4);
            chosen.sort_unstable();
            assert!([[1, 3, 4], [2, 3, 4]].iter().any(|right| chosen == right), "{chosen:?}");
        }
    });
}

#[test]
fn a_size_is_a_condition() {
    each(|selection, selector| {
        let snapshot = snapshot(&[sign(9, &[1]), sign(9, &[1]), sign(9, &[1])], selection);
        let mut got = Page::default();
        let wanted =
            SelectionRequest { concepts: &[concept(1)], size: Size::parse("468x60"), count: 3 };
        selector.select(&snapshot, wanted, &mut got, None);
        assert_eq!(got.banners.iter().map(|banner| banner.id.number()).collect::<Vec<_>>(), [2]);
    });
}

#[test]
fn two_workers_at_once_never_deliver_more_than_was_contracted() {
    each(|selection, _| {
        let snapshot = snapshot(&[sign(500, &[1]), sign(700, &[1, 2])], selection);
        let shown = std::thread::scope(|scope| {
            let work = |seed| {
                let snapshot = &snapshot;
                move || {
                    let mut selector = Selector::new(RandomStream::seeded(seed));
                    (0..1_000)
                        .map(|_| page(snapshot, &mut selector, &[1, 2], 2).len())
                        .sum::<usize>()
                }
            };
            let both = [scope.spawn(work(1)), scope.spawn(work(2))];
            both.map(|thread| thread.join().unwrap())
        });
        assert_eq!(shown.iter().sum::<usize>(), 1_200);
    });
}

#[test]
fn candidates_are_the_same_from_wheels_and_from_a_scan() {
    let sets: [&[u32]; 4] = [&[1], &[2], &[1, 2], &[3]];
    let signs: Vec<_> = (0..40).map(|n| sign(u64::from(n % 5 > 0) * 7, sets[n % 4])).collect();
    let snapshot = snapshot(&signs, Selection::Wheels);
    let trees = snapshot.trees.as_ref().unwrap();
    for size in [None, Size::parse("468x60"), Size::parse("1x1")] {
        for number in 1..=4 {
            let concept = concept(number);
            let mut found = scan::matching_in_trees(&snapshot, trees, &concept, size);
            found.sort_unstable();
            assert_eq!(found, scan::matching(&snapshot, &concept, size), "{number} {size:?}");
        }
    }
}
