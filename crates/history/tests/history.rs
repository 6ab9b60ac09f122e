//! Tests of the history: which rows are kept of readings and for how long, and the sums of windows.

use bywash_engine::Status;
use bywash_history::{
    ClassCounts, Columns, Gauges, History, Latencies, MINUTES, MOST_NAMES, Range, Reading, SECONDS,
    Sums, Window, WindowSums, bucket,
};
use bywash_units::TimeSpan;

/// A simulated gateway that counts requests.
struct Counter {
    reading: Reading,
}

impl Counter {
    fn new(classes: &[&str]) -> Self {
        let classes = classes.iter().map(|name| class(name)).collect();
        let at = 1_800_000_000_000;
        Self { reading: Reading { at, passed: TimeSpan::ZERO, gauges: Gauges::default(), classes } }
    }

    fn served(&mut self, class: usize, times: u64, took: TimeSpan) {
        let class = &mut self.reading.classes[class];
        class.outcomes[0] += times;
        class.useful += times * took.as_millis();
        (0..times).for_each(|_| class.latencies.count(took));
    }

    /// Returns the reading one second after the previous one.
    fn read(&mut self) -> Reading {
        self.reading.at += 1000;
        self.reading.passed += TimeSpan::from_secs(1);
        self.reading.clone()
    }
}

/// Returns the counts of a class, all zero.
fn class(name: &str) -> ClassCounts {
    ClassCounts {
        name: name.into(),
        outcomes: [0; 8],
        shadow: [0; 4],
        left_waiting: 0,
        useful: 0,
        wasted: 0,
        revenue: 0.0,
        latencies: Latencies::default(),
        waiting: 0,
        may_run: None,
    }
}

fn seconds(history: &History) -> Columns {
    history.columns(Range::Seconds, 0)
}

#[test]
fn a_row_has_what_happened_since_the_one_before_and_the_first_what_happened_since_the_start() {
    let (mut counter, mut history) = (Counter::new(&["browse", "pay"]), History::default());
    counter.served(0, 3, TimeSpan::from_millis(10));
    history.read(counter.read());
    counter.served(0, 1, TimeSpan::from_millis(500));
    counter.reading.classes[1].waiting = 4;
    counter.reading.gauges.engine =
        Status { limit: 8, waiting: 4, lifo: true, ..Status::default() };
    history.read(counter.read());
    let columns = seconds(&history);
    assert_eq!((columns.number, columns.lasted_ms), (vec![0, 1], vec![1000, 1000]));
    assert_eq!((columns.limit, columns.lifo), (vec![0, 8], vec![false, true]));
    let [browse, pay] = &columns.classes[..] else { panic!("two classes") };
    assert_eq!(browse.outcomes.served, [3, 1]);
    assert_eq!(browse.useful_ms, [30, 500]);
    let p99: Vec<_> = browse.p99_ms.iter().map(|p99| p99.unwrap()).collect();
    assert!((p99[0] - 10.0).abs() < 0.7 && (p99[1] - 500.0).abs() < 32.0, "{p99:?}");
    assert_eq!((&*pay.name, &pay.waiting, &pay.p50_ms), ("pay", &vec![0, 4], &vec![None, None]));
}

#[test]
fn a_minute_is_the_difference_between_its_ends() {
    let (mut counter, mut history) = (Counter::new(&["browse"]), History::default());
    for second in 0..125 {
        counter.served(0, 1, TimeSpan::from_millis(if second < 60 { 10 } else { 1000 }));
        counter.reading.gauges.engine.waiting = second % 60;
        counter.reading.gauges.engine.lifo = second == 7;
        history.read(counter.read());
    }
    let columns = history.columns(Range::Minutes, 0);
    assert_eq!((columns.step_s, &columns.lasted_ms[..]), (60, &[60_000, 60_000][..]));
    assert_eq!(columns.classes[0].outcomes.served, [60, 60]);
    assert!(
        columns.classes[0].p50_ms[0] < Some(11.0) && columns.classes[0].p50_ms[1] > Some(900.0)
    );
    assert_eq!((columns.waiting, columns.lifo), (vec![30, 30], vec![true, false]));
}

#[test]
fn who_has_seen_a_row_asks_for_what_comes_after_it() {
    let (mut counter, mut history) = (Counter::new(&["browse"]), History::default());
    (0..5).for_each(|_| history.read(counter.read()));
    assert_eq!(history.columns(Range::Seconds, 3).number, [3, 4]);
    assert_eq!(history.columns(Range::Seconds, 5), Columns { step_s: 1, ..Columns::default() });
}

#[test]
fn a_clock_that_is_set_makes_no_row_and_hides_none() {
    let (mut counter, mut history) = (Counter::new(&["browse"]), History::default());
    history.read(counter.read());
    counter.reading.at -= 3_600_000;
    history.read(counter.read());
    // A second reading with the same time makes no row.
    history.read(counter.reading.clone());
    let columns = seconds(&history);
    assert_eq!((columns.number, columns.lasted_ms), (vec![0, 1], vec![1000, 1000]));
    assert!(columns.at_ms[1] < columns.at_ms[0]);
}

#[test]
fn a_reading_that_comes_late_makes_one_row_of_all_that_time() {
    let (mut counter, mut history) = (Counter::new(&["browse"]), History::default());
    history.read(counter.read());
    counter.served(0, 9, TimeSpan::from_millis(10));
    (0..29).for_each(|_| drop(counter.read()));
    history.read(counter.read());
    let columns = seconds(&history);
    assert_eq!(
        (&columns.lasted_ms[..], &columns.classes[0].outcomes.served[..]),
        (&[1000, 30_000][..], &[0, 9][..])
    );
}

#[test]
fn no_more_is_kept_than_a_quarter_of_an_hour_of_seconds_and_a_day_of_minutes() {
    let (mut counter, mut history) = (Counter::new(&["browse"]), History::default());
    for _ in 0..60 * (MINUTES + 10) {
        counter.served(0, 1, TimeSpan::from_millis(1));
        history.read(counter.read());
    }
    let (seconds, minutes) = (seconds(&history), history.columns(Range::Minutes, 0));
    assert_eq!((seconds.number.len(), minutes.number.len()), (SECONDS, MINUTES));
    assert_eq!(minutes.number.first(), Some(&10));
}

#[test]
fn of_classes_beyond_the_bound_nothing_is_kept_and_the_others_go_on() {
    let names: Vec<String> = (0..MOST_NAMES + 5).map(|number| format!("class-{number}")).collect();
    let names: Vec<&str> = names.iter().map(|name| &**name).collect();
    let (mut counter, mut history) = (Counter::new(&names), History::default());
    (0..names.len()).for_each(|class| counter.served(class, 1, TimeSpan::from_millis(1)));
    history.read(counter.read());
    assert_eq!(seconds(&history).classes.len(), MOST_NAMES);
}

#[test]
fn what_was_kept_goes_on_in_the_next_process() {
    let (mut counter, mut history) = (Counter::new(&["browse", "pay"]), History::default());
    for _ in 0..200 {
        counter.served(1, 2, TimeSpan::from_millis(20));
        history.read(counter.read());
    }
    let kept = |range| {
        let text = serde_json::to_string(&history.columns(range, 0)).unwrap();
        serde_json::from_str::<Columns>(&text).unwrap()
    };
    let mut next = History::restored(kept(Range::Seconds), kept(Range::Minutes));
    assert_eq!(seconds(&next), seconds(&history));
    assert_eq!(next.columns(Range::Minutes, 0), history.columns(Range::Minutes, 0));
    let mut counter = Counter::new(&["pay", "new"]);
    counter.served(0, 1, TimeSpan::from_millis(20));
    next.read(counter.read());
    let columns = next.columns(Range::Seconds, 200);
    assert_eq!((columns.number, &columns.classes[0].name[..]), (vec![200], "pay"));
    assert_eq!(columns.classes[0].outcomes.served, [1]);
}

#[test]
fn what_cannot_be_read_is_as_if_there_were_nothing() {
    let (mut counter, mut history) = (Counter::new(&["browse"]), History::default());
    (0..3).for_each(|_| history.read(counter.read()));
    let good = seconds(&history);
    let short = Columns { limit: vec![1], ..good.clone() };
    let unordered = Columns { number: vec![2, 1, 0], ..good.clone() };
    for bad in [short, unordered] {
        let next = History::restored(bad, good.clone());
        assert!(seconds(&next).number.is_empty());
        assert_eq!(next.columns(Range::Minutes, 0).number, [0, 1, 2]);
    }
}

#[test]
fn the_summary_has_steps_of_ten_seconds_that_end_at_the_same_times_everywhere() {
    let (mut counter, mut history) = (Counter::new(&["browse", "pay"]), History::default());
    assert!(history.summary().at_ms.is_empty());
    let begun = counter.reading.at;
    counter.reading.at += 4_000;
    // The first row ends five seconds into a step, and the last one three seconds into a step.
    for second in 5..=33 {
        counter.served(0, 2, TimeSpan::from_millis(10));
        counter.served(1, 1, TimeSpan::from_millis(10));
        // Late, shed, throttled, expired, terminated.
        for (outcome, times) in [(1, 1), (2, 1), (3, 1), (4, 1), (5, 7)] {
            counter.reading.classes[1].outcomes[outcome] += times;
        }
        counter.reading.gauges.engine.waiting = u32::from(second > 10) * 2 + second % 2;
        history.read(counter.read());
    }
    let summary = history.summary();
    assert_eq!(summary.step_s, 10);
    assert_eq!(summary.at_ms, [10_000, 20_000, 30_000].map(|after| begun + after));
    assert_eq!(summary.answered_per_s, vec![4.0; 3]);
    assert_eq!(summary.refused_per_s, vec![3.0; 3]);
    assert_eq!(summary.waiting, vec![0.5, 2.5, 2.5]);
}

#[test]
fn the_summary_of_rows_with_any_time_is_short() {
    let (mut counter, mut history) = (Counter::new(&["browse"]), History::default());
    for second in 0..2 * SECONDS as u64 {
        counter.reading.classes[0].outcomes[0] += u64::from(u32::MAX);
        counter.reading.at = u64::MAX - (second % 7) * 10_000;
        counter.reading.passed += TimeSpan::from_secs(1);
        history.read(counter.reading.clone());
    }
    let text = serde_json::to_string(&history.summary()).unwrap();
    // A document of a fleet has at most 64 parts of 6 KiB, and usually this one needs one part.
    assert!(text.len() < 64 * 6 * 1024, "{}", text.len());
}

/// Returns the sums of the class with this name in a window.
fn of_class(window: &WindowSums, name: &str) -> Sums {
    window
        .classes
        .iter()
        .find(|class| class.name == name)
        .map(|class| class.sums)
        .expect("the class is in the window")
}

/// Returns the length of a window in whole seconds.
fn length(window: &WindowSums) -> u64 {
    window.length_s.round() as u64
}

/// Compares a window with the requests of the last seconds. Each second had one request, in the
/// class `even` or `odd`.
fn compare(window: &WindowSums, requests: &[TimeSpan]) {
    let seconds = length(window);
    let from = requests.len() - seconds as usize;
    let mut counted = [(); 3].map(|()| Latencies::default());
    for (at, took) in requests.iter().enumerate().skip(from) {
        counted[at % 2].count(*took);
        counted[2].count(*took);
    }
    let sums = [of_class(window, "even"), of_class(window, "odd"), window.all];
    for (sums, counted) in sums.iter().zip(&counted) {
        assert_eq!(sums.p50_ms, counted.percentile(0.5), "of {seconds} s");
        assert_eq!(sums.p99_ms, counted.percentile(0.99), "of {seconds} s");
    }
    assert_eq!(window.all.outcomes.served, seconds);
    let useful: u64 = requests[from..].iter().map(|took| took.as_millis()).sum();
    assert_eq!((window.all.useful_ms, window.all.wasted_ms), (useful, 0));
}

#[test]
fn a_window_has_the_sums_and_percentiles_of_its_requests_and_of_no_others() {
    let (mut counter, mut history) = (Counter::new(&["even", "odd"]), History::default());
    let (mut requests, mut random) = (Vec::new(), 1_u64);
    for second in 0..26 * 3600 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        // Requests take up to a second, and get slower from hour to hour.
        let took = TimeSpan::from_millis((random >> 33) % 1000 + second / 60);
        requests.push(took);
        counter.served(second as usize % 2, 1, took);
        history.read(counter.read());
        // The window is checked after some seconds, minutes and hours, and after a day.
        if [7, 11, 200, 1234, 7000, 26 * 3600 - 1].contains(&second) {
            let passed = second as f64 + 1.0;
            let spans = [(10.0, 0.0), (60.0, 0.0), (900.0, 30.0), (86_400.0, 1800.0)];
            for (window, (least, more)) in Window::ALL.into_iter().zip(spans) {
                let window = history.window(window);
                let [shortest, longest] = [least, least + more].map(|most| passed.min(most));
                assert!((shortest..=longest).contains(&window.length_s), "{}", window.length_s);
                compare(&window, &requests);
            }
        }
    }
}

#[test]
fn buckets_may_wrap_in_a_window() {
    let (mut counter, mut history) = (Counter::new(&["browse"]), History::default());
    counter.reading.classes[0].latencies = Latencies::of(|_| u32::MAX);
    (0..20).for_each(|_| history.read(counter.read()));
    counter.served(0, 3, TimeSpan::from_millis(20));
    history.read(counter.read());
    let found = bucket(TimeSpan::from_millis(20));
    let expected = Latencies::of(|at| if at == found { 3 } else { 0 });
    let window = history.window(Window::TenSeconds);
    assert_eq!(window.all.p50_ms, expected.percentile(0.5));
    assert_eq!(of_class(&window, "browse"), window.all);
}

#[test]
fn a_window_begins_again_in_the_next_process() {
    let (mut counter, mut history) = (Counter::new(&["browse"]), History::default());
    counter.served(0, 9, TimeSpan::from_secs(5));
    (0..90).for_each(|_| history.read(counter.read()));
    let kept = |range| history.columns(range, 0);
    let mut next = History::restored(kept(Range::Seconds), kept(Range::Minutes));
    assert_eq!(next.window(Window::Minute), WindowSums::default());
    let mut counter = Counter::new(&["browse"]);
    counter.served(0, 2, TimeSpan::from_millis(20));
    (0..3).for_each(|_| next.read(counter.read()));
    let window = next.window(Window::Minute);
    assert_eq!((length(&window), window.all.outcomes.served), (3, 2));
    assert!(window.all.p99_ms < Some(30.0), "{window:?}");
}

#[test]
fn a_window_in_which_a_reading_came_late_is_longer() {
    let (mut counter, mut history) = (Counter::new(&["browse"]), History::default());
    (0..20).for_each(|_| history.read(counter.read()));
    counter.served(0, 7, TimeSpan::from_millis(20));
    (0..299).for_each(|_| drop(counter.read()));
    history.read(counter.read());
    let window = history.window(Window::TenSeconds);
    assert_eq!((length(&window), window.all.outcomes.served), (300, 7));
    (0..10).for_each(|_| history.read(counter.read()));
    let window = history.window(Window::TenSeconds);
    assert_eq!((length(&window), window.all.outcomes.served), (10, 0));
    assert_eq!((window.all.p50_ms, window.classes.len()), (None, 0));
}

#[test]
fn the_counts_of_a_class_that_appears_later_began_at_zero() {
    let (mut counter, mut history) = (Counter::new(&["browse"]), History::default());
    (0..30).for_each(|_| history.read(counter.read()));
    counter.reading.classes.push(class("pay"));
    counter.served(1, 5, TimeSpan::from_millis(20));
    counter.reading.classes[1].outcomes[2] = 1;
    counter.reading.classes[1].wasted = 40;
    history.read(counter.read());
    let pay = of_class(&history.window(Window::TenSeconds), "pay");
    assert_eq!((pay.outcomes.served, pay.outcomes.shed), (5, 1));
    assert_eq!((pay.useful_ms, pay.wasted_ms), (100, 40));
    assert!(pay.p50_ms.is_some());
}

#[test]
fn sums_of_a_window_are_read_as_they_were_written() {
    let (mut counter, mut history) = (Counter::new(&["browse", "pay"]), History::default());
    counter.served(1, 2, TimeSpan::from_millis(20));
    history.read(counter.read());
    let window = history.window(Window::Day);
    let text = serde_json::to_string(&window).unwrap();
    assert_eq!(serde_json::from_str::<WindowSums>(&text).unwrap(), window, "{text}");
}
