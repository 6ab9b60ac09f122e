//! Tests of the populations of clients.

use alloc::vec;

use super::*;

fn at(seconds: u64) -> Time {
    Time::ZERO + TimeSpan::from_secs(seconds)
}

/// Adds sessions of a population, of which `read_on` read on.
fn add(all: &mut Populations, number: u64, sessions: u32, read_on: u32) {
    let key = Some(PopulationKey(number));
    (0..sessions).for_each(|_| all.begin_visit(Time::ZERO, key, None, None));
    all.of(PopulationKey(number)).read_on += f64::from(read_on);
}

fn level(all: &Populations, number: u64) -> usize {
    all.level(Some(PopulationKey(number)), None)
}

fn levels(all: &Populations, numbers: [u64; 4]) -> [usize; 4] {
    numbers.map(|number| level(all, number))
}

fn after_ten_minutes(all: &mut Populations) {
    (1..=600).for_each(|second| all.tick(at(second)));
}

#[test]
fn a_population_that_reads_on_half_as_often_ranks_a_level_lower() {
    let mut all = Populations::new();
    for (number, read_on) in [(0, 800), (1, 600), (2, 300), (3, 60)] {
        add(&mut all, number, 1000, read_on);
    }
    assert_eq!(levels(&all, [0, 1, 2, 3]), [0; 4], "no lift is computed yet");
    after_ten_minutes(&mut all);
    assert_eq!(levels(&all, [0, 1, 2, 3]), [0, 0, 1, 3]);
    assert_eq!(all.level(None, None), 0);
}

#[test]
fn populations_that_differ_by_chance_rank_alike() {
    let mut all = Populations::new();
    for (number, read_on) in [(0, 480), (1, 520), (2, 12), (3, 8)] {
        add(&mut all, number, if number < 2 { 1000 } else { 20 }, read_on);
    }
    after_ten_minutes(&mut all);
    assert_eq!(levels(&all, [0, 1, 2, 3]), [0; 4]);
}

#[test]
fn populations_that_never_read_on_count_as_one() {
    let mut all = Populations::new();
    add(&mut all, 0, 1000, 500);
    (1..=50).for_each(|number| add(&mut all, number, 20, 0));
    after_ten_minutes(&mut all);
    assert_eq!(level(&all, 0), 0);
    let [one, other, unseen] = [1, 50, 51].map(|number| level(&all, number));
    assert!(one >= 5 && one == other && one == unseen, "{one}, {other}, {unseen}");
    // A population becomes known by its sessions, and its lift changes from that of unknown ones.
    add(&mut all, 1, 980, 980);
    assert_eq!(level(&all, 1), one);
    (601..=1_200).for_each(|second| all.tick(at(second)));
    assert!(level(&all, 1) == 0 && level(&all, 50) >= one);
}

#[test]
fn an_unknown_population_ranks_behind_known_ones_from_its_first_request() {
    let mut all = Populations::new();
    add(&mut all, 0, 99, 50);
    all.tick(at(1));
    assert_eq!(levels(&all, [0, 1, 2, 3]), [0; 4], "too little is known");
    add(&mut all, 0, 10, 5);
    add(&mut all, 1, 1, 0);
    all.tick(at(2));
    assert_eq!(levels(&all, [0, 1, 2, 3]), [0, 1, 1, 1]);
    // It becomes known in calm weather, and then ranks with the others at once.
    add(&mut all, 1, 9, 6);
    all.tick(at(3));
    assert_eq!(levels(&all, [0, 1, 2, 3]), [0, 0, 1, 1]);
}

#[test]
fn a_lift_changes_no_faster_than_its_bound() {
    let mut all = Populations::new();
    add(&mut all, 0, 1000, 900);
    add(&mut all, 1, 100_000, 10);
    all.tick(at(60));
    assert!((all.all[2].lift - 0.5).abs() < 1e-6, "{}", all.all[2].lift);
    all.tick(at(120));
    assert!((all.all[2].lift - 0.25).abs() < 1e-6, "{}", all.all[2].lift);
}

#[test]
fn a_visit_is_one_session_and_reads_on_once() {
    let mut all = Populations::new();
    let (visitor, key) = (Some(VisitorKey(9)), Some(PopulationKey(1)));
    assert_eq!(all.asks(at(0), visitor, false), None);
    all.begin_visit(at(0), key, visitor, None);
    // Further requests may look otherwise, as those for the files of a page do.
    for second in [1, 300, 800] {
        assert_eq!(all.asks(at(second), visitor, false), key.map(|key| (key, None)));
        all.begin_visit(at(second), Some(PopulationKey(2)), visitor, None);
    }
    assert_eq!((all.all[1].sessions, all.all[1].read_on), (1.0, 1.0));
    // Another client, and the same one after a long time.
    all.begin_visit(at(800), key, Some(VisitorKey(8)), None);
    assert_eq!(all.asks(at(1_401), visitor, false), None);
    all.begin_visit(at(1_401), key, visitor, None);
    assert_eq!((all.all[1].sessions, all.all[1].read_on), (3.0, 1.0));
    assert_eq!(all.all.len(), 2, "the others are of the same visits");
}

#[test]
fn a_client_that_fetches_the_parts_of_its_page_has_not_read_on() {
    let mut all = Populations::new();
    let (visitor, key) = (Some(VisitorKey(9)), Some(PopulationKey(1)));
    all.begin_visit(at(0), key, visitor, None);
    for second in [1, 500, 1_000] {
        let visit = all.asks(at(second), visitor, true);
        assert_eq!(visit, key.map(|key| (key, None)), "it is of the visit, and prolongs it");
        all.begin_visit(at(second), Some(PopulationKey(2)), visitor, None);
    }
    assert_eq!((all.all[1].sessions, all.all[1].read_on), (1.0, 0.0));
    all.asks(at(1_001), visitor, false);
    assert_eq!((all.all[1].sessions, all.all[1].read_on), (1.0, 1.0));
}

#[test]
fn a_client_that_follows_a_redirection_has_not_read_on() {
    let mut all = Populations::new();
    let (visitor, key) = (Some(VisitorKey(9)), Some(PopulationKey(1)));
    all.begin_visit(at(0), key, visitor, None);
    all.redirected(at(0), visitor);
    assert_eq!(all.asks(at(1), visitor, false), None);
    all.begin_visit(at(1), key, visitor, None);
    assert_eq!((all.all[1].sessions, all.all[1].read_on), (1.0, 0.0));
    let visit = key.map(|key| (key, None));
    assert_eq!(all.asks(at(2), visitor, false), visit);
    all.redirected(at(2), visitor);
    assert_eq!(all.asks(at(3), visitor, false), visit, "the visit goes on");
    assert_eq!((all.all[1].sessions, all.all[1].read_on), (1.0, 1.0));
}

#[test]
fn a_program_that_reads_on_more_often_than_people_takes_hours_to_be_the_measure() {
    let mut all = Populations::new();
    add(&mut all, 0, 1_000, 350);
    after_ten_minutes(&mut all);
    add(&mut all, 1, 9_000, 9_000);
    (601..=4_200).for_each(|second| all.tick(at(second)));
    assert_eq!(levels(&all, [0, 1, 2, 3]), [0, 0, 1, 1]);
    assert!(all.mean < 0.4, "{}", all.mean);
}

#[test]
fn a_full_table_gives_up_unknown_populations_with_few_requests() {
    let mut all = Populations::new();
    add(&mut all, 1, 10, 5);
    add(&mut all, 2, 500, 0);
    (10..10 + 3 * MOST as u64).for_each(|number| add(&mut all, number, 1, 0));
    assert_eq!((all.all.len(), all.indices.len()), (MOST + 1, MOST));
    let sessions = |number| all.all[all.index(PopulationKey(number))].sessions;
    assert_eq!((sessions(1), sessions(2), sessions(9 + 3 * MOST as u64)), (10.0, 500.0, 1.0));
    let total: f64 = all.all.iter().map(|population| population.sessions).sum();
    let lost = 510.0 + 3.0 * MOST as f64 - total;
    assert!(lost.abs() < 1e-6, "{lost} sessions are lost");
}

#[test]
fn clients_beyond_a_table_of_known_populations_count_with_the_unknown_ones() {
    let mut all = Populations::new();
    (0..MOST as u64).for_each(|number| add(&mut all, number, 9, 9));
    add(&mut all, MOST as u64, 1_000_000, 0);
    assert!(all.all[UNKNOWN].sessions > 999_999.0);
    after_ten_minutes(&mut all);
    assert!(level(&all, MOST as u64) >= 5 && level(&all, 7) == 0);
}

#[test]
fn operators_can_set_a_level() {
    let mut all = Populations::new();
    all.rank(Vec::from([(PopulationKey(1), 3), (PopulationKey(2), 99)]));
    assert_eq!(levels(&all, [0, 1, 2, 3]), [0, 3, LEVELS - 1, 0]);
    all.rank(Vec::new());
    assert_eq!(levels(&all, [0, 1, 2, 3]), [0; 4]);
}

#[test]
fn populations_are_restored_with_their_lifts() {
    let mut before = Populations::new();
    add(&mut before, 1, 1000, 500);
    add(&mut before, 2, 20_000, 20);
    add(&mut before, 3, 5_000, 0);
    after_ten_minutes(&mut before);
    let remembered = before.remembered();
    let mut all = Populations::new();
    all.restore(&remembered);
    assert_eq!(all.remembered(), remembered);
    all.tick(at(1));
    assert_eq!(levels(&all, [1, 2, 3, 4]), levels(&before, [1, 2, 3, 4]));
    assert!(level(&all, 1) == 0 && level(&all, 2) >= 4 && level(&all, 4) >= 4);
    let old = remembered.clone().aged(TimeSpan::from_secs(HALF_LIFE as u64));
    assert!((old.populations[0].1[0] - remembered.populations[0].1[0] / 2.0).abs() < 1e-6);
    for (sessions, lift) in [(f64::NAN, 1.0), (-1.0, 1.0), (1.0, 0.0), (1.0, 5.0)] {
        let populations = vec![(PopulationKey(1), [sessions, 1.0, lift])];
        let broken = RememberedPopulations { populations, ..remembered.clone() };
        let mut all = Populations::new();
        all.restore(&broken);
        assert_eq!(all.all.len(), 1, "{sessions}, {lift}");
    }
}

#[test]
fn a_known_population_does_not_become_unknown_because_it_reads_on_a_little_less() {
    let mut all = Populations::new();
    add(&mut all, 0, 1000, 500);
    add(&mut all, 1, 10, 6);
    after_ten_minutes(&mut all);
    all.of(PopulationKey(1)).read_on = 4.0;
    all.tick(at(601));
    assert!(all.all[2].is_known());
    all.of(PopulationKey(1)).read_on = 2.0;
    all.tick(at(602));
    assert!(!all.all[2].is_known());
    all.of(PopulationKey(1)).read_on = 4.0;
    all.tick(at(603));
    assert!(!all.all[2].is_known());
}

#[test]
fn the_table_forgets_what_is_over() {
    let mut all = Populations::new();
    (0..MOST as u64).for_each(|number| add(&mut all, number, 1, 0));
    add(&mut all, 7, 5, 0);
    all.requested(Some(PopulationKey(7)));
    all.tick(at(2 * HALF_LIFE as u64));
    assert_eq!((all.all.len(), all.indices.len()), (2, 1));
    assert_eq!(all.indices.get(&PopulationKey(7)), Some(&1));
    assert!(all.all[1].requested < 1e-9 && (all.all[1].sessions - 1.5).abs() < 1e-6);
    add(&mut all, 8, 1, 0);
    assert_eq!(all.all.len(), 3);
}

#[test]
fn the_first_target_of_a_visit_counts_as_much_as_its_population() {
    let mut all = Populations::new();
    let key = Some(PopulationKey(1));
    let often = Some(TargetKey(0));
    let rare = |number: u64| Some(TargetKey(number.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
    let level = |all: &Populations, target| all.level(key, all.group(target));
    add(&mut all, 1, 200, 40);
    // Four of five visits begin with targets that no other visit begins with, and do not read on.
    for number in 0..6000 {
        let (now, visitor) = (at(number / 10), Some(VisitorKey(number)));
        let target = if number % 5 == 0 { often } else { rare(number) };
        all.tick(now);
        all.begin_visit(now, key, visitor, target);
        if number % 5 == 0 {
            all.asks(now, visitor, false);
        }
        assert_eq!(level(&all, often), 0, "after {number} visits");
    }
    let index = |group: Option<TargetGroup>| group.map(|group| all.targets.index(group));
    assert_eq!(index(all.group(often)), Some(11));
    assert!(level(&all, rare(7777)) >= 2, "{}", level(&all, rare(7777)));
    assert_eq!(all.level(key, None), 0);
    // The further requests of a visit rank by its first target.
    let visitor = Some(VisitorKey(7777));
    all.begin_visit(at(600), key, visitor, often);
    let (_, group) = all.asks(at(600), visitor, false).unwrap();
    assert_eq!(group.map(|group| all.targets.index(group)), Some(11));
    all.rank(vec![(PopulationKey(2), 1), (PopulationKey(1), 5), (PopulationKey(1), 6)]);
    assert_eq!(level(&all, often), 5, "an operator decides");
}

#[test]
fn targets_do_not_count_before_lifts_do() {
    let mut all = Populations::new();
    for number in 0..90 {
        let (now, visitor) = (at(60 * number), Some(VisitorKey(number)));
        all.begin_visit(now, Some(PopulationKey(1)), visitor, Some(TargetKey(0)));
        all.asks(now, visitor, false);
        all.tick(now);
    }
    assert_eq!((all.group(Some(TargetKey(0))), all.group(Some(TargetKey(1)))), (None, None));
}

#[test]
fn a_redirected_visit_is_taken_back_from_its_group() {
    let mut all = Populations::new();
    add(&mut all, 1, 200, 100);
    all.tick(at(1));
    let (key, target) = (Some(PopulationKey(1)), Some(TargetKey(3)));
    for number in 0..1000 {
        let visitor = Some(VisitorKey(number));
        all.begin_visit(at(1), key, visitor, target);
        all.redirected(at(1), visitor);
    }
    after_ten_minutes(&mut all);
    assert!((all.all[1].sessions - 200.0).abs() < 5.0, "{}", all.all[1].sessions);
    assert_eq!(all.level(key, all.group(target)), 0, "its visits are not known");
}
