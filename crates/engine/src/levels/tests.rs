use alloc::vec;
use alloc::vec::Vec;

use proptest::prelude::*;

use super::*;

const HIGH: LevelId = LevelId(0);
const LOW: LevelId = LevelId(1);
const MS: TimeSpan = TimeSpan::from_millis(1);

fn at(milliseconds: u64) -> Time {
    Time::ZERO + MS * milliseconds
}

fn weighing(weight: f64) -> Level {
    Level { weight, floor: 0.0, ..Level::PLAIN }
}

fn wide(most: u32, least: u32) -> Level {
    Level { max_threads: most, min_threads: least, floor: 0.0, ..Level::PLAIN }
}

/// Returns each level's share of slot time over `rounds` requests. All levels always have requests
/// waiting. `takes` has, for each level, the time in milliseconds for which a request holds its
/// slot.
fn shares(slots: u32, levels: &[Level], takes: &[u64], rounds: u64) -> Vec<f64> {
    let mut pool = Levels::new(slots, levels.to_vec(), None);
    let mut ends: Vec<(Time, Ticket, LevelId)> = Vec::new();
    let mut used = vec![0.0; levels.len()];
    let mut now = at(0);
    let mut owner = Vec::new();
    for _ in 0..rounds {
        for level in 0..levels.len() {
            while pool.load(LevelId(level)).waiting < 2 {
                let ticket = pool.arrive(now, LevelId(level)).unwrap();
                owner.resize(owner.len().max(ticket.index() + 1), LevelId(0));
                owner[ticket.index()] = LevelId(level);
            }
        }
        while let Some(Grant::Begin(ticket)) = pool.grant(now) {
            let level = owner[ticket.index()];
            ends.push((now + MS * takes[level.0], ticket, level));
        }
        ends.sort_by_key(|end| core::cmp::Reverse(end.0));
        let (end, ticket, level) = ends.pop().unwrap();
        now = end;
        used[level.0] += takes[level.0] as f64;
        pool.release(now, ticket, MS * takes[level.0]);
        pool.end(now, ticket);
    }
    let all: f64 = used.iter().sum();
    used.iter().map(|used| used / all).collect()
}

#[test]
fn slot_time_goes_by_weight_however_long_requests_take() {
    for takes in [[5, 5], [20, 2], [2, 20]] {
        let shares = shares(4, &[weighing(3.0), weighing(1.0)], &takes, 4000);
        assert!((shares[0] - 0.75).abs() < 0.02, "{takes:?}: {shares:?}");
    }
}

#[test]
fn a_level_keeps_its_floor_whatever_the_weights_say() {
    let low = Level { floor: 0.1, ..weighing(1.0) };
    let shares = shares(4, &[weighing(1000.0), low], &[5, 5], 4000);
    assert!((0.09..0.13).contains(&shares[1]), "{shares:?}");
}

#[test]
fn a_clock_that_sees_no_time_pass_does_not_lead_a_ratio_astray() {
    let goal = Goal::Ratio { fast: HIGH, slow: LOW, target: 0.5 };
    let mut pool = Levels::new(1, vec![weighing(1.0), weighing(1.0)], Some(goal));
    for _ in 0..500 {
        for level in [HIGH, LOW] {
            pool.arrive(at(1), level).unwrap();
        }
        while let Some(grant) = pool.grant(at(1)) {
            pool.release(at(1), grant.ticket(), TimeSpan::ZERO);
            pool.end(at(1), grant.ticket());
        }
    }
    let standing = pool.standing(at(1)).unwrap();
    assert_eq!((standing.effort, standing.measured), (2.0, None));
    assert_eq!(standing.verdict, Verdict::Settling);
}

/// Runs one request. It arrives and begins at the time `comes`, and ends at the time `ends`.
fn one(pool: &mut Levels, level: LevelId, comes: Time, ends: Time) {
    let ticket = pool.arrive(comes, level).unwrap();
    assert_eq!(pool.grant(comes), Some(Grant::Begin(ticket)));
    pool.release(ends, ticket, ends.since(comes));
    pool.end(ends, ticket);
}

#[test]
fn a_promise_to_a_quiet_level_that_is_not_kept_is_said_to_be_infeasible() {
    let goal = Goal::Percentile { level: HIGH, share: 0.95, within: MS * 10 };
    let mut pool = Levels::new(1, vec![weighing(1.0), weighing(1.0)], Some(goal));
    // Fifteen requests a second end, each of them too late.
    for number in 0..30 {
        one(&mut pool, HIGH, at(number * 66), at(number * 66 + 20));
    }
    let verdict = |pool: &Levels, now| pool.standing(now).unwrap().verdict;
    assert_eq!(verdict(&pool, at(2_000)), Verdict::Infeasible);
    assert_eq!(verdict(&pool, at(60_000)), Verdict::Settling, "nobody has come for long");
}

#[test]
fn what_was_measured_of_a_ratio_long_ago_is_not_said_of_now() {
    let goal = Goal::Ratio { fast: HIGH, slow: LOW, target: 0.5 };
    let mut pool = Levels::new(1, vec![weighing(1.0), weighing(1.0)], Some(goal));
    let both = |pool: &mut Levels, begins: u64| {
        for number in 0..200 {
            let from = begins + number * 30;
            one(pool, HIGH, at(from), at(from + 10));
            one(pool, LOW, at(from + 10), at(from + 30));
        }
        at(begins + 200 * 30)
    };
    let now = both(&mut pool, 0);
    let standing = pool.standing(now).unwrap();
    assert_eq!(standing.verdict, Verdict::Held);
    assert!((standing.measured.unwrap() - 0.5).abs() < 0.01, "{standing:?}");
    // No request of the slow level arrives for ten minutes.
    for second in 0..600 {
        one(&mut pool, HIGH, now + MS * (second * 1_000), now + MS * (second * 1_000 + 900));
    }
    let later = now + MS * 600_000;
    let standing = pool.standing(later).unwrap();
    assert_eq!((standing.verdict, standing.measured), (Verdict::Settling, None));
    let now = both(&mut pool, 700_000);
    let standing = pool.standing(now).unwrap();
    assert!((standing.measured.unwrap() - 0.5).abs() < 0.05, "{standing:?}");
}

#[test]
fn where_nobody_may_wait_who_can_begin_at_once_does() {
    let nobody_waits = Level { queue: 0, ..weighing(1.0) };
    for mut pool in
        [Levels::new(1, vec![nobody_waits], None), Levels::parity(1, vec![nobody_waits])]
    {
        let first = pool.arrive(at(0), HIGH).unwrap();
        assert_eq!(pool.grant(at(0)), Some(Grant::Begin(first)));
        assert_eq!(pool.arrive(at(1), HIGH), Err(Full));
        pool.release(at(2), first, MS);
        pool.end(at(2), first);
        assert!(pool.arrive(at(3), HIGH).is_ok());
    }
}

#[test]
fn a_slot_that_is_handed_over_counts_for_its_level() {
    let mut pool = Levels::new(2, vec![wide(2, 1), weighing(1.0)], None);
    let high = pool.arrive(at(0), HIGH).unwrap();
    let low = pool.arrive(at(0), LOW).unwrap();
    while pool.grant(at(0)).is_some() {}
    pool.hand_over(at(100), high, MS * 100);
    pool.release(at(100), high, TimeSpan::ZERO);
    pool.end(at(100), high);
    pool.release(at(100), low, MS * 100);
    pool.end(at(100), low);
    let share = pool.load(HIGH).share;
    assert!((share - 0.5).abs() < 0.01, "{share}");
}

#[test]
fn a_ratio_that_is_asked_for_is_not_weighed_beyond_its_bound() {
    let goal = Goal::Ratio { fast: HIGH, slow: LOW, target: 0.001 };
    let pool = Levels::new(1, vec![weighing(1.0), weighing(1.0)], Some(goal));
    assert!((pool.standing(at(0)).unwrap().effort - 64.0).abs() < 1e-9);
}

#[test]
fn who_sleeps_saves_nothing_up() {
    let mut pool = Levels::new(1, vec![weighing(1.0), weighing(1.0)], None);
    let mut now = at(0);
    let mut serve = |pool: &mut Levels, level: LevelId| {
        let ticket = pool.arrive(now, level).unwrap();
        assert_eq!(pool.grant(now), Some(Grant::Begin(ticket)));
        now = now + MS;
        pool.release(now, ticket, MS);
        pool.end(now, ticket);
    };
    (0..100).for_each(|_| serve(&mut pool, HIGH));
    // From here on both levels have requests, so the pool serves them alternately.
    for _ in 0..20 {
        for level in [HIGH, LOW] {
            pool.arrive(at(2000), level).unwrap();
        }
    }
    let mut turns = [0, 0];
    for i in 0..20 {
        let Some(Grant::Begin(ticket)) = pool.grant(at(2000 + i)) else { panic!("no turn") };
        pool.release(at(2001 + i), ticket, MS);
        turns[pool.end(at(2001 + i), ticket).level.0] += 1;
    }
    // The low level begins at the pass of the level that was being served, so it may have one
    // request more.
    assert_eq!(turns[0] + turns[1], 20);
    assert!((9..=10).contains(&turns[0]), "{turns:?}");
}

#[test]
fn a_level_begins_requests_before_it_widens_one_beyond_its_least() {
    let mut pool = Levels::new(5, vec![wide(4, 2)], None);
    let [a, b] = [0, 1].map(|_| pool.arrive(at(0), HIGH).unwrap());
    assert_eq!(pool.grant(at(0)), Some(Grant::Begin(a)));
    pool.want(a, 3);
    assert_eq!(pool.grant(at(0)), Some(Grant::Widen(a)), "up to the least");
    assert_eq!(pool.grant(at(0)), Some(Grant::Begin(b)), "then whoever waits");
    pool.want(b, 1);
    assert_eq!(pool.grant(at(0)), Some(Grant::Widen(b)));
    assert_eq!(pool.grant(at(0)), Some(Grant::Widen(a)), "then the oldest");
    assert!(pool.pressed() && pool.grant(at(0)).is_none(), "no slot is free");
    pool.want(a, 0);
    assert!(!pool.pressed());
}

#[test]
fn nobody_has_more_threads_than_its_level_or_than_it_has_work_for() {
    let mut pool = Levels::new(8, vec![wide(3, 1)], None);
    let [a, b] = [0, 1].map(|_| pool.arrive(at(0), HIGH).unwrap());
    assert_eq!(pool.grant(at(0)), Some(Grant::Begin(a)));
    assert_eq!(pool.grant(at(0)), Some(Grant::Begin(b)));
    pool.want(a, 9);
    pool.want(b, 1);
    assert_eq!(pool.grant(at(0)), Some(Grant::Widen(a)));
    assert_eq!(pool.grant(at(0)), Some(Grant::Widen(a)));
    assert_eq!(pool.grant(at(0)), Some(Grant::Widen(b)));
    assert_eq!(pool.grant(at(0)), None);
    assert_eq!(pool.load(HIGH), Load { waiting: 0, running: 2, threads: 5, share: 1.0 });
}

#[test]
fn a_full_queue_refuses_and_who_leaves_makes_room() {
    let mut pool = Levels::new(1, vec![Level { queue: 2, ..Level::PLAIN }], None);
    let [a, b] = [0, 1].map(|_| pool.arrive(at(0), HIGH).unwrap());
    assert_eq!(pool.arrive(at(0), HIGH), Err(Full));
    pool.leave(a);
    let c = pool.arrive(at(1), HIGH).unwrap();
    assert_eq!(pool.grant(at(1)), Some(Grant::Begin(b)));
    pool.release(at(2), b, MS);
    let ended = pool.end(at(2), b);
    assert_eq!((ended.waited, ended.response), (MS, MS * 2));
    assert_eq!(pool.grant(at(2)), Some(Grant::Begin(c)));
}

#[test]
fn in_parity_who_comes_first_is_first_and_everybody_has_her_threads() {
    let mut pool = Levels::parity(2, vec![wide(3, 1), wide(1, 1)]);
    let low = pool.arrive(at(0), LOW).unwrap();
    let high = pool.arrive(at(1), HIGH).unwrap();
    let last = pool.arrive(at(2), HIGH).unwrap();
    assert_eq!(pool.grant(at(2)), Some(Grant::Begin(low)));
    assert_eq!(pool.grant(at(2)), Some(Grant::Begin(high)));
    assert_eq!(pool.grant(at(2)), None, "two places");
    pool.want(high, 9);
    assert_eq!(pool.grant(at(2)), Some(Grant::Widen(high)));
    assert_eq!(pool.grant(at(2)), Some(Grant::Widen(high)));
    assert_eq!(pool.grant(at(2)), None);
    assert!(!pool.pressed(), "the operating system shares processors out, nobody gives them back");
    pool.release(at(3), low, MS);
    pool.end(at(3), low);
    assert_eq!(pool.grant(at(3)), Some(Grant::Begin(last)));
}

/// Runs `count` requests of a level, one after another. Each arrives and begins at the millisecond
/// `came`, and takes `took` milliseconds.
fn answers(pool: &mut Levels, level: LevelId, count: usize, came: u64, took: u64) {
    let tickets: Vec<Ticket> = (0..count).map(|_| pool.arrive(at(came), level).unwrap()).collect();
    for ticket in tickets {
        let begun = pool.grant(at(came));
        assert_eq!(begun, Some(Grant::Begin(ticket)));
        pool.release(at(came + took), ticket, MS * took);
        pool.end(at(came + took), ticket);
    }
}

#[test]
fn a_ratio_that_is_missed_makes_the_faster_level_older() {
    let goal = Goal::Ratio { fast: HIGH, slow: LOW, target: 0.5 };
    let mut pool = Levels::new(1, vec![wide(1, 1), wide(1, 1)], Some(goal));
    let effort = |pool: &Levels| pool.standing(at(0)).unwrap().effort;
    assert!((effort(&pool) - 2.0).abs() < 1e-9, "waits alone would do");
    // The levels compete for each slot, and the high level is as slow as the low one.
    for round in 0..30 {
        let now = round * 1000;
        if round == 5 {
            let standing = pool.standing(at(now)).unwrap();
            assert!(standing.effort > 2.5, "{standing:?}");
            assert_eq!(standing.verdict, Verdict::Settling);
        }
        let mut waiting: Vec<Ticket> = Vec::new();
        for level in [HIGH, LOW] {
            waiting.extend((0..10).map(|_| pool.arrive(at(now), level).unwrap()));
        }
        while let Some(grant) = pool.grant(at(now)) {
            pool.release(at(now + 100), grant.ticket(), MS);
            pool.end(at(now + 100), grant.ticket());
        }
    }
    // The weight has reached its bound.
    let standing = pool.standing(at(30_000)).unwrap();
    assert!((standing.effort - 64.0).abs() < 1e-9, "{standing:?}");
    assert!((standing.measured.unwrap() - 1.0).abs() < 1e-9);
    assert_eq!(standing.verdict, Verdict::Infeasible);
}

#[test]
fn where_nobody_competes_a_weight_is_left_alone_and_the_verdict_says_what_is() {
    for (high, verdict) in [(40, Verdict::Exceeded), (50, Verdict::Held), (90, Verdict::Infeasible)]
    {
        let goal = Goal::Ratio { fast: HIGH, slow: LOW, target: 0.5 };
        let mut pool = Levels::new(1, vec![wide(1, 1), wide(1, 1)], Some(goal));
        for round in 0..60 {
            answers(&mut pool, HIGH, 5, round * 1000, high);
            answers(&mut pool, LOW, 5, round * 1000 + 500, 100);
        }
        let standing = pool.standing(at(60_000)).unwrap();
        assert!((standing.effort - 2.0).abs() < 1e-9, "{standing:?}");
        assert_eq!(standing.verdict, verdict, "{high}");
    }
}

fn percentile() -> Levels {
    let goal = Goal::Percentile { level: HIGH, share: 0.9, within: MS * 100 };
    Levels::new(1, vec![wide(1, 1), wide(1, 1)], Some(goal))
}

#[test]
fn what_is_due_goes_first_and_what_is_not_takes_its_turn() {
    let mut pool = percentile();
    // Late answers have lowered the allowance to zero.
    answers(&mut pool, HIGH, 5, 0, 200);
    let low = pool.arrive(at(300), LOW).unwrap();
    let high = pool.arrive(at(301), HIGH).unwrap();
    assert_eq!(pool.grant(at(301)), Some(Grant::Begin(high)));
    pool.release(at(302), high, MS);
    pool.end(at(302), high);
    assert_eq!(pool.grant(at(302)), Some(Grant::Begin(low)));
}

#[test]
fn the_allowance_rests_where_just_as_many_are_late_as_may_be() {
    let mut pool = percentile();
    let mut late = 0;
    // The high level's requests take 60 ms after their wait: with a wait of 40 ms they are in time.
    for round in 0..2000_u64 {
        let now = round * 1000;
        let blocker = pool.arrive(at(now), LOW).unwrap();
        assert_eq!(pool.grant(at(now)), Some(Grant::Begin(blocker)));
        let high = pool.arrive(at(now), HIGH).unwrap();
        let allowance = pool.standing(at(now)).unwrap().effort;
        let wait = (allowance * 1e3).ceil() as u64;
        pool.release(at(now + wait), blocker, MS);
        pool.end(at(now + wait), blocker);
        assert_eq!(pool.grant(at(now + wait)), Some(Grant::Begin(high)));
        pool.release(at(now + wait + 60), high, MS * 60);
        let ended = pool.end(at(now + wait + 60), high);
        late += u32::from(ended.response > MS * 100);
    }
    let allowance = pool.standing(at(2_000_000)).unwrap().effort;
    assert!((0.034..=0.0421).contains(&allowance), "{allowance}");
    assert!((180..=220).contains(&late), "{late} of 2,000");
}

#[test]
fn a_percentile_is_infeasible_when_too_many_are_late_although_nothing_is_let_wait() {
    let mut pool = percentile();
    answers(&mut pool, HIGH, 30, 0, 50);
    assert_eq!(pool.standing(at(60)).unwrap().verdict, Verdict::Held);
    answers(&mut pool, HIGH, 30, 200, 200);
    let standing = pool.standing(at(410)).unwrap();
    assert_eq!(standing.verdict, Verdict::Infeasible);
    assert!((standing.measured.unwrap() - 0.5).abs() < 1e-9, "{standing:?}");
    // Some seconds later all of these answers are too old to count.
    assert_eq!(pool.standing(at(6000)).unwrap().verdict, Verdict::Settling);
    // No request is answered at all, so only those that wait count.
    let blocker = pool.arrive(at(6500), LOW).unwrap();
    assert_eq!(pool.grant(at(6500)), Some(Grant::Begin(blocker)));
    for _ in 0..30 {
        pool.arrive(at(6500), HIGH).unwrap();
    }
    assert_eq!(pool.standing(at(6550)).unwrap().verdict, Verdict::Settling);
    assert_eq!(pool.standing(at(6700)).unwrap().verdict, Verdict::Infeasible);
}

proptest! {
    /// Checks that no slot is given twice or lost, that no slot stays free while a request wants
    /// one, and that all requests end.
    #[test]
    fn slots_are_neither_lost_nor_invented(
        slots in 1_u32..6,
        steps in prop::collection::vec((0_u8..5, 0_usize..16, 0_u32..5), 1..300),
        goal in 0_u8..3,
    ) {
        let goal = match goal {
            0 => None,
            1 => Some(Goal::Ratio { fast: HIGH, slow: LOW, target: 0.5 }),
            _ => Some(Goal::Percentile { level: HIGH, share: 0.95, within: MS * 20 }),
        };
        let mut pool = Levels::new(slots, vec![wide(4, 1), wide(2, 1)], goal);
        let (mut waiting, mut running) = (Vec::new(), Vec::<(Ticket, u32)>::new());
        for (now, (what, which, more)) in steps.into_iter().enumerate() {
            let now = at(now as u64);
            match what {
                0 | 1 => waiting.push(pool.arrive(now, LevelId(which % 2)).unwrap()),
                2 if !waiting.is_empty() => pool.leave(waiting.swap_remove(which % waiting.len())),
                3 if !running.is_empty() => {
                    let index = which % running.len();
                    pool.want(running[index].0, more);
                }
                4 if !running.is_empty() => {
                    let index = which % running.len();
                    let (ticket, threads) = running.swap_remove(index);
                    (0..threads).for_each(|_| pool.release(now, ticket, MS));
                    pool.end(now, ticket);
                }
                _ => {}
            }
            while let Some(grant) = pool.grant(now) {
                match grant {
                    Grant::Begin(ticket) => {
                        waiting.retain(|one| *one != ticket);
                        running.push((ticket, 1));
                    }
                    Grant::Widen(ticket) => {
                        running.iter_mut().find(|one| one.0 == ticket).unwrap().1 += 1;
                    }
                }
            }
            let used: u32 = running.iter().map(|one| one.1).sum();
            prop_assert!(used <= slots);
            prop_assert!(used == slots || !pool.pressed(), "a slot is free that somebody wants");
            let loads = [HIGH, LOW].map(|level| pool.load(level));
            prop_assert_eq!(loads.iter().map(|load| load.threads).sum::<u32>(), used);
            prop_assert_eq!(loads.iter().map(|load| load.waiting).sum::<usize>(), waiting.len());
            prop_assert_eq!(loads.iter().map(|load| load.running).sum::<usize>(), running.len());
        }
    }
}
