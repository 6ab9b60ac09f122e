//! Tests of the pool with real threads. They check that each task runs once, on a thread that may
//! run it, and that no thread waits forever.

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Barrier, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use bywash_levels::{BuildError, Goal, JobState, Level, Pool, Refused, Stats};

/// The time limit of a step. It is longer than any step of these tests takes.
const STUCK: Duration = Duration::from_secs(60);

fn wide(most: u32) -> Level {
    Level { max_threads: most, ..Level::PLAIN }
}

fn pool(threads: u32) -> Pool {
    Pool::builder(threads)
        .level("high", wide(threads))
        .level("low", Level::PLAIN)
        .build()
        .expect("right")
}

/// Keeps a processor busy for `rounds` rounds.
fn burn(rounds: usize) -> usize {
    (0..rounds).fold(1, |sum, i| std::hint::black_box(sum).wrapping_mul(31).wrapping_add(i))
}

/// Waits until the statistics of the pool satisfy the condition `is`, and returns them.
fn until(pool: &Pool, is: impl Fn(&Stats) -> bool) -> Stats {
    let end = Instant::now() + STUCK;
    loop {
        let stats = pool.stats();
        if is(&stats) {
            return stats;
        }
        assert!(Instant::now() < end, "stuck: {stats:?}");
        std::thread::yield_now();
    }
}

/// Checks that the pool is empty and has all its slots: `threads` requests can begin at once.
fn is_whole(pool: &Pool, threads: usize) {
    let stats = until(pool, |stats| stats.levels.iter().all(|level| level.running == 0));
    assert!(stats.levels.iter().all(|level| level.threads == 0), "{stats:?}");
    let turns: Vec<_> =
        (0..threads).map(|_| pool.request_within("low", STUCK).expect("a turn")).collect();
    let one_more = pool.request_within("low", Duration::from_millis(1));
    assert!(matches!(one_more, Err(Refused::TimedOut(_))), "more slots than threads");
    drop(turns);
}

#[test]
fn every_task_is_run_once_and_may_borrow() {
    const TASKS: usize = if cfg!(miri) { 50 } else { 1000 };
    let pool = pool(4);
    for level in ["high", "low"] {
        let mut request = pool.request(level).unwrap();
        let counts: Vec<AtomicUsize> = (0..TASKS).map(|_| AtomicUsize::new(0)).collect();
        request.scope(|scope| {
            for count in &counts {
                scope.spawn(move || {
                    count.fetch_add(1, Ordering::Relaxed);
                });
            }
        });
        assert!(counts.iter().all(|count| count.load(Ordering::Relaxed) == 1));
        request.parallel_for(0..TASKS, |i| {
            counts[i].fetch_add(1, Ordering::Relaxed);
        });
        assert!(counts.iter().all(|count| count.load(Ordering::Relaxed) == 2));
        let squares = request.map(&[1, 2, 3, 4, 5], |i| i * i);
        assert_eq!(squares, [1, 4, 9, 16, 25]);
        request.parallel_for(7..7, |_| unreachable!("there is no index"));
        assert!(request.map(&[] as &[u8], |i| *i).is_empty());
    }
    is_whole(&pool, 4);
}

#[test]
fn a_task_may_spawn_others_down_to_any_depth() {
    fn count<'scope>(
        scope: &'scope bywash_levels::Scope<'scope, '_>,
        depth: usize,
        leaves: &'scope AtomicUsize,
    ) {
        if depth == 0 {
            leaves.fetch_add(1, Ordering::Relaxed);
            return;
        }
        for _ in 0..2 {
            scope.spawn(move || count(scope, depth - 1, leaves));
        }
    }
    let (pool, depth) = (pool(3), if cfg!(miri) { 5 } else { 10 });
    let leaves = AtomicUsize::new(0);
    pool.request("high").unwrap().scope(|scope| count(scope, depth, &leaves));
    assert_eq!(leaves.load(Ordering::Relaxed), 1 << depth);
    is_whole(&pool, 3);
}

#[test]
fn a_lone_request_has_as_many_threads_as_its_level_and_no_more() {
    let pool = Pool::builder(4).level("three", wide(3)).level("one", wide(1)).build().unwrap();
    for (level, most) in [("three", 3), ("one", 1)] {
        let threads = Mutex::new(HashSet::new());
        let together = Barrier::new(most);
        let mut request = pool.request(level).unwrap();
        request.scope(|scope| {
            for _ in 0..most {
                scope.spawn(|| {
                    // The barrier opens only when `most` threads run tasks at the same time.
                    together.wait();
                    threads.lock().unwrap().insert(std::thread::current().id());
                });
            }
            for _ in 0..100 {
                scope.spawn(|| {
                    burn(2000);
                    threads.lock().unwrap().insert(std::thread::current().id());
                });
            }
        });
        let threads = threads.into_inner().unwrap();
        assert_eq!(threads.len(), most, "{level}");
        assert!(threads.contains(&std::thread::current().id()), "its own is one of them");
    }
}

#[test]
fn no_more_threads_run_than_there_are_slots() {
    let pool = pool(3);
    let (now, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let task = || {
        most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        burn(20_000);
        now.fetch_sub(1, Ordering::SeqCst);
    };
    let done = AtomicUsize::new(0);
    std::thread::scope(|threads| {
        for client in 0..12 {
            let (pool, task, done) = (&pool, &task, &done);
            threads.spawn(move || {
                for _ in 0..40 {
                    let level = if client % 2 == 0 { "high" } else { "low" };
                    let mut request = pool.request(level).unwrap();
                    request.scope(|scope| (0..6).for_each(|_| scope.spawn(task)));
                    done.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    assert_eq!(done.into_inner(), 12 * 40);
    assert!((2..=3).contains(&most.into_inner()));
    let stats = pool.stats();
    assert_eq!(stats.levels.iter().map(|level| level.answered).sum::<u64>(), 12 * 40);
    is_whole(&pool, 3);
}

#[test]
fn a_task_that_panics_fails_its_request_alone() {
    let pool = pool(2);
    let ended = AtomicUsize::new(0);
    let mut request = pool.request("high").unwrap();
    let panic = catch_unwind(AssertUnwindSafe(|| {
        request.scope(|scope| {
            for i in 0..20 {
                let ended = &ended;
                scope.spawn(move || {
                    assert!(i != 3, "task {i}");
                    ended.fetch_add(1, Ordering::Relaxed);
                });
            }
        });
    }))
    .unwrap_err();
    assert_eq!(panic.downcast_ref::<String>().map(String::as_str), Some("task 3"));
    assert_eq!(ended.into_inner(), 19, "the others were run");
    // The request can be used again after the panic.
    assert_eq!(request.map(&[1, 2], |i| i + 1), [2, 3]);
    drop(request);
    assert_eq!(pool.stats().levels[0].panicked, 1);
    let closure = catch_unwind(AssertUnwindSafe(|| {
        pool.request("low").unwrap().scope(|scope| {
            scope.spawn(|| ());
            panic!("in the closure")
        })
    }));
    assert!(closure.is_err());
    assert_eq!(pool.stats().levels[1].panicked, 1);
    is_whole(&pool, 2);
}

#[test]
fn a_request_that_is_handed_in_is_run_by_the_pool_and_may_panic() {
    let pool = pool(2);
    let (sender, receiver) = mpsc::channel();
    for i in 0..200_usize {
        let sender = sender.clone();
        let level = if i % 3 == 0 { "high" } else { "low" };
        let job = move |request: &mut bywash_levels::Request| {
            assert!(i % 50 != 7, "job {i}");
            let sum: usize =
                request.map(&[i, i, i], |i| burn(i * 20).count_ones() as usize).iter().sum();
            sender.send((i, sum)).unwrap();
        };
        pool.submit(level, job).unwrap();
    }
    drop(sender);
    let mut all: Vec<(usize, usize)> = receiver.iter().collect();
    all.sort_unstable();
    let expected: Vec<(usize, usize)> = (0..200)
        .filter(|i| i % 50 != 7)
        .map(|i| (i, 3 * burn(i * 20).count_ones() as usize))
        .collect();
    assert_eq!(all, expected);
    let stats = until(&pool, |stats| stats.levels.iter().all(|level| level.running == 0));
    assert_eq!(stats.levels.iter().map(|level| level.panicked).sum::<u64>(), 4);
    is_whole(&pool, 2);
}

#[test]
fn who_waits_too_long_leaves_and_who_finds_no_room_is_told() {
    let low = Level { queue: 1, ..Level::PLAIN };
    let pool = Pool::builder(1).level("low", low).build().unwrap();
    let turn = pool.request("low").unwrap();
    let short = Duration::from_millis(5);
    assert_eq!(pool.request_within("low", short).unwrap_err(), Refused::TimedOut(short));
    let (sender, receiver) = mpsc::channel();
    pool.submit("low", move |_| sender.send(()).unwrap()).unwrap();
    assert_eq!(pool.request("low").unwrap_err(), Refused::Full("low".into()));
    assert_eq!(
        pool.request("lwo").unwrap_err().to_string(),
        "there is no level `lwo`; there is low"
    );
    drop(turn);
    receiver.recv_timeout(STUCK).unwrap();
    let stats = until(&pool, |stats| stats.levels[0].answered == 2);
    assert_eq!((stats.levels[0].left, stats.levels[0].refused), (1, 1));
    is_whole(&pool, 1);
}

#[test]
fn who_waits_in_parts_keeps_the_place_in_line() {
    let pool = pool(1);
    let turn = pool.request("low").unwrap();
    let mut first = pool.line_up("low").unwrap();
    let second = pool.line_up("low").unwrap();
    for _ in 0..3 {
        assert!(first.wait_until(Instant::now() + Duration::from_millis(1)).is_none());
    }
    drop(turn);
    let turn = first.wait_until(Instant::now() + STUCK).expect("the first's turn").unwrap();
    drop((turn, first));
    // The second request has got its slot without its thread checking. Dropping the value gives the
    // slot back.
    drop(second);
    let turn = pool.request("low").unwrap();
    let third = pool.line_up("low").unwrap();
    pool.close();
    assert_eq!(third.wait().unwrap_err(), Refused::Closed);
    assert!(!pool.is_empty_by(Instant::now() + Duration::from_millis(1)));
    drop(turn);
    assert!(pool.is_empty_by(Instant::now()));
    assert_eq!(pool.stats().levels[1].answered, 4);
}

#[test]
fn a_request_may_say_that_it_has_failed() {
    let pool = pool(1);
    pool.request("low").unwrap().fail();
    drop(pool.request("low").unwrap());
    let low = &pool.stats().levels[1];
    assert_eq!((low.answered, low.panicked), (2, 1));
}

#[test]
fn every_thread_of_the_pool_begins_as_it_was_told() {
    static BEGUN: AtomicUsize = AtomicUsize::new(0);
    let begins = || _ = BEGUN.fetch_add(1, Ordering::SeqCst);
    let _pool = Pool::builder(3).level("a", Level::PLAIN).thread_begins(begins).build().unwrap();
    let end = Instant::now() + STUCK;
    while BEGUN.load(Ordering::SeqCst) < 3 {
        assert!(Instant::now() < end, "stuck");
        std::thread::yield_now();
    }
}

#[test]
fn a_pool_that_is_dropped_turns_nobody_out_and_lets_nobody_in() {
    let pool = pool(1);
    let mut turn = pool.request("high").unwrap();
    let clone = pool.clone();
    let waits = std::thread::spawn(move || clone.request("low").map(drop));
    let dropped = Arc::new(());
    let kept = Arc::clone(&dropped);
    pool.submit("low", move |_| drop(kept)).unwrap();
    until(&pool, |stats| stats.levels[1].waiting == 2);
    // The waiting thread has a clone of the pool, so the pool stays open and serves it.
    drop(pool);
    assert_eq!(turn.map(&[1, 2, 3], |i| i * 2), [2, 4, 6]);
    drop(turn);
    assert_eq!(waits.join().unwrap(), Ok(()));
    // The job ran or was dropped, so nothing holds the value any more.
    let end = Instant::now() + STUCK;
    while Arc::strong_count(&dropped) > 1 {
        assert!(Instant::now() < end, "the job is kept");
        std::thread::yield_now();
    }
}

#[test]
fn of_a_job_it_is_said_once_what_became_of_it() {
    let (accepted, dropped_first, begun_first) =
        (JobState::default(), JobState::default(), JobState::default());
    assert!(accepted.accept());
    assert!(accepted.end(), "who was told that it is accepted hears that it never runs");
    assert!(!dropped_first.end(), "the call says so");
    assert!(!dropped_first.accept());
    begun_first.begin();
    assert!(begun_first.accept());
    assert!(!begun_first.end(), "it has run");
}

/// A panic payload that panics itself when it is dropped.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("dropped");
    }
}

#[test]
fn what_a_job_throws_is_dropped_by_nobody_and_its_thread_serves_the_next() {
    let pool = pool(1);
    for _ in 0..10 {
        pool.submit("low", |_| std::panic::panic_any(Bomb)).unwrap();
    }
    drop(pool.request_within("low", STUCK).unwrap());
    // No thread waits for this job, so a worker of the pool runs it.
    let (done, answered) = std::sync::mpsc::channel();
    pool.submit("low", move |_| done.send(()).unwrap()).unwrap();
    answered.recv_timeout(STUCK).expect("it is served");
    assert_eq!(pool.stats().levels[1].panicked, 10);
}

#[test]
fn of_two_panics_one_is_thrown_and_the_other_not_even_dropped() {
    let pool = pool(1);
    let mut turn = pool.request("low").unwrap();
    let both = || {
        turn.scope(|scope| -> () {
            scope.spawn(|| std::panic::panic_any(Bomb));
            panic!("the closure");
        });
    };
    let thrown = std::panic::catch_unwind(std::panic::AssertUnwindSafe(both)).unwrap_err();
    assert_eq!(thrown.downcast_ref::<&str>(), Some(&"the closure"));
}

#[test]
fn a_thread_whose_first_call_panics_serves_all_the_same() {
    let begins = || panic!("at the beginning");
    let pool = Pool::builder(1).level("a", Level::PLAIN).thread_begins(begins).build().unwrap();
    let (done, answered) = std::sync::mpsc::channel();
    pool.submit("a", move |_| done.send(()).unwrap()).unwrap();
    answered.recv_timeout(STUCK).expect("it is served");
}

#[test]
fn slot_time_of_those_who_help_counts_for_the_level() {
    let pool = pool(2);
    let work = Duration::from_millis(60);
    let mut wide = pool.request("high").unwrap();
    let (owner, together) = (std::thread::current().id(), Barrier::new(2));
    wide.parallel_for(0..2, |_| {
        together.wait();
        if std::thread::current().id() != owner {
            std::thread::sleep(work);
        }
    });
    drop(wide);
    let narrow = pool.request("low").unwrap();
    std::thread::sleep(work);
    drop(narrow);
    let share = pool.stats().levels[0].share;
    assert!((0.35..0.65).contains(&share), "{share}");
}

#[test]
fn tasks_that_are_spawned_late_get_threads_as_well() {
    let pool = pool(4);
    let mut turn = pool.request("high").unwrap();
    let together = Barrier::new(4);
    turn.scope(|scope| {
        // A worker takes each task before the next one is spawned.
        for _ in 0..10 {
            let (begun, has_begun) = std::sync::mpsc::channel();
            scope.spawn(move || begun.send(()).unwrap());
            has_begun.recv_timeout(STUCK).unwrap();
        }
        for _ in 0..4 {
            scope.spawn(|| {
                together.wait();
            });
        }
    });
}

#[test]
fn in_parity_everybody_has_her_threads_and_places_are_scarce() {
    let pool = Pool::builder(2)
        .level("high", wide(6))
        .level("low", Level::PLAIN)
        .parity(3)
        .build()
        .unwrap();
    let together = Barrier::new(6);
    let mut first = pool.request("high").unwrap();
    first.parallel_for(0..6, |_| {
        together.wait();
    });
    let others = [pool.request("low").unwrap(), pool.request("low").unwrap()];
    let fourth = pool.request_within("high", Duration::from_millis(5));
    assert!(matches!(fourth, Err(Refused::TimedOut(_))));
    drop((first, others));
    drop(pool.request("high").unwrap());
}

#[test]
fn a_thread_has_a_request_until_it_ends_or_another_thread_opens_a_scope_in_it() {
    let pool = pool(2);
    assert!(!pool.has_request_here());
    let waiting = pool.line_up("low").unwrap();
    assert!(pool.has_request_here());
    let mut request = waiting.wait().unwrap();
    let mut request = thread::scope(|threads| {
        let pool = &pool;
        let other = threads.spawn(move || {
            assert!(!pool.has_request_here(), "the other thread has it");
            request.parallel_for(0..4, |_| assert!(pool.has_request_here()));
            assert!(pool.has_request_here());
            request
        });
        other.join().unwrap()
    });
    assert!(!pool.has_request_here());
    request.parallel_for(0..1, |_| {});
    assert!(pool.has_request_here());
    drop(request);
    assert!(!pool.has_request_here());
    let (pool_of_job, (send, receive)) = (pool.clone(), mpsc::channel());
    pool.submit("low", move |_| send.send(pool_of_job.has_request_here()).unwrap()).unwrap();
    assert!(receive.recv_timeout(STUCK).unwrap(), "a worker of the pool");
    // Other threads have all slots.
    let begin = || (0..2).map(|_| pool.request("low").unwrap()).collect::<Vec<_>>();
    let others = thread::scope(|threads| threads.spawn(begin).join().unwrap());
    drop(pool.line_up("low").unwrap());
    assert!(!pool.has_request_here(), "it has left the queue");
    let refused = pool.line_up("low").unwrap();
    assert!(pool.has_request_here());
    pool.close();
    assert!(!pool.has_request_here(), "the pool has refused it");
    drop((refused, others));
}

#[test]
fn settings_that_contradict_themselves_make_no_pool() {
    let build = |level: Level| Pool::builder(2).level("a", level).build();
    for (level, words) in [
        (Level { max_threads: 0, ..Level::PLAIN }, "level `a`: threads must be 1 ≤ least ≤ most"),
        (Level { min_threads: 0, ..Level::PLAIN }, "1 ≤ least ≤ most"),
        (Level { min_threads: 3, max_threads: 4, ..Level::PLAIN }, "least ≤ the pool's"),
        (Level { weight: 0.0, ..Level::PLAIN }, "weight"),
        (Level { weight: f64::NAN, ..Level::PLAIN }, "weight"),
        (Level { floor: 0.95, ..Level::PLAIN }, "floors"),
    ] {
        let error = build(level).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
    let two = || Pool::builder(2).level("a", Level::PLAIN).level("b", Level::PLAIN);
    let ratio = |fast, slow, target| two().goal(Goal::Ratio { fast, slow, target }).build();
    for (built, words) in [
        (Pool::builder(2).build(), "one level"),
        (Pool::builder(0).level("a", Level::PLAIN).build(), "one thread"),
        (Pool::builder(u32::MAX).level("a", Level::PLAIN).build(), "too many"),
        (Pool::builder(2).level("a", wide(u32::MAX)).build(), "too many"),
        (Pool::builder(2).level("a", wide(2)).parity(u32::MAX).build(), "too many"),
        (two().level("a", Level::PLAIN).build(), "`a` stands twice"),
        (two().level("", Level::PLAIN).build(), "the name of a level is empty"),
        (ratio("a", "c", 0.5), "`c`; there is a, b"),
        (ratio("a", "a", 0.5), "with itself"),
        (ratio("a", "b", 0.0), "above 0"),
        (ratio("a", "b", f64::NAN), "above 0"),
    ] {
        let error = built.unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
    let goal = Goal::Percentile { level: "a", share: 0.95, within: Duration::from_millis(5) };
    assert!(matches!(two().goal(goal).parity(2).build(), Err(BuildError::Parity)));
}

#[cfg(feature = "rayon")]
#[test]
fn code_for_rayon_runs_on_as_many_threads_as_are_free_and_gives_them_back() {
    use rayon::prelude::*;
    let pool = pool(4);
    let mut alone = pool.request("high").unwrap();
    let threads =
        |request: &mut bywash_levels::Request| request.rayon(rayon::current_num_threads).unwrap();
    assert_eq!(threads(&mut alone), 4);
    let double = |i: usize| i * 2;
    let sum = alone.rayon(|| (0..1000).into_par_iter().map(double).sum::<usize>()).unwrap();
    assert_eq!(sum, 999_000);
    assert_eq!(pool.stats().levels[0].threads, 1, "the others are given back");
    let panicked = catch_unwind(AssertUnwindSafe(|| alone.rayon(|| panic!("in rayon"))));
    assert!(panicked.is_err());
    let mut low = pool.request("low").unwrap();
    assert_eq!(threads(&mut low), 1, "its level has no more");
    assert_eq!(threads(&mut alone), 2, "of three that are free, a power of two");
    drop((alone, low));
    assert_eq!(pool.stats().levels[0].panicked, 1);
    is_whole(&pool, 4);
}
