//! The reported problems, their positions and their suggestions.

use bywash_config::{Config, Problem, Problems, Severity};

fn problems(text: &str) -> Problems {
    match Config::parse(text, "bywash.toml") {
        Ok((_, warnings)) => warnings,
        Err(problems) => problems,
    }
}

/// Returns the problems of a valid file with further lines.
fn with(lines: &str) -> Problems {
    problems(&format!("version = 1\n[upstream]\nserver = \"http://127.0.0.1:3000\"\n{lines}"))
}

fn only(problems: &Problems) -> &Problem {
    let list: Vec<&Problem> = problems.iter().collect();
    assert_eq!(list.len(), 1, "{problems}");
    list[0]
}

const PLANTED: &str = r#"version = 1
mode = "enforced"
[listen]
http = ":8080"
admin = "0.0.0.0:7070"
workers = "4"
[upstream]
server = "htp://shop:443"
limit = 0
connect_timeout = "5"
respons_timeout = "60s"
[order]
policy = "session-first"
transact = 4
lower = 0.95
upper = 0.9
[queue]
max_wait = 20
body_buffer = "256K"
[identify]
session = "cookie:s id"
[logg]
access = "off"
[class.home]
match = ["GET /", "get /x"]
tier = "brwse"
utility = 27
[class.pay]
match = ["GET /", 5]
tier = "transact"
utility = 3
earns_header = "Set-Cookie"
success = ["status 2xx", "status 700"]
after = ["homme", "pay"]
"#;

#[test]
fn one_run_finds_every_planted_mistake_with_its_place_and_correction() {
    let expected = [
        ("E004", 2, 8, "`enforce`"),
        ("E004", 4, 8, "\"127.0.0.1:8080\""),
        ("E106", 5, 9, "\"127.0.0.1:7070\""),
        ("E003", 6, 11, "write 4"),
        ("E012", 8, 10, "\"http://shop:443\""),
        ("E004", 9, 9, "1"),
        ("E004", 10, 19, "\"5s\""),
        ("E002", 11, 1, "`response_timeout`"),
        ("E011", 14, 1, "`session-first` takes"),
        ("E102", 15, 9, "0.9"),
        ("E003", 18, 12, "\"20s\""),
        ("E004", 19, 15, "\"256KiB\""),
        ("E014", 21, 11, "\"cookie:sid\""),
        ("E002", 22, 2, "`log`"),
        ("E016", 25, 19, "\"GET /x\""),
        ("E004", 26, 8, "`browse`"),
        ("E101", 29, 10, "keep one"),
        ("E003", 29, 19, "quotes"),
        ("W104", 31, 11, "more than 27"),
        ("E024", 32, 16, "choose another name"),
        ("W122", 32, 16, "set `earns`"),
        ("W122", 33, 11, "set `earns`"),
        ("E051", 33, 26, "\"status 302\""),
        ("E109", 34, 10, "`home`"),
        ("E109", 34, 19, "a class of its own"),
    ];
    let problems = problems(PLANTED);
    assert_eq!(problems.len(), expected.len(), "{problems}");
    for (problem, (code, line, column, help)) in problems.iter().zip(expected) {
        assert_eq!((problem.code, problem.line, problem.column), (code, line, column));
        let given = problem.help.as_deref().unwrap_or_default();
        assert!(given.contains(help), "{code} at {line}:{column}: {given}");
    }
}

#[test]
fn a_drawing_shows_the_line_the_place_and_the_help() {
    let text = with("[queue]\nmax_wait = \"20\"\n").to_string();
    let expected = r#"  × E004 `queue.max_wait` takes a duration from "10ms" to "1h", not "20"
   ╭─[bywash.toml:5:12]
 5 │ max_wait = "20"
   ·            ────
   ╰────
  help: did you mean "20s"?

1 error, 0 warnings in bywash.toml
"#;
    assert_eq!(text, expected);
}

#[test]
fn the_caller_chooses_colours() {
    let problems = with("x = 1\n");
    assert!(problems.render(true).contains('\u{1b}'));
    assert!(!problems.render(false).contains('\u{1b}'));
}

#[test]
fn programs_get_the_same_as_json() {
    let json = with("limit = 0\n").to_json();
    assert_eq!(json["file"], "bywash.toml");
    let problem = &json["problems"][0];
    assert_eq!((&problem["code"], &problem["severity"]), (&"E004".into(), &"error".into()));
    assert_eq!((&problem["line"], &problem["column"]), (&4.into(), &9.into()));
    assert_eq!(json["more"], 0);
}

#[test]
fn what_is_no_host_and_no_field_of_a_class_is_told_at_its_place() {
    for (key, value, code) in [
        ("hosts", "shop.example.com:80", "E049"),
        ("hosts", "*shop.example.com", "E049"),
        ("hosts", "*.*.example.com", "E049"),
        ("headers", "x kind", "E050"),
        ("headers", ": crawler", "E050"),
    ] {
        let problems = with(&format!("[class.a]\nmatch = [\"/p\"]\n{key} = [\"{value}\"]\n"));
        let problem = only(&problems);
        assert_eq!((problem.code, problem.line), (code, 6), "{value}");
    }
    for pattern in ["/a//b", "/a%2Fb", "/a;b", "/../a"] {
        let problems = with(&format!("[class.a]\nmatch = [\"{pattern}\"]\n"));
        assert_eq!(only(&problems).code, "E016", "{pattern}");
    }
}

#[test]
fn a_pattern_in_two_classes_shows_both_lines() {
    let problems = with("[class.a]\nmatch = [\"GET /p\"]\n[class.b]\nmatch = [\"/p?...\"]\n");
    let tie = only(&problems);
    assert_eq!((tie.code, tie.line), ("E101", 7));
    assert_eq!(tie.elsewhere.as_ref().map(|first| (first.line, first.column)), Some((5, 10)));
    let drawing = problems.to_string();
    assert!(drawing.contains("[bywash.toml:5:10]") && drawing.contains("[bywash.toml:7:10]"));
}

#[test]
fn where_the_case_of_paths_is_ignored_that_of_values_still_counts() {
    let both = |second: &str| {
        let first = "ignore_case = true\n[class.a]\nmatch = [\"/p?t=A&...\"]\n";
        with(&format!("{first}[class.b]\nmatch = [\"{second}\"]\n"))
    };
    assert!(both("/p?t=a&...").is_empty(), "{}", both("/p?t=a&..."));
    assert_eq!(only(&both("/P?t=A&...")).code, "E101");
}

#[test]
fn broken_toml_is_reported_together_with_what_could_be_recovered() {
    let problems =
        problems("version = 1\nmode = observe\n[upstream]\nlimit = 0\nserver = \"http://a\n");
    let places: Vec<_> = problems.iter().map(|p| (p.code, p.line)).collect();
    assert_eq!(places, [("E001", 2), ("E004", 4), ("E001", 5)], "{problems}");
    assert_eq!(problems.iter().next().unwrap().help.as_deref(), Some("write \"observe\""));
}

#[test]
fn a_list_that_is_not_closed_is_one_problem_and_not_one_per_line() {
    let lines =
        "[class.a]\nmatch = [\"GET /\", \"GET /x\"\ntier = \"browse\"\n[class.b]\nmatch = 1\n";
    let problems = with(lines);
    assert_eq!((only(&problems).code, only(&problems).line), ("E001", 6));
    assert!(only(&problems).help.as_deref().unwrap().contains("`]`"));
}

#[test]
fn what_a_broken_text_may_have_lost_is_not_called_missing() {
    let problems = problems("version = 1\n[upstream\nserver = \"http://a\"\n");
    assert!(problems.iter().all(|problem| problem.code != "E005"), "{problems}");
}

#[test]
fn an_empty_file_lacks_exactly_what_is_required() {
    let problems = problems("");
    let messages: Vec<_> = problems.iter().map(|problem| problem.message.as_str()).collect();
    assert_eq!(messages, ["`version` is missing", "`upstream.server` is missing"]);
    assert!(problems.to_string().contains("under [upstream]"));
}

#[test]
fn a_later_version_is_told_apart_from_a_mistake() {
    let problems = problems("version = 2\n[upstream]\nserver = \"http://a\"\n");
    assert_eq!(only(&problems).code, "E006");
    assert_eq!(only(&problems).help.as_deref(), Some("this bywash reads version 1"));
}

#[test]
fn a_parameter_of_another_policy_is_named_as_such() {
    let problems = with("[order]\npolicy = \"always-fifo\"\ncapacity = 5\n");
    let problem = only(&problems);
    assert_eq!(problem.code, "E011");
    let owners = "`capacity` is a parameter of `session-first`, `value-index`, `single-queue`, not of \
         `always-fifo`";
    assert_eq!(problem.message, owners);
}

#[test]
fn under_an_unknown_policy_only_parameters_of_none_are_strangers() {
    let problems = with("[order]\npolicy = \"lifo\"\ntransact = 5\ncapacity = 3\nnonsense = 1\n");
    let codes: Vec<_> = problems.iter().map(|problem| (problem.code, problem.line)).collect();
    assert_eq!(codes, [("E010", 5), ("E002", 8)], "{problems}");
    assert_eq!(problems.iter().next().unwrap().help.as_deref(), Some("did you mean `lifo-pri`?"));
}

#[test]
fn two_numbers_to_start_with_are_one_too_many() {
    let problems = with("limit = 8\n[limit]\nslots = 9\n");
    assert_eq!((only(&problems).code, only(&problems).line), ("E127", 4));
    let problems = with("limit = 8\n[limit]\npolicy = \"slope\"\ninitial = 9\n");
    assert!(only(&problems).message.ends_with("`limit.initial` is 9"), "{problems}");
    let problems = with("[limit]\npolicy = \"vegas\"\nslots = 9\n");
    assert_eq!(only(&problems).message, "`slots` is a parameter of `fixed`, not of `vegas`");
}

#[test]
fn the_least_limit_may_not_lie_above_the_most() {
    let problems = with("[limit]\npolicy = \"slope\"\nmin = 9\nmax = 8\n");
    assert_eq!((only(&problems).code, only(&problems).line), ("E128", 6));
    let problems = with("[limit]\npolicy = \"slope\"\nmin = 2000\n");
    assert_eq!((only(&problems).code, only(&problems).line), ("E128", 6));
}

#[test]
fn a_limit_may_not_start_where_it_may_not_be() {
    let slope =
        |start: &str, lines: &str| with(&format!("{start}[limit]\npolicy = \"slope\"\n{lines}"));
    for (start, lines, place, bound, words) in [
        ("limit = 500\n", "max = 200\n", (4, 9), Some(7), "`upstream.limit` 500 is above"),
        ("limit = 2000\n", "", (4, 9), None, "`upstream.limit` 2000 is above `limit.max` 1000"),
        ("", "initial = 300\nmax = 200\n", (6, 11), Some(7), "`limit.initial` 300 is above"),
        ("limit = 2\n", "min = 4\n", (4, 9), Some(7), "`upstream.limit` 2 is below `limit.min`"),
    ] {
        let problems = slope(start, lines);
        let problem = only(&problems);
        assert_eq!((problem.code, problem.line, problem.column), ("E130", place.0, place.1));
        assert_eq!(problem.elsewhere.as_ref().map(|bound| bound.line), bound, "{problems}");
        assert!(problem.message.starts_with(words), "{problems}");
    }
    let help = slope("limit = 2000\n", "").iter().next().unwrap().help.clone().unwrap();
    assert!(help.starts_with("write max = 2000 or more under [limit]"), "{help}");
    assert!(slope("limit = 200\n", "min = 200\nmax = 200\n").is_empty());
    // An invalid bound cannot be compared with anything.
    assert_eq!(only(&slope("limit = 2000\n", "max = 0\n")).code, "E004");
}

#[test]
fn no_order_is_worth_more_than_there_is_money() {
    let class = |line: &str| with(&format!("[class.a]\nmatch = [\"GET /\"]\n{line}\n"));
    for key in ["earns", "pin"] {
        assert!(class(&format!("{key} = 1e12")).is_empty(), "{key}");
        let problems = class(&format!("{key} = 1.1e12"));
        assert_eq!((only(&problems).code, only(&problems).line), ("E004", 6), "{problems}");
    }
}

#[test]
fn a_threshold_alone_is_compared_with_the_default_of_the_other() {
    assert_eq!(only(&with("[order]\nupper = 0.5\n")).code, "E102");
    assert!(with("[order]\nupper = 0.75\n").is_empty());
}

#[test]
fn a_key_in_the_wrong_table_is_sent_home() {
    let problems = with("[queue]\nsession = \"none\"\n");
    assert_eq!(only(&problems).help.as_deref(), Some("`session` belongs under [identify]"));
    let problems = with("[queue]\ncapacity = 5\n");
    let homes = "`capacity` belongs under [order] or under [resource.NAME]";
    assert_eq!(only(&problems).help.as_deref(), Some(homes));
    let problems = with("[queue]\ninterval = \"5s\"\n");
    let homes = "`interval` belongs under [health] or under [order] or under [terminate]";
    assert_eq!(only(&problems).help.as_deref(), Some(homes));
}

#[test]
fn a_resource_is_of_this_host_or_of_an_exporter_or_of_the_process_of_a_file() {
    for (read, from, code) in [
        ("host/cpu", None, None),
        ("host/cpu", Some("http://10.0.0.7:9100/metrics"), None),
        ("process/mariadbd/cpu", Some("/run/mysqld/mysqld.pid"), None),
        ("host/cpu", Some("/run/mysqld/mysqld.pid"), Some("E047")),
        ("process/mariadbd", Some("/run/mysqld/mysqld.pid"), Some("E045")),
        ("process/mariadbd/cpu", Some("run/mysqld.pid"), Some("E047")),
        ("mysql/questions", None, Some("E045")),
        ("host/cpu", Some("http://:9100/metrics"), Some("E047")),
    ] {
        let from = from.map(|from| format!("from = \"{from}\"\n")).unwrap_or_default();
        let problems = with(&format!("[resource.database]\nread = \"{read}\"\n{from}"));
        assert_eq!(problems.iter().next().map(|p| p.code), code, "{read} {from}: {problems}");
    }
}

#[test]
fn listeners_that_collide_are_refused() {
    for (http, admin, code) in [
        ("127.0.0.1:7070", "127.0.0.1:7070", Some("E107")),
        ("0.0.0.0:7070", "127.0.0.1:7070", Some("E107")),
        ("[::]:7070", "[::1]:7070", Some("E107")),
        ("127.0.0.1:0", "127.0.0.1:0", None),
        ("127.0.0.2:7070", "127.0.0.1:7070", None),
        ("127.0.0.1:3000", "127.0.0.1:7070", Some("E108")),
    ] {
        let problems = with(&format!("[listen]\nhttp = \"{http}\"\nadmin = \"{admin}\"\n"));
        assert_eq!(problems.iter().next().map(|p| p.code), code, "{http} {admin}: {problems}");
    }
}

#[test]
fn an_admin_address_that_others_reach_is_refused() {
    for admin in ["0.0.0.0:1", "[::]:1", "192.0.2.1:1", "[::ffff:192.0.2.1]:1"] {
        assert_eq!(only(&with(&format!("[listen]\nadmin = \"{admin}\"\n"))).code, "E106");
    }
    for admin in ["127.0.0.9:1", "[::1]:1", "[::ffff:127.0.0.1]:1"] {
        assert!(with(&format!("[listen]\nadmin = \"{admin}\"\n")).is_empty());
    }
}

#[test]
fn a_warning_does_not_prevent_the_start() {
    let text =
        "[class.look]\nmatch = [\"GET /\"]\nafter = [\"other\"]\n[queue]\nbody_buffer_total = 1\n";
    let text = format!("version = 1\n[upstream]\nserver = \"http://a\"\n{text}");
    let (config, warnings) = Config::parse(&text, "f").unwrap();
    assert_eq!(config.classes.len(), 2);
    let codes: Vec<_> = warnings.iter().map(|warning| warning.code).collect();
    assert_eq!(codes, ["W111", "W112"]);
    assert_eq!(warnings.count(Severity::Warning), 2);
}

#[test]
fn names_of_classes_are_checked_and_mended() {
    let problems =
        with("[class.Home]\nmatch = [\"GET /\"]\n[class.\"a b\"]\nmatch = [\"GET /a\"]\n");
    let helps: Vec<_> = problems.iter().map(|problem| problem.help.as_deref().unwrap()).collect();
    assert_eq!(helps, ["did you mean `home`?", "did you mean `a-b`?"]);
}

#[test]
fn the_class_other_takes_no_patterns() {
    let problems = with("[class.other]\nmatch = [\"GET /\"]\nutilty = 2\n");
    let codes: Vec<_> = problems.iter().map(|problem| problem.code).collect();
    assert_eq!(codes, ["E110", "E002"]);
}

#[test]
fn more_classes_than_the_engine_has_room_for_are_refused() {
    let class = |i: usize| format!("[class.c{i}]\nmatch = [\"GET /{i}\"]\n");
    assert!(with(&(0..63).map(class).collect::<String>()).is_empty());
    let problems = with(&(0..70).map(class).collect::<String>());
    assert_eq!((only(&problems).code, only(&problems).line), ("E018", 4 + 2 * 63));
}

#[test]
fn a_table_that_is_none_is_told_how_to_be_one() {
    let problems =
        problems("version = 1\nqueue = 5\nclass = []\n[upstream]\nserver = \"http://a\"\n");
    let helps: Vec<_> = problems.iter().map(|problem| problem.help.as_deref().unwrap()).collect();
    assert_eq!(helps, ["write [queue] on its own line", "write [class.NAME] on its own line"]);
    assert_eq!(only(&with("[class]\nhome = 5\n")).code, "E003");
}

#[test]
fn a_url_on_the_command_line_is_reported_as_such() {
    let problems = Config::for_upstream("ftp://shop").unwrap_err();
    assert_eq!(only(&problems).code, "E012");
    assert!(problems.to_string().contains("[--upstream:1:1]"), "{problems}");
}
