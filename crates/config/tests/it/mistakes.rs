//! Tests of the reported problems, their positions and their suggestions.
//!
//! Most of the problems are in two files: `golden/mistakes.toml` has the configurations, and
//! `golden/mistakes.txt` the messages about them. The tests below check what these files cannot
//! show.

use std::fs;
use std::path::{Path, PathBuf};

use bywash_config::{Config, Problem, Problems, Severity};

fn problems(text: &str) -> Problems {
    match Config::parse(text, "bywash.toml") {
        Ok((_, warnings)) => warnings,
        Err(problems) => problems,
    }
}

/// Returns the problems of a valid file to which `lines` are appended.
fn with(lines: &str) -> Problems {
    problems(&format!("version = 1\n[upstream]\nserver = \"http://127.0.0.1:3000\"\n{lines}"))
}

fn only(problems: &Problems) -> &Problem {
    let list: Vec<&Problem> = problems.iter().collect();
    assert_eq!(list.len(), 1, "{problems}");
    list[0]
}

/// The configurations with mistakes. Each one follows a line `#: CODE`, which can have further
/// words.
const MISTAKES: &str = include_str!("../golden/mistakes.toml");

/// The codes that no case of [`MISTAKES`] has, and the reason for each.
const WITHOUT_CASE: [(&str, &str); 4] = [
    ("E000", "it is about the file, not about its text"),
    ("E137", "it needs key files that only their owner can read: see tests/it/levels.rs"),
    ("E053", "it needs 65 tables: see tests/it/agents.rs"),
    ("E145", "it needs files of keys: see tests/it/agents.rs"),
];

/// Returns the cases of [`MISTAKES`]: the words after `#: `, of which the first is a code, and the
/// configuration.
fn cases() -> Vec<(&'static str, &'static str)> {
    let cases = MISTAKES.split("\n#: ").skip(1);
    cases.map(|case| case.split_once('\n').unwrap_or((case, ""))).collect()
}

/// Returns the messages about all cases, in the format of `golden/mistakes.txt`.
fn messages() -> String {
    let messages: Vec<String> = cases()
        .iter()
        .map(|(words, text)| format!("#: {words}\n{}", problems(text.trim_end())))
        .collect();
    messages.join("\n")
}

fn golden_messages() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/mistakes.txt")
}

#[test]
fn each_mistake_has_the_messages_of_the_golden_file() {
    let expected = fs::read_to_string(golden_messages()).unwrap_or_default();
    let given = messages();
    let mut words = "";
    for (expected, given) in expected.lines().zip(given.lines()) {
        words = given.strip_prefix("#: ").unwrap_or(words);
        assert_eq!(given, expected, "{words}");
    }
    let help = "cargo test -p bywash-config --test it -- --ignored writes the golden file";
    assert_eq!(given.lines().count(), expected.lines().count(), "{help}");
}

#[test]
fn each_code_has_a_mistake_that_causes_it() {
    let reference = bywash_config::reference();
    let (_, codes) = reference.split_once("\n## Codes\n").unwrap();
    let (codes, _) = codes.split_once("Codes of former versions").unwrap();
    let codes: Vec<&str> = codes
        .lines()
        .filter_map(|line| line.strip_prefix("| ")?.split(' ').next())
        .filter(|code| code.starts_with(['E', 'W']))
        .collect();
    assert!(codes.len() > WITHOUT_CASE.len(), "{codes:?}");
    for code in &codes {
        let has_case = cases().iter().any(|(words, _)| words.starts_with(code));
        let is_without = WITHOUT_CASE.iter().any(|(without, _)| without == code);
        assert!(
            has_case != is_without,
            "{code}: write a case in mistakes.toml, or why there is none"
        );
    }
    for (code, why) in WITHOUT_CASE {
        assert!(codes.contains(&code), "{code} ({why}) is not a code");
    }
    for (words, text) in cases() {
        let problems = problems(text.trim_end());
        let has_code = problems.iter().any(|problem| words.starts_with(problem.code));
        assert!(has_code, "{words}: {problems}");
    }
}

/// Writes `golden/mistakes.txt` again. Run this ignored test by hand after a change of messages,
/// and read the difference in the file.
#[test]
#[ignore = "it writes the golden file"]
fn write_the_golden_file() {
    fs::write(golden_messages(), messages()).unwrap();
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
fn what_a_broken_text_may_have_lost_is_not_called_missing() {
    let problems = problems("version = 1\n[upstream\nserver = \"http://a\"\n");
    assert!(problems.iter().all(|problem| problem.code != "E005"), "{problems}");
}

#[test]
fn under_an_unknown_policy_only_parameters_of_none_are_strangers() {
    let problems = with(
        "[scheduler]\npolicy = \"lifo\"\ntransaction_capacity = 5\ncapacity = 3\nnonsense = 1\n",
    );
    let codes: Vec<_> = problems.iter().map(|problem| (problem.code, problem.line)).collect();
    assert_eq!(codes, [("E010", 5), ("E002", 8)], "{problems}");
    assert_eq!(problems.iter().next().unwrap().help.as_deref(), Some("did you mean `lifo-pri`?"));
}

#[test]
fn a_limit_may_not_start_where_it_may_not_be() {
    let slope = |start: &str, lines: &str| {
        with(&format!("{start}[concurrency]\npolicy = \"slope\"\n{lines}"))
    };
    for (start, lines, place, bound, words) in [
        ("limit = 500\n", "max = 200\n", (4, 9), Some(7), "`upstream.limit` 500 is above"),
        (
            "limit = 2000\n",
            "",
            (4, 9),
            None,
            "`upstream.limit` 2000 is above `concurrency.max` 1000",
        ),
        ("", "initial = 300\nmax = 200\n", (6, 11), Some(7), "`concurrency.initial` 300 is above"),
        (
            "limit = 2\n",
            "min = 4\n",
            (4, 9),
            Some(7),
            "`upstream.limit` 2 is below `concurrency.min`",
        ),
    ] {
        let problems = slope(start, lines);
        let problem = only(&problems);
        assert_eq!((problem.code, problem.line, problem.column), ("E130", place.0, place.1));
        assert_eq!(problem.elsewhere.as_ref().map(|bound| bound.line), bound, "{problems}");
        assert!(problem.message.starts_with(words), "{problems}");
    }
    let help = slope("limit = 2000\n", "").iter().next().unwrap().help.clone().unwrap();
    assert!(help.starts_with("write max = 2000 or more under [concurrency]"), "{help}");
    assert!(slope("limit = 200\n", "min = 200\nmax = 200\n").is_empty());
    // An invalid bound cannot be compared with anything.
    assert_eq!(only(&slope("limit = 2000\n", "max = 0\n")).code, "E004");
}

#[test]
fn no_order_is_worth_more_than_there_is_money() {
    let class = |line: &str| with(&format!("[class.a]\nmatch = [\"GET /\"]\n{line}\n"));
    for key in ["revenue", "fixed_value"] {
        assert!(class(&format!("{key} = 1e12")).is_empty(), "{key}");
        let problems = class(&format!("{key} = 1.1e12"));
        assert_eq!((only(&problems).code, only(&problems).line), ("E004", 6), "{problems}");
    }
}

#[test]
fn a_threshold_alone_is_compared_with_the_default_of_the_other() {
    assert_eq!(only(&with("[scheduler]\nupper = 0.5\n")).code, "E102");
    assert!(with("[scheduler]\nupper = 0.75\n").is_empty());
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
    let text = "[class.look]\nmatch = [\"GET /\"]\nrequires = [\"other\"]\n\
                [queue]\nbody_buffer_total = 1\n";
    let text = format!("version = 1\n[upstream]\nserver = \"http://a\"\n{text}");
    let (config, warnings) = Config::parse(&text, "f").unwrap();
    assert_eq!(config.classes.len(), 2);
    let codes: Vec<_> = warnings.iter().map(|warning| warning.code).collect();
    assert_eq!(codes, ["W111", "W112"]);
    assert_eq!(warnings.count(Severity::Warning), 2);
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
fn a_url_on_the_command_line_is_reported_as_such() {
    let problems = Config::for_upstream("ftp://shop").unwrap_err();
    assert_eq!(only(&problems).code, "E012");
    assert!(problems.to_string().contains("[--upstream:1:1]"), "{problems}");
}
