//! Tests of `bywash top`: its figures match the requests that were sent, on a screen and printed.

use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::binary::{bywash, command, wait};
use crate::elephants::Site;
use crate::folder::Folder;
use crate::gateway::{Gateway, get};
use crate::terminal::Terminal;
use crate::upstream::{Upstream, nobody};

const CLASSES: &str = "\
[class.confirm]
match = [\"GET /confirm\"]
tier = \"transaction\"
utility = 100

[class.search]
match = [\"GET /search\"]
tier = \"browsing\"
utility = 1
";

/// Starts a gateway and sends it three searches and one order.
fn asked() -> (Gateway, Upstream, Folder) {
    let (upstream, folder) = (Upstream::new(), Folder::new());
    let text = format!(
        "version = 1\nupstream.server = \"{}\"\nlog.access = \"off\"\n{CLASSES}",
        upstream.url()
    );
    let gateway = Gateway::start(&["--config", &folder.file("bywash.toml", text)]);
    for path in ["/search?q=1", "/confirm", "/search?q=2", "/search?q=3"] {
        assert!(get(&gateway.clients(), path).contains("200 OK"));
    }
    (gateway, upstream, folder)
}

fn class<'d>(document: &'d Value, name: &str) -> &'d Value {
    let classes = document["classes"].as_array().unwrap();
    classes.iter().find(|class| class["name"] == name).unwrap()
}

/// Returns the output of `bywash top --json` for the time after the second in which the last
/// request ended.
fn settled(gateway: &Gateway) -> Value {
    let begun = Instant::now();
    loop {
        let args = ["top", "--json", "-n", "1", "--window", "15m", "--admin", &gateway.operators()];
        let outcome = bywash(&args);
        assert_eq!((outcome.code, outcome.err.as_str()), (Some(0), ""), "{outcome:?}");
        assert_eq!(outcome.out.lines().count(), 1);
        let document = outcome.json();
        if class(&document, "search")["outcomes"]["served"] == 3 {
            return document;
        }
        assert!(begun.elapsed() < Duration::from_secs(30), "{document}");
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn figures_are_those_of_what_was_sent() {
    let (gateway, _upstream, _folder) = asked();
    let document = settled(&gateway);
    let seconds = document["seen_s"].as_f64().unwrap();
    let is = |value: &Value, wanted: f64| (value.as_f64().unwrap() - wanted).abs() < 1e-6;
    assert!(is(&document["ended_per_s"], 4.0 / seconds), "{document}");
    assert!(is(&document["transactions_per_min"], 60.0 / seconds), "{document}");
    let search = class(&document, "search");
    assert!(is(&search["ended_per_s"], 3.0 / seconds) && search["served_share"] == 1.0, "{search}");
    assert_eq!((&search["tier"], &search["mode"]), (&"browsing".into(), &"observe".into()));
    assert!(search["p99_ms"].as_f64().unwrap() > 0.0, "{search}");
    assert_eq!(class(&document, "other")["served_share"], Value::Null, "none came");
    assert_eq!(document["window_s"], 900);
}

#[test]
fn without_a_terminal_it_is_a_table_and_ends_when_nobody_reads() {
    let (gateway, _upstream, _folder) = asked();
    settled(&gateway);
    let admin = gateway.operators();
    let outcome = bywash(&["top", "-n", "2", "--interval", "100ms", "--admin", &admin]);
    assert_eq!((outcome.code, outcome.err.as_str()), (Some(0), ""));
    for words in ["OBSERVE", "transactions ", "CLASS", "ORPHANED", "search", "transaction"] {
        assert_eq!(outcome.out.matches(words).count() % 2, 0, "{words}: {}", outcome.out);
        assert!(outcome.out.contains(words), "{words}: {}", outcome.out);
    }
    let mut child = command(&["top", "--interval", "100ms", "--admin", &admin])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    assert_eq!(wait(&mut child, Duration::from_secs(30)), Some(0));
}

#[test]
fn where_nobody_answers_is_said_and_no_screen_is_drawn() {
    let gone = nobody().to_string();
    for more in [&[][..], &["--json"], &["-n", "1"]] {
        let outcome = bywash(&[&["top", "--admin", &gone], more].concat());
        assert_eq!((outcome.code, outcome.out.as_str()), (Some(69), ""));
        assert!(outcome.err.contains(&gone), "{}", outcome.err);
    }
    let terminal = Terminal::start(&["top", "--admin", &gone]).ends();
    assert_eq!(terminal.word_after("code "), "69");
    assert!(!terminal.output.contains("\x1b[?1049h"), "{:?}", terminal.output);
}

#[test]
fn a_screen_is_sorted_filtered_explains_and_leaves_the_terminal_as_it_was() {
    let (gateway, _upstream, _folder) = asked();
    settled(&gateway);
    let mut terminal =
        Terminal::start(&["top", "--admin", &gateway.operators(), "--window", "15m"]);
    terminal.shows("bywash 0.");
    terminal.shows("OBSERVE");
    let names = |lines: &[String]| -> Vec<String> {
        let of = |line: &String| {
            ["confirm", "search", "other"]
                .into_iter()
                .find(|name| line.get(1..).is_some_and(|rest| rest.starts_with(name)))
        };
        lines.iter().filter_map(of).map(str::to_owned).collect()
    };
    terminal.until("as in the file", |lines| names(lines) == ["confirm", "search", "other"]);
    terminal.types("sss");
    terminal.until("the most first", |lines| names(lines)[..2] == ["search", "confirm"]);
    terminal.shows("by IN/S, falling");
    terminal.types("/CONF\r");
    terminal.until("only that", |lines| names(lines) == ["confirm"]);
    terminal.types("\x1b");
    terminal.until("all again", |lines| names(lines) == ["confirm", "search", "other"]);
    terminal.types("3");
    terminal.shows("GET /search?q=2");
    terminal.types("/q=2\r");
    terminal.until("only that", |lines| !lines.iter().any(|line| line.contains("q=3")));
    terminal.types("e");
    terminal.shows("It was given a slot");
    terminal.types("qq");
    let terminal = terminal.ends();
    assert_restored(&terminal);
    assert_eq!(terminal.word_after("code "), "0");
}

/// Checks that the settings of the terminal are the same as before the command.
fn assert_restored(terminal: &Terminal) {
    assert_eq!(terminal.word_after("before "), terminal.word_after("after "));
    let output = &terminal.output;
    for (begun, ended) in
        [("\x1b[?1049h", "\x1b[?1049l"), ("\x1b[?25l", "\x1b[?25h"), ("\x1b[?2004h", "\x1b[?2004l")]
    {
        assert!(output.rfind(begun) < output.rfind(ended), "{output:?}");
    }
}

#[test]
fn an_elephant_is_approved_and_undone_by_whoever_looks() {
    let site = Site::new("");
    let admin = site.gateway.operators();
    let mut terminal = Terminal::start(&["top", "--by", "ana", "--admin", &admin]);
    terminal.shows("2 elephants (1 proposed)");
    terminal.types("2");
    terminal.shows("[2 elephants");
    terminal.types("a");
    terminal.shows("proposed  2 at once");
    terminal.shows("effect ");
    terminal.types("too dear\r");
    terminal.shows("By ana: too dear");
    terminal.types("y");
    terminal.shows("is held back for 1h");
    terminal.shows("held to ");
    let entry = &site.list()["elephants"][0];
    let rule = &entry["state"]["ruled"];
    assert_eq!((&rule["by"], &rule["why"]), (&"ana".into(), &"too dear".into()));
    // Pasted text triggers no decision: a table ignores it, and an input line takes it as text.
    terminal.types("\x1b[200~u\renough\ry\x1b[201~u");
    terminal.shows("Why? _");
    terminal.types("\x1b[200~it is\nenough\x1b[201~");
    terminal.shows("Why? it is enough_");
    terminal.types("\ry");
    terminal.shows("is released");
    assert_eq!(site.list()["elephants"][0]["state"], "proposed");
    terminal.types("\x03");
    assert_restored(&terminal.ends());
}

#[test]
fn a_class_is_enforced_for_some_and_a_decision_that_somebody_else_has_overtaken_is_not_done() {
    let (gateway, _upstream, _folder) = asked();
    let admin = gateway.operators();
    let mut terminal = Terminal::start(&["top", "--admin", &admin]);
    terminal.shows(">confirm");
    terminal.types("jm");
    terminal.shows("e: enforce, o: only observe");
    terminal.types("e25\ra try\r");
    terminal.shows("Enforce class search for 25 % of visitors");
    let why = ["--by", "bo", "--why", "mine", "--admin", &admin];
    assert_eq!(bywash(&[&["policy", "enforce", "confirm"], &why[..]].concat()).code, Some(0));
    terminal.types("y");
    terminal.shows("another operator has decided meanwhile");
    terminal.types(" ");
    terminal.until("what was decided", |lines| {
        lines.iter().any(|line| line.contains("confirm") && line.contains("enforce*"))
    });
    terminal.types("me25\ra try\ry");
    terminal.shows("enf 25%*");
    terminal.types("uenough\ry");
    terminal.shows("the configuration file applies again");
    terminal.types("4");
    terminal.shows("overridden");
    terminal.types("q");
    terminal.ends();
}

#[test]
fn a_gateway_that_ends_is_waited_for() {
    let (gateway, _upstream, _folder) = asked();
    let mut terminal = Terminal::start(&["top", "--admin", &gateway.operators()]);
    terminal.shows(">confirm");
    drop(gateway);
    terminal.shows("STALE since");
    terminal.shows(">confirm");
    terminal.types("q");
    assert_restored(&terminal.ends());
}

#[test]
fn it_ends_with_its_terminal_and_when_it_is_told_to() {
    let (gateway, _upstream, _folder) = asked();
    let admin = gateway.operators();
    let mut terminal = Terminal::start(&["top", "--admin", &admin]);
    terminal.shows(">confirm");
    let kill = format!("kill -TERM {}", terminal.word_after("pid "));
    assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
    let terminal = terminal.ends();
    assert_restored(&terminal);
    assert_eq!(terminal.word_after("code "), "143");
    let mut gone = Terminal::start(&["top", "--admin", &admin]);
    gone.shows(">confirm");
    let process = format!("/proc/{}", gone.word_after("pid "));
    drop(gone);
    let begun = Instant::now();
    while Path::new(&process).exists() {
        assert!(begun.elapsed() < Duration::from_secs(30), "it goes on without a terminal");
        thread::sleep(Duration::from_millis(5));
    }
}
