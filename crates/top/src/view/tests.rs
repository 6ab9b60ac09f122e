//! Tests of the drawn screen, line by line.

use std::sync::mpsc::channel;

use bywash_terminal::text::is_unsafe;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::KeyCode;

use super::overlay::wrapped;
use super::*;
use crate::feed::Update;
use crate::sample::{answers, elephant, model, request};
use crate::screen::Screen;

fn screen(model: Model) -> Screen {
    let (commands, todo) = channel();
    // The receiver is leaked, so that sending does not fail.
    std::mem::forget(todo);
    Screen::new(model, "127.0.0.1:7070".into(), "ana".into(), commands)
}

fn lines(screen: &Screen, width: u16, height: u16) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(frame, screen, Paint { has_colour: true })).unwrap();
    let buffer = terminal.backend().buffer();
    let row = |y: u16| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>();
    (0..height).map(row).collect()
}

fn typed(screen: &mut Screen, keys: &str) {
    keys.chars().for_each(|c| assert!(screen.key(KeyCode::Char(c).into())));
}

fn line<'l>(lines: &'l [String], words: &str) -> &'l str {
    lines
        .iter()
        .find(|line| line.contains(words))
        .unwrap_or_else(|| panic!("no {words:?}: {lines:#?}"))
}

#[test]
fn eighty_columns_and_twenty_four_lines_show_it_all() {
    let drawn = lines(&screen(model()), 80, 24);
    assert_eq!(
        drawn[0].trim_end(),
        "bywash 0.1.0  OBSERVE  REFUSING  slots 4/4  waiting 50, oldest 1.2s"
    );
    assert!(drawn[23].trim_end().ends_with("q quit"), "{}", drawn[23]);
    assert_eq!(
        drawn[1].trim_end(),
        "transactions 0/min  useful work 75%  wasted 25%  in 4.0/s  last 60 s"
    );
    assert!(drawn[2].starts_with("127.0.0.1:7070 answers"));
    assert!(drawn[3].contains("[1 classes]") && drawn[3].contains("2 elephants (1 proposed)"));
    assert_eq!(
        drawn[4],
        " CLASS     T  IN/S SRV LATE ORPH REFU TERM ERR   P50   P99 QUEUE   UTIL MODE    "
    );
    assert_eq!(
        drawn[5],
        ">confirm   T     0   -    -    -    -    -   -     -     - ···   0 5000 enf 10%*"
    );
    assert_eq!(
        drawn[6],
        " search    B   4.0  75    0    0   25    0   0  80ms 200ms ███  50   36 observe "
    );
    assert!(line(&drawn, "/slow").contains("processors  250ms 200ms to 300ms   5.0  70 proposed"));
}

#[test]
fn a_wide_terminal_says_it_in_full() {
    let drawn = lines(&screen(model()), 132, 40);
    for head in ["CLASS", "TIER", "ORPHANED", "REFUSED", "QUEUE", "UTIL", "MODE"] {
        line(&drawn, head);
    }
    assert!(
        line(&drawn, "confirm").contains("transaction")
            && line(&drawn, "confirm").contains("enforce 10%*")
    );
    assert!(line(&drawn, "search ").contains("██████████ 50"));
}

#[test]
fn a_small_terminal_says_so_and_none_is_too_small_to_be_drawn() {
    let drawn = lines(&screen(model()), 60, 20);
    assert!(drawn[0].contains("This terminal is 60 x 20"));
    let mut asks = screen(model());
    typed(&mut asks, "um");
    let mut helps = screen(model());
    typed(&mut helps, "?");
    for screen in [screen(model()), asks, helps] {
        for (width, height) in [(1, 1), (80, 1), (80, 12), (80, 17), (80, 23), (81, 24), (300, 100)]
        {
            lines(&screen, width, height);
        }
    }
}

#[test]
fn a_gateway_that_is_silent_is_said_to_be_so_and_what_was_stays() {
    let mut screen = screen(model());
    screen.apply(Update::Silence("no gateway answers at 127.0.0.1:7070".into()), 1_700_000_000_000);
    let drawn = lines(&screen, 80, 24);
    assert!(
        drawn[2].starts_with("STALE since 22:13:20 UTC: no gateway answers at"),
        "{}",
        drawn[2]
    );
    line(&drawn, "search");
}

#[test]
fn a_filter_and_the_order_are_said_and_done() {
    let mut screen = screen(model());
    typed(&mut screen, "sss/sea");
    let drawn = lines(&screen, 80, 24);
    assert!(
        drawn[2].contains("by IN/S, falling") && drawn[2].contains("1 of 2 with \"sea\""),
        "{}",
        drawn[2]
    );
    assert!(drawn[5].starts_with(">search") && !drawn[6].contains("confirm"));
    assert!(drawn[23].starts_with("/sea_"));
}

#[test]
fn before_a_decision_stands_what_it_does() {
    let mut screen = screen(model());
    let evidence = "1 /slow\nproposed  2 at once\neffect    90 %, then 20 %\n".to_owned();
    typed(&mut screen, "2a");
    let verb = crate::ask::Verb::Approve;
    screen.apply(Update::Considered(verb, Box::new(elephant("/slow")), evidence), 0);
    typed(&mut screen, "too much");
    let drawn = lines(&screen, 80, 24);
    line(&drawn, "proposed  2 at once");
    line(&drawn, "effect    90 %");
    line(&drawn, "Why? too much");
    let _ = screen.key(KeyCode::Enter.into());
    let drawn = lines(&screen, 80, 24);
    line(&drawn, "Hold back elephant 1 as proposed for 1h. By ana: too much");
    line(&drawn, "y: confirm, any other key: cancel");
}

#[test]
fn a_long_table_is_followed_to_its_end() {
    let mut answers = answers();
    let many =
        (0..100).map(|number| request(&format!("{number:016x}"), &format!("/item/{number}")));
    answers.requests = Some(many.collect());
    let mut screen = screen(Model::new(answers));
    typed(&mut screen, "3");
    assert!(line(&lines(&screen, 80, 24), "/item/0").starts_with('>'));
    (0..20).for_each(|_| assert!(screen.key(KeyCode::PageDown.into())));
    assert!(line(&lines(&screen, 80, 24), "/item/99").starts_with('>'));
}

#[test]
fn what_others_wrote_cannot_leave_its_place() {
    let hostile = "/x\u{1b}[2J\u{202e}\u{9b}31m\r\n買い手買い手買い手買い手買い手買い手買い手買い手買い手買い手";
    let mut answers = answers();
    answers.status.version = hostile.into();
    answers.status.classes[1].name = hostile.into();
    answers.elephants.as_mut().unwrap().elephants.clear();
    answers.requests = Some(vec![request("00000000000000aa", hostile)]);
    let mut screen = screen(Model::new(answers));
    for keys in ["", "3", "1j\n", "jm"] {
        typed(&mut screen, keys);
        for line in lines(&screen, 80, 24) {
            assert!(!line.contains(is_unsafe), "{line:?}");
        }
    }
    screen.apply(Update::Silence(hostile.into()), 0);
    screen.apply(Update::Refused(hostile.into()), 0);
    for line in lines(&screen, 80, 24) {
        assert!(!line.contains(is_unsafe), "{line:?}");
    }
}

#[test]
fn without_colour_there_is_none() {
    let mut terminal = Terminal::new(TestBackend::new(80, 24)).unwrap();
    let screen = screen(model());
    terminal.draw(|frame| draw(frame, &screen, Paint { has_colour: false })).unwrap();
    let cells = &terminal.backend().buffer().content;
    assert!(cells.iter().all(|cell| cell.fg == Color::Reset && cell.bg == Color::Reset));
}

#[test]
fn lines_are_broken_between_words_and_long_words_anywhere() {
    assert_eq!(wrapped("one two three", 8), ["one two", "three"]);
    assert_eq!(wrapped("abcdefghij", 4), ["abcd", "efgh", "ij"]);
    assert_eq!(wrapped("a\n\nb", 4), ["a", "", "b"]);
}

#[test]
fn all_of_what_is_to_be_decided_can_be_read_on_a_low_terminal() {
    let mut screen = screen(model());
    let evidence =
        (1..=20).map(|number| format!("evidence {number}")).collect::<Vec<_>>().join("\n");
    typed(&mut screen, "2a");
    let verb = crate::ask::Verb::Approve;
    screen.apply(Update::Considered(verb, Box::new(elephant("/slow")), evidence), 0);
    let drawn = lines(&screen, 80, 12);
    line(&drawn, "evidence 1 ");
    line(&drawn, "Up Down: more");
    line(&drawn, "Why? _");
    (0..15).for_each(|_| assert!(screen.key(KeyCode::Down.into())));
    line(&lines(&screen, 80, 12), "evidence 20");
}
