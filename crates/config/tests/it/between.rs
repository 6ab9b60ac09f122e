//! Tests of contradictions between values: listeners, certificates, servers, timeouts.

use bywash_config::{Config, Problem, Problems, Severity};

/// Returns the problems of a valid file in which `upstream` replaces the lines under `[upstream]`
/// and `lines` adds tables.
fn with(upstream: &str, lines: &str) -> Problems {
    let text = format!("version = 1\n[upstream]\n{upstream}\n{lines}");
    match Config::parse(&text, "bywash.toml") {
        Ok((_, warnings)) => warnings,
        Err(problems) => problems,
    }
}

const SERVER: &str = "server = \"http://127.0.0.1:3000\"";

fn beside(lines: &str) -> Problems {
    with(SERVER, lines)
}

fn only(problems: &Problems) -> &Problem {
    let list: Vec<&Problem> = problems.iter().collect();
    assert_eq!(list.len(), 1, "{problems}");
    list[0]
}

fn codes(problems: &Problems) -> Vec<&'static str> {
    problems.iter().map(|problem| problem.code).collect()
}

fn help(problem: &Problem) -> &str {
    problem.help.as_deref().unwrap_or_default()
}

const PLANTED: &str = r#"version = 1
[listen]
http = "0.0.0.0:8080"
https = "192.0.2.1:8080"
admin = "unix:run/admin.sock"
http2 = "on"
proxy_protocol = ["10.1.2.3/8", "lb.internal"]
trusted_proxies = ["10.0.0.0/33", 7, "::/0"]
[tls]
certificates = ["a.pem", "b.pem"]
keys = ["a.key"]
[upstream]
server = ["http://a:1", "http://a:1/", "grpc://b:2", "h2c://localhost:8080"]
total_timeout = "10s"
response_timeout = "60s"
tls_name = "https://a"
tls_key = "client.key"
[health]
path = "health check"
interval = "1s"
timeout = "1s"
rise = 0
[client_limits]
body_rate = "500 bytes/s"
h2_streams = 2000
[answers]
page = "/nowhere/busy.html"
details = "everybody"
[log]
traces = "https://collector:4318"
[state]
directory = ""
[stop]
delay = "5"
[class.pay]
match = ["POST /pay"]
total_timeout = "2s"
idle_timeout = "3s"
connect_timeout = "10m"
"#;

#[test]
fn one_run_finds_every_planted_mistake_with_its_place_and_correction() {
    let expected = [
        ("E107", 4, 9, "another port"),
        ("E004", 5, 9, "\"unix:/run/admin.sock\""),
        ("E003", 6, 9, "write true"),
        ("E019", 7, 19, "\"10.0.0.0/8\", or \"10.1.2.3\""),
        ("E019", 7, 33, "names are not looked up"),
        ("E019", 8, 20, "32 bits"),
        ("E003", 8, 35, "quotes"),
        ("W120", 8, 38, "name only the hops"),
        ("E115", 11, 8, "same position"),
        ("E116", 13, 25, "keep one"),
        ("E012", 13, 40, "\"http://b:2\""),
        ("E108", 13, 54, "name the application"),
        ("W121", 15, 20, "`upstream.total_timeout` to more than 1m"),
        ("E022", 16, 12, "without scheme"),
        ("E117", 17, 11, "tls_certificate = "),
        ("E021", 19, 8, "\"/healthcheck\""),
        ("W119", 21, 11, "every 1s"),
        ("E004", 22, 8, "1"),
        ("E004", 24, 13, "\"500B\""),
        ("E004", 25, 14, "1000"),
        ("E020", 27, 8, "64 KiB"),
        ("E004", 28, 11, ""),
        ("E023", 30, 10, "\"http://collector:4318\""),
        ("E004", 32, 13, ""),
        ("E004", 34, 9, "\"5s\""),
        ("W121", 38, 16, "`class.pay.total_timeout`"),
        ("E004", 39, 19, "\"5m\""),
    ];
    let problems = Config::parse(PLANTED, "bywash.toml").unwrap_err();
    for (problem, (code, line, column, help)) in problems.iter().zip(expected) {
        assert_eq!((problem.code, problem.line, problem.column), (code, line, column));
        let given = problem.help.as_deref().unwrap_or_default();
        assert!(given.contains(help), "{code} at {line}:{column}: {given}");
    }
    assert_eq!(problems.len(), expected.len(), "{problems}");
}

#[test]
fn no_two_listeners_share_an_address() {
    let listen = |http: &str, https: &str, admin: &str| {
        let text = format!("[listen]\nhttp = \"{http}\"\nhttps = \"{https}\"\nadmin = \"{admin}\"");
        beside(&format!("{text}\n[tls]\ncertificates = [\"a\"]\nkeys = [\"b\"]\n"))
    };
    for (http, https, admin, expected) in [
        ("127.0.0.1:1", "127.0.0.1:1", "127.0.0.1:2", Some("`listen.http` and `listen.https`")),
        ("127.0.0.1:1", "0.0.0.0:1", "127.0.0.1:2", Some("`listen.http` and `listen.https`")),
        ("192.0.2.1:1", "[::]:1", "127.0.0.1:2", Some("`listen.http` and `listen.https`")),
        ("0.0.0.0:1", "0.0.0.0:2", "127.0.0.1:2", Some("`listen.https` and `listen.admin`")),
        ("0.0.0.0:1", "0.0.0.0:2", "unix:/run/a", None),
        ("0.0.0.0:1", "[::1]:1", "127.0.0.1:2", None),
        ("127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0", None),
    ] {
        let problems = listen(http, https, admin);
        let message = problems.iter().next().map(|problem| problem.message.as_str());
        assert_eq!(message.is_some(), expected.is_some(), "{problems}");
        let begins = message.unwrap_or_default().starts_with(expected.unwrap_or_default());
        assert!(begins && problems.len() < 2, "{problems}");
    }
}

#[test]
fn tls_needs_a_certificate_and_a_certificate_needs_tls() {
    let https = "[listen]\nhttps = \"0.0.0.0:443\"\n";
    let pair = "[tls]\ncertificates = [\"a.pem\"]\nkeys = [\"a.key\"]\n";
    assert_eq!(codes(&beside(https)), ["E113"]);
    assert_eq!(codes(&beside(&format!("{https}[tls]\n"))), ["E113"]);
    assert_eq!(codes(&beside(&format!("{https}{pair}"))), [""; 0]);
    let unused = beside(pair);
    assert_eq!((only(&unused).code, only(&unused).severity), ("W114", Severity::Warning));
    assert_eq!(codes(&beside("[tls]\n")), [""; 0]);
}

#[test]
fn certificates_and_keys_pair() {
    for (lines, column) in [
        ("certificates = [\"a\"]", 16),
        ("keys = [\"a\"]", 8),
        ("keys = [\"a\"]\ncertificates = [\"a\", \"b\"]", 8),
    ] {
        let problems = beside(&format!("[tls]\n{lines}\n"));
        assert_eq!((only(&problems).code, only(&problems).column), ("E115", column));
    }
}

#[test]
fn what_goes_with_a_refused_value_is_not_blamed() {
    let https = "[listen]\nhttps = \"0.0.0.0:443\"\n[tls]\n";
    for (lines, code) in [
        ("certificates = [\"a\", 5]\nkeys = [\"a\", \"b\"]", "E003"),
        ("certificates = \"a\"\nkeys = [\"a\"]", "E003"),
        ("certificates = [\"a\"]\nkeys = [\"\"]", "E004"),
    ] {
        assert_eq!(codes(&beside(&format!("{https}{lines}\n"))), [code], "{lines}");
    }
    let pair = "[tls]\ncertificates = [\"a\"]\nkeys = [\"b\"]\n";
    assert_eq!(codes(&beside(&format!("{pair}[listen]\nhttps = \"443\"\n"))), ["E004"]);
    let server = |server: &str| with(&format!("server = {server}\ntls_name = \"a\""), "");
    assert_eq!(codes(&server("[\"http://a\", 5]")), ["E003"]);
    assert_eq!(codes(&server("[\"http://a\", \"htps://b\"]")), ["E012"]);
    let half = "tls_certificate = 5\ntls_key = \"a\"\nserver = \"https://a\"";
    assert_eq!(codes(&with(half, "")), ["E003"]);
    let total = format!("{SERVER}\ntotal_timeout = \"2s\"");
    let class = "[class.a]\nmatch = [\"GET /\"]\nresponse_timeout = \"5m\"\ntotal_timeout = 9\n";
    assert_eq!(codes(&with(&total, class)), ["E003"]);
    assert_eq!(codes(&beside("[health]\ninterval = 5\ntimeout = \"3s\"\n")), ["E003"]);
}

#[test]
fn no_server_is_a_listener_of_ours() {
    let listen = "[listen]\nhttp = \"0.0.0.0:1\"\nhttps = \"[::1]:2\"\nadmin = \"unix:/run/a\"\n\
                  [tls]\ncertificates = [\"a\"]\nkeys = [\"b\"]\n";
    for (server, listener) in [
        ("http://localhost:1", "listen.http"),
        ("h2c://127.0.0.1:1", "listen.http"),
        ("http://[::ffff:127.0.0.1]:1", "listen.http"),
        ("https://[::1]:2", "listen.https"),
        ("unix:/run/a", "listen.admin"),
    ] {
        let list = format!("server = [\"http://app:1\", \"{server}\"]");
        let problems = with(&list, listen);
        assert_eq!((only(&problems).code, only(&problems).column), ("E108", 27), "{server}");
        assert!(only(&problems).message.contains(listener), "{problems}");
    }
    for server in ["http://127.0.0.1:2", "https://[::2]:2", "unix:/run/b", "http://app:1"] {
        assert!(with(&format!("server = \"{server}\""), listen).is_empty(), "{server}");
    }
}

#[test]
fn a_server_stands_once() {
    for (one, other) in [
        ("http://a:80", "http://A/"),
        ("http://a:80", "h2c://a"),
        ("http://localhost:1", "http://127.0.0.1:1"),
        ("http://[::ffff:127.0.0.1]:1", "http://127.0.0.1:1"),
        ("unix:/run/a", "unix:/run/a"),
    ] {
        let problems = with(&format!("server = [\"{one}\", \"{other}\"]"), "");
        let problem = only(&problems);
        let column = "server = [\"\", ".len() + one.len() + 1;
        assert_eq!((problem.code, problem.column), ("E116", column), "{one} {other}");
        assert_eq!(problem.elsewhere.as_ref().map(|first| first.column), Some(11));
    }
    let apart = "server = [\"http://a\", \"https://a\", \"http://b\", \"unix:/a\", \"unix:/b\"]";
    assert!(with(apart, "").is_empty());
}

#[test]
fn there_are_no_more_servers_than_anyone_needs() {
    let list = |count: usize| {
        let servers: Vec<String> = (1..=count).map(|i| format!("\"http://a:{i}\"")).collect();
        with(&format!("server = [{}]", servers.join(", ")), "")
    };
    assert!(list(64).is_empty());
    assert_eq!((only(&list(65)).code, only(&list(65)).column), ("E004", 10));
    assert!(only(&list(65)).message.contains("1 to 64"), "{}", list(65));
    assert!(only(&list(0)).message.ends_with("not an empty list"), "{}", list(0));
}

#[test]
fn keys_for_tls_servers_want_a_tls_server() {
    let keys = "tls_ca = \"a\"\ntls_name = \"a\"\ntls_certificate = \"a\"\ntls_key = \"a\"\n";
    let clear = with(&format!("{keys}server = [\"http://a\", \"unix:/a\"]"), "");
    assert_eq!(codes(&clear), ["W118"; 4], "{clear}");
    assert!(with(&format!("{keys}server = [\"http://a\", \"https://b\"]"), "").is_empty());
}

#[test]
fn a_certificate_of_our_own_comes_with_its_key() {
    for (given, missing) in [("tls_key", "tls_certificate = "), ("tls_certificate", "tls_key = ")] {
        let problems = with(&format!("server = \"https://a\"\n{given} = \"a\""), "");
        assert_eq!((only(&problems).code, only(&problems).line), ("E117", 4));
        assert!(help(only(&problems)).contains(missing), "{problems}");
    }
}

#[test]
fn a_health_check_ends_before_the_next_begins() {
    assert_eq!(codes(&beside("[health]\ntimeout = \"2s\"\n")), ["W119"]);
    assert_eq!(codes(&beside("[health]\ninterval = \"1s\"\n")), ["W119"]);
    assert!(beside("[health]\ntimeout = \"1999ms\"\n").is_empty());
}

#[test]
fn what_servers_are_asked_for_cannot_end_a_request_line() {
    for (path, meant) in [
        ("healthz", "\"/healthz\""),
        ("/a b", "\"/ab\""),
        ("/a HTTP/1.1\\r\\nHost: b", "\"/aHTTP/1.1Host:b\""),
        ("/a#b", "\"/ab\""),
        ("/é", "\"/\""),
        ("http://a/healthz", "only the path"),
    ] {
        let problems = beside(&format!("[health]\npath = \"{path}\"\n"));
        assert_eq!((only(&problems).code, only(&problems).column), ("E021", 8), "{path}");
        assert!(help(only(&problems)).contains(meant), "{problems}");
    }
    assert!(beside("[health]\npath = \"/health?full=1\"\n").is_empty());
}

#[test]
fn a_total_may_cut_short_what_others_say_and_not_what_stands_beside_it() {
    let class = |lines: &str| beside(&format!("[class.a]\nmatch = [\"GET /\"]\n{lines}"));
    assert!(class("total_timeout = \"2s\"\n").is_empty());
    assert!(class("total_timeout = \"2s\"\nresponse_timeout = \"2s\"\n").is_empty());
    let problems = class("total_timeout = \"2s\"\nresponse_timeout = \"3s\"\n");
    assert_eq!((only(&problems).code, only(&problems).line), ("W121", 7));
    assert_eq!(only(&problems).elsewhere.as_ref().map(|total| total.line), Some(6));
    let inherited = with(
        &format!("{SERVER}\ntotal_timeout = \"2s\""),
        "[class.a]\nmatch = [\"GET /\"]\nresponse_timeout = \"5m\"\n",
    );
    assert_eq!((only(&inherited).code, only(&inherited).line), ("W121", 7));
    assert!(only(&inherited).message.contains("5m is never reached: the total is 2s"));
    let other = beside("[class.other]\ntotal_timeout = \"2s\"\nidle_timeout = \"3s\"\n");
    assert!(only(&other).message.starts_with("`class.other.idle_timeout`"), "{other}");
}

#[test]
fn nothing_is_learned_of_worth_where_no_class_has_revenue() {
    let with_class = |policy: &str, line: &str| {
        beside(&format!(
            "[scheduler]\npolicy = \"{policy}\"\n[class.a]\nmatch = [\"GET /\"]\n{line}"
        ))
    };
    let problems = with_class("value-index", "fixed_value = 3\n");
    assert_eq!((only(&problems).code, only(&problems).column), ("W129", 2), "{problems}");
    assert!(help(only(&problems)).contains("`revenue`"), "{problems}");
    assert!(with_class("value-index", "revenue = 1\n").is_empty());
    assert!(with_class("session-first", "").is_empty());
}

#[test]
fn whoever_believes_everybody_is_warned() {
    for network in ["0.0.0.0/0", "::/0", "::ffff:0.0.0.0/96"] {
        let problems = beside(&format!("[listen]\ntrusted_proxies = [\"{network}\"]\n"));
        assert_eq!((only(&problems).code, only(&problems).column), ("W120", 20), "{network}");
        // Every peer may be required to send a PROXY protocol header.
        assert!(beside(&format!("[listen]\nproxy_protocol = [\"{network}\"]\n")).is_empty());
    }
}

#[test]
fn a_field_that_never_passes_is_named_by_nobody() {
    let passes = |name: &str| beside(&format!("[listen]\npass_fields = [\"{name}\"]\n"));
    for name in ["x-http-method-override", "X-Original-URL", "x-forwarded-user", "remote-user"] {
        assert!(passes(name).is_empty(), "{name}");
    }
    for name in ["Proxy", "x-forwarded-for", "Forwarded", "X-Real-IP", "bywash-level", "x_user"] {
        assert_eq!(only(&passes(name)).code, "E024", "{name}");
    }
}

#[test]
fn an_admin_socket_is_short_and_absolute() {
    let admin = |path: &str| beside(&format!("[listen]\nadmin = \"unix:{path}\"\n"));
    let of_length = |length: usize| format!("/{}", "x".repeat(length - 1));
    assert!(admin("/run/bywash/admin.sock").is_empty());
    assert!(admin(&of_length(107)).is_empty());
    for path in ["", "admin.sock", "/run/", &of_length(108)] {
        assert_eq!((only(&admin(path)).code, only(&admin(path)).column), ("E004", 9), "{path}");
    }
    let bare = beside("[listen]\nadmin = \"/run/admin.sock\"\n");
    assert!(help(only(&bare)).contains("\"unix:/run/admin.sock\""), "{bare}");
}

#[test]
fn a_part_of_all_visitors_is_of_a_class_that_is_enforced() {
    let of = |lines: &str| {
        let upstream = "upstream = { server = 'http://127.0.0.1:1', ignore_case = false }";
        let text = format!("version = 1\n{upstream}\n{lines}");
        let (config, warnings) = Config::parse(&text, "test").unwrap();
        (config.classes[0].enforce_percent, warnings.iter().map(|one| one.code).collect::<Vec<_>>())
    };
    let class = |rest: &str| format!("class.a = {{ match = ['GET /a'], {rest} }}");
    assert_eq!(of(&class("mode = 'enforce', enforce_percent = 10")), (10, vec![]));
    assert_eq!(of(&class("enforce_percent = 10")), (10, vec!["W141"]));
    assert_eq!(of(&class("enforce_percent = 100")), (100, vec![]));
    assert_eq!(of(&class("mode = 'enforce'")), (100, vec![]));
}

#[test]
fn a_class_that_observes_does_not_see_json_in_compressed_answers() {
    let of = |mode: &str, success: &str| {
        let upstream = "upstream = { server = 'http://127.0.0.1:1', ignore_case = false }";
        let class =
            format!("match = ['POST /a'], revenue = 1, mode = {mode}, success = ['{success}']");
        let text = format!("version = 1\nmode = 'enforce'\n{upstream}\nclass.a = {{ {class} }}");
        let (_, warnings) = Config::parse(&text, "test").unwrap();
        warnings.iter().map(|one| one.code).collect::<Vec<_>>()
    };
    assert_eq!(of("'observe'", "json placed: true"), ["W143"]);
    assert_eq!(of("'enforce', enforce_percent = 10", "json placed: true"), ["W143"]);
    assert_eq!(of("'enforce'", "json placed: true").len(), 0);
    assert_eq!(of("'observe'", "status 302").len(), 0);
    assert_eq!(of("'enforce', enforce_percent = 10", "status 302").len(), 0);
}

#[test]
fn conditions_of_success_have_an_effect_where_a_success_has_revenue_or_proves_something() {
    let of = |class: &str, requires: &str| {
        let pay = format!("match = ['POST /b'], tier = 'transaction', {requires}");
        let text = format!(
            "version = 1\nupstream.server = 'http://127.0.0.1:1'\n\
             class.a = {{ match = ['POST /a'], success = ['status 302'], {class} }}\n\
             class.b = {{ {pay} }}"
        );
        let (_, warnings) = Config::parse(&text, "test").unwrap();
        warnings.iter().map(|one| one.code).collect::<Vec<_>>()
    };
    assert_eq!(of("revenue = 0", "requires = ['other']"), ["W122"]);
    assert_eq!(of("revenue = 1", "requires = ['other']").len(), 0);
    assert_eq!(of("revenue = 0", "requires = ['a']").len(), 0);
}

#[test]
fn a_class_that_alone_is_enforced_asks_whether_case_matters() {
    let staged = |upstream: &str, other: &str| {
        let class = "[class.search]\nmatch = [\"GET /search\"]\nmode = \"enforce\"";
        with(
            &format!("server = \"http://127.0.0.1:3000\"\n{upstream}"),
            &format!("{class}\n{other}"),
        )
    };
    let problems = staged("", "");
    let problem = only(&problems);
    assert_eq!(problem.code, "W142");
    assert!(help(problem).contains("upstream.ignore_case"), "{problem:?}");
    for (upstream, other) in [
        ("ignore_case = true", ""),
        ("ignore_case = false", ""),
        ("", "[class.other]\nmode = \"enforce\""),
    ] {
        assert_eq!(codes(&staged(upstream, other)), [""; 0], "{upstream} {other}");
    }
}
