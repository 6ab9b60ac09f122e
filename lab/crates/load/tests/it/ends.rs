//! Tests of the outcomes of requests at faulty sites.

use std::io::Write;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use bywash_load::Options;
use bywash_scenario::Closes;
use bywash_units::TimeSpan;

use crate::play::{alone, at, crowd, impatient, play};
use crate::site::{answer, answering, handling, one_by_one, request, wait_for_close, write_ok};

#[test]
fn a_refused_request_is_tried_again_as_often_as_the_scenario_says() {
    for status in [503, 429] {
        let url = answering(move |_| answer(status, "come back later"));
        let (_, cell) = play(&alone(), &at(&url));
        assert_eq!((cell.generated, cell.dropped), (3, 3), "{status}");
        assert_eq!(cell.not_generated, 1, "the order is never asked for");
    }
}

#[test]
fn an_error_is_a_failure_and_no_refusal() {
    let url = answering(|_| answer(500, "oh"));
    let (_, cell) = play(&alone(), &at(&url));
    assert_eq!((cell.generated, cell.failed), (3, 3));
}

#[test]
fn at_a_site_that_never_answers_all_time_out_and_it_sees_every_one_leave() {
    let (left, departures) = mpsc::channel();
    let url = handling(move |mut stream| {
        wait_for_close(&mut stream);
        left.send(()).expect("the test listens");
    });
    let scenario = impatient(crowd(), TimeSpan::from_millis(50), 1);
    let (_, cell) = play(&scenario, &at(&url));
    assert!(cell.generated > 20, "{}", cell.generated);
    assert_eq!(cell.timed_out, cell.generated);
    assert_eq!(cell.not_generated * 2, cell.generated);
    // There is one connection for each attempt, and one for the check that the site answers.
    for _ in 0..=cell.generated {
        let close = departures.recv_timeout(Duration::from_secs(10));
        close.expect("every client who has lost patience closes her connection");
    }
}

/// Starts a site that answers no request while the first visitor's connection is open. After that,
/// it answers all requests. Returns its URL.
fn busy_with_the_first() -> String {
    let mut seen = 0;
    one_by_one(move |mut stream| {
        while request(&mut stream).is_some() {
            seen += 1;
            match seen {
                1 => wait_for_close(&mut stream),
                _ => write_ok(&mut stream),
            }
        }
    })
}

#[test]
fn a_client_closes_as_soon_as_her_patience_ends() {
    let url = busy_with_the_first();
    let scenario = impatient(alone(), TimeSpan::from_secs(1), 1);
    let (_, cell) = play(&scenario, &at(&url));
    assert_eq!((cell.timed_out, cell.completed), (1, 2));
}

#[test]
fn behind_a_hop_that_hides_closes_her_connection_stays_open() {
    let url = busy_with_the_first();
    let scenario = impatient(alone(), TimeSpan::from_millis(100), 1);
    let options = Options { closes: Closes::Hidden, drain: TimeSpan::from_millis(500), ..at(&url) };
    let (_, cell) = play(&scenario, &options);
    assert_eq!((cell.timed_out, cell.completed), (2, 0));
    assert_eq!(cell.closes, Closes::Hidden);
}

#[test]
fn a_close_that_cannot_be_hidden_makes_the_run_invalid() {
    let url = handling(|mut stream| wait_for_close(&mut stream));
    let options = Options { closes: Closes::Hidden, max_visitors: 1, ..at(&url) };
    let scenario = impatient(alone(), TimeSpan::from_millis(50), 0);
    let (run, cell) = play(&scenario, &options);
    assert_eq!((cell.timed_out, run.not_started), (1, 0));
    let why = run.invalid.expect("her own place was the only one");
    assert!(why.contains("1 connections were closed"), "{why}");
}

#[test]
fn what_is_left_when_the_run_is_over_is_closed_and_has_timed_out() {
    let url = handling(|mut stream| wait_for_close(&mut stream));
    let options = Options { drain: TimeSpan::from_millis(50), ..at(&url) };
    let (_, cell) = play(&crowd(), &options);
    assert_eq!(cell.timed_out, cell.generated);
    assert_eq!(cell.not_generated, cell.generated, "one of two was made");
}

#[test]
fn a_visitor_who_is_thinking_when_the_run_ends_has_not_made_the_rest() {
    let url = answering(|_| answer(200, ""));
    let mut scenario = alone();
    scenario.client.think = bywash_scenario::Distribution::Constant(TimeSpan::from_secs(3600));
    let (_, cell) = play(&scenario, &at(&url));
    assert_eq!((cell.completed, cell.not_generated), (1, 1));
}

#[test]
fn a_connection_that_breaks_is_a_failure() {
    let url = handling(drop);
    let (_, cell) = play(&alone(), &at(&url));
    assert_eq!((cell.generated, cell.failed), (3, 3));
}

#[test]
fn a_question_that_was_sent_is_not_asked_again_by_itself() {
    let (asked, questions) = mpsc::channel();
    let url = handling(move |mut stream| {
        while let Some(text) = request(&mut stream) {
            if text.starts_with("POST") {
                return asked.send(()).expect("the test listens");
            }
            write_ok(&mut stream);
        }
    });
    let scenario = impatient(alone(), TimeSpan::MAX, 0);
    let (_, cell) = play(&scenario, &at(&url));
    assert_eq!((cell.completed, cell.failed), (1, 1));
    assert_eq!(questions.try_iter().count(), 1);
}

#[test]
fn half_an_answer_is_a_failure() {
    let url = handling(|mut stream| {
        if request(&mut stream).is_some() {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf");
        }
    });
    let (_, cell) = play(&alone(), &at(&url));
    assert_eq!((cell.completed, cell.failed), (0, 3));
}

#[test]
fn an_answer_that_drips_beyond_patience_comes_too_late() {
    let url = handling(|mut stream| {
        if request(&mut stream).is_none() {
            return;
        }
        let mut drop = &b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n"[..];
        while stream.write_all(drop).is_ok() {
            drop = b".";
            // The delay is the behaviour of the site. It is not a wait for another thread.
            thread::sleep(Duration::from_millis(10));
        }
    });
    let scenario = impatient(alone(), TimeSpan::from_millis(200), 0);
    let (_, cell) = play(&scenario, &at(&url));
    assert_eq!((cell.generated, cell.timed_out), (1, 1));
}
