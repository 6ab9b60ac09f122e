//! Tests of requests under a throttle rule (elephants), and of the other requests next to them
//! (ants).

use bywash_engine::RuleId;
use bywash_engine::throttle::Rule;
use bywash_engine::{
    Action, AddressKey, End, Event, Options, Reason, Request, RequestId, SessionKey, Upload,
};
use bywash_units::{Rate, TimeSpan};

use crate::dice::Dice;
use crate::site::{DETAILS, LOGIN, MAIN, SEARCH, Site, classes};

const RULE: RuleId = RuleId(7);
const SECOND: TimeSpan = TimeSpan::from_secs(1);

/// Returns a site with four slots and this rule for elephants.
fn site(rule: Rule) -> Site {
    let options = Options { limit: 4.into(), ..Options::default() };
    let mut site = Site::with("session-first", &[("capacity", "5")], classes(), options);
    set(&mut site, &[(RULE, rule)]);
    site
}

fn set(site: &mut Site, rules: &[(RuleId, Rule)]) {
    let mut actions = Vec::new();
    site.engine.throttle(site.now, rules, &mut actions);
    site.obey(&actions);
}

fn elephant(site: &mut Site) -> RequestId {
    site.request(Request { rule: Some(RULE), ..Request::of(SEARCH) })
}

fn why_it_runs(site: &Site, id: RequestId) -> Option<Reason> {
    site.log.iter().find_map(|action| match action {
        Action::Dispatch { id: started, reason } if *started == id => Some(*reason),
        _ => None,
    })
}

fn ends(site: &mut Site, id: RequestId) {
    let actions = site.tell(Event::Finished { id, end: End::ANSWERED });
    assert!(!actions.iter().any(|action| matches!(action, Action::Shed { .. })), "{actions:?}");
}

#[test]
fn no_more_elephants_run_at_once_than_the_rule_says_and_ants_have_the_other_slots() {
    let mut site = site(Rule::max_concurrency(2));
    let elephants = [(); 3].map(|()| elephant(&mut site));
    assert_eq!(elephants.map(|id| why_it_runs(&site, id).is_some()), [true, true, false]);
    assert_eq!(why_it_runs(&site, elephants[0]), Some(Reason::AfterOthers));
    let ants = [(); 3].map(|()| site.arrive(MAIN));
    assert_eq!(ants.map(|id| why_it_runs(&site, id).is_some()), [true, true, false]);
    // A slot is free. The ant gets it although it arrived last of all.
    ends(&mut site, elephants[0]);
    assert_eq!(why_it_runs(&site, ants[2]), Some(Reason::Best));
    assert_eq!(why_it_runs(&site, elephants[2]), None);
    ends(&mut site, ants[0]);
    assert_eq!(why_it_runs(&site, elephants[2]), Some(Reason::AfterOthers));
    assert_eq!(site.engine.throttled().collect::<Vec<_>>(), [(RULE, 0, 2)]);
}

#[test]
fn an_elephant_gets_its_floor_share_although_ants_never_stop_waiting() {
    let mut site = site(Rule { wait: SECOND * 1000, ..Rule::max_concurrency(2) });
    (0..8).for_each(|_| _ = site.arrive(MAIN));
    let throttled = elephant(&mut site);
    let mut given = 0;
    while why_it_runs(&site, throttled).is_none() {
        site.finish();
        site.arrive(MAIN);
        given += 1;
        assert!(given < 100, "an elephant starves");
    }
    assert_eq!(why_it_runs(&site, throttled), Some(Reason::FloorShare));
    assert!(given > 20, "{given}: a floor share is small");
}

#[test]
fn a_rate_lets_so_many_start_in_a_second_and_saves_none_up() {
    let mut site = site(Rule { rate: Some(Rate::per_second(2.0)), ..Rule::max_concurrency(4) });
    site.pass(SECOND * 100);
    let [first, second, third] = [(); 3].map(|()| elephant(&mut site));
    assert!(why_it_runs(&site, first).is_some() && why_it_runs(&site, second).is_none());
    assert_eq!(site.engine.next_timer(), Some(site.now + SECOND / 2));
    site.pass(SECOND / 2);
    assert!(why_it_runs(&site, second).is_some() && why_it_runs(&site, third).is_none());
    site.pass(SECOND / 2);
    assert!(why_it_runs(&site, third).is_some());
}

#[test]
fn a_request_that_would_wait_too_long_is_refused_at_once_with_retry_after() {
    let rule =
        Rule { rate: Some(Rate::per_second(0.5)), wait: SECOND * 5, ..Rule::max_concurrency(4) };
    let mut site = site(rule);
    let came = [(); 5].map(|()| elephant(&mut site));
    let refused = came.map(|id| site.refusal(id));
    // One elephant runs, and the next two wait for 2 s and 4 s. A wait of 6 s is too long.
    assert_eq!(refused[..3], [None; 3]);
    assert_eq!(refused[3..], [Some(Reason::Throttled); 2]);
    let Some(Action::Shed { retry_after, .. }) = site.log.last() else { panic!("it was refused") };
    assert_eq!(*retry_after, SECOND * 6);
}

#[test]
fn who_has_waited_as_long_as_the_rule_says_is_refused_then() {
    let mut site = site(Rule { wait: SECOND * 5, ..Rule::max_concurrency(1) });
    let [runs, throttled] = [(); 2].map(|()| elephant(&mut site));
    assert_eq!(site.engine.next_timer(), Some(site.now + SECOND * 5));
    site.pass(SECOND * 5);
    assert_eq!((site.refusal(runs), site.refusal(throttled)), (None, Some(Reason::Throttled)));
    // No request has started for nine seconds. So a request behind the next one would have to wait
    // that long again.
    let next = elephant(&mut site);
    site.pass(SECOND * 4);
    let last = elephant(&mut site);
    assert_eq!((site.refusal(next), site.refusal(last)), (None, Some(Reason::Throttled)));
    ends(&mut site, runs);
    assert!(why_it_runs(&site, next).is_some());
}

#[test]
fn a_lane_without_a_queue_has_the_slots_that_uploads_may_not_have() {
    let mut site = site(Rule { queue: 0, ..Rule::max_concurrency(2) });
    for _ in 0..3 {
        site.request(Request { upload: Upload::Unfinished, ..Request::of(MAIN) });
    }
    let elephant = elephant(&mut site);
    assert!(why_it_runs(&site, elephant).is_some());
}

#[test]
fn one_long_wait_does_not_shut_the_lane() {
    let mut site = site(Rule { wait: SECOND * 10, ..Rule::max_concurrency(1) });
    let first = elephant(&mut site);
    site.pass(SECOND);
    elephant(&mut site);
    site.pass(SECOND * 4);
    let third = elephant(&mut site);
    // The second request has been refused by now, and no request has started for thirteen seconds.
    site.pass(SECOND * 9);
    ends(&mut site, first);
    assert!(why_it_runs(&site, third).is_some());
    let next = elephant(&mut site);
    assert_eq!(site.refusal(next), None, "it may wait, and what it learns is learned");
}

#[test]
fn a_lane_learns_how_fast_it_drains() {
    let mut site = site(Rule { wait: SECOND * 5, ..Rule::max_concurrency(1) });
    elephant(&mut site);
    for _ in 0..20 {
        elephant(&mut site);
        site.pass(SECOND * 2);
        site.finish();
    }
    // Each elephant takes two seconds, so the third waiting one would start after six seconds.
    let came = [(); 4].map(|()| elephant(&mut site));
    let refused = came.map(|id| site.refusal(id).is_some());
    assert_eq!(refused, [false, false, true, true]);
}

#[test]
fn one_principal_has_a_quarter_of_the_places() {
    let mut site = site(Rule { queue: 8, ..Rule::max_concurrency(1) });
    elephant(&mut site);
    let from = |site: &mut Site, address| {
        let address = Some(AddressKey(address));
        site.request(Request { rule: Some(RULE), address, ..Request::of(SEARCH) })
    };
    let many = [(); 4].map(|()| from(&mut site, 1));
    let other = from(&mut site, 2);
    assert_eq!(many.map(|id| site.refusal(id).is_some()), [false, false, true, true]);
    assert_eq!(site.refusal(other), None);
    site.leave(many[0]);
    let again = from(&mut site, 1);
    assert_eq!(site.refusal(again), None, "a place that was given back can be had");
}

#[test]
fn where_nobody_may_wait_as_many_run_as_may_run() {
    let mut site = site(Rule { queue: 0, wait: TimeSpan::ZERO, ..Rule::max_concurrency(2) });
    let came = [(); 3].map(|()| elephant(&mut site));
    let runs = came.map(|id| why_it_runs(&site, id).is_some());
    assert_eq!((runs, site.refusal(came[2])), ([true, true, false], Some(Reason::Throttled)));
    (0..3).for_each(|_| _ = site.arrive(MAIN));
    ends(&mut site, came[0]);
    let behind = elephant(&mut site);
    assert_eq!(site.refusal(behind), Some(Reason::Throttled), "an ant has the slot");
}

#[test]
fn a_transaction_is_under_no_rule() {
    let mut site = site(Rule::max_concurrency(1));
    elephant(&mut site);
    site.prove(1, &[MAIN]);
    let session = Some(SessionKey(1));
    let order = site.request(Request { rule: Some(RULE), session, ..Request::of(LOGIN) });
    assert_eq!(why_it_runs(&site, order), Some(Reason::SlotFree));
}

#[test]
fn a_rule_that_is_not_in_force_is_none() {
    let mut site = site(Rule::max_concurrency(1));
    elephant(&mut site);
    let stranger = Some(RuleId(1));
    let other = site.request(Request { rule: stranger, ..Request::of(SEARCH) });
    assert_eq!(why_it_runs(&site, other), Some(Reason::SlotFree));
}

#[test]
fn who_waits_under_a_rule_that_is_undone_stands_in_the_queue_like_everybody() {
    let mut site = site(Rule::max_concurrency(1));
    elephant(&mut site);
    let throttled = [(); 7].map(|()| elephant(&mut site));
    let (_, ants) = (site.arrive(MAIN), site.arrive(MAIN));
    assert!(why_it_runs(&site, ants).is_some());
    set(&mut site, &[]);
    // One slot was free. Five requests wait, and the queue has no room for the sixth, so it evicts
    // or refuses one.
    let runs = throttled.iter().filter(|id| why_it_runs(&site, **id).is_some()).count();
    let refused = throttled.iter().filter(|id| site.refusal(**id).is_some()).count();
    assert_eq!(
        (runs, refused, site.status().waiting, site.status().throttled_waiting),
        (1, 1, 5, 0)
    );
}

#[test]
fn a_rule_that_is_changed_keeps_who_waits_and_counts_who_runs() {
    let mut site = site(Rule::max_concurrency(1));
    let [_, second, third] = [(); 3].map(|()| elephant(&mut site));
    set(&mut site, &[(RuleId(1), Rule::max_concurrency(1)), (RULE, Rule::max_concurrency(2))]);
    assert!(why_it_runs(&site, second).is_some() && why_it_runs(&site, third).is_none());
    let counts: Vec<_> = site.engine.throttled().collect();
    assert_eq!(counts, [(RuleId(1), 0, 0), (RULE, 1, 2)]);
}

/// Checks random events. No more requests run than the rules allow. An elephant starts only when no
/// ant waits, or by the floor share. Each request gets one answer.
#[test]
fn whatever_happens_ants_are_first_and_every_request_is_answered_once() {
    for seed in 0..200 {
        let mut dice = Dice::new(seed);
        let rules: Vec<(RuleId, Rule)> = (0..3).map(|n| (RuleId(n), any_rule(&mut dice))).collect();
        let mut site = site(Rule::max_concurrency(1));
        set(&mut site, &rules);
        let mut alive: Vec<(RequestId, Option<RuleId>)> = Vec::new();
        for _ in 0..400 {
            let before = site.log.len();
            match dice.below(12) {
                0..=4 => {
                    let rule = dice.percent(60).then(|| RuleId(dice.below(4) as u32));
                    let class = if dice.percent(90) { SEARCH } else { DETAILS };
                    let id = site.request(Request { rule, ..Request::of(class) });
                    alive.push((id, rule.filter(|rule| rule.0 < 3)));
                }
                5..=7 if site.status().running > 0 => _ = site.finish(),
                8 if !alive.is_empty() => {
                    let who = dice.below(alive.len() as u64) as usize;
                    site.leave(alive.swap_remove(who).0);
                }
                9 => {
                    let mut rules = rules.clone();
                    rules.retain(|_| dice.percent(80));
                    set(&mut site, &rules);
                    set(&mut site, &shuffled(&rules, &mut dice));
                }
                _ => site.run_to(site.now + TimeSpan::from_millis(dice.below(1500))),
            }
            let status = site.status();
            assert!(status.running <= 4, "seed {seed}: {status:?}");
            for action in &site.log[before..] {
                if let Action::Dispatch { reason: Reason::AfterOthers, .. } = action {
                    assert_eq!(status.waiting, 0, "seed {seed}: an ant waits");
                }
            }
            let due = site.engine.next_timer();
            assert!(due.is_none_or(|due| due > site.now), "seed {seed}: {due:?} {:?}", site.now);
        }
        one_answer_each(&site, seed);
    }
}

fn any_rule(dice: &mut Dice) -> Rule {
    Rule {
        max_concurrency: dice.below(4) as u32,
        rate: dice.percent(40).then(|| Rate::per_second(dice.below(5) as f64)),
        queue: dice.below(6) as u32,
        wait: TimeSpan::from_millis(dice.below(4000)),
    }
}

fn shuffled(rules: &[(RuleId, Rule)], dice: &mut Dice) -> Vec<(RuleId, Rule)> {
    let mut rules = rules.to_vec();
    if dice.percent(50) {
        rules.reverse();
    }
    rules
}

fn one_answer_each(site: &Site, seed: u64) {
    let answered = |id: u32| {
        let of = |action: &&Action| match action {
            Action::Dispatch { id: of, .. } | Action::Shed { id: of, .. } => of.0 == id,
            Action::Cancel { .. } | Action::Terminate { .. } => false,
        };
        site.log.iter().filter(of).count()
    };
    let most = site.log.iter().map(|action| match action {
        Action::Dispatch { id, .. }
        | Action::Shed { id, .. }
        | Action::Cancel { id, .. }
        | Action::Terminate { id, .. } => id.0,
    });
    for id in 0..most.max().unwrap_or(0) {
        assert!(answered(id) <= 1, "seed {seed}: {id} has two answers");
    }
}
