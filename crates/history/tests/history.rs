//! Tests of the rows that are kept of readings, and for how long.

use bywash_engine::Status;
use bywash_history::{
    ClassCounts, Columns, Gauges, History, Latencies, MINUTES, MOST_NAMES, Range, Reading, SECONDS,
};
use bywash_units::Span;

/// A gateway that counts.
struct Counter {
    reading: Reading,
}

impl Counter {
    fn new(classes: &[&str]) -> Self {
        let class = |name: &&str| ClassCounts {
            name: (*name).into(),
            outcomes: [0; 8],
            shadow: [0; 4],
            left_waiting: 0,
            useful: 0,
            wasted: 0,
            earned: 0.0,
            latencies: Latencies::default(),
            waiting: 0,
            may_run: None,
        };
        let classes = classes.iter().map(class).collect();
        let at = 1_800_000_000_000;
        Self { reading: Reading { at, passed: Span::ZERO, gauges: Gauges::default(), classes } }
    }

    fn served(&mut self, class: usize, times: u64, took: Span) {
        let class = &mut self.reading.classes[class];
        class.outcomes[0] += times;
        class.useful += times * took.as_millis();
        (0..times).for_each(|_| class.latencies.count(took));
    }

    /// Returns the reading a second later.
    fn read(&mut self) -> Reading {
        self.reading.at += 1000;
        self.reading.passed += Span::from_secs(1);
        self.reading.clone()
    }
}

fn seconds(history: &History) -> Columns {
    history.columns(Range::Seconds, 0)
}

#[test]
fn a_row_has_what_happened_since_the_one_before_and_the_first_what_happened_since_the_start() {
    let (mut counter, mut history) = (Counter::new(&["browse", "pay"]), History::default());
    counter.served(0, 3, Span::from_millis(10));
    history.read(counter.read());
    counter.served(0, 1, Span::from_millis(500));
    counter.reading.classes[1].waiting = 4;
    counter.reading.gauges.engine =
        Status { limit: 8, waiting: 4, newest_first: true, ..Status::default() };
    history.read(counter.read());
    let columns = seconds(&history);
    assert_eq!((columns.number, columns.lasted_ms), (vec![0, 1], vec![1000, 1000]));
    assert_eq!((columns.limit, columns.newest_first), (vec![0, 8], vec![false, true]));
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
        counter.served(0, 1, Span::from_millis(if second < 60 { 10 } else { 1000 }));
        counter.reading.gauges.engine.waiting = second % 60;
        counter.reading.gauges.engine.newest_first = second == 7;
        history.read(counter.read());
    }
    let columns = history.columns(Range::Minutes, 0);
    assert_eq!((columns.step_s, &columns.lasted_ms[..]), (60, &[60_000, 60_000][..]));
    assert_eq!(columns.classes[0].outcomes.served, [60, 60]);
    assert!(
        columns.classes[0].p50_ms[0] < Some(11.0) && columns.classes[0].p50_ms[1] > Some(900.0)
    );
    assert_eq!((columns.waiting, columns.newest_first), (vec![30, 30], vec![true, false]));
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
    // The same moment again makes no row.
    history.read(counter.reading.clone());
    let columns = seconds(&history);
    assert_eq!((columns.number, columns.lasted_ms), (vec![0, 1], vec![1000, 1000]));
    assert!(columns.at_ms[1] < columns.at_ms[0]);
}

#[test]
fn a_reading_that_comes_late_makes_one_row_of_all_that_time() {
    let (mut counter, mut history) = (Counter::new(&["browse"]), History::default());
    history.read(counter.read());
    counter.served(0, 9, Span::from_millis(10));
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
        counter.served(0, 1, Span::from_millis(1));
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
    (0..names.len()).for_each(|class| counter.served(class, 1, Span::from_millis(1)));
    history.read(counter.read());
    assert_eq!(seconds(&history).classes.len(), MOST_NAMES);
}

#[test]
fn what_was_kept_goes_on_in_the_next_process() {
    let (mut counter, mut history) = (Counter::new(&["browse", "pay"]), History::default());
    for _ in 0..200 {
        counter.served(1, 2, Span::from_millis(20));
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
    counter.served(0, 1, Span::from_millis(20));
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
