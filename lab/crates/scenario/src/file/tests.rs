//! Tests of valid scenario files and of the errors in invalid ones.

use std::path::Path;

use super::*;
use crate::lines::Lines;
use crate::policies::{Mode, PrincipalKind};
use crate::raw;

pub(crate) const SMALL: &str = r#"
    name = "small"
    [servers]
    workers = 2
    [[class]]
    name = "main"
    request = "GET /"
    tier = "browsing"
    utility = 1
    service = { mean = "100ms", shape = "exponential" }
    next = { main = 0.5, buy = 0.1 }
    [[class]]
    name = "buy"
    request = "POST /buy"
    tier = "transaction"
    utility = 100
    requires = ["main"]
    service = { mean = "50ms", shape = "constant" }
    [session]
    start = "main"
    order = "buy"
    [arrivals]
    shape = "poisson"
    [client]
    think = { mean = "1s", shape = "exponential" }
    patience = { shape = "none" }
    retries = 2
    [run]
    rho = [1.5]
    duration = "10s"
"#;

pub(crate) fn small() -> Scenario {
    Scenario::parse(SMALL, Path::new(".")).expect("the small scenario is well-formed")
}

fn refused(from: &str, to: &str) -> String {
    assert!(SMALL.contains(from), "{from:?} is not in the small scenario");
    let text = SMALL.replacen(from, to, 1);
    Scenario::parse(&text, Path::new(".")).expect_err("this file makes no sense").to_string()
}

#[test]
fn work_per_session_follows_the_graph() {
    // A session has on average two visits to `main` (a geometric loop with probability ½) and 0.2
    // visits to `buy`. Its work is 2·100 ms + 0.2·50 ms.
    let unit = small().unit_rate().get();
    assert!((unit - 2.0 / 0.210).abs() < 1e-6, "{unit}");
}

#[test]
fn all_mistakes_are_told_at_once() {
    let mut text =
        SMALL.replace("main = 0.5", "main = 0.95").replace("start = \"main\"", "start = \"home\"");
    text = text
        .replace("duration = \"10s\"", "duration = \"0s\"")
        .replace("workers = 2", "workers = 0");
    let error = Scenario::parse(&text, Path::new(".")).unwrap_err().to_string();
    for words in
        ["sum to at most 1", "`home`", "run.duration must be above 0", "servers.workers must be"]
    {
        assert!(error.contains(words), "{words}: {error}");
    }
}

#[test]
fn mistakes_are_named() {
    assert!(refused("retries = 2", "retires = 2").contains("unknown field `retires`"));
    assert!(refused("start = \"main\"", "start = \"home\"").contains("`home`"));
    assert!(refused("main = 0.5", "main = 0.95").contains("sum to at most 1"));
    assert!(refused("buy = 0.1", "main = 1.0").contains("duplicate key"));
    assert!(refused("main = 0.5, buy = 0.1", "main = 1").contains("never end"));
    let buy = "request = \"POST /buy\"";
    assert!(
        refused("request = \"GET /\"", "request = \"GET /\"\n form = \"a=1\"")
            .contains("only a POST")
    );
    assert!(refused(buy, &format!("{buy}\n status = 99")).contains("status of `buy` must be"));
    assert!(refused("\"10s\"", "\"10\"").contains("number and a unit"));
    assert!(refused("duration = \"10s\"", "").contains("one of `duration` and `orders`"));
    assert!(refused("workers = 2", "workers = 0").contains("servers.workers"));
    assert!(refused("rho = [1.5]", "rho = [nan]").contains("run.rho"));
    assert!(refused("rho = [1.5]", "rho = [1]\n seeds = 4000000000").contains("run.seeds"));
    assert!(refused("rho = [1.5]", "rho = [1]\n seeds = 0").contains("run.seeds"));
    assert!(refused("utility = 100", "utility = -1").contains("utility of `buy`"));
    let step = "shape = \"step\"\n base = nan\n at = \"1s\"";
    assert!(refused("shape = \"poisson\"", step).contains("arrivals.base"));
    assert!(refused("\"exponential\"", "\"exponentail\"").contains("exponentail"));
}

#[test]
fn one_mistake_hides_no_other() {
    let text = SMALL
        .replace("main = 0.5, buy = 0.1", "lobby = 0.9, sale = 0.8")
        .replace("retries = 2", "pause_after_timeout = \"5 parsecs\"")
        .replace("shape = \"poisson\"", "shape = \"step\"\nbase = -1\nat = \"soon\"");
    let change =
        "[[servers.change]]\nat = \"2s\"\nworkers = 1\n[[servers.change]]\nat = \"1s\"\nspeed = 2";
    let class = text.find("[[class]]").map(|at| text[at..].to_owned()).unwrap();
    let twice = class.find("[session]").map(|end| class[..end].to_owned()).unwrap();
    let text = text.replace("[session]", &format!("{twice}\n[session]")) + "\n" + change;
    let error = Scenario::parse(&text, Path::new(".")).expect_err("nothing is right").to_string();
    for words in [
        "class `main` is defined twice",
        "`lobby`",
        "`sale`",
        "sum to at most 1",
        "5 parsecs",
        "`soon` is not a span",
        "in the order of their times",
    ] {
        assert!(error.contains(words), "{words:?} is not in {error}");
    }
    for line in error.lines() {
        assert!(line.starts_with("line "), "{line}");
    }
}

#[test]
fn a_mistake_of_the_base_has_no_line_in_the_file_on_top() {
    let lines = Lines::of("name = 'over'\n[run]\nseeds = 4\n");
    let file = toml::from_str(&SMALL.replace("duration = \"10s\"", "orders = 0")).unwrap();
    let error = raw::resolve(file, Path::new("."), &lines).expect_err("no orders").to_string();
    assert!(error.starts_with("line 2: run needs"), "{error}");
    let file = toml::from_str(&SMALL.replace("workers = 2", "workers = 0")).unwrap();
    let error = raw::resolve(file, Path::new("."), &lines).expect_err("no workers").to_string();
    assert!(error.starts_with("servers.workers must be"), "{error}");
}

#[test]
fn so_many_changes_that_nobody_can_read_them_are_refused_at_once() {
    let change = "\n[[servers.change]]\nat = \"1s\"\nworkers = 1";
    let text = SMALL.to_owned() + &change.repeat(20_000);
    let error = Scenario::parse(&text, Path::new(".")).expect_err("too many").to_string();
    assert!(error.contains("servers.change has more than 1000"), "{error}");
}

#[test]
fn mistakes_in_what_changes_are_named() {
    let change = |text: &str| refused("[run]", &format!("[[servers.change]]\n{text}\n[run]"));
    assert!(change("at = \"1s\"").contains("servers.change needs exactly one of"));
    assert!(change("at = \"1s\"\nworkers = 1\nspeed = 2").contains("needs exactly one of"));
    assert!(change("at = \"1s\"\nspeed = 0").contains("needs exactly one of"));
    assert!(change("at = \"1s\"\nclass = \"home\"\nservice = 2").contains("`home`"));
    assert!(change("at = \"1\"\nworkers = 1").contains("number and a unit"));
    let two = "at = \"2s\"\nworkers = 1\n[[servers.change]]\nat = \"1s\"\nspeed = 2";
    assert!(change(two).contains("in the order of their times"));
    assert!(refused("workers = 2", "workers = 2\nlimit = 0").contains("servers.limit"));
    assert!(refused("workers = 2", "workers = 2\ncontention = -1").contains("contention"));
    let start = "[[session.change]]\nat = \"1s\"\nstart = \"home\"\n[run]";
    assert!(refused("[run]", start).contains("`home`"));
}

#[test]
fn sessions_start_where_the_last_change_says() {
    let change = "[[session.change]]\nat = \"5s\"\nstart = \"buy\"\n[run]";
    let scenario = Scenario::parse(&SMALL.replace("[run]", change), Path::new(".")).unwrap();
    let at = |seconds| scenario.start_at(Time::ZERO + TimeSpan::from_secs(seconds));
    assert_eq!([at(0), at(4), at(5), at(60)], [0, 0, 1, 1]);
}

#[test]
fn a_policy_may_have_a_limit_of_its_own() {
    let policy = "[[policy]]\nname = \"x\"\nconcurrency = { name = \"aimd\", max = 50 }\n";
    let text = format!("{SMALL}\n{policy}");
    let scenario = Scenario::parse(&text, Path::new(".")).unwrap();
    let limit = scenario.policies[0].concurrency.clone().expect("it was given");
    assert_eq!((limit.name.as_str(), limit.parameters["max"].as_str()), ("aimd", "50"));
    assert!(scenario.policies[0].parameters.is_empty());
}

#[test]
fn a_policy_charges_addresses_only_if_it_is_told_to() {
    let with = |principal: &str| {
        let text = format!("{SMALL}\n[[policy]]\nname = \"x\"\n{principal}");
        Scenario::parse(&text, Path::new(".")).map_err(|error| error.to_string())
    };
    assert_eq!(with("").unwrap().policies[0].principal, PrincipalKind::Session);
    let told = with("principal = \"address\"").unwrap();
    assert_eq!(told.policies[0].principal, PrincipalKind::Address);
    assert!(told.policies[0].parameters.is_empty());
    assert!(with("principal = \"sometimes\"").unwrap_err().contains("unknown variant `sometimes`"));
}

#[test]
fn a_policy_is_enforced_unless_its_mode_is_observe() {
    let with = |mode: &str| {
        let text = format!("{SMALL}\n[[policy]]\nname = \"x\"\n{mode}");
        Scenario::parse(&text, Path::new(".")).map_err(|error| error.to_string())
    };
    for (mode, expected) in [
        ("", Mode::Enforce),
        ("mode = \"enforce\"", Mode::Enforce),
        ("mode = \"observe\"", Mode::Observe),
    ] {
        let policy = with(mode).unwrap().policies.remove(0);
        assert_eq!(policy.mode, expected, "{mode}");
        assert!(policy.parameters.is_empty(), "{policy:?}");
    }
    let error = with("mode = \"observed\"").unwrap_err();
    let words = "unknown variant `observed`, expected `enforce` or `observe`";
    assert!(error.contains(words), "{error}");
}

#[test]
fn a_run_for_orders_is_as_long_as_an_ideal_policy_needs() {
    let text = SMALL.replace("duration = \"10s\"", "orders = 100");
    let scenario = Scenario::parse(&text, Path::new(".")).unwrap();
    let rate = scenario.unit_rate().get() * 0.2;
    assert!((scenario.duration(5.0).as_secs_f64() - 100.0 / rate).abs() < 1e-3);
    assert!((scenario.duration(0.5).as_secs_f64() - 200.0 / rate).abs() < 1e-3);
}

#[test]
fn mistakes_in_sets_and_stations_are_named() {
    let set = |text: &str| refused("[run]", &format!("[[set]]\n{text}\n[run]"));
    assert!(set("name = \"a\"\nclients = 0").contains("clients of set `a` must be 1 to 100000"));
    assert!(
        set("name = \"a\"\nclients = 1\ncounted = false")
            .contains("at least one set needs counted")
    );
    let two = "name = \"a\"\nclients = 1\n[[set]]\nname = \"a\"\nclients = 1";
    assert!(set(two).contains("set `a` is defined twice"));
    assert!(set("name = \"a\"\nclients = 1\npatience = { shape = \"uniform\", least = \"2s\", most = \"1s\" }")
        .contains("`least` below `most`"));
    let hasty = SMALL.replace(
        "think = { mean = \"1s\", shape = \"exponential\" }",
        "think = { mean = \"0s\", shape = \"constant\" }",
    );
    let hasty = hasty.replace("[run]", "[[set]]\nname = \"a\"\nclients = 1\n[run]");
    let why = Scenario::parse(&hasty, Path::new(".")).expect_err("a run without end").to_string();
    assert!(why.contains("clients of a [[set]] need a `think`"), "{why}");
    let station = |text: &str| refused("workers = 2", &format!("workers = 2\nstation = [{text}]"));
    assert!(
        station("{ name = \"db\", workers = 0 }")
            .contains("workers of station `db` must be 1 to 100000")
    );
    let twice = "{ name = \"db\", workers = 1 }, { name = \"db\", workers = 1 }";
    assert!(station(twice).contains("station `db` is defined twice"));
    let class = refused("utility = 100", "utility = 100\nstation = \"db\"");
    assert!(class.contains("class `buy` names station `db`, which does not exist"), "{class}");
}
