//! Tests of `bywash advise`, which derives a configuration from logs.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::process::{Command, Stdio};

use bywash_terminal::text::is_unsafe;
use serde_json::Value;

use crate::binary::{Outcome, bywash};
use crate::folder::Folder;

const EVENING: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../lab/logs/evening.log");

/// Runs `bywash advise` on a log of these bytes, and returns its findings. Asserts that the
/// proposed configuration is valid, as it must be for any log.
pub(crate) fn advise(log: impl AsRef<[u8]>, args: &[&str]) -> Value {
    let folder = Folder::new();
    let log = folder.file("access.log", log);
    let out = folder.path("bywash.toml");
    let outcome = bywash(&[&["advise", &log, "--json", "--out", &out], args].concat());
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let found = outcome.json();
    let toml = fs::read_to_string(&out).unwrap();
    assert_eq!(found["toml"], toml);
    let check = bywash(&["check", &out]);
    assert_eq!(check.code, Some(0), "{check:?}\n{toml}");
    found
}

fn refused(log: impl AsRef<[u8]>) -> Outcome {
    let folder = Folder::new();
    let log = folder.file("access.log", log);
    let outcome = bywash(&["advise", &log]);
    assert_eq!((outcome.code, outcome.out.as_str()), (Some(78), ""), "{outcome:?}");
    outcome
}

pub(crate) fn notes(found: &Value) -> String {
    found["notes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|note| note.as_str().unwrap())
        .collect::<Vec<_>>()
        .join("\n")
}

fn class<'a>(found: &'a Value, name: &str) -> &'a Value {
    let classes = found["classes"].as_array().unwrap();
    classes.iter().find(|class| class["role"] == name).unwrap_or(&Value::Null)
}

/// Returns a line of the combined log format for the request `what`. The line's time is `second`
/// seconds after midnight, and the line ends with `tail`.
pub(crate) fn line(second: u64, client: u64, what: &str, status: u16, tail: &str) -> String {
    format!(
        "10.0.{}.{} - - [14/Nov/2023:{:02}:{:02}:{:02} +0000] \"{what} HTTP/1.1\" {status} 512 \"-\" \"x\"{tail}\n",
        client / 250,
        client % 250,
        second / 3600,
        second / 60 % 60,
        second % 60
    )
}

/// Returns a log of visitors who look at a page and an item. Every fifth visitor then buys.
pub(crate) fn shop(tail: &str) -> String {
    let mut lines = Vec::new();
    for client in 0..400 {
        let mut requests = vec!["GET /".to_owned(), format!("GET /item/{}", 5000 + client)];
        if client % 5 == 0 {
            requests.extend(["POST /cart/add".to_owned(), "POST /order/confirm".to_owned()]);
        }
        for (step, what) in (0..).zip(&requests) {
            lines.push((client * 10 + step * 7, client, what.clone()));
        }
    }
    lines.sort();
    lines.iter().map(|(second, client, what)| line(*second, *client, what, 200, tail)).collect()
}

#[test]
fn the_evening_is_understood_and_foretold() {
    let folder = Folder::new();
    let out = folder.path("bywash.toml");
    let outcome = bywash(&["advise", EVENING, "--json", "--out", &out]);
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    assert_eq!(bywash(&["check", &out]).code, Some(0));
    let found = outcome.json();
    assert_eq!(found["order"], "POST /confirm");
    assert_eq!(found["counts"]["requests"], fs::read_to_string(EVENING).unwrap().lines().count());
    assert_eq!(class(&found, "order")["patterns"][0], "POST /confirm");
    assert!(class(&found, "checkout")["transacts"] == true, "{}", class(&found, "checkout"));
    let runs = found["forecast"]["runs"].as_array().unwrap();
    let with: Vec<&str> = runs.iter().map(|run| run["with"].as_str().unwrap()).collect();
    assert_eq!(with, ["plain queue", "bywash", "plain queue", "bywash", "plain queue", "bywash"]);
    assert!(runs.iter().all(|run| run["answered"].as_f64().unwrap() <= 1.0), "{runs:?}");
    assert_eq!(bywash(&["advise", EVENING, "--json"]).json()["forecast"], found["forecast"]);
    let text = bywash(&["advise", EVENING]);
    assert_eq!(text.code, Some(0), "{text:?}");
    for part in [
        "Proposed classes",
        "Transitions between templates",
        "Forecast by the simulator",
        "--out bywash.toml",
    ] {
        assert!(text.out.contains(part), "{part}: {}", text.out);
    }
    assert_eq!(text.err, "", "no bar where no terminal is");
}

#[test]
fn utilities_are_what_visitors_did() {
    let found = advise(shop(" rt=0.100 urt=0.100"), &[]);
    assert_eq!((&found["order"], &found["orders"]), (&"POST /order/confirm".into(), &80.into()));
    for (name, worth) in [("home", 0.2), ("item", 0.2), ("cart", 1.0), ("order", 1.0)] {
        let is = class(&found, name)["worth"].as_f64().unwrap();
        assert!((is - worth).abs() < 0.02, "{name}: {is}");
    }
    let toml = found["toml"].as_str().unwrap();
    assert!(
        toml.contains("[class.order]\nmatch = [\"POST /order/confirm\"]\ntier = \"transaction\""),
        "{toml}"
    );
    assert!(toml.contains("requires = [\"cart\"]"), "{toml}");
    assert!(found["forecast"]["runs"][0]["goodput"].as_f64().unwrap() > 0.0);
}

#[test]
fn requests_of_robots_are_counted_and_in_no_session() {
    let robot = "\"Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)\"";
    let shop = shop(" rt=0.100 urt=0.100");
    let both = |line: &str| format!("{line}\n{}\n", line.replace("\"x\"", robot));
    let log: String = shop.lines().map(both).collect();
    let found = advise(&log, &[]);
    assert_eq!(
        (&found["counts"]["requests"], &found["counts"]["robots"]),
        (&1920.into(), &960.into())
    );
    assert_eq!((&found["clients"]["sessions"], &found["orders"]), (&400.into(), &80.into()));
    let folder = Folder::new();
    let path = folder.file("access.log", &log);
    let text = bywash(&["advise", &path]);
    assert!(text.out.contains("of robots 960 (50 %)"), "{}", text.out);
}

#[test]
fn workers_and_cores_reach_the_file_and_the_unit_is_named() {
    let log = shop(" rt=0.100 urt=0.100");
    let of = |args: &[&str]| {
        let found = advise(&log, args);
        let toml = found["toml"].as_str().unwrap().to_owned();
        (found["limit"]["by"].as_str().unwrap().to_owned(), toml, found)
    };
    let (by, toml, found) = of(&["--workers", "3"]);
    assert!(by == "workers" && toml.contains("\nlimit = 3\n"), "{toml}");
    assert!(toml.contains("# Cores: not given (--cores). Workers: 3."), "{toml}");
    assert_eq!(found["forecast"]["places"], 3);
    let unit = found["log"]["files"][0]["durations"].as_str().unwrap();
    assert!(unit.starts_with("seconds after rt="), "{unit}");
    let (by, toml, _) = of(&["--workers", "30", "--cores", "4"]);
    assert!(by == "cores" && toml.contains("\nlimit = 8\n"), "{toml}");
    let (by, toml, found) = of(&[]);
    assert!(toml.contains("\nlimit = 16\n\n[concurrency]\n"), "{toml}");
    assert!(by != "knee" && toml.contains("policy = \"slope\""), "{toml}");
    assert_eq!(found["forecast"]["places"], 16);
    let folder = Folder::new();
    let path = folder.file("access.log", &log);
    let text = bywash(&["advise", &path, "--cores", "local"]);
    assert!(text.out.contains("durations are read as: usual: seconds"), "{}", text.out);
    assert!(text.out.contains("Decided by cores"), "{}", text.out);
    assert_eq!(bywash(&["advise", &path, "--cores", "some"]).code, Some(2));
}

#[test]
fn the_operator_knows_the_order_better() {
    let found = advise(shop(""), &["--order", "POST /cart/add"]);
    assert_eq!(
        (&found["order"], &found["order_was_told"]),
        (&"POST /cart/add".into(), &true.into())
    );
    assert_eq!(class(&found, "order")["patterns"][0], "POST /cart/add");
    let found = advise(shop(""), &["--order", "POST /nowhere"]);
    assert!(
        found["order"].is_null() && notes(&found).contains("No request matches"),
        "{}",
        notes(&found)
    );
}

#[test]
fn a_log_without_durations_says_what_is_missing() {
    let found = advise(shop(""), &[]);
    assert!(found["forecast"].is_null());
    let notes = notes(&found);
    assert!(notes.contains("%D") && notes.contains("no client that left"), "{notes}");
    assert!(found["toml"].as_str().unwrap().contains("limit = 16"));
}

#[test]
fn patience_is_estimated_where_the_log_tells_it() {
    let mut log = String::new();
    for second in 0..600 {
        let status = if second % 3 == 0 { 499 } else { 200 };
        log += &line(second, second, "GET /a", status, " rt=2.000 urt=2.000");
    }
    let found = advise(log, &[]);
    assert_eq!(
        (&found["patience"]["left"], &found["patience"]["stayed"]),
        (&200.into(), &400.into())
    );
    let mean = found["patience"]["mean"].as_f64().unwrap();
    assert!((mean - 6.0).abs() < 0.1, "two seconds each, of whom a third leaves: {mean}");
    let toml = found["toml"].as_str().unwrap();
    assert!(toml.contains("\npatience = "), "{toml}");
    assert!(toml.contains("\ndepartures = \"unnoticed\"\n"), "{toml}");
}

#[test]
fn every_format_becomes_a_configuration() {
    let times = |of: &dyn Fn(u64) -> String| (0..60).map(of).collect::<String>();
    let haproxy = times(&|second| {
        format!(
            "Nov 14 22:13:{second:02} web haproxy[1]: 10.0.0.{second}:4711 [14/Nov/2023:22:13:{second:02}.000] \
             http-in app/s1 0/3/0/40/43 200 512 - - ---- 1/1/0/0/0 0/0 \"GET /item/{second} HTTP/1.1\"\n"
        )
    });
    let nginx = times(&|second| {
        format!(
            "{{\"msec\":\"17000000{second:02}.5\",\"request\":\"POST /buy HTTP/1.1\",\"status\":200,\
             \"request_time\":0.3,\"remote_addr\":\"::1\"}}\n"
        )
    });
    let w3c = "#Software: Microsoft Internet Information Services 10.0\n#Fields: date time c-ip cs-method cs-uri-stem cs-uri-query sc-status time-taken\n"
        .to_owned()
        + &times(&|second| {
            format!("2023-11-14 22:13:{second:02} 10.0.0.1 GET /a/{second} - 200 40\n")
        });
    for (name, log) in [("haproxy", haproxy), ("nginx", nginx), ("w3c", w3c)] {
        let found = advise(log, &[]);
        assert_eq!(
            (&found["log"]["files"][0]["format"], &found["counts"]["timed"]),
            (&name.into(), &60.into())
        );
    }
    let apache = times(&|second| line(second, 1, "GET /a", 200, " 40000 X"));
    let format = "%h %l %u %t \"%r\" %>s %b \"%{Referer}i\" \"%{User-Agent}i\" %D %X";
    let found = advise(apache, &["--format", format]);
    assert_eq!((&found["counts"]["left"], &found["counts"]["timed"]), (&60.into(), &60.into()));
    // Apache httpd does not write status 499.
    assert!(!found["toml"].as_str().unwrap().contains("\ndepartures"));
}

#[test]
fn a_log_of_several_hosts_says_so_whichever_server_wrote_it() {
    let log = |line: &dyn Fn(u64, &str) -> String| {
        let host = |second: u64| ["a.example", "b.example"][second as usize % 2];
        (0..60).map(|second| line(second, host(second))).collect::<String>()
    };
    let caddy = log(&|second, host| {
        format!(
            "{{\"logger\":\"http.log.access\",\"ts\":17000000{second:02}.5,\"request\":{{\"method\":\"GET\",\
             \"uri\":\"/\",\"host\":\"{host}\"}},\"duration\":0.1,\"status\":200}}\n"
        )
    });
    let envoy = log(&|second, host| {
        format!(
            "[2023-11-14T22:13:{second:02}.000Z] \"GET / HTTP/2\" 200 - 0 9 100 100 \"192.0.2.7\" \"x\" \
             \"00\" \"{host}\" \"tcp://10.0.2.1:80\"\n"
        )
    });
    let nginx = log(&|second, host| {
        format!(
            "{{\"msec\":\"17000000{second:02}.5\",\"request\":\"GET / HTTP/1.1\",\"status\":200,\
             \"request_time\":0.1,\"host\":\"{host}\"}}\n"
        )
    });
    for (name, log) in [("caddy", caddy), ("envoy", envoy), ("nginx", nginx)] {
        let found = advise(log, &[]);
        assert_eq!(found["log"]["files"][0]["format"], name);
        let named = "several hosts: a.example (50 % of the pages, 50 % of their time), b.example";
        assert!(notes(&found).contains(named), "{name}: {}", notes(&found));
        assert!(found["toml"].as_str().unwrap().contains(named), "{name}: {}", found["toml"]);
    }
}

#[test]
fn whatever_strangers_write_the_configuration_is_one_and_terminals_are_safe() {
    let words = [
        "/a\\\"]\\n[class.x]",
        "/\\x1b[2J",
        "/'''",
        "/\"",
        "/é/ü",
        "/%0a[upstream]",
        "/../../etc",
        "//",
        "/#",
        "/;",
        "/\\\\",
        "/*",
        "/**",
        "/*/x",
        "/a?b=\\\"&c=]",
        "/${x}",
        "/[class.order]",
        "*",
        "http://h/x",
        "/\u{202e}x",
        "/order/confirm\u{7f}",
    ];
    let mut log = String::new();
    for second in 0..3000_u64 {
        let word = words[second as usize % words.len()];
        let method = ["GET", "POST", "G3T", "get", "OTHER", "PROPFIND"][second as usize % 6];
        log += &line(second, second, &format!("{method} {word}"), 200, " rt=0.010 urt=0.010");
        log += &line(
            second,
            second,
            &format!("GET /{word}{}", "x".repeat(second as usize % 300)),
            200,
            "",
        );
    }
    let found = advise(&log, &[]);
    assert!(found["counts"]["requests"].as_u64().unwrap() > 1000);
    let folder = Folder::new();
    let log = folder.file("access\n[class.y].log", log);
    let outcome = bywash(&["advise", &log, "--out", &folder.path("out.toml")]);
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    assert!(!outcome.out.contains(|c: char| c != '\n' && is_unsafe(c)), "{}", outcome.out);
    assert_eq!(bywash(&["check", &folder.path("out.toml")]).code, Some(0));
}

#[test]
fn a_file_that_is_there_stays_unless_forced() {
    let folder = Folder::new();
    let out = folder.file("bywash.toml", "mine");
    let outcome = bywash(&["advise", EVENING, "--out", &out]);
    assert_eq!(outcome.code, Some(2), "{outcome:?}");
    assert!(outcome.err.contains("--force"), "{}", outcome.err);
    assert_eq!(fs::read_to_string(&out).unwrap(), "mine");
    assert_eq!(bywash(&["advise", EVENING, "--out", &out, "--force"]).code, Some(0));
    assert!(fs::read_to_string(&out).unwrap().contains("[class.order]"));
    for bad in [folder.path(""), folder.path("no/where.toml")] {
        assert_eq!(bywash(&["advise", EVENING, "--out", &bad]).code, Some(2), "{bad}");
    }
}

#[test]
fn what_is_no_log_is_an_error_that_says_why() {
    assert!(refused("").err.contains("the logs have no lines"));
    assert!(refused("hello\nworld\n").err.contains("none of the 2 lines is a request"));
    let noise: Vec<u8> =
        (0..100_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let outcome = refused(noise);
    assert!(outcome.err.lines().all(|line| line.len() < 400), "{}", outcome.err);
    refused(b"\x1f\x8b\x08\x00");
    let folder = Folder::new();
    for path in [folder.path(""), folder.path("nowhere.log")] {
        let outcome = bywash(&["advise", &path]);
        assert_eq!(outcome.code, Some(78), "{outcome:?}");
        assert!(outcome.err.contains("cannot read"), "{}", outcome.err);
    }
}

pub(crate) fn packed(text: &str) -> Vec<u8> {
    let mut gzip =
        Command::new("gzip").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut into, text) = (gzip.stdin.take().unwrap(), text.to_owned());
    let writer = std::thread::spawn(move || into.write_all(text.as_bytes()));
    let packed = gzip.wait_with_output().unwrap().stdout;
    writer.join().unwrap().unwrap();
    packed
}

#[test]
fn of_a_cut_or_mixed_log_the_rest_is_read_and_that_is_said() {
    let whole = packed(&shop(" rt=0.100 urt=0.100"));
    assert_eq!(advise(&whole, &[])["counts"]["requests"], 960);
    let found = advise(&whole[..whole.len() * 2 / 3], &[]);
    let requests = found["counts"]["requests"].as_u64().unwrap();
    assert!((1..960).contains(&requests), "{requests}");
    assert!(notes(&found).contains("cannot be read to its end"), "{}", notes(&found));
    let mixed =
        shop("") + "{\"msec\":\"1700000000.5\",\"request\":\"GET / HTTP/1.1\"}\n\u{1b}[2J\n";
    let found = advise(mixed, &[]);
    assert_eq!((&found["counts"]["requests"], &found["log"]["flawed"]), (&960.into(), &2.into()));
}

#[test]
fn a_hundred_thousand_urls_are_few_templates() {
    let mut log = String::new();
    for number in 0..100_000_u64 {
        let _ = write!(
            log,
            "{}",
            line(number / 10, number, &format!("GET /x{number}y/z?k{number}={number}"), 200, "")
        );
    }
    let found = advise(log, &[]);
    assert!(found["pages"].as_array().unwrap().len() <= 257);
    assert!(found["toml"].as_str().unwrap().len() < 20_000);
}

#[test]
fn what_is_there_stays_until_the_new_is_whole_and_a_log_is_never_written_over() {
    let folder = Folder::new();
    let before = fs::read(EVENING).unwrap();
    let log = folder.file("evening.log", &before);
    let onto_itself = bywash(&["advise", &log, "--out", &log, "--force"]);
    assert_eq!(onto_itself.code, Some(2));
    assert!(onto_itself.err.contains("it is one of the files to read"), "{}", onto_itself.err);
    assert_eq!(fs::read(&log).unwrap(), before);
    let full = bywash(&["advise", &log, "--out", "/dev/full", "--force"]);
    assert_eq!(full.code, Some(1));
    assert!(full.err.contains("cannot write /dev/full"), "{}", full.err);
    assert!(full.out.contains("requests"), "the findings are printed nevertheless");
    let early = bywash(&["advise", &log, "--upstream", "localhost:3000"]);
    assert_eq!(early.code, Some(2), "{}", early.err);
}

#[test]
fn an_order_that_is_told_is_found_among_many_pages_that_are_asked_for_more() {
    let line = |second: usize, request: &str, took: &str| {
        let (minute, second) = (second / 60, second % 60);
        let at = format!("10/Oct/2026:13:{minute:02}:{second:02} +0000");
        format!(
            "10.0.0.1 - - [{at}] \"{request} HTTP/1.1\" 200 5 \"-\" \"-\" rt={took} urt={took}\n"
        )
    };
    let words = ["bread", "candle", "desk", "engine", "forest", "garden", "harbour", "island"];
    let word = |n: usize| words[n % words.len()];
    let mut log = String::new();
    for n in 0..20_000 {
        let page = format!("GET /{}/{}/{}", word(n), word(n / 8), word(n / 64));
        log += &line(n / 6, &page, "0.600");
        if n > 10_000 && n % 250 == 0 {
            log += &line(n / 6, "POST /checkout/confirm", "0.001");
        }
    }
    let found = advise(&log, &["--order", "POST /checkout/confirm"]);
    assert_eq!(found["order"], "POST /checkout/confirm", "{}", notes(&found));
    assert_eq!(found["orders"], 39);
}

#[test]
fn the_forecast_asks_for_as_much_as_the_log_where_clients_leave() {
    // Five visitors come each second and intend to see three pages of 0.1 s. A third of the
    // visitors leaves at the first page, and a third at the second.
    let mut lines = Vec::new();
    for client in 0..3000_u64 {
        for step in 0..=client % 3 {
            let status = if client % 3 == step && step < 2 { 499 } else { 200 };
            lines.push((client / 5 + step, client, status));
        }
    }
    lines.sort_unstable();
    let log: String = lines
        .iter()
        .map(|(second, client, status)| {
            line(*second, *client, "GET /a", *status, " rt=0.100 urt=0.100")
        })
        .collect();
    let found = advise(log, &["--workers", "4"]);
    let forecast = &found["forecast"];
    let pages = forecast["pages"].as_f64().unwrap();
    assert!((pages - 10.0).abs() < 0.1, "{pages}");
    let rho = forecast["runs"][0]["rho"].as_f64().unwrap();
    assert!(
        (rho / (pages * 0.1 / 4.0) - 1.0).abs() < 0.02,
        "{rho}: off by no more than one in fifty"
    );
}

#[test]
fn without_orders_pages_that_take_long_are_worth_less_than_others() {
    let mut lines = Vec::new();
    for client in 0..600_u64 {
        let second = client * 2;
        for (step, what) in
            [format!("GET /post/{}", 100 + client), "GET /".into()].into_iter().enumerate()
        {
            lines.push((second + step as u64, client, what, " rt=0.050 urt=0.050"));
        }
        if client % 6 == 0 {
            lines.push((
                second + 2,
                client,
                format!("GET /search?q=w{client}"),
                " rt=0.300 urt=0.300",
            ));
        }
    }
    lines.sort();
    let log: String = lines
        .iter()
        .map(|(second, client, what, tail)| line(*second, *client, what, 200, tail))
        .collect();
    let found = advise(log, &[]);
    let toml = found["toml"].as_str().unwrap();
    let search = toml.split("[class.search]").nth(1).expect("searches have a class");
    assert!(search.split("\n\n").next().unwrap().contains("utility = 0.5"), "{toml}");
    assert!(toml.contains("times as long as the average"), "{toml}");
    assert!(toml.contains("[class.other]\nutility = 1"), "{toml}");
    // With orders in the log, the worth of each class is measured. No browsing class is worth less
    // than `other`.
    let bought = advise(format!("{}{}", shop(" rt=0.050 urt=0.050"), strays()), &[]);
    let toml = bought["toml"].as_str().unwrap();
    let utility = |name: &str| {
        let class = toml.split(&format!("[class.{name}]")).nth(1);
        let class = class.unwrap_or_else(|| panic!("{name}: {toml}"));
        let utility = class.split("utility = ").nth(1).unwrap().lines().next().unwrap();
        utility.parse::<f64>().unwrap()
    };
    assert!(utility("other") <= utility("home"), "{toml}");
    assert!(utility("other") <= utility("item"), "{toml}");
    assert!(!toml.contains("times as long"), "{toml}");
}

/// Returns the lines of visitors' requests for a page whose words suggest no purpose.
fn strays() -> String {
    let tail = " rt=0.050 urt=0.050";
    (0..80).map(|client| line(4000 + client, client * 5, "OPTIONS /**", 200, tail)).collect()
}
