//! Tests of overrides: their end, their author, and the check of the revision that their author has
//! seen.

use bywash_control::{
    DecisionMeta, DecisionMetaError, Mode, NotOverridden, Note, Overrides, Subject, Target,
    Timestamp, What,
};
use bywash_units::TimeSpan;

const CLASSES: [&str; 2] = ["search", "other"];

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + seconds).expect("a time of this century")
}

fn meta(seconds: u64) -> DecisionMeta {
    DecisionMeta { by: "ana".into(), why: "too many".into(), lasts: TimeSpan::from_secs(seconds) }
}

fn enforced(class: &str, enforce_percent: u8) -> Target {
    Target::Class { class: class.into(), mode: Mode::Enforce, enforce_percent }
}

#[test]
fn it_holds_until_its_end_and_says_so() {
    let mut overrides = Overrides::default();
    let note = overrides.set(at(0), enforced("search", 10), meta(60), None, &CLASSES).unwrap();
    assert_eq!((note.what, note.until), (What::Overridden, Some(at(60))));
    let (one, mode, enforce_percent) = overrides.of_class("search").unwrap();
    assert_eq!((one.number, mode, enforce_percent, one.by.as_str()), (1, Mode::Enforce, 10, "ana"));
    assert_eq!(overrides.of_class("other"), None);
    assert_eq!(overrides.tick(at(59)), []);
    let notes = overrides.tick(at(60));
    assert_eq!((notes[0].what, notes[0].by.as_str()), (What::Ended, "bywash"));
    assert_eq!(
        notes[0].subject,
        Subject::Class { class: "search".into(), mode: Mode::Enforce, enforce_percent: 10 }
    );
    assert_eq!(overrides.list(), []);
}

#[test]
fn a_class_has_one_and_nothing_is_decided_once() {
    let mut overrides = Overrides::default();
    for enforce_percent in [10, 50] {
        overrides
            .set(at(0), enforced("search", enforce_percent), meta(60), None, &CLASSES)
            .unwrap();
        overrides.set(at(0), Target::Bypass, meta(60), None, &CLASSES).unwrap();
    }
    assert_eq!(overrides.list().iter().map(|one| one.number).collect::<Vec<_>>(), [3, 4]);
    assert_eq!(overrides.bypass(), Some(4));
    overrides.undo(at(1), 4, "bo", "enough", None).unwrap();
    assert!(!overrides.bypasses());
    assert_eq!(overrides.undo(at(1), 4, "bo", "enough", None), Err(NotOverridden::Unknown(4)));
    let nobody = overrides.undo(at(1), 3, " ", "enough", None);
    assert_eq!(nobody, Err(NotOverridden::DecisionMeta(DecisionMetaError::NoAuthor)));
}

#[test]
fn whoever_has_not_seen_what_holds_changes_nothing() {
    let mut overrides = Overrides::default();
    let seen = overrides.revision();
    overrides.set(at(0), enforced("search", 10), meta(60), Some(seen), &CLASSES).unwrap();
    let before = overrides.clone();
    let late = overrides.set(at(1), enforced("search", 50), meta(60), Some(seen), &CLASSES);
    assert_eq!(late, Err(NotOverridden::Conflict { is: before.revision(), seen }));
    let late = overrides.undo(at(1), 1, "bo", "enough", Some(seen));
    assert!(matches!(late, Err(NotOverridden::Conflict { .. })));
    assert_eq!(overrides, before);
    // Every change gives a new revision. None is given twice, not even by a process that has lost
    // the earlier ones.
    let mut revisions = vec![overrides.revision()];
    overrides.set(at(2), Target::Bypass, meta(60), None, &CLASSES).unwrap();
    revisions.push(overrides.revision());
    overrides.undo(at(2), 2, "bo", "enough", None).unwrap();
    revisions.push(overrides.revision());
    overrides.tick(at(60));
    revisions.push(overrides.revision());
    let mut next = Overrides::default();
    next.set(at(61), Target::Bypass, meta(60), None, &CLASSES).unwrap();
    revisions.push(next.revision());
    assert!(revisions.is_sorted_by(|a, b| a < b), "{revisions:?}");
}

#[test]
fn what_cannot_be_is_refused() {
    let mut overrides = Overrides::default();
    let mut set = |target, meta| overrides.set(at(0), target, meta, None, &CLASSES).unwrap_err();
    assert_eq!(set(enforced("searches", 1), meta(60)), NotOverridden::NoClass("searches".into()));
    assert_eq!(set(enforced("search", 0), meta(60)), NotOverridden::EnforcePercent);
    assert_eq!(set(enforced("search", 101), meta(60)), NotOverridden::EnforcePercent);
    assert_eq!(
        set(Target::Bypass, meta(9)),
        NotOverridden::DecisionMeta(DecisionMetaError::BadDuration)
    );
    let observed =
        Target::Class { class: "search".into(), mode: Mode::Observe, enforce_percent: 10 };
    assert_eq!(set(observed, meta(60)), NotOverridden::Observed);
    let hostile = set(enforced("\u{1b}[31m\u{202e}", 1), meta(60)).to_string();
    assert!(!hostile.contains('\u{1b}') && !hostile.contains('\u{202e}'), "{hostile}");
    assert_eq!(overrides, Overrides::default());
}

#[test]
fn it_is_read_as_it_was_kept_and_what_could_not_have_been_decided_does_not_hold() {
    let mut overrides = Overrides::default();
    overrides.set(at(0), enforced("search", 10), meta(60), None, &CLASSES).unwrap();
    assert_eq!(Overrides::read(&overrides.text()).unwrap(), overrides);
    let forged = overrides.text().replace("\"enforce_percent\": 10", "\"enforce_percent\": 200");
    assert_eq!(Overrides::read(&forged).unwrap().list(), []);
    assert!(Overrides::read("{}").is_err());
    assert!(Overrides::read("nothing").is_err());
}

#[test]
fn of_a_class_that_is_gone_it_ends() {
    let mut overrides = Overrides::default();
    overrides.set(at(0), enforced("search", 10), meta(60), None, &CLASSES).unwrap();
    overrides.set(at(0), Target::Bypass, meta(60), None, &CLASSES).unwrap();
    assert_eq!(overrides.configured(at(1), &CLASSES), []);
    let notes = overrides.configured(at(2), &["other"]);
    assert_eq!(notes.len(), 1);
    assert!(overrides.bypasses() && overrides.of_class("search").is_none());
}

#[test]
fn the_file_would_say_the_same() {
    let mut overrides = Overrides::default();
    overrides.set(at(0), enforced("search", 10), meta(60), None, &CLASSES).unwrap();
    let all = Target::Class { class: "other".into(), mode: Mode::Observe, enforce_percent: 100 };
    overrides.set(at(0), all, meta(60), None, &CLASSES).unwrap();
    overrides.set(at(0), Target::Bypass, meta(60), None, &CLASSES).unwrap();
    let read: toml::Table = overrides.exported().parse().unwrap();
    let class = |name: &str| read["class"][name].as_table().unwrap().clone();
    assert_eq!(class("search")["mode"].as_str(), Some("enforce"));
    assert_eq!(class("search")["enforce_percent"].as_integer(), Some(10));
    assert_eq!(class("other").keys().collect::<Vec<_>>(), ["mode"]);
    assert_eq!(read.len(), 1, "that nothing is decided does not belong in a file");
}

#[test]
fn what_was_said_while_the_clock_was_wrong_holds_for_as_long_as_was_said() {
    let mut overrides = Overrides::default();
    // The override is set while the clock is a day ahead.
    overrides.set(at(86_400), Target::Bypass, meta(60), None, &CLASSES).unwrap();
    overrides.set(at(0), enforced("search", 10), meta(60), None, &CLASSES).unwrap();
    overrides.began_by(at(30));
    let ends: Vec<_> = overrides.list().iter().map(|one| one.until).collect();
    assert_eq!(ends, [at(90), at(60)]);
    assert_eq!(overrides.tick(at(90)).len(), 2);
}

#[test]
fn a_bypass_ends_by_whoever_has_seen_it_and_says_why() {
    let mut overrides = Overrides::default();
    let end = |overrides: &mut Overrides, seen, is_started_so| {
        overrides.end_bypass(at(1), meta(60), seen, is_started_so)
    };
    assert_eq!(end(&mut overrides, None, false), Ok(None), "there is none");
    assert_eq!(end(&mut overrides, None, true).unwrap().unwrap().what, What::Undone);
    overrides.set(at(0), Target::Bypass, meta(60), None, &CLASSES).unwrap();
    let before = overrides.clone();
    assert!(matches!(end(&mut overrides, Some(7), true), Err(NotOverridden::Conflict { .. })));
    let nobody = DecisionMeta { by: String::new(), ..meta(60) };
    let nobody = overrides.end_bypass(at(1), nobody, None, true);
    assert_eq!(nobody, Err(NotOverridden::DecisionMeta(DecisionMetaError::NoAuthor)));
    assert_eq!(overrides, before);
    let revision = overrides.revision();
    assert!(end(&mut overrides, Some(revision), false).unwrap().is_some());
    assert!(!overrides.bypasses());
}

#[test]
fn an_override_of_another_gateway_holds_until_it_is_undone_there() {
    let (mut maker, mut follower) = (Overrides::default(), Overrides::default());
    let set = maker.set(at(0), enforced("search", 10), meta(600), None, &CLASSES).unwrap();
    follower.set(at(0), enforced("search", 90), meta(60), None, &CLASSES).unwrap();
    follower.follow(at(1), &set, &CLASSES).unwrap();
    let (one, mode, enforce_percent) = follower.of_class("search").unwrap();
    assert_eq!((mode, enforce_percent, one.until), (Mode::Enforce, 10, at(600)));
    assert_eq!((one.number, follower.list().len()), (2, 1));
    let undone = maker.undo(at(5), 1, "bo", "enough", None).unwrap();
    follower.follow(at(6), &undone, &CLASSES).unwrap();
    assert_eq!(follower.list(), []);
    let bypass = maker.set(at(7), Target::Bypass, meta(60), None, &CLASSES).unwrap();
    follower.follow(at(8), &bypass, &CLASSES).unwrap();
    assert!(follower.bypasses());
    let ended = maker.end_bypass(at(9), meta(60), None, false).unwrap().unwrap();
    follower.follow(at(10), &ended, &CLASSES).unwrap();
    assert!(!follower.bypasses());
}

#[test]
fn a_bypass_because_of_unreadable_state_ends_only_by_a_later_decision() {
    let failed = DecisionMeta { by: "bywash".into(), ..meta(86_400) };
    let mut follower = Overrides::default();
    follower.set(at(100), Target::Bypass, failed, None, &CLASSES).unwrap();
    let mut maker = Overrides::default();
    let early = maker.set(at(50), Target::Bypass, meta(600), None, &CLASSES).unwrap();
    let undone = maker.end_bypass(at(60), meta(60), None, false).unwrap().unwrap();
    let shorter = maker.set(at(200), Target::Bypass, meta(600), None, &CLASSES).unwrap();
    for note in [early, undone, shorter] {
        assert_eq!(follower.follow(at(210), &note, &CLASSES), Ok(false));
    }
    assert_eq!(follower.list()[0].until, at(100 + 86_400));
    let ended = maker.end_bypass(at(300), meta(60), None, false).unwrap().unwrap();
    assert_eq!(follower.follow(at(301), &ended, &CLASSES), Ok(true));
    assert!(!follower.bypasses());
}

#[test]
fn an_override_of_another_gateway_that_is_not_possible_here_changes_nothing() {
    let mut maker = Overrides::default();
    let note = maker.set(at(0), enforced("search", 10), meta(60), None, &CLASSES).unwrap();
    let mut follower = Overrides::default();
    let unknown = follower.follow(at(1), &note, &["other"]);
    assert_eq!(unknown, Err(NotOverridden::NoClass("search".into())));
    let subject =
        Subject::Class { class: "search".into(), mode: Mode::Enforce, enforce_percent: 0 };
    let nonsense = follower.follow(at(1), &Note { subject, ..note.clone() }, &CLASSES);
    assert_eq!(nonsense, Err(NotOverridden::EnforcePercent));
    let endless = Note { until: Some(at(86_400 * 31)), ..note };
    assert!(follower.follow(at(1), &endless, &CLASSES).is_err());
    assert_eq!(follower, Overrides::default());
}

#[test]
fn the_level_of_a_population_is_overridden_on_its_own() {
    let of = |name: &str, level| Target::Population { population: name.into(), level };
    let mut overrides = Overrides::default();
    for target in [of("00ff", 1), of("00000000000000FF", 1), of("00000000000000ff", 8)] {
        let refused = overrides.set(at(0), target, meta(60), None, &CLASSES);
        assert_eq!(refused.unwrap_err(), NotOverridden::Population);
    }
    overrides.set(at(0), of("00000000000000ff", 7), meta(60), None, &CLASSES).unwrap();
    overrides.set(at(1), of("00000000000000ff", 2), meta(60), None, &CLASSES).unwrap();
    assert_eq!(overrides.populations().collect::<Vec<_>>(), [(255, 2, 2)]);
    let read = Overrides::read(&overrides.text()).unwrap();
    assert_eq!(read.populations().collect::<Vec<_>>(), [(255, 2, 2)]);
    assert!(overrides.configured(at(2), &[]).is_empty(), "it does not depend on classes");
    for number in 0..63 {
        let target = of(&format!("{number:016x}"), 0);
        overrides.set(at(3), target, meta(60), None, &CLASSES).unwrap();
    }
    let refused = overrides.set(at(3), of("00000000000000fe", 0), meta(60), None, &CLASSES);
    assert_eq!(refused.unwrap_err(), NotOverridden::TooManyPopulations);
    overrides.set(at(3), of("00000000000000ff", 4), meta(60), None, &CLASSES).unwrap();
    overrides.set(at(3), Target::Bypass, meta(60), None, &CLASSES).unwrap();
    assert_eq!(overrides.tick(at(63)).len(), 65);
    assert_eq!(overrides.populations().count(), 0);
}
