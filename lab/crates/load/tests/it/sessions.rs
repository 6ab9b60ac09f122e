//! Tests of the requests and sessions of visitors at a healthy site.

use std::collections::HashSet;
use std::io::{Read, Write};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bywash_load::{Head, LoadError, Options, run};
use bywash_scenario::arrivals::Starts;
use bywash_scenario::file::Length;
use bywash_scenario::{
    ClientSet, Distribution, Recording, Scenario, Shown, Signal, Source, Visit, Visitor, WaitsFor,
};
use bywash_units::{Time, TimeSpan};

use crate::play::{alone, at, crowd, play};
use crate::site::{answer, answering, handling, request, wait_for_close, write_ok};

/// Starts a site that answers every request, and returns its URL. The second value collects the
/// received requests in lower case.
fn listening() -> (String, Arc<Mutex<Vec<String>>>) {
    let requests = Arc::new(Mutex::new(Vec::new()));
    let url = handling({
        let requests = Arc::clone(&requests);
        move |mut stream| {
            while let Some(text) = request(&mut stream) {
                requests.lock().expect("no test panics with this lock").push(text.to_lowercase());
                write_ok(&mut stream);
            }
        }
    });
    (url, requests)
}

#[test]
fn everybody_is_served_by_a_site_that_is_well() {
    let url = answering(|_| answer(200, "here you are"));
    let scenario = crowd();
    // The load is below capacity, so requests that end after the last arrival count as well.
    let rho = 0.99;
    let starts =
        Starts::new(&scenario.profile, rho, scenario.unit_rate(), scenario.duration(rho), 1);
    let sessions = starts.count() as u64;
    let (run, cell) = play(&scenario, &Options { rho, ..at(&url) });
    assert!(sessions > 10, "{sessions} sessions are few");
    assert_eq!((cell.completed, cell.orders), (2 * sessions, sessions));
    assert_eq!((cell.generated, cell.not_generated), (2 * sessions, 0));
    assert_eq!(cell.wasted_work, None, "this site does not say");
    assert_eq!(run.not_started, 0);
    assert_eq!(run.confirmed.len() as u64, sessions);
    assert!((cell.useful_work - 1.0).abs() < 1e-9, "{}", cell.useful_work);
}

#[test]
fn a_request_says_what_it_asks_for_and_who_asks() {
    let (url, requests) = listening();
    let options = Options { tag: Some("demo".into()), ..at(&url) };
    let (_, cell) = play(&alone(), &options);
    assert_eq!(cell.completed, 2);
    let requests = requests.lock().unwrap();
    let host = format!("host: {}\r\n", url.trim_start_matches("http://"));
    for text in requests.iter() {
        for line in [&host, "user-agent: bywash-load\r\n", "shop-order-tag: demo-1-0\r\n"] {
            assert_eq!(text.matches(line).count(), 1, "{line:?} in {text}");
        }
    }
    assert!(requests[0].starts_with("get / http/1.1\r\n"));
    assert!(requests[0].contains("shop-demand-us: 6000\r\n"));
    assert!(!requests[0].contains("content-length"));
    assert!(requests[1].starts_with("post /buy http/1.1\r\n"));
    assert!(requests[1].contains("shop-demand-us: 4000\r\n"));
    assert_eq!(requests[1].matches("content-length: 0\r\n").count(), 1);
}

#[test]
fn cookies_come_back_and_belong_to_one_visitor() {
    let given = Arc::new(AtomicU64::new(0));
    let seen = Arc::new(Mutex::new(Vec::new()));
    let url = answering({
        let (given, seen) = (Arc::clone(&given), Arc::clone(&seen));
        move |request| {
            let mut answer = answer(200, "");
            if let Some(cookie) = request.headers().get("cookie") {
                seen.lock().unwrap().push(cookie.clone());
            } else {
                let cookie = format!("sid={}; HttpOnly", given.fetch_add(1, Ordering::SeqCst));
                let value = cookie.parse().expect("a header");
                answer.headers_mut().insert("set-cookie", value);
            }
            answer
        }
    });
    let (run, _) = play(&crowd(), &at(&url));
    let seen = seen.lock().unwrap();
    let orders = run.confirmed.len();
    assert_eq!((given.load(Ordering::SeqCst), seen.len()), (orders as u64, orders));
    let different: HashSet<_> = seen.iter().collect();
    assert_eq!(different.len(), seen.len(), "nobody shows another's cookie");
}

/// Starts a site that sets a token as a cookie in the answer to `GET /`, and answers a form with
/// `status`. Returns its URL and the received forms.
fn with_a_form(status: &'static str) -> (String, Arc<Mutex<Vec<String>>>) {
    let forms = Arc::new(Mutex::new(Vec::new()));
    let url = handling({
        let forms = Arc::clone(&forms);
        move |mut stream| {
            while let Some(head) = request(&mut stream) {
                let length = head.split_once("content-length: ").map_or(0, |(_, rest)| {
                    rest.split_once('\r').expect("a line").0.parse().expect("a number")
                });
                let mut body = vec![0; length];
                stream.read_exact(&mut body).expect("a whole body");
                if length > 0 {
                    assert!(head.contains("content-type: application/x-www-form-urlencoded\r\n"));
                    let form = String::from_utf8(body).expect("a text");
                    forms.lock().expect("no test panics with this lock").push(form);
                }
                let status = if length > 0 { status } else { "200 OK\r\nset-cookie: token=a+b" };
                let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n");
                stream.write_all(answer.as_bytes()).expect("she reads it");
            }
        }
    });
    (url, forms)
}

#[test]
fn a_form_has_the_visitors_cookie_and_only_the_status_of_its_class_is_an_answer() {
    let mut scenario = alone();
    scenario.classes[1].form = "n=1&token={cookie:token}".into();
    scenario.classes[1].status = Some(302);
    let played = |status| {
        let (url, forms) = with_a_form(status);
        let (_, cell) = play(&scenario, &at(&url));
        let forms = forms.lock().unwrap().clone();
        assert!(forms.iter().all(|form| form == "n=1&token=a%2Bb"), "{forms:?}");
        (cell.orders, cell.failed, forms.len())
    };
    assert_eq!(played("302 Found"), (1, 0, 1));
    // The status 200 means that the site shows the form again. With two retries the visitor sends
    // the form three times.
    assert_eq!(played("200 OK"), (0, 3, 3));
}

#[test]
fn who_carries_a_signal_shows_it_in_every_request_and_nobody_else_does() {
    let (url, requests) = listening();
    let mut scenario = crowd();
    let signal = |shown| Signal { name: "s".into(), shown, buyers: 0.5, others: 0.5 };
    scenario.signals = vec![
        signal(Shown::Cookie { name: "returning".into(), value: "1".into() }),
        signal(Shown::Header { name: "from-mail".into(), value: "yes".into() }),
    ];
    let options = Options { tag: Some("t".into()), ..at(&url) };
    let (_, cell) = play(&scenario, &options);
    let requests = requests.lock().unwrap();
    let mut shown = 0;
    for text in requests.iter() {
        let tag = text.split_once("shop-order-tag: t-1-").expect("all are marked").1;
        let index = tag.split_once('\r').expect("a line").0.parse().expect("a number");
        let carried = Visitor::new(&scenario, 1, index).signals().to_vec();
        let sent = [text.contains("cookie: returning=1\r\n"), text.contains("from-mail: yes\r\n")];
        assert_eq!(sent, [0, 1].map(|signal| carried.contains(&signal)), "{text}");
        shown += carried.len();
    }
    assert_eq!(requests.len() as u64, cell.completed);
    assert!(shown > 10 && shown < 2 * requests.len(), "{shown} of {}", requests.len());
}

#[test]
fn a_recorded_visitor_asks_for_what_she_asked_for_then() {
    let (url, requests) = listening();
    let demand = TimeSpan::from_millis(3);
    let visit = |class| Visit { class, demand, think: TimeSpan::ZERO, order: false };
    let mut recording = Recording::default();
    recording.add(Time::ZERO, [1, 1, 0].map(visit));
    let scenario = Scenario { source: Source::Recorded(recording), ..alone() };
    let (_, cell) = play(&scenario, &at(&url));
    assert_eq!(cell.completed, 3);
    let requests = requests.lock().unwrap();
    let asked = requests.iter().map(|text| text.split(" http").next().unwrap_or_default());
    assert_eq!(asked.collect::<Vec<_>>(), ["post /buy", "post /buy", "get /"]);
    assert!(requests.iter().all(|text| text.contains("shop-demand-us: 3000\r\n")));
}

#[test]
fn a_visitor_keeps_her_connection_while_the_site_keeps_it() {
    let askers = Arc::new(Mutex::new(HashSet::new()));
    let url = handling({
        let askers = Arc::clone(&askers);
        move |mut stream| {
            while request(&mut stream).is_some() {
                askers.lock().unwrap().insert(stream.peer_addr().unwrap());
                write_ok(&mut stream);
            }
        }
    });
    let (_, cell) = play(&alone(), &at(&url));
    assert_eq!(cell.completed, 2);
    assert_eq!(askers.lock().unwrap().len(), 1);
}

#[test]
fn a_connection_that_the_site_has_closed_meanwhile_is_replaced() {
    let url = handling(|mut stream| {
        if request(&mut stream).is_some() {
            write_ok(&mut stream);
        }
    });
    let (_, cell) = play(&alone(), &at(&url));
    assert_eq!((cell.completed, cell.failed), (2, 0));
}

#[test]
fn work_beyond_the_useful_is_wasted_when_the_site_says_how_long_it_worked() {
    let url = answering(|_| answer(200, ""));
    let asked = AtomicU64::new(0);
    let busy = move || Some(TimeSpan::from_millis(500 + 40 * asked.fetch_add(1, Ordering::SeqCst)));
    let options = Options { busy: Some(Box::new(busy)), ..at(&url) };
    let (_, cell) = play(&alone(), &options);
    // The site's worker could have worked for 300 ms. It worked for 40 ms, of which 6 + 4 ms were
    // useful.
    let wasted = cell.wasted_work.expect("the site says");
    assert!((wasted - 0.030 / 0.3).abs() < 1e-9, "{wasted}");
}

#[test]
fn a_visitor_for_whom_there_is_no_place_makes_the_run_invalid() {
    let url = handling(|mut stream| wait_for_close(&mut stream));
    let options = Options { max_visitors: 1, drain: TimeSpan::from_millis(50), ..at(&url) };
    let (run, cell) = play(&crowd(), &options);
    assert_eq!((cell.generated, cell.timed_out), (1, 1));
    assert!(run.not_started > 10, "{}", run.not_started);
    let why = run.invalid.expect("most visitors are missing");
    assert!(why.contains("not started: at most 1 can be active"), "{why}");
}

#[test]
fn what_cannot_be_played_is_refused_before_it_begins() {
    let url = answering(|_| answer(200, ""));
    let refused = |options: &Options, scenario: &Scenario| {
        let error = run(scenario, options, &mut |_| ()).expect_err("this cannot be played");
        error.to_string()
    };
    let tag = Options { tag: Some("two words".into()), ..at(&url) };
    assert!(refused(&tag, &alone()).contains("`two words`"));
    for rho in [0.0, f64::NAN, f64::INFINITY] {
        let error = run(&alone(), &Options::new(&url, rho, 1), &mut |_| ());
        assert!(matches!(error, Err(LoadError::Rho(_))), "{rho}");
    }
    let mut scenario = alone();
    scenario.classes[1].path = "buy".into();
    assert!(refused(&at(&url), &scenario).contains("class `buy`"));
    let mut scenario = alone();
    let shown = Shown::Header { name: "content-length".into(), value: "5".into() };
    scenario.signals = vec![Signal { name: "long".into(), shown, buyers: 1.0, others: 1.0 }];
    assert!(refused(&at(&url), &scenario).contains("signal `long`"));
    let mut scenario = alone();
    scenario.client.waits_for = WaitsFor::Service;
    assert!(refused(&at(&url), &scenario).contains("simulated"));
    let mut scenario = alone();
    scenario.client.shapes = 2;
    assert!(refused(&at(&url), &scenario).contains("simulated"));
    let mut scenario = alone();
    scenario.adversaries.push(bywash_scenario::Adversary {
        shapes: 1,
        mimics: 0.0,
        mimics_evenly: false,
        mimics_targets: false,
        name: "spoofers".into(),
        rho: 1.0,
        path: vec![1],
        session: bywash_scenario::Claims::Forged,
        addresses: 1,
        patience: bywash_scenario::Distribution::Never,
        burst: 1,
        holds: TimeSpan::ZERO,
        rate: 0,
        from: TimeSpan::ZERO,
        until: TimeSpan::MAX,
    });
    assert!(refused(&at(&url), &scenario).contains("adversaries can only be simulated"));
    assert!(refused(&at("https://127.0.0.1:1"), &alone()).contains("https"));
}

#[test]
fn who_is_refused_comes_again_when_asked_to_and_says_that_she_does() {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let url = answering({
        let asked = Arc::clone(&asked);
        move |request| {
            let mut asked = asked.lock().unwrap();
            asked.push((request.headers().get("x-retry-attempt").cloned(), Instant::now()));
            let mut answer = answer(if asked.len() == 1 { 503 } else { 200 }, "");
            answer.headers_mut().insert("retry-after", "1".parse().expect("a header"));
            answer
        }
    });
    let mut scenario = alone();
    scenario.client.obeys_retry_after = true;
    scenario.client.declares_retries = true;
    scenario.length = Length::Duration(TimeSpan::from_secs(5));
    let (_, cell) = play(&scenario, &at(&url));
    assert_eq!((cell.dropped, cell.completed), (1, 2));
    let asked = asked.lock().unwrap();
    let declared: Vec<bool> = asked.iter().map(|(field, _)| field.is_some()).collect();
    assert_eq!(declared, [false, true, false]);
    assert!(asked[1].1 - asked[0].1 >= Duration::from_secs(1));
    assert!(asked[2].1 - asked[1].1 < Duration::from_secs(1), "an answer asks for nothing");
}

#[test]
fn a_run_that_is_over_before_anybody_comes_is_not_begun() {
    let mut scenario = crowd();
    scenario.length = Length::Duration(TimeSpan::from_micros(1));
    let error = run(&scenario, &at("http://127.0.0.1:9"), &mut |_| ());
    assert!(matches!(error, Err(LoadError::Nobody { .. })), "{error:?}");
}

#[test]
fn clients_of_a_set_ask_one_after_the_other_and_who_is_not_counted_leaves_no_figure() {
    let most = Arc::new(AtomicUsize::new(0));
    let (asked, inside) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let url = {
        let (most, asked) = (Arc::clone(&most), Arc::clone(&asked));
        handling(move |mut stream| {
            while request(&mut stream).is_some() {
                asked.fetch_add(1, Ordering::Relaxed);
                let now = inside.fetch_add(1, Ordering::Relaxed) + 1;
                most.fetch_max(now, Ordering::Relaxed);
                inside.fetch_sub(1, Ordering::Relaxed);
                write_ok(&mut stream);
            }
        })
    };
    let mut scenario = crowd();
    scenario.client.think = Distribution::Constant(TimeSpan::from_millis(10));
    let set = |name: &str, clients, counted| ClientSet {
        name: name.to_owned(),
        clients,
        patience: None,
        counted,
    };
    scenario.sets = vec![set("control", 2, true), set("test", 3, false)];
    let (_, cell) = play(&scenario, &at(&url));
    assert!(cell.completed > 4, "{cell:?}");
    assert_eq!(cell.generated, cell.completed);
    assert!(asked.load(Ordering::Relaxed) as u64 > cell.completed, "the others asked too");
    assert!(most.load(Ordering::Relaxed) <= 5, "one request a client");
}

#[test]
fn a_blank_is_filled_for_each_request_and_whoever_tries_again_asks_for_the_same() {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let url = answering({
        let asked = Arc::clone(&asked);
        move |request| {
            let mut asked = asked.lock().unwrap();
            asked.push(request.uri().to_string());
            answer(if asked.len() == 1 { 503 } else { 200 }, "")
        }
    });
    let mut scenario = alone();
    for class in &mut scenario.classes {
        class.path = "/item?id={1..1000000}".into();
    }
    play(&scenario, &at(&url));
    let asked = asked.lock().unwrap();
    let numbers = asked.iter().map(|path| path.strip_prefix("/item?id=")?.parse::<u32>().ok());
    let numbers: Vec<_> = numbers.map(Option::unwrap).collect();
    assert_eq!(numbers.len(), 3);
    assert!(numbers[0] == numbers[1] && numbers[1] != numbers[2], "{numbers:?}");
}

#[test]
fn visitors_send_their_head_in_its_order_and_some_keep_no_cookies() {
    const HEAD: Head =
        Head { page: &[("sec-ch-ua", "x"), ("user-agent", "y"), ("accept", "*/*")], file: &[] };
    let asked = Arc::new(Mutex::new(Vec::new()));
    let url = handling({
        let asked = Arc::clone(&asked);
        move |mut stream| {
            while let Some(head) = request(&mut stream) {
                asked.lock().unwrap().push(head);
                let answer = b"HTTP/1.1 200 OK\r\nset-cookie: a=b\r\ncontent-length: 0\r\n\r\n";
                let _ = stream.write_all(answer);
            }
        }
    });
    let mut scenario = alone();
    scenario.client.shapes = 1;
    scenario.classes[1].path = "/second".into();
    for keep_cookies in [0.0, 1.0] {
        let options = Options { heads: vec![HEAD], keep_cookies, ..at(&url) };
        let (_, cell) = play(&scenario, &options);
        assert_eq!(cell.completed, 2);
        let asked = std::mem::take(&mut *asked.lock().unwrap());
        let order = ["\r\nhost:", "\r\nsec-ch-ua: x", "\r\nuser-agent: y", "\r\naccept:"];
        let at = order.map(|field| asked[0].find(field));
        assert!(at.is_sorted() && at[0].is_some(), "{}", asked[0]);
        assert!(!asked[0].contains("referer") && asked[1].contains(&format!("referer: {url}/\r")));
        assert_eq!(asked[1].contains("cookie: a=b"), keep_cookies > 0.0);
    }
}

#[test]
fn a_client_without_fields_for_files_leaves_them_out_and_goes_on() {
    let url = answering(|_| answer(200, ""));
    let mut scenario = alone();
    scenario.client.shapes = 1;
    scenario.classes[0].path = "/style.css".into();
    let head = Head { page: &[("accept", "*/*")], file: &[] };
    let (_, cell) = play(&scenario, &Options { heads: vec![head], ..at(&url) });
    assert_eq!((cell.generated, cell.completed, cell.orders), (1, 1, 1));
    let error = run(&scenario, &at(&url), &mut |_| ());
    assert!(matches!(error, Err(LoadError::Shapes { shapes: 1, heads: 0 })), "{error:?}");
}
