//! Tests of `bywash elephants`: rules of the configuration file and of operators, on a running
//! gateway.

use std::fs;
use std::path::Path;

use bywash_control::{Act, Elephant, Resource, RuleStore, Timestamp};
use serde_json::Value;

use crate::binary::bywash;
use crate::folder::Folder;
use crate::gateway::{Gateway, get};
use crate::upstream::Upstream;

/// A gateway with a saved elephant, which was found before the gateway started.
pub(crate) struct Site {
    upstream: Upstream,
    folder: Folder,
    config: String,
    pub(crate) gateway: Gateway,
}

impl Site {
    /// Starts the site's gateway with `more` lines in its configuration file.
    pub(crate) fn new(more: &str) -> Self {
        Self::where_were_found(vec![slow()], more)
    }

    /// Starts the site's gateway with the saved elephants `elephants`, and with `more` lines in its
    /// configuration file.
    fn where_were_found(elephants: Vec<Elephant>, more: &str) -> Self {
        let (upstream, folder) = (Upstream::new(), Folder::new());
        let state = folder.path("state");
        fs::create_dir(&state).unwrap();
        let mut store = RuleStore::default();
        store.found(Timestamp::now(), elephants, Act::Propose);
        bywash_handover::save(Path::new(&state), "elephants", store.text().as_bytes()).unwrap();
        let text = format!(
            "version = 1\nupstream.server = \"{}\"\nlog.access = \"off\"\nstate.directory = \"{state}\"\n{more}",
            upstream.url()
        );
        let config = folder.file("bywash.toml", text);
        let gateway = Gateway::start(&["--config", &config]);
        Self { upstream, folder, config, gateway }
    }

    /// Runs `bywash elephants` with these arguments, and returns its exit code and its output.
    fn elephants(&self, what: &[&str]) -> (Option<i32>, String) {
        let admin = self.gateway.operators();
        let outcome = bywash(&[&["elephants"], what, &["--admin", &admin]].concat());
        (outcome.code, outcome.out + &outcome.err)
    }

    fn exported(&self) -> String {
        let outcome = bywash(&["export", "--admin", &self.gateway.operators()]);
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        outcome.out
    }

    pub(crate) fn list(&self) -> Value {
        let admin = self.gateway.operators();
        bywash(&["elephants", "list", "--json", "--admin", &admin]).json()
    }

    /// Sends a first request for `/slow`, then a second one while the first runs. Returns the
    /// answer to the second.
    fn second(&self) -> String {
        let clients = self.gateway.clients();
        let first = std::thread::spawn({
            let clients = clients.clone();
            move || get(&clients, "/slow")
        });
        self.upstream.is_asked();
        let second = std::thread::spawn(move || get(&clients, "/slow"));
        // A request that is not refused reaches the application.
        let refused = loop {
            if second.is_finished() {
                break true;
            }
            if self.upstream.is_asked_by_now() {
                break false;
            }
        };
        (0..=u8::from(!refused)).for_each(|_| self.upstream.answer());
        assert!(first.join().unwrap().contains("200 OK"));
        second.join().unwrap()
    }
}

fn slow() -> Elephant {
    Elephant {
        pattern: "/slow".into(),
        twins: Vec::new(),
        resource: "processors".into(),
        consists_of: Resource::Processors,
        capacity: 2.0,
        used: 0.9,
        cost: 0.25,
        interval: [0.2, 0.3],
        share: 0.7,
        rate: 5.04,
        lasts: 0.4,
        provisional: false,
        by_one: 0.02,
        one_client: None,
        transacts: false,
        correlation: Some([0.57, 1e-9]),
    }
}

const WHO: [&str; 4] = ["--by", "the night shift", "--why", "it's slow & it \"may\" be"];

#[test]
fn an_operator_approves_changes_and_undoes_a_rule_and_a_restart_keeps_it() {
    let mut site = Site::new("");
    let (code, text) = site.elephants(&["show", "1"]);
    assert_eq!(code, Some(0), "{text}");
    for words in [
        "/slow",
        "250.0 ms of processors (200.0 to 300.0)",
        "70 %",
        "lasts     400.0 ms\n",
        "r = 0.570",
        "2 at once",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    assert!(site.second().contains("200 OK"), "nobody is held back yet");
    let approve = ["approve", "1", "--max-concurrency", "1", "--queue", "0"];
    let (code, text) = site.elephants(&[&approve[..], &WHO].concat());
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("the night shift: it's slow & it \"may\" be"), "{text}");
    // The classes are only observed, but an operator's decision about an elephant applies anyway.
    let refused = site.second();
    assert!(refused.starts_with("HTTP/1.1 503") && refused.contains("Retry-After: "), "{refused}");
    site.gateway = Gateway::start(&["--config", &site.config]);
    assert!(site.second().starts_with("HTTP/1.1 503"), "after a restart too");
    let text = site.exported();
    assert!(text.contains("match = \"/slow\""), "{text}");
    let (code, _) = site.elephants(&[&["undo", "1"][..], &WHO].concat());
    assert_eq!(code, Some(0));
    assert!(site.second().contains("200 OK"));
    let audit = fs::read_to_string(site.folder.path("state/audit.jsonl")).unwrap();
    let what: Vec<Value> = audit.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let what: Vec<&str> = what.iter().map(|note| note["what"].as_str().unwrap()).collect();
    assert_eq!(what, ["approved", "undone"]);
}

#[test]
fn a_rule_store_that_cannot_be_read_is_put_aside() {
    let mut site = Site::new("");
    let store = site.folder.path("state/elephants");
    fs::write(&store, "of another time").unwrap();
    site.gateway = Gateway::start(&["--config", &site.config]);
    assert_eq!(site.list()["elephants"], Value::Array(Vec::new()));
    assert_eq!(fs::read_to_string(format!("{store}.unreadable")).unwrap(), "of another time");
}

#[test]
fn a_rule_ends_although_nothing_can_be_written_down() {
    let site = Site::new("");
    let approve = ["approve", "1", "--max-concurrency", "1", "--queue", "0", "--for", "10s"];
    let (code, text) = site.elephants(&[&approve[..], &WHO].concat());
    assert_eq!(code, Some(0), "{text}");
    // Writing must fail also for root, who may write everywhere. So a file takes the place of the
    // folder.
    let state = site.folder.path("state");
    fs::rename(&state, format!("{state}.full")).unwrap();
    fs::write(&state, "").unwrap();
    let is_proposed = || site.list()["elephants"][0]["state"] == "proposed";
    let begun = std::time::Instant::now();
    while !is_proposed() {
        assert!(begun.elapsed().as_secs() < 30, "{}", site.list());
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert!(site.second().contains("200 OK"));
}

#[test]
fn what_is_exported_can_be_appended_to_the_file() {
    let site = Site::new("");
    let (code, text) = site.elephants(&[&["approve", "1", "--rate", "0.5"][..], &WHO].concat());
    assert_eq!(code, Some(0), "{text}");
    let rules = site.exported();
    let file = fs::read_to_string(&site.config).unwrap();
    fs::write(&site.config, format!("{file}\n{rules}")).unwrap();
    let checked = bywash(&["check", &site.config]);
    assert_eq!(checked.code, Some(0), "{}", checked.err);
}

#[test]
fn a_rule_of_the_file_holds_and_only_the_file_can_change_it() {
    let rule = "[throttle.slow]\nmatch = \"/slow?...\"\nwhy = \"too dear\"\nmode = \"enforce\"\nqueue = 0\n";
    let site = Site::new(rule);
    assert!(site.second().starts_with("HTTP/1.1 503"));
    let list = site.list();
    let all = list["elephants"].as_array().unwrap();
    let number =
        all.iter().find(|entry| entry["pattern"] == "/slow?...").unwrap()["number"].to_string();
    let (code, text) = site.elephants(&[&["undo", &number][..], &WHO].concat());
    assert!(code == Some(1) && text.contains("is in the configuration file"), "{text}");
    let (_, text) = site.elephants(&["list"]);
    assert!(
        text.contains("file without an end") || text.contains("No resource has been read yet"),
        "{text}"
    );
}

#[test]
fn a_rule_of_the_file_that_only_observes_holds_nobody_back() {
    let rule = "[throttle.slow]\nmatch = \"/slow\"\nwhy = \"too dear\"\nqueue = 0\n";
    assert!(Site::new(rule).second().contains("200 OK"), "the file's mode is observe");
}

#[test]
fn a_decision_that_cannot_be_made_is_told_why() {
    let site = Site::new("");
    for (what, words) in [
        (&["approve", "7", "--by", "x", "--why", "y"][..], "there is no elephant 7"),
        (&["approve", "1", "--by", "x", "--why", "y", "--for", "1000h"], "30 days"),
        (&["approve", "1", "--by", "x", "--why", "y", "--max-concurrency", "0"], "may run at once"),
        (&["try", "1", "--by", "x", "--why", "y", "--for", "1h"], "a trial lasts"),
        (&["undo", "1", "--by", "x", "--why", "y"], "no decision in force"),
        (&["show", "7"], "there is no elephant 7"),
    ] {
        let (code, text) = site.elephants(what);
        assert!(code == Some(1) && text.contains(words), "{what:?}: {code:?} {text}");
    }
    let (code, text) = site.elephants(&["approve", "1", "--by", " ", "--why", "y"]);
    assert!(code == Some(2) && text.contains("1 to 200 characters"), "{code:?} {text}");
    assert_eq!(site.list()["elephants"][0]["state"], "proposed");
}

#[test]
fn resources_are_looked_at_and_one_that_is_not_there_says_so() {
    let resources = "[resource.processors]\nread = \"host/cpu\"\n\
                     [resource.gone]\nread = \"process/nobody-is-called-so/cpu\"\n\
                     [resource.exporter]\nread = \"host/cpu\"\nfrom = \"http://127.0.0.9:9/metrics\"\n";
    let site = Site::new(resources);
    let end = std::time::Instant::now() + std::time::Duration::from_secs(40);
    let by_name = loop {
        let list = site.list();
        let resources = list["resources"].as_array().unwrap().clone();
        let find = |name: &str| resources.iter().find(|one| one["name"] == name).cloned();
        if let (Some(_), Some(gone), Some(exporter)) =
            (find("processors"), find("gone"), find("exporter"))
            && !gone["trouble"].is_null()
            && !exporter["trouble"].is_null()
        {
            break [find("processors").unwrap(), gone, exporter];
        }
        assert!(std::time::Instant::now() < end, "{list}");
        std::thread::sleep(std::time::Duration::from_millis(100));
    };
    assert!(by_name[0]["trouble"].is_null(), "{by_name:?}");
    let gone = by_name[1]["trouble"].as_str().unwrap();
    assert!(gone.contains("nobody-is-called-so"), "{gone}");
    assert!(get(&site.gateway.clients(), "/").contains("200 OK"));
}

#[test]
fn of_a_disk_nothing_is_predicted_and_of_a_line_bytes_are_proposed() {
    let (disk, line) = (Resource::Other, Resource::Bytes);
    let disk = Elephant { resource: "disk".into(), consists_of: disk, capacity: 1.0, ..slow() };
    let line = Elephant {
        pattern: "/download/*".into(),
        resource: "line".into(),
        consists_of: line,
        capacity: 1e7,
        cost: 1e6,
        interval: [9e5, 1.1e6],
        ..slow()
    };
    let site = Site::where_were_found(vec![disk, line], "");
    let shown = [site.elephants(&["show", "1"]).1, site.elephants(&["show", "2"]).1];
    let disk = shown.iter().find(|text| text.contains("/slow")).unwrap();
    assert!(disk.contains("cost      0.2500 units of disk (0.2000 to 0.3000)"), "{disk}");
    assert!(disk.contains("proposed  1 at once"), "{disk}");
    assert!(disk.contains("effect    none: ") && disk.contains("try the rule"), "{disk}");
    let line = shown.iter().find(|text| text.contains("/download")).unwrap();
    assert!(line.contains("cost      1000.0 kB of line (900.0 to 1100.0)"), "{line}");
    assert!(line.contains("8 at once") && line.contains("5300000 bytes a second"), "{line}");
    assert!(
        line.contains("they use 50 % of the resource, and under this rule up to 53 %"),
        "{line}"
    );
}

#[test]
fn a_page_that_is_a_route_of_its_own_is_not_held_back_by_a_rule_of_those_that_are_none() {
    let every = Elephant { pattern: "/*".into(), ..slow() };
    let mut site = Site::where_were_found(vec![every], "[resource.all]\nread = \"host/cpu\"\n");
    let approve = ["approve", "1", "--max-concurrency", "1", "--queue", "0"];
    let (code, text) = site.elephants(&[&approve[..], &WHO].concat());
    assert!(code == Some(0) && !text.contains("but not"), "{text}");
    assert!(site.second().starts_with("HTTP/1.1 503"), "nothing is known of it");
    let begun = std::time::Instant::now();
    while site.second().starts_with("HTTP/1.1 503") {
        assert!(begun.elapsed().as_secs() < 60, "{}", site.list());
        // A request for another path, which has no route yet. Once routes are counted, such a path
        // gets one.
        get(&site.gateway.clients(), "/4711");
    }
    let (_, text) = site.elephants(&["show", "1"]);
    assert!(text.contains("but not   /slow: separate routes"), "{text}");
    site.gateway = Gateway::start(&["--config", &site.config]);
    assert!(site.second().contains("200 OK"), "after a restart too");
}

#[test]
fn of_a_rule_of_the_file_it_is_shown_what_else_it_holds_back() {
    let more = "[throttle.all]\nmatch = \"/*\"\nwhy = \"so\"\nmode = \"enforce\"\nqueue = 0\n\
                [resource.all]\nread = \"host/cpu\"\n";
    let site = Site::new(more);
    let begun = std::time::Instant::now();
    loop {
        assert!(site.second().starts_with("HTTP/1.1 503"));
        let (_, text) = site.elephants(&["show", "2"]);
        if text.contains("with      /slow: separate routes, but the file's pattern") {
            break;
        }
        assert!(begun.elapsed().as_secs() < 60, "{text}");
    }
}

#[test]
fn who_holds_the_slots_is_counted_where_nothing_is_read() {
    let site = Site::new("[resource.workers]\nread = \"gateway/slots\"\n");
    let end = std::time::Instant::now() + std::time::Duration::from_secs(40);
    let resources = loop {
        let resources = site.list()["resources"].clone();
        if resources.as_array().is_some_and(|all| !all.is_empty()) {
            break resources;
        }
        assert!(std::time::Instant::now() < end, "{}", site.list());
        std::thread::sleep(std::time::Duration::from_millis(100));
    };
    assert_eq!(resources.as_array().map(Vec::len), Some(1), "{resources}");
    assert_eq!((&resources[0]["name"], &resources[0]["trouble"]), (&"slots".into(), &Value::Null));
}

#[test]
fn a_route_that_nobody_found_to_be_much_is_asked_for_by_its_name_and_held_back() {
    let site = Site::new("[resource.workers]\nread = \"gateway/slots\"\n");
    let ask = |pattern: &str| site.elephants(&[&["ask", pattern][..], &WHO].concat());
    let end = std::time::Instant::now() + std::time::Duration::from_secs(40);
    let text = loop {
        get(&site.gateway.clients(), "/quick");
        let (code, text) = ask("/quick");
        if code == Some(0) {
            break text;
        }
        let said = "no route has the name `/quick`";
        assert!(code == Some(1) && text.contains(said), "{text}");
        assert!(std::time::Instant::now() < end, "{text}");
        std::thread::sleep(std::time::Duration::from_millis(100));
    };
    assert!(text.starts_with("2 /quick\n") && text.contains("of slots"), "{text}");
    assert!(text.contains("clients   127.0.0.1 causes 100 % of their service time"), "{text}");
    assert_eq!(ask("/quick"), (Some(0), text), "asked again, it is the same");
    let approve = ["approve", "2", "--rate", "0.001", "--wait", "1s"];
    let (code, text) = site.elephants(&[&approve[..], &WHO].concat());
    assert!(code == Some(0) && text.contains("0.001 a second"), "{text}");
    let statuses = || {
        let answers = [(); 2].map(|()| get(&site.gateway.clients(), "/quick"));
        answers.map(|answer| answer.split(' ').nth(1).unwrap_or_default().to_owned())
    };
    assert_eq!(statuses(), ["200", "503"], "one in a quarter of an hour");
    let gone = ["approve", "2", "--rate", "none", "--queue", "5"];
    let (code, text) = site.elephants(&[&gone[..], &WHO].concat());
    assert!(code == Some(0) && !text.contains("a second, 5"), "{text}");
    assert_eq!(statuses(), ["200", "200"], "as many as there is room for");
    for none in ["fast", "nan", "inf", ""] {
        let rate = format!("--rate={none}");
        let (code, text) = site.elephants(&["approve", "2", &rate, "--by", "x", "--why", "y"]);
        assert!(code == Some(2) && text.contains("write a number, or none"), "{none}: {text}");
    }
}

#[test]
fn what_comes_under_a_rule_is_its_elephants_also_where_its_pattern_is_no_route() {
    let more = "[throttle.every]\nmatch = \"/**\"\nwhy = \"so\"\nmode = \"enforce\"\n\
                [resource.workers]\nread = \"gateway/slots\"\n";
    let site = Site::new(more);
    let admin = site.gateway.operators();
    let end = std::time::Instant::now() + std::time::Duration::from_secs(40);
    loop {
        assert!(get(&site.gateway.clients(), "/quick").contains("200 OK"));
        let shown = bywash(&["elephants", "show", "2", "--json", "--admin", &admin]).json();
        let under = &shown["under"];
        assert_eq!(under["ants"]["answered"], 0.0, "{under}");
        if under["elephants"]["answered"].as_f64() > Some(0.0) {
            break;
        }
        assert!(std::time::Instant::now() < end, "{shown}");
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
}
