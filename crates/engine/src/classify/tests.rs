//! Tests of the class of a request, by path, parameters, host and fields.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::*;

fn rules(patterns: &[&str]) -> Vec<Rule> {
    let rule = |(class, text): (u8, &&str)| Rule::new(text.parse().unwrap(), ClassId(class));
    (0..).zip(patterns).map(rule).collect()
}

/// Returns a classifier with one class for each pattern, by its index. Class 63 is for all other
/// requests.
fn of(patterns: &[&str]) -> Classifier {
    Classifier::new(rules(patterns), ClassId(63), false).unwrap()
}

fn classes(patterns: &[&str], method: &str, target: &str) -> Vec<u8> {
    of(patterns).classes(&RequestParts::new(method, target)).iter().map(|class| class.0).collect()
}

fn class(patterns: &[&str], method: &str, target: &str) -> u8 {
    of(patterns).class(&RequestParts::new(method, target)).0
}

const PATTERNS: [&str; 8] = [
    "GET /",
    "GET /p/**",
    "* /p/**",
    "GET /p/new",
    "* /shop/*/reviews",
    "* /shop/**",
    "POST /confirm",
    "* /**",
];

#[test]
fn the_most_specific_pattern_wins() {
    let cases = [
        ("GET", "/", "GET /"),
        ("POST", "/", "* /**"),
        ("GET", "/p/1", "GET /p/**"),
        ("GET", "/p/1/2?q", "GET /p/**"),
        ("PUT", "/p/1", "* /p/**"),
        ("GET", "/p/new", "GET /p/new"),
        ("GET", "/shop/7/reviews", "* /shop/*/reviews"),
        ("GET", "/shop/7/reviews/2", "* /shop/**"),
        ("POST", "/confirm", "POST /confirm"),
        ("GET", "/confirm", "* /**"),
    ];
    for (method, target, expected) in cases {
        let class = class(&PATTERNS, method, target);
        assert_eq!(PATTERNS[usize::from(class)], expected, "{method} {target}");
    }
}

#[test]
fn an_odd_spelling_is_of_the_default_class_and_of_the_plain_one() {
    let confirm = ["POST /confirm"];
    for path in
        ["//confirm", "/confirm;a", "/confirm%2F", "/;a/confirm", "/confirm%3Bx", "/confirm/"]
    {
        assert_eq!(classes(&confirm, "POST", path), [0, 63], "{path}");
        assert_eq!(class(&confirm, "POST", path), 63, "{path}");
    }
    for path in ["*", "", "/x/../confirm", "/confirmed", "/confirm/x", "/a//confirm"] {
        assert_eq!(classes(&confirm, "POST", path), [63], "{path}");
    }
}

#[test]
fn what_the_file_says_of_a_slash_at_the_end_holds() {
    assert_eq!(classes(&["POST /pay/"], "POST", "/pay/"), [0], "a site whose paths end so");
    assert_eq!(classes(&["POST /pay/"], "POST", "/pay"), [0, 63]);
    assert_eq!(classes(&["* /p/**"], "POST", "/p/17/"), [0]);
    assert_eq!(classes(&["* /p", "* /p/**"], "POST", "/p"), [0], "the file names it");
    assert_eq!(classes(&["* /p", "* /p/**"], "POST", "/p/"), [0, 1]);
    assert_eq!(classes(&["* /**", "* /p/**"], "POST", "/p"), [0]);
    assert_eq!(classes(&["* /**"], "POST", "/"), [0]);
}

#[test]
fn an_odd_path_that_is_too_long_to_be_read_may_be_anything() {
    let all: Vec<u8> = (0..8).chain([63]).collect();
    for path in ["/".repeat(66), format!("/{};x", "a".repeat(1024))] {
        assert_eq!(classes(&PATTERNS, "GET", &path), all);
    }
    let long = format!("/p/{}", "%C3%A9".repeat(400));
    assert_eq!(classes(&PATTERNS, "GET", &long), [1]);
}

#[test]
fn escapes_that_hide_nothing_are_plain() {
    assert_eq!(classes(&PATTERNS, "GET", "/p/caf%C3%A9"), [1]);
    assert_eq!(classes(&["GET /wiki/Special:Search"], "GET", "/wiki/Special%3ASearch"), [0, 63]);
    assert_eq!(classes(&["GET /wiki/a"], "GET", "/%77iki/a"), [0, 63]);
}

#[test]
fn head_is_get_unless_a_pattern_names_it() {
    assert_eq!(class(&PATTERNS, "HEAD", "/p/1"), 1);
    let methods =
        ["GET", "HEAD", "POST"].map(|method| class(&["GET /p", "HEAD /p", "* /p"], method, "/p"));
    assert_eq!(methods, [0, 1, 2]);
    assert_eq!(class(&["/p"], "GET", "/p"), 0, "GET may be left out");
    assert_eq!(class(&["/p"], "POST", "/p"), 63);
}

#[test]
fn case_is_ignored_where_the_application_ignores_it() {
    let class = |ignores_case| {
        let classifier = Classifier::new(rules(&["POST /Confirm/It"]), ClassId(9), ignores_case);
        classifier.unwrap().class(&RequestParts::new("POST", "/cONFIRM/IT")).0
    };
    assert_eq!([class(false), class(true)], [9, 0]);
}

#[test]
fn the_same_pattern_in_two_classes_is_an_error() {
    let ties = Classifier::new(rules(&["GET /p/**", "/p/**?..."]), ClassId(2), false).unwrap_err();
    assert_eq!(ties[0].to_string(), "`/p/**` is in two classes");
}

#[test]
fn nonsense_is_no_pattern() {
    for text in ["", "GET", "GET p", "get /", "G T /", "/**/a", "/a*", "/?a=*b", "/?=1", "/?a&a"] {
        assert!(text.parse::<Pattern>().is_err(), "{text:?}");
    }
    for text in ["/a//b", "/a%2Fb", "/a;b", "/../a", "/a/./b", "//**"] {
        assert!(!text.parse::<Pattern>().unwrap().has_one_reading(), "{text:?}");
    }
    for text in ["/", "/a/", "/**", "/*/a.html?b=%2F"] {
        assert!(text.parse::<Pattern>().unwrap().has_one_reading(), "{text:?}");
    }
}

const ROUTED: [&str; 5] = [
    "/index.php?route=checkout/*&...",
    "/index.php?route=product/search&...",
    "/index.php?route=common/home",
    "/index.php",
    "/?s&...",
];

#[test]
fn parameters_tell_the_class() {
    let cases: [(&str, &[u8]); 12] = [
        ("/index.php?route=checkout/cart", &[0]),
        ("/index.php?language=en&route=checkout%2Fconfirm", &[0]),
        ("/index.php?%72oute=checkout/", &[0]),
        ("/index.php?route=product/search&search=a", &[1]),
        ("/index.php?route=common/home", &[2]),
        ("/index.php?route=other", &[3]),
        ("/index.php", &[3]),
        ("/index.php?checkout/cart", &[3]),
        ("/?s=shoes&paged=2", &[4]),
        ("/?s", &[4]),
        ("/", &[63]),
        ("/?p=1", &[63]),
    ];
    for (target, expected) in cases {
        assert_eq!(classes(&ROUTED, "GET", target), expected, "{target}");
    }
}

#[test]
fn further_parameters_do_not_take_a_request_out_of_its_class() {
    assert_eq!(classes(&ROUTED, "GET", "/index.php?route=common/home&x=1"), [2, 3]);
    assert_eq!(class(&ROUTED, "GET", "/index.php?route=common/home&x=1"), 3);
    assert_eq!(classes(&["/a?"], "GET", "/a?x"), [0, 63]);
    let names: Vec<String> = (0..65).map(|name| format!("x{name}")).collect();
    let distinct = names.join("&");
    for many in ["x&".repeat(1000), distinct.clone(), distinct + "&route=checkout/cart"] {
        let target = format!("/index.php?{many}");
        assert_eq!(classes(&ROUTED, "GET", &target), [0, 1, 2, 3], "it may be any of them");
        assert_eq!(class(&ROUTED, "GET", &target), 3);
    }
}

#[test]
fn a_parameter_that_is_there_twice_has_both_values_and_none() {
    let twice = "/index.php?route=checkout/cart&route=product/search";
    assert_eq!(classes(&ROUTED, "GET", twice), [0, 1, 3]);
    assert_eq!(classes(&ROUTED, "GET", "/index.php?route=checkout/a&route[]=x"), [0, 3]);
    // An application that expects a single value takes a list for no value.
    for list in ["route[x]=checkout/a", "route%5B%5D=checkout/a"] {
        assert_eq!(classes(&ROUTED, "GET", &format!("/index.php?{list}")), [0, 3], "{list}");
    }
}

#[test]
fn of_parameters_that_name_two_pages_both_count() {
    let pages = ["/?s&...", "/?page&...", "/?page=cart&...", "/?page&id&..."];
    assert_eq!(classes(&pages, "GET", "/?s=a&page=b"), [0, 1]);
    assert_eq!(
        classes(&pages, "GET", "/?page=cart&x"),
        [2],
        "it asks for all that the wider one asks for"
    );
    assert_eq!(classes(&pages, "GET", "/?page=cart&id=1"), [2, 3]);
}

fn under(text: &str, class: u8, hosts: &[HostPattern], fields: &[(&str, Option<&str>)]) -> Rule {
    let field = |(name, value): &(&str, Option<&str>)| Field {
        name: (*name).into(),
        value: value.map(String::from),
    };
    let condition = Condition { hosts: hosts.to_vec(), fields: fields.iter().map(field).collect() };
    Rule { condition, ..Rule::new(text.parse().unwrap(), ClassId(class)) }
}

#[test]
fn a_host_goes_before_a_path() {
    let host = |name: &str| HostPattern::Host(name.into());
    let below = HostPattern::Below(".example.com".into());
    let rules = [
        under("/**", 0, &[host("admin.example.com")], &[]),
        under("/p/**", 1, &[below], &[]),
        under("/p/**", 2, &[], &[]),
    ];
    let classifier = Classifier::new(rules, ClassId(9), false).unwrap();
    let class = |host, target| {
        let asked = RequestParts { host, ..RequestParts::new("GET", target) };
        classifier.classes(&asked).iter().map(|class| class.0).collect::<Vec<_>>()
    };
    for host in ["admin.example.com", "ADMIN.example.com.:8080"] {
        assert_eq!(class(host, "/p/1"), [0], "{host}");
    }
    assert_eq!(class("shop.example.com", "/p/1"), [1]);
    assert_eq!(class("shop.example.com", "/q"), [9]);
    for host in ["example.com", "badexample.com", "", "[::1]:80"] {
        assert_eq!(class(host, "/p/1"), [2], "{host}");
    }
}

struct Fields(&'static [(&'static str, &'static [u8])]);

impl HasField for Fields {
    fn has(&self, name: &str, is_value: &dyn Fn(&[u8]) -> bool) -> bool {
        self.0.iter().any(|(known, value)| *known == name && is_value(value))
    }
}

const CRAWLER: &[(&str, &[u8])] = &[("x-kind", b" crawler"), ("x-any", b"")];

#[test]
fn a_field_adds_a_class_and_takes_none_away() {
    let crawls = [("x-kind", Some("Crawler")), ("x-any", None)];
    let host = [HostPattern::Host("shop".into())];
    let rules =
        [under("/**", 0, &[], &crawls), under("/p", 1, &[], &[]), under("/p", 2, &host, &[])];
    let classifier = Classifier::new(rules, ClassId(9), false).unwrap();
    let class = |host, fields: &'static [(&'static str, &'static [u8])]| {
        let asked =
            RequestParts { host, fields: &Fields(fields), ..RequestParts::new("GET", "/p") };
        classifier.classes(&asked).iter().map(|class| class.0).collect::<Vec<_>>()
    };
    assert_eq!(class("", CRAWLER), [0, 1], "although its path is less specific");
    assert_eq!(class("shop", CRAWLER), [0, 2]);
    assert_eq!(class("", &[("x-kind", b"crawler")]), [1]);
    assert_eq!(class("shop", &[]), [2]);
}
