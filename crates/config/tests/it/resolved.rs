//! Tests of the configuration of a valid file, and of the documents derived from the table of keys.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use bywash_config::{
    AccessLog, ClassConfig, Config, HalfClose, Mode, PrincipalKind, Session, StopdNetwork, Wanted,
    example, reference, schema,
};
use bywash_engine::classify::RequestParts;
use bywash_engine::{ClassId, ClassSet, Tier};
use bywash_units::{TimeSpan, Utility};

const SHOP: &str = r#"
version = 1
mode = "observe"
class.pay = { match = ["POST /pay"], tier = "transaction", utility = 50, revenue = 40, revenue_header = "Order-Total", success = ["status 2xx", "header X-Placed"], requires = ["home"], queue = 25 }

[listen]
http = "0.0.0.0:80"
half_close = "allow"
[upstream]
server = "http://[::1]"
limit = 8
[scheduler]
policy = "lifo-pri"
transaction_capacity = 30
interval = "2s"
[queue]
max_wait = "1.5s"
body_buffer = 4096
[identify]
session = "none"
principal = "address"
[log]
access = "./access.log"

[class.home]
match = ["GET /", "GET /p/**"]
utility = 2.5
mode = "enforce"
patience = "4s"
[class.other]
queue = 3
mode = "enforce"
"#;

fn shop() -> Config {
    right(SHOP)
}

fn right(text: &str) -> Config {
    let (config, warnings) = Config::parse(text, "shop.toml").expect("the shop is right");
    assert!(warnings.is_empty(), "{warnings}");
    config
}

fn shown(all: &[impl ToString]) -> Vec<String> {
    all.iter().map(ToString::to_string).collect()
}

#[test]
fn values_arrive_where_they_are_used() {
    let config = shop();
    assert_eq!(config.mode, Mode::Observe);
    assert_eq!(config.listen.http, "0.0.0.0:80".parse().unwrap());
    assert_eq!(config.listen.half_close, HalfClose::Allow);
    assert_eq!(shown(&config.upstream.servers), ["http://[::1]:80"]);
    assert_eq!((config.upstream.limit, config.engine.limit), (8, 8.into()));
    assert_eq!(config.engine.max_wait, Some(TimeSpan::from_millis(1500)));
    assert_eq!(config.queue.body_buffer, 4096);
    assert_eq!(config.identify.session, Session::None);
    assert_eq!(config.identify.principal, PrincipalKind::Address);
    assert_eq!(config.access_log, AccessLog::File("./access.log".into()));
}

#[test]
fn the_policy_gets_its_parameters() {
    let scheduler = shop().scheduler;
    assert_eq!(scheduler.name(), "lifo-pri");
    let values: Vec<String> =
        scheduler.values().map(|(p, v)| format!("{} {v:?}", p.name)).collect();
    assert!(values.contains(&"transaction_capacity Count(30)".to_string()), "{values:?}");
    assert!(values.contains(&"browsing_capacity Count(50)".to_string()), "{values:?}");
}

#[test]
fn a_limit_is_a_policy_like_the_scheduler_or_just_a_number() {
    let limit = |lines: &str| {
        let text = format!("version = 1\nupstream.server = \"http://[::1]\"\n{lines}");
        let config = right(&text);
        (format!("{:?}", config.engine.limit), config.upstream.limit)
    };
    let slots = |n: u32| (format!("fixed([Count({n})])"), n);
    assert_eq!(limit(""), slots(16));
    assert_eq!(limit("upstream.limit = 8"), slots(8));
    assert_eq!(limit("concurrency.slots = 9"), slots(9));
    assert_eq!(limit("upstream.limit = 9\nconcurrency.slots = 9"), slots(9));
    let (text, most) = limit("upstream.limit = 8\n[concurrency]\npolicy = \"slope\"\nmax = 200");
    assert!(text.starts_with("slope([Count(1), Count(200), Count(8), "), "{text}");
    assert_eq!(most, 200, "connections must suffice for the most");
    let (text, _) = limit("upstream.limit = 8\n[concurrency]\npolicy = \"slope\"\ninitial = 8");
    assert!(text.starts_with("slope([Count(1), Count(1000), Count(8), "), "{text}");
}

#[test]
fn classes_come_in_the_order_of_the_file_and_other_comes_last() {
    let classes = shop().classes;
    let names: Vec<&str> = classes.iter().map(|class| class.class.name.as_str()).collect();
    assert_eq!(names, ["pay", "home", "other"]);
    let lines: Vec<_> = classes.iter().map(|class| class.line).collect();
    assert_eq!(lines, [Some(4), Some(25), Some(30)]);
    let ClassConfig { class, mode, patience, .. } = &classes[0];
    assert_eq!((class.tier, class.queue), (Tier::Transaction, Some(25)));
    assert_eq!(class.requires, ClassSet::NONE.with(ClassId(1)));
    assert_eq!((*mode, *patience), (Mode::Observe, None));
    assert_eq!(class.revenue, Utility::new(40.0));
    assert_eq!(classes[0].revenue_header.as_deref(), Some("order-total"));
    assert_eq!(classes[0].success.statuses, [200..=299]);
    assert_eq!(classes[0].success.fields, [("x-placed".to_owned(), Wanted::Any)]);
    assert_eq!((classes[1].class.revenue, &classes[1].revenue_header), (Utility::new(0.0), &None));
    assert_eq!(
        (classes[1].mode, classes[1].patience),
        (Mode::Enforce, Some(TimeSpan::from_secs(4)))
    );
}

#[test]
fn other_is_worth_nothing_and_gets_what_no_pattern_matches() {
    let config = shop();
    let other = config.classes.last().unwrap();
    assert_eq!((other.class.utility, other.class.queue), (Utility::new(0.0), Some(3)));
    assert_eq!(other.mode, Mode::Enforce);
    let index = |method, path| config.classifier.class(&RequestParts::new(method, path)).index();
    assert_eq!([index("POST", "/pay"), index("GET", "/p/1"), index("PUT", "/x")], [0, 1, 2]);
}

#[test]
fn the_same_pattern_may_stand_in_classes_for_different_hosts() {
    let text = r#"
version = 1
[upstream]
server = "http://127.0.0.1:3000"
[class.shop]
match = ["/**"]
hosts = ["Shop.example.com"]
[class.blog]
match = ["/**"]
hosts = ["*.blog.example.com", "blog.example.com"]
"#;
    let (config, _) = Config::parse(text, "test").unwrap();
    let class = |host| {
        let class =
            config.classifier.class(&RequestParts { host, ..RequestParts::new("GET", "/a?b") });
        config.classes[class.index()].class.name.clone()
    };
    let hosts = ["shop.example.com:8080", "blog.example.com", "my.blog.example.com", "x"];
    assert_eq!(hosts.map(class), ["shop", "blog", "blog", "other"]);
}

#[test]
fn an_upstream_alone_is_enough() {
    let config = Config::for_upstream("http://127.0.0.1:3000").unwrap();
    assert_eq!(config.mode, Mode::Observe);
    assert_eq!(shown(&config.upstream.servers), ["http://127.0.0.1:3000"]);
    assert_eq!(config.scheduler.name(), "session-first");
    assert_eq!(config.identify.session, Session::Auto);
    assert!(config.identify.token.is_none() && config.identify.signals.is_empty());
    assert_eq!(config.client_limits.max_header_bytes, 16 * 1024);
    assert_eq!((config.stop.grace, config.stop.delay), (TimeSpan::from_secs(30), TimeSpan::ZERO));
    let [other] = &config.classes[..] else { panic!("{:?}", config.classes) };
    assert_eq!((other.class.name.as_str(), other.line), ("other", None));
    assert_eq!(config.classifier.class(&RequestParts::new("GET", "/")), ClassId(0));
}

#[test]
fn the_example_has_every_default_and_not_one_problem() {
    let (config, warnings) = Config::parse(&example(), "example.toml").unwrap();
    assert!(warnings.is_empty(), "{warnings}");
    let plain = Config::for_upstream("http://127.0.0.1:3000").unwrap();
    assert_eq!(format!("{:?}", config.scheduler), format!("{:?}", plain.scheduler));
    assert_eq!(format!("{:?}", config.engine), format!("{:?}", plain.engine));
    assert_eq!((config.listen, config.client_limits), (plain.listen, plain.client_limits));
    assert_eq!((config.upstream, config.queue), (plain.upstream, plain.queue));
}

#[test]
fn what_the_example_has_in_comments_is_right_too() {
    let is_key = |line: &&str| {
        let name = line.split_once(" = ").map_or("", |(name, _)| name);
        !name.is_empty() && name.chars().all(|c| c.is_ascii_lowercase() || c == '_')
    };
    let mut table = "";
    let on = |line| {
        let is_heading = str::trim_start_matches(line, "# ").starts_with('[');
        table = if is_heading { line } else { table };
        // The commented lines of these tables are parameters of other policies and are left out. So
        // are the page, the token keys and the agent, which would be read from disk, the fleet,
        // whose keys exclude each other, and the upstream of a relay of stop daemons, which excludes
        // the databases.
        let is_out = |key: &&str| {
            ["page", "token_keys", "upstream"].iter().any(|start| key.starts_with(start))
        };
        let key = line.strip_prefix("# ").filter(is_key).filter(|key| !is_out(key));
        let left_out =
            ["[scheduler]", "[concurrency]", "[terminate]", "[fleet]", "# [agent.archive]"];
        key.filter(|_| !left_out.contains(&table)).unwrap_or(line).replace("details\"]", "other\"]")
            + "\n"
    };
    let text: String = example().lines().map(on).collect();
    let keys = std::env::temp_dir().join(format!("bywash-example-{}", std::process::id()));
    std::fs::write(&keys, format!("{}\n", "ab".repeat(32))).unwrap();
    std::fs::set_permissions(&keys, PermissionsExt::from_mode(0o600)).unwrap();
    let text = text.replace("/etc/bywash/level.keys", &keys.display().to_string());
    let parsed = Config::parse(&text, "example.toml");
    std::fs::remove_file(&keys).unwrap();
    let (config, warnings) = parsed.unwrap();
    // The warnings are expected: four TLS keys without a TLS server, a customer field without a
    // trusted hop, conditions of success on a class without revenue, `requires` on a browsing
    // class, and running times on a class that is not cancellable.
    let codes: Vec<&str> = warnings.iter().map(|warning| warning.code).collect();
    assert_eq!(
        codes,
        ["W118", "W118", "W118", "W118", "W139", "W122", "W122", "W111", "W132"],
        "{warnings}"
    );
    let class = &config.classes[0];
    assert_eq!(class.level, config.levels.unwrap().named(b"high"));
    assert_eq!((class.mode, class.class.queue), (Mode::Enforce, Some(50)));
    assert_eq!(class.timeouts.response, TimeSpan::from_secs(300));
    assert!(config.listen.https.is_some() && config.tls.is_some() && config.state.is_some());
    assert!(config.upstream.health.path.is_some() && config.traces.is_some());
    assert!(matches!(config.stopd.network, StopdNetwork::Accepts { .. }));
    let tls = config.stopd.databases[0].tls.as_ref().unwrap();
    assert_eq!(tls.ca, Path::new("/etc/bywash/database-ca.pem"));
}

#[test]
fn a_relay_of_stop_daemons_has_the_address_of_another_daemon() {
    let text = "version = 1\n[stopd]\nupstream = \"[::1]:7072\"\ntls_ca = \"/ca\"\n\
                tls_certificate = \"/c\"\ntls_key = \"/k\"\n[upstream]\n\
                server = \"http://127.0.0.1:3000\"\n";
    let (config, _) = Config::parse(text, "relay.toml").unwrap();
    let StopdNetwork::Relays { host, port, tls } = config.stopd.network else {
        panic!("{:?}", config.stopd.network)
    };
    assert_eq!((host.as_str(), port, tls.ca.as_path()), ("::1", 7072, Path::new("/ca")));
}

#[test]
fn the_schema_knows_parameters_with_their_ranges() {
    let schema = schema();
    let capacity = &schema["properties"]["scheduler"]["oneOf"][0]["properties"]["capacity"];
    assert_eq!(capacity["minimum"], 1);
    assert_eq!(capacity["maximum"], 1_000_000);
    assert_eq!(capacity["default"], 100);
    assert_eq!(schema["properties"]["mode"]["enum"][0], "observe");
    assert!(schema["properties"]["class"]["properties"]["other"]["properties"]["match"].is_null());
    let server = &schema["properties"]["upstream"]["properties"]["server"]["oneOf"];
    assert_eq!((&server[0]["type"], &server[1]["maxItems"]), (&"string".into(), &64.into()));
    assert_eq!(schema["properties"]["listen"]["properties"]["http2"]["default"], true);
    let trusted = &schema["properties"]["listen"]["properties"]["trusted_proxies"];
    assert_eq!(trusted["default"], serde_json::json!([]));
}

#[test]
fn the_reference_names_keys_parameters_and_codes() {
    let reference = reference();
    for text in
        ["`max_wait`", "### `lifo-pri`", "`floor_share`", "[class.NAME]", "| E101 |", "| E013 |"]
    {
        assert!(reference.contains(text), "{text}");
    }
}

#[test]
fn a_class_that_is_cancellable_grants_what_it_says_or_a_second_to_a_minute() {
    let bounds = |lines: &str| {
        let text = format!(
            "version = 1\nupstream.server = 'http://127.0.0.1:1'\n[class.a]\nmatch = ['GET /a']\n{lines}"
        );
        Config::parse(&text, "test").map(|(config, warnings)| {
            let codes = warnings.iter().map(|warning| warning.code).collect::<Vec<_>>();
            (config.classes[0].class.stop.map(|stop| (stop.min, stop.max)), codes)
        })
    };
    let secs = TimeSpan::from_secs;
    let cancellable = "cancellable = true\n";
    assert_eq!(bounds("").unwrap(), (None, vec![]));
    assert_eq!(bounds(cancellable).unwrap(), (Some((secs(1), secs(60))), vec![]));
    let long = [cancellable, "run_min = '2m'"].concat();
    assert_eq!(bounds(&long).unwrap(), (Some((secs(120), secs(120))), vec![]));
    let both = [cancellable, "run_min = '2s'\nrun_max = '5s'"].concat();
    assert_eq!(bounds(&both).unwrap(), (Some((secs(2), secs(5))), vec![]));
    assert_eq!(bounds("run_max = '5s'").unwrap(), (None, vec!["W132"]));
    let slow = [cancellable, "run_max = '60s'"].concat();
    assert_eq!(bounds(&slow).unwrap(), (Some((secs(1), secs(60))), vec!["W134"]));
    let patient = [&slow, "\nresponse_timeout = '61s'"].concat();
    assert_eq!(bounds(&patient).unwrap(), (Some((secs(1), secs(60))), vec![]));
    let problems = bounds(&[cancellable, "run_min = '5s'\nrun_max = '2s'"].concat()).unwrap_err();
    assert!(problems.to_string().contains("E131"), "{problems}");
    let text = "version = 1\nupstream.server = 'http://127.0.0.1:1'\n[terminate]\npolicy = 'loss'\nlow = 0.5\n";
    let problems = Config::parse(text, "test").unwrap_err();
    assert!(problems.to_string().contains("E133"), "{problems}");
    let text = "version = 1\nupstream.server = 'http://127.0.0.1:1'\n[terminate]\nalpha = 3\n";
    let problems = Config::parse(text, "test").unwrap_err().to_string();
    assert!(problems.contains("`alpha` is a parameter of `loss`"), "{problems}");
    assert!(problems.contains("`marginal` has no parameters"), "{problems}");
}
