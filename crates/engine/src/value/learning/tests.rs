//! Tests of the learned worth of requests.

use super::*;
use crate::request::ClassSet;
use alloc::string::String;

const PAGE: ClassId = ClassId(0);
const BUY: ClassId = ClassId(1);

fn classes(fixed_value: Option<f64>) -> [Class; 2] {
    let class = |tier, fixed_value: Option<f64>| Class {
        name: String::new(),
        tier,
        utility: Utility::default(),
        revenue: Utility::new(1.0),
        fixed_value: fixed_value.map(Utility::new),
        stop: None,
        queue: None,
        requires: ClassSet::NONE,
    };
    [class(Tier::Browsing, fixed_value), class(Tier::Transaction, None)]
}

/// Counts sessions, of which one in ten makes an order. `many` is their number.
fn sessions(learning: &mut Learning, many: u32) {
    let seen = ClassSet::NONE.with(PAGE).with(BUY);
    let step = Step { entry: Some(PAGE), seen, ..Step::default() };
    for number in 0..many {
        learning.visited(Position::first(PAGE), true, Signals::NONE);
        if number % 10 == 0 {
            learning.asked(Position::first(PAGE), BUY);
            learning.visited(Position::later(BUY), true, Signals::NONE);
            learning.add_revenue(BUY, &step, 1.0);
        }
    }
}

fn at(seconds: u64) -> Time {
    Time::ZERO + TimeSpan::from_secs(seconds)
}

fn published(learning: &mut Learning, seconds: u64, classes: &[Class]) -> f64 {
    learning.publish(at(seconds), classes);
    learning.values().index(Position::first(PAGE)).unwrap_or(0.0)
}

#[test]
fn nothing_is_published_before_so_many_orders() {
    let mut learning = Learning::new(2, Learn::default());
    sessions(&mut learning, 190);
    assert!(published(&mut learning, 10, &classes(None)) <= 0.0 && !learning.is_known());
    sessions(&mut learning, 20);
    assert!(published(&mut learning, 20, &classes(None)) > 0.0 && learning.is_known());
}

#[test]
fn two_gateways_learn_together_as_one_that_serves_all_sessions() {
    let classes = classes(None);
    let mut all = Learning::new(2, Learn::default());
    let mut halves = [(); 2].map(|()| Learning::new(2, Learn::default()));
    sessions(&mut all, 300);
    for half in &mut halves {
        sessions(half, 150);
        assert!(published(half, 10, &classes) <= 0.0, "too few orders for one gateway");
    }
    let [one, other] = &mut halves;
    let counts = [PAGE, BUY].map(|class| other.counts(class).0);
    let mut others = OtherCounts::new(2);
    others.add(&counts, &other.signal_counts().1, 1.0);
    one.set_others(others);
    assert!(one.is_due(at(20)));
    let (together, alone) = (published(one, 20, &classes), published(&mut all, 20, &classes));
    assert!(alone > 0.0 && (together / alone - 1.0).abs() < 1e-3, "{together}, not {alone}");
    assert!((one.orders() / all.orders() - 1.0).abs() < 1e-3);
    assert!((one.signals(Signals::NONE).0 / all.signals(Signals::NONE).0 - 1.0).abs() < 1e-3);
    // A gateway gives its own counts to the others, without those that it got from them.
    assert!((one.counts(PAGE).0.first.0 - 150.0).abs() < 0.1);
}

#[test]
fn counts_of_other_classes_have_no_effect() {
    let mut learning = Learning::new(2, Learn::default());
    let mut others = OtherCounts::new(3);
    others.add(&[Counts { orders: 1e3, ..Counts::default() }], &[], 1.0);
    learning.set_others(others);
    assert!(learning.orders() <= 0.0 && !learning.is_due(at(20)));
}

#[test]
fn a_worth_moves_no_faster_than_its_bound_and_a_fixed_value_at_once() {
    let mut learning = Learning::new(2, Learn { max_change_per_hour: 2.0, ..Learn::default() });
    sessions(&mut learning, 300);
    let before = published(&mut learning, 10, &classes(None));
    (0..100_000).for_each(|_| learning.visited(Position::first(PAGE), true, Signals::NONE));
    let half_an_hour = published(&mut learning, 1810, &classes(None));
    assert!((half_an_hour / before - libm::sqrt(0.5)).abs() < 1e-3, "{half_an_hour}, {before}");
    let fixed = published(&mut learning, 1820, &classes(Some(50.0)));
    let work = learning.works.seconds(PAGE);
    assert!((fixed * work / 50.0 - 1.0).abs() < 1e-9, "{fixed}");
}

#[test]
fn a_fixed_value_counts_on_the_pages_that_lead_there_and_is_forgotten_at_once() {
    let fixed = |of_buy| {
        let mut classes = classes(None);
        classes[BUY.index()].fixed_value = of_buy;
        classes
    };
    let (plain, dear) = (fixed(None), fixed(Some(Utility::new(50.0))));
    let mut learning = Learning::new(2, Learn::default());
    sessions(&mut learning, 3000);
    let before = published(&mut learning, 10, &plain);
    let buy = |learning: &Learning| learning.values().index(Position::later(BUY)).unwrap();
    let buy_before = buy(&learning);
    published(&mut learning, 20, &dear);
    assert!((buy(&learning) / buy_before - 50.0).abs() < 1.0);
    published(&mut learning, 30, &plain);
    assert!((buy(&learning) / buy_before - 1.0).abs() < 0.01);
    let mut other = Learning::new(2, Learn::default());
    sessions(&mut other, 3000);
    let leads_there = published(&mut other, 10, &dear);
    assert!(leads_there > 20.0 * before, "{leads_there} beside {before}");
}

#[test]
fn what_was_published_holds_it_back_in_the_next_process_too() {
    let mut learning = Learning::new(2, Learn::default());
    sessions(&mut learning, 300);
    let before = published(&mut learning, 10, &classes(None));
    let mut next = Learning::new(2, Learn::default());
    for class in [PAGE, BUY] {
        let (counts, index) = learning.counts(class);
        next.restore(class, &counts, index.map(|index| index.map(|index| 10.0 * index)));
    }
    let after = published(&mut next, 0, &classes(None));
    assert!((after / before - 10.0).abs() < 0.1, "{after} after {before}");
}
