//! Tests of summaries of visitors with known behaviour.

use bywash_advise::{Advice, Around, Client, End, Request, Role, Settings, Summary, file};
use bywash_units::{Time, TimeSpan};

const START: u64 = 1_700_000_000;

struct Line<'a> {
    at: f64,
    what: &'a str,
    client: u64,
    end: End,
    service: Option<f64>,
}

fn add(summary: &mut Summary, line: &Line<'_>) {
    let (method, target) = line.what.split_once(' ').unwrap_or(("GET", line.what));
    summary.add(&Request {
        began: Time::ZERO + TimeSpan::from_secs(START) + TimeSpan::from_secs_f64(line.at),
        method,
        target,
        host: None,
        client: Client::Known { number: line.client, address: line.client },
        agent: None,
        end: line.end,
        waited: None,
        service: line.service.map(TimeSpan::from_secs_f64),
    });
}

const OK: End = End::Answered(200);

/// Returns a summary of visitors that arrive one second apart. Each looks at three pages, ten
/// seconds apart. Every fourth visitor continues and buys, and every page has a picture.
fn shop(visitors: u64) -> Summary {
    let mut lines = Vec::new();
    for client in 0..visitors {
        let came = client as f64;
        let item = format!("GET /item/{}", 1000 + client % 300);
        let mut requests = vec!["GET /".to_owned(), "GET /search?q=lamp".to_owned(), item];
        if client % 4 == 0 {
            requests.extend(
                ["POST /cart/add", "POST /checkout/payment", "POST /checkout/confirm"]
                    .map(str::to_owned),
            );
        }
        for (step, what) in requests.into_iter().enumerate() {
            let at = came + 10.0 * step as f64;
            lines.push((at, what, client, 0.2));
            lines.push((at + 0.5, format!("GET /static/{step}.css"), client, 0.001));
        }
    }
    lines.sort_by(|a, b| (a.0 + a.3).total_cmp(&(b.0 + b.3)));
    let mut summary = Summary::new(Settings::default());
    for (at, what, client, service) in &lines {
        let line = Line { at: *at, what, client: *client, end: OK, service: Some(*service) };
        add(&mut summary, &line);
    }
    summary
}

fn worth(advice: &Advice, role: Role) -> f64 {
    let class = advice.classes.iter().find(|class| class.role == role);
    class.and_then(|class| class.worth).unwrap_or(f64::NAN)
}

#[test]
fn a_shop_is_understood() {
    let advice = shop(4000).advice();
    assert_eq!(advice.order.as_deref(), Some("POST /checkout/confirm"));
    assert_eq!((advice.orders, advice.clients.sessions), (1000, 4000));
    for (role, expected) in [
        (Role::Home, 0.25),
        (Role::Search, 0.25),
        (Role::Item, 0.25),
        (Role::Cart, 1.0),
        (Role::Order, 1.0),
    ] {
        let worth = worth(&advice, role);
        assert!((worth - expected).abs() < 0.01, "{role:?}: {worth}");
    }
    let order = advice.classes.iter().find(|class| class.role == Role::Order).unwrap();
    assert!(order.transacts && order.requires == [Role::Checkout], "{order:?}");
    let pages = advice.clients.pages.unwrap();
    assert!((pages.mean - 3.75).abs() < 0.05, "{pages:?}");
    let think = advice.clients.think.unwrap();
    assert!(
        (think.p50 - 9.5).abs() < 0.1,
        "from the end of the picture to the next page: {think:?}"
    );
    // One visitor arrives per second and requests 3.75 pages of 0.2 s.
    let busy = advice.busy.unwrap();
    assert!((busy.fullest.at_once.unwrap() - 0.75).abs() < 0.05, "{busy:?}");
}

#[test]
fn the_model_walks_as_the_visitors_did() {
    let advice = shop(4000).advice();
    let workload = &advice.workload;
    assert!(workload.is_known());
    assert!((workload.service() - 0.2).abs() < 0.01, "{}", workload.service());
    let visitors = workload.visitors(7.5, TimeSpan::from_secs(2000), 1);
    assert!((3800..4200).contains(&visitors.len()), "{}", visitors.len());
    let steps: usize = visitors.iter().map(|(_, steps)| steps.len()).sum();
    assert!((steps as f64 / visitors.len() as f64 - 3.75).abs() < 0.1);
    let orders = visitors.iter().flat_map(|(_, steps)| steps).filter(|step| step.order).count();
    assert!((orders as f64 / visitors.len() as f64 - 0.25).abs() < 0.03, "{orders}");
    assert!(visitors.iter().all(|(_, steps)| steps[0].role == Role::Home));
    assert!(visitors.is_sorted_by_key(|(came, _)| *came));
    let last = visitors[visitors.len() - 1].0.as_secs_f64();
    assert!((1990.0..2000.0).contains(&last), "{last}");
    assert_eq!(visitors, workload.visitors(7.5, TimeSpan::from_secs(2000), 1));
}

#[test]
fn a_log_that_says_little_says_so() {
    let mut summary = Summary::new(Settings::default());
    for second in 0..100 {
        let line =
            Line { at: f64::from(second), what: "GET /a", client: 7, end: OK, service: None };
        add(&mut summary, &line);
    }
    let advice = summary.advice();
    let all = advice.notes.join("\n");
    for word in ["no durations", "no client that left", "No order was found"] {
        assert!(all.contains(word), "{word}: {all}");
    }
    assert!(!advice.workload.is_known());
    let text = file(
        &advice,
        &Around { log: "x\ny", server: "http://127.0.0.1:1", nginx_saw_departures: false },
    );
    assert!(text.contains("from x\\ny:") && !text.contains("\nutility"), "{text}");
}

#[test]
fn of_nothing_nothing_follows() {
    let advice = Summary::new(Settings::default()).advice();
    assert!(advice.busy.is_none() && advice.classes.is_empty() && advice.pages.is_empty());
}

#[test]
fn a_million_pages_are_few_templates_and_take_no_more_memory() {
    let mut summary = Summary::new(Settings::default());
    for number in 0..200_000_u64 {
        let word = |n: u64| {
            (0..6).map(|at| char::from(b'a' + (n >> (4 * at) & 15) as u8)).collect::<String>()
        };
        let what = format!("GET /{}/{}?{}=1", word(number), word(number * 7919), word(number * 31));
        let line = Line {
            at: number as f64 / 1e3,
            what: &what,
            client: number,
            end: OK,
            service: Some(0.01),
        };
        add(&mut summary, &line);
    }
    let advice = summary.advice();
    assert!(advice.pages.len() <= 257, "{}", advice.pages.len());
    assert_eq!(advice.pages.iter().map(|page| page.requests).sum::<u64>(), 200_000);
    assert_eq!(advice.clients.evicted, 100_000);
    assert!(advice.notes.iter().any(|note| note.contains("ended early")));
}

#[test]
fn a_clock_that_jumps_ends_no_sessions_and_makes_no_peak() {
    let mut summary = Summary::new(Settings::default());
    for second in 0..600_u32 {
        let wrong = if second % 100 == 50 { 9e8 } else { 0.0 };
        let at = f64::from(second) + wrong;
        add(&mut summary, &Line { at, what: "GET /a", client: 7, end: OK, service: Some(0.1) });
    }
    let advice = summary.advice();
    assert_eq!((advice.clients.sessions, advice.counts.strays), (1, 6));
    assert!((advice.counts.lasted - 599.1).abs() < 0.01);
    assert!(
        advice.notes.iter().any(|note| note.contains("out of order in time")),
        "{:?}",
        advice.notes
    );
}

#[test]
fn one_wrong_time_in_front_moves_nothing() {
    let of = |wrong: &[f64]| {
        let mut summary = Summary::new(Settings::default());
        let right = (0..600).map(|second| 1e9 + f64::from(second));
        for at in wrong.iter().copied().chain(right) {
            add(&mut summary, &Line { at, what: "GET /a", client: 7, end: OK, service: Some(0.1) });
        }
        summary.advice()
    };
    for wrong in [&[2e9][..], &[0.0], &[2e9, 0.0, 3e9], &[2e9; 7]] {
        let advice = of(wrong);
        assert_eq!(advice.counts.strays, wrong.len() as u64, "{wrong:?}");
        assert_eq!(
            (advice.counts.from, advice.clients.sessions),
            (START + 1_000_000_000, 1),
            "{wrong:?}"
        );
        assert!((advice.counts.lasted - 599.1).abs() < 0.01, "{wrong:?}");
    }
    assert_eq!(of(&[]).counts.strays, 0);
}

#[test]
fn a_patience_that_is_clamped_says_so() {
    for (waited, written, is_clamped) in
        [(0.2, "\"1000ms\"", true), (900.0, "\"600000ms\"", true), (5.0, "\"5", false)]
    {
        let mut summary = Summary::new(Settings::default());
        for client in 0..100_u32 {
            let at = f64::from(client);
            let line = Line {
                at,
                what: "GET /a",
                client: u64::from(client),
                end: End::Left,
                service: Some(waited),
            };
            add(&mut summary, &line);
        }
        let advice = summary.advice();
        let text = file(
            &advice,
            &Around { log: "x", server: "http://127.0.0.1:1", nginx_saw_departures: false },
        );
        assert!(text.contains(&format!("patience = {written}")), "{text}");
        assert_eq!(text.contains("The scheduler takes a patience"), is_clamped, "{text}");
        let is_noted = advice.notes.iter().any(|note| note.contains("was clamped"));
        assert_eq!(is_noted, is_clamped, "{:?}", advice.notes);
    }
}

#[test]
fn the_model_asks_for_as_much_as_the_log_also_where_visitors_left() {
    // Two thirds of the visitors that look at three pages leave at one of them.
    let mut summary = Summary::new(Settings::default());
    for client in 0..3000_u32 {
        for step in 0..3_u32 {
            let leaves = client % 3 == step && step < 2;
            let line = Line {
                at: f64::from(client) + 0.2 * f64::from(step),
                what: ["GET /", "GET /search?q=lamp", "GET /item/7"][step as usize],
                client: u64::from(client),
                end: if leaves { End::Left } else { OK },
                service: Some(0.1),
            };
            add(&mut summary, &line);
            if leaves {
                break;
            }
        }
    }
    let workload = summary.advice().workload;
    for (pages, lasts, expected) in [(20.0, 1000, 20_000), (0.5, 200, 100), (3.0, 1, 3)] {
        let visitors = workload.visitors(pages, TimeSpan::from_secs(lasts), 1);
        let steps: usize = visitors.iter().map(|(_, steps)| steps.len()).sum();
        assert_eq!(steps, expected, "to the page");
    }
}

#[test]
fn a_rare_order_of_an_application_that_a_parameter_routes_is_found() {
    // One visitor in fifty buys. Forty other pages have the same path and the same parameter.
    let mut summary = Summary::new(Settings::default());
    let letter = |n: u64| char::from(b'a' + (n % 8) as u8);
    for client in 0..2000_u64 {
        let mut requests = vec![
            "GET /index.php?route=common/home".to_owned(),
            format!("GET /index.php?route=product/{}{}", letter(client), letter(client / 8 % 5)),
        ];
        if client % 50 == 0 {
            requests.push("GET /index.php?route=checkout/cart".to_owned());
            requests.push("GET /index.php?route=checkout/success".to_owned());
        }
        for (step, what) in (0_u32..).zip(&requests) {
            let at = client as f64 + f64::from(step) / 10.0;
            add(&mut summary, &Line { at, what, client, end: OK, service: Some(0.05) });
        }
    }
    let advice = summary.advice();
    assert_eq!(advice.order.as_deref(), Some("/index.php?route=checkout/success"));
    let classes = &advice.classes;
    let order = classes.iter().find(|class| class.role == Role::Order).unwrap();
    assert_eq!(order.patterns, ["GET /index.php?route=checkout/success&..."]);
}

#[test]
fn an_application_of_php_or_behind_nginx_is_said_not_to_notice_departures() {
    let of = |pages: &[(&str, u16)], nginx_saw_departures| {
        let mut summary = Summary::new(Settings::default());
        for second in 0..300_u32 {
            let (what, status) = pages[second as usize % pages.len()];
            let end = End::Answered(status);
            let at = f64::from(second);
            add(&mut summary, &Line { at, what, client: 7, end, service: Some(0.1) });
        }
        file(
            &summary.advice(),
            &Around { log: "x", server: "http://127.0.0.1:1", nginx_saw_departures },
        )
    };
    let (key, comment) = ("\ndepartures = \"unnoticed\"\n", "\n# departures = \"unnoticed\"\n");
    let php = of(&[("GET /a.php?b=1", 200), ("GET /index.php/c", 200), ("GET /", 200)], false);
    assert!(php.contains(key) && php.contains("# 67 % of the pages are of PHP"), "{php}");
    // Vulnerability scanners request pages of PHP at any site. A picture is not a page.
    for pages in [
        &[("GET /", 200), ("GET /wp-login.php", 404), ("GET /xmlrpc.php", 404)][..],
        &[("GET /a", 200), ("GET /a.png", 200), ("GET /b.php", 200)],
    ] {
        let other = of(pages, false);
        assert!(!other.contains(key) && other.contains(comment), "{other}");
        let other = of(pages, true);
        assert!(other.contains(key) && other.contains("nginx wrote status 499"), "{other}");
    }
}

#[test]
fn several_hosts_are_named_in_the_notes_and_in_the_file() {
    let of = |hosts: &[Option<&str>]| {
        let mut summary = Summary::new(Settings::default());
        for second in 0..300_u32 {
            summary.add(&Request {
                began: Time::ZERO + TimeSpan::from_secs(START) + TimeSpan::from_secs(second.into()),
                method: "GET",
                target: "/",
                host: hosts[second as usize % hosts.len()],
                client: Client::Known { number: 7, address: 7 },
                agent: None,
                end: OK,
                waited: None,
                service: Some(TimeSpan::from_millis(100)),
            });
        }
        let advice = summary.advice();
        let text = file(
            &advice,
            &Around { log: "x", server: "http://127.0.0.1:1", nginx_saw_departures: false },
        );
        (advice.notes.join("\n"), text)
    };
    let (notes, text) = of(&[Some("a.example"), Some("b.example"), Some("www.A.example:443")]);
    let named = "several hosts: a.example (67 % of the pages, 67 % of their time), b.example (33 %";
    assert!(notes.contains(named), "{notes}");
    assert!(text.lines().any(|line| line.starts_with("# ") && line.contains(named)), "{text}");
    for hosts in [&[None::<&str>][..], &[Some("a.example"), Some("www.a.example"), None]] {
        let (notes, text) = of(hosts);
        assert!(!notes.contains("several hosts") && !text.contains("several hosts"), "{notes}");
    }
}

#[test]
fn an_order_that_a_parameter_names_has_a_class_of_its_own() {
    for (named, target, pattern) in [
        (
            "/?order-received&key&...",
            "/?page_id=7&order-received=1&key=a",
            "GET /?key&order-received&...",
        ),
        ("/?step=done&...", "/?step=done&id=1", "GET /?step=done&..."),
    ] {
        let order = Some(named.parse().unwrap());
        let mut summary = Summary::new(Settings { order, ..Settings::default() });
        for client in 0..100_u32 {
            let requests = ["/", target].into_iter().take(if client % 5 == 0 { 2 } else { 1 });
            for (step, what) in (0_u32..).zip(requests) {
                let at = f64::from(10 * client + step);
                let client = u64::from(client);
                add(&mut summary, &Line { at, what, client, end: OK, service: None });
            }
        }
        let advice = summary.advice();
        assert_eq!(advice.orders, 20, "{named}");
        let class = |role: Role| advice.classes.iter().find(|class| class.role == role).unwrap();
        assert_eq!(class(Role::Order).patterns, [pattern]);
        assert_eq!((class(Role::Order).requests, class(Role::Home).requests), (20, 100));
        assert!((worth(&advice, Role::Home) - 0.2).abs() < 0.01, "{named}");
        assert!(!advice.notes.join("\n").contains("no class of its own"), "{:?}", advice.notes);
    }
}

#[test]
fn an_order_that_is_redirected_is_told_from_a_form_that_is_shown_again() {
    // All 60 visitors send the form, and `redirected` of them get status 303.
    let of = |redirected: u32| {
        let mut summary = Summary::new(Settings::default());
        for client in 0..60_u32 {
            let status = if client < redirected { 303 } else { 200 };
            let requests = [("GET /", 200), ("POST /checkout/confirm", status)];
            for (step, (what, status)) in (0_u32..).zip(requests) {
                let at = f64::from(10 * client + step);
                let (client, end) = (u64::from(client), End::Answered(status));
                add(&mut summary, &Line { at, what, client, end, service: None });
            }
        }
        let advice = summary.advice();
        let text = file(
            &advice,
            &Around { log: "x", server: "http://127.0.0.1:1", nginx_saw_departures: false },
        );
        (advice.orders, worth(&advice, Role::Home), text)
    };
    let key = "\nsuccess = [\"status 302\", \"status 303\"]\n";
    let (orders, home, text) = of(40);
    assert_eq!(orders, 40, "a form with a mistake is not an order");
    assert!((home - 2.0 / 3.0).abs() < 0.01, "{home}");
    assert!(
        text.contains(key) && text.contains("# In the log 40 answers are 302 or 303"),
        "{text}"
    );
    // Two visitors that send the form were redirected to the login.
    for redirected in [0, 2] {
        let (orders, _, text) = of(redirected);
        assert_eq!(orders, 60);
        assert!(!text.contains("\nsuccess = "), "{text}");
        assert!(text.contains("# success = [\"json result: success\"]\n"), "{text}");
        assert!(text.contains("# success = [\"header x-order-id\"]\n"), "{text}");
    }
    let (_, _, text) = of(60);
    assert!(!text.contains("success = "), "{text}");
}

#[test]
fn robots_count_for_the_load_and_not_as_visitors() {
    let of = |robots: u64| {
        let mut summary = Summary::new(Settings::default());
        for second in 0..200_u64 {
            let request = |client: Client, target: &'static str| Request {
                began: Time::ZERO + TimeSpan::from_secs(START + second),
                method: "GET",
                target,
                host: None,
                client,
                agent: None,
                end: OK,
                waited: None,
                service: Some(TimeSpan::from_millis(100)),
            };
            // Every fifth visitor buys.
            let visitor = Client::Known { number: second, address: second };
            let thanks = (second % 5 == 0).then_some("/checkout/thanks");
            for target in ["/"].into_iter().chain(thanks) {
                summary.add(&request(visitor, target));
            }
            for number in 0..robots {
                let robot = Client::Robot { number: 1000 + number, address: 1000 + number };
                summary.add(&request(robot, "/"));
                summary.add(&request(robot, "/checkout/thanks"));
            }
        }
        summary.advice()
    };
    let (none, many) = (of(0), of(3));
    assert_eq!((none.counts.robots, many.counts.robots), (0, 1200));
    assert_eq!(many.counts.requests, none.counts.requests + 1200);
    for advice in [&none, &many] {
        assert_eq!(advice.order.as_deref(), Some("/checkout/thanks"));
        assert_eq!((advice.orders, advice.clients.sessions), (40, 200));
        for (role, expected) in [(Role::Home, 0.2), (Role::Order, 1.0)] {
            let worth = worth(advice, role);
            assert!((worth - expected).abs() < 0.01, "{role:?}: {worth}");
        }
    }
    let busy = |advice: &Advice| advice.busy.unwrap().most.pages;
    assert!(busy(&many) > 4.0 * busy(&none), "{} and {}", busy(&many), busy(&none));
}
