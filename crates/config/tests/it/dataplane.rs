//! Tests of the keys for client traffic: listeners, servers, health, timeouts, answers.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use bywash_config::{
    AdminAddress, Certificate, Collector, Config, Details, Endpoint, ForwardingField, Scheme,
    Server, State, Stop, Timeouts,
};
use bywash_units::TimeSpan;

const EDGE: &str = r#"
version = 1
[listen]
http = "0.0.0.0:80"
https = "[::]:443"
admin = "unix:/run/bywash/admin.sock"
http2 = false
proxy_protocol = ["192.0.2.0/24"]
trusted_proxies = ["10.0.0.0/8", "2001:db8::1"]
forwarded = "forwarded"
pass_fields = ["X-HTTP-Method-Override"]
[tls]
certificates = ["site.pem", "/etc/other.pem"]
keys = ["site.key", "/etc/other.key"]
[upstream]
server = ["https://App.internal", "h2c://10.0.0.1:50051", "unix:/run/app.sock"]
pinned_connections = 7
connect_timeout = "1s"
idle_timeout = "90s"
total_timeout = "5m"
tls_ca = "ca.pem"
tls_name = "APP.internal"
tls_certificate = "client.pem"
tls_key = "client.key"
keep_alive = "30s"
resolve_every = "1m"
[health]
path = "/healthz?deep=0"
interval = "3s"
timeout = "500ms"
rise = 3
fall = 4
eject_after = 6
eject_share = 0
eject_for = "20s"
slow_start = "0s"
[client_limits]
connections_per_address = 50
proven_reserve = 25
observed = 9
body_rate = "1KiB"
streams = 7
h2_streams = 128
idle_timeout = "30s"
[answers]
details = "none"
[log]
traces = "http://localhost:4318"
[state]
directory = "/var/lib/bywash"
[stop]
delay = "5s"
[class.report]
match = ["GET /report"]
response_timeout = "4m"
total_timeout = "30m"
[class.other]
connect_timeout = "2s"
idle_timeout = "10s"
"#;

fn right(text: &str) -> Config {
    let (config, warnings) = Config::parse(text, "edge.toml").expect("the file is right");
    assert!(warnings.is_empty(), "{warnings}");
    config
}

fn text(items: &[impl ToString]) -> Vec<String> {
    items.iter().map(ToString::to_string).collect()
}

#[test]
fn listeners_arrive_where_they_are_used() {
    let listen = right(EDGE).listen;
    assert_eq!(listen.https, Some("[::]:443".parse().unwrap()));
    assert_eq!(listen.admin, AdminAddress::Unix("/run/bywash/admin.sock".into()));
    assert_eq!(listen.admin.to_string(), "unix:/run/bywash/admin.sock");
    assert!(!listen.http2);
    assert_eq!(text(&listen.proxy_protocol), ["192.0.2.0/24"]);
    assert_eq!(text(&listen.trusted_proxies), ["10.0.0.0/8", "2001:db8::1"]);
    assert_eq!(listen.forwarded, ForwardingField::Forwarded);
    assert_eq!(listen.pass_fields, ["x-http-method-override"]);
}

#[test]
fn certificates_come_in_pairs_and_in_order() {
    let pair = |chain: &str, key: &str| Certificate { chain: chain.into(), key: key.into() };
    let pairs = vec![pair("site.pem", "site.key"), pair("/etc/other.pem", "/etc/other.key")];
    assert_eq!(right(EDGE).tls.unwrap().certificates, pairs);
}

#[test]
fn servers_come_in_the_order_of_the_file() {
    let upstream = right(EDGE).upstream;
    assert_eq!(upstream.pinned_connections, 7);
    let shown = ["https://app.internal:443", "h2c://10.0.0.1:50051", "unix:/run/app.sock"];
    assert_eq!(text(&upstream.servers), shown);
    let endpoint = Endpoint::Tcp { host: "app.internal".into(), port: 443 };
    assert_eq!(upstream.servers[0], Server { scheme: Scheme::Https, endpoint });
    assert_eq!(upstream.servers[2].endpoint, Endpoint::Unix("/run/app.sock".into()));
    let tls = upstream.tls;
    assert_eq!((tls.ca, tls.name.as_deref()), (Some("ca.pem".into()), Some("app.internal")));
    assert_eq!((tls.certificate, tls.key), (Some("client.pem".into()), Some("client.key".into())));
}

#[test]
fn one_server_needs_no_brackets() {
    let file = |server: &str| format!("version = 1\n[upstream]\nserver = {server}\n");
    let [alone, listed] = ["\"http://a:1\"", "[\"http://a:1\"]"].map(|server| right(&file(server)));
    assert_eq!(alone.upstream, listed.upstream);
}

#[test]
fn health_is_judged_as_the_file_says() {
    let upstream = right(EDGE).upstream;
    assert_eq!(
        [upstream.keep_alive, upstream.resolve_every].map(TimeSpan::as_millis),
        [30_000, 60_000]
    );
    let health = upstream.health;
    assert_eq!(health.path.as_deref(), Some("/healthz?deep=0"));
    let spans = [health.interval, health.timeout, health.eject_for, health.slow_start];
    assert_eq!(spans.map(TimeSpan::as_millis), [3000, 500, 20_000, 0]);
    assert_eq!([health.rise, health.fall, health.eject_after, health.eject_share], [3, 4, 6, 0]);
}

#[test]
fn a_class_has_the_timeouts_of_the_upstream_but_for_its_own() {
    let config = right(EDGE);
    let timeouts = |connect, response, idle, total| {
        let [connect, response, idle, total] =
            [connect, response, idle, total].map(TimeSpan::from_secs);
        Timeouts { connect, response, idle, total }
    };
    assert_eq!(config.upstream.timeouts, timeouts(1, 60, 90, 300));
    assert_eq!(config.classes[0].timeouts, timeouts(1, 240, 90, 1800));
    assert_eq!(config.classes[1].timeouts, timeouts(2, 60, 10, 300));
}

#[test]
fn limits_answers_traces_state_and_stop_arrive() {
    let config = right(EDGE);
    let limits = config.client_limits;
    assert_eq!((limits.connections_per_address, limits.body_rate, limits.streams), (50, 1024, 7));
    assert_eq!((limits.proven_reserve, limits.observed), (25, 9));
    assert_eq!((limits.h2_streams, limits.idle_timeout), (128, TimeSpan::from_secs(30)));
    assert_eq!((config.answers.page, config.answers.details), (None, Details::None));
    let collector = Collector { host: "localhost".into(), port: 4318 };
    assert_eq!(config.traces.as_ref().map(ToString::to_string), Some(collector.to_string()));
    assert_eq!(config.traces, Some(collector));
    let directory = "/var/lib/bywash".into();
    assert_eq!(config.state, Some(State { directory, save_every: TimeSpan::from_secs(10) }));
    let (grace, delay) = (TimeSpan::from_secs(30), TimeSpan::from_secs(5));
    assert_eq!(config.stop, Stop { grace, delay });
}

#[test]
fn who_sets_nothing_gets_the_defaults() {
    let config = Config::for_upstream("https://app").unwrap();
    let (listen, limits) = (config.listen, config.client_limits);
    assert!(listen.https.is_none() && listen.http2 && listen.trusted_proxies.is_empty());
    assert_eq!(listen.forwarded, ForwardingField::XForwardedFor);
    assert!(listen.pass_fields.is_empty());
    assert_eq!(config.upstream.pinned_connections, 256);
    assert!(config.tls.is_none() && config.state.is_none() && config.traces.is_none());
    assert_eq!((limits.connections_per_address, limits.body_rate), (0, 500));
    assert_eq!((limits.streams, limits.h2_streams), (1000, 100));
    assert_eq!((limits.proven_reserve, limits.observed), (10, 4000));
    assert_eq!(limits.idle_timeout, TimeSpan::from_secs(75));
    assert_eq!(config.answers.details, Details::Trusted);
    let timeouts = config.upstream.timeouts;
    let Timeouts { connect, response, idle, total } = timeouts;
    let spans = [connect, response, idle, total].map(TimeSpan::as_millis);
    assert_eq!(spans, [5000, 60_000, 60_000, 3_600_000]);
    assert_eq!(limits.max_body_bytes, 1 << 30);
    assert_eq!(config.classes[0].timeouts, timeouts);
    let health = &config.upstream.health;
    let spans = [health.interval, health.timeout, health.eject_for, health.slow_start];
    assert_eq!(spans.map(TimeSpan::as_millis), [2000, 1000, 10_000, 10_000]);
    let counts = [health.rise, health.fall, health.eject_after, health.eject_share];
    assert_eq!((health.path.as_deref(), counts), (None, [2, 3, 5, 50]));
    let upstream = config.upstream;
    assert_eq!(
        [upstream.keep_alive, upstream.resolve_every].map(TimeSpan::as_millis),
        [4000, 10_000]
    );
}

/// Resolves a file with `path` as the page of refusals. Returns the text of the page, or the code
/// of the file's only problem.
fn page(path: &str) -> Result<Option<String>, &'static str> {
    let text =
        format!("version = 1\n[upstream]\nserver = \"http://a\"\n[answers]\npage = \"{path}\"\n");
    Config::parse(&text, "edge.toml").map(|(config, _)| config.answers.page).map_err(|problems| {
        let [problem] = &problems.iter().collect::<Vec<_>>()[..] else { panic!("{problems}") };
        assert_eq!((problem.line, problem.column), (5, 8));
        problem.code
    })
}

/// Writes a temporary file that only one test uses, and returns its path.
fn file(name: &str, contents: &[u8]) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::write(&path, contents).expect("the folder of tests can be written");
    path
}

#[test]
fn the_page_is_read_at_once() {
    let path = file("busy.html", "<p>Später.".as_bytes());
    assert_eq!(page(path.to_str().unwrap()), Ok(Some("<p>Später.".into())));
    let path = file("largest.html", &vec![b'x'; 64 * 1024]);
    assert_eq!(page(path.to_str().unwrap()).map(|page| page.unwrap().len()), Ok(64 * 1024));
}

#[test]
fn a_page_that_cannot_be_read_prevents_the_start() {
    let large = file("large.html", &vec![b'x'; 64 * 1024 + 1]);
    let latin = file("latin.html", b"<p>Sp\xe4ter.");
    for path in [large.to_str().unwrap(), latin.to_str().unwrap(), "/nowhere/a.html", "/dev/zero"] {
        assert_eq!(page(path), Err("E020"), "{path}");
    }
    assert_eq!(page(env!("CARGO_TARGET_TMPDIR")), Err("E020"));
}

#[test]
fn a_page_that_is_a_pipe_does_not_hold_up_the_start() {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("pipe.html");
    let _ = fs::remove_file(&path);
    let made = Command::new("mkfifo").arg(&path).status();
    assert!(made.is_ok_and(|status| status.success()), "mkfifo is part of POSIX");
    assert_eq!(page(path.to_str().unwrap()), Err("E020"));
}
