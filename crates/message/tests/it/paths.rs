//! Tests of the canonical form of a path (RFC 3986 §6.2.2).

use bywash_message::{ParseError, Target};

fn canonical(raw: &str) -> Result<String, ParseError> {
    Target::canonical(raw.as_bytes()).map(|target| target.path_and_query().to_owned())
}

fn becomes(cases: &[(&str, &str)]) {
    for (raw, expected) in cases {
        assert_eq!(canonical(raw).as_deref(), Ok(*expected), "{raw}");
    }
}

fn is_refused(cases: &[&str]) {
    for raw in cases {
        assert_eq!(canonical(raw), Err(ParseError::Path), "{raw:?}");
    }
}

#[test]
fn what_is_canonical_stays() {
    for path in
        ["/", "/a", "/a/", "//", "//a//b", "/a;v=1/b", "/a:@!$&'()*+,=~-._", "/...", "/a.", "/a..b"]
    {
        assert_eq!(canonical(path).as_deref(), Ok(path));
    }
}

/// Checks that escapes are brought into one spelling (RFC 3986 §6.2.2.1, §6.2.2.2).
#[test]
fn escapes_have_one_spelling() {
    becomes(&[
        ("/p%61y", "/pay"),
        ("/%7e%2D%5f%2E%41%39", "/~-_.A9"),
        ("/caf%c3%a9", "/caf%C3%A9"),
        ("/%2f%5c%3b%3f%23%25", "/%2F%5C%3B%3F%23%25"),
        ("/%0d%0a%7f%20", "/%0D%0A%7F%20"),
        ("/%252e%252e/", "/%252e%252e/"),
        ("/%25%36%31", "/%2561"),
    ]);
}

/// Checks characters that a URI must not contain, but that some clients send.
#[test]
fn characters_that_should_have_been_escaped_are() {
    becomes(&[("/{a}|[b]^\"<c>`", "/%7Ba%7D%7C%5Bb%5D%5E%22%3Cc%3E%60")]);
}

/// Checks that dot segments are resolved (RFC 3986 §5.2.4).
#[test]
fn dot_segments_are_resolved() {
    becomes(&[
        ("/a/../b//c/./d", "/b//c/d"),
        ("/a/b/c/./../../g", "/a/g"),
        ("/.", "/"),
        ("/./", "/"),
        ("/a/.", "/a/"),
        ("/a/..", "/"),
        ("/a/../", "/"),
        ("/a/b/..", "/a/"),
        ("/a//../b", "/a/b"),
        ("//..", "/"),
        ("/%2e/a/%2E%2e/b", "/b"),
        ("/a/.%2e/b/%2e./c", "/c"),
        ("/a/..?x=/../y", "/?x=/../y"),
    ]);
}

#[test]
fn nothing_is_above_the_root() {
    is_refused(&["/..", "/../", "/a/../..", "/a/../../b", "/%2e%2e/", "/./..", "/../a"]);
}

/// Checks paths in which only some applications see a dot segment. Tomcat cuts off parameters
/// before it resolves dot segments, and others decode slashes first.
#[test]
fn a_dot_segment_that_only_some_would_see_is_refused() {
    is_refused(&[
        "/a/..;/b",
        "/a/..;x=y",
        "/.;/a",
        "/%2e%2e;/a",
        "/a/..%2fb",
        "/a/..%5cb",
        "/a%2f..",
        "/a%2F..%2Fb",
        "/a%5C%2e%2E",
        "/a%2f.%2fb",
        "/a%2f..;x",
    ]);
    becomes(&[
        ("/a%20..", "/a%20.."),
        ("/a%2f...", "/a%2F..."),
        ("/a;..", "/a;.."),
        ("/a%2fb..%2f", "/a%2Fb..%2F"),
    ]);
}

#[test]
fn bytes_that_readers_disagree_about_are_refused() {
    is_refused(&[
        "/%00",
        "/a%00b",
        "/a\0",
        "/a\tb",
        "/a b",
        "/a\\b",
        "/a#b",
        "/caf\u{e9}",
        "/a\u{7f}",
        "/\u{1b}[0m",
    ]);
}

#[test]
fn escapes_that_are_none_are_refused() {
    is_refused(&["/%", "/%4", "/%4g", "/%g4", "/a%", "/%%41", "/%+1", "/% 1", "/%4/1"]);
}

#[test]
fn a_query_stays_as_it_is() {
    for query in ["?", "??", "?x=1&y=%0d%0a&z='{}|^`\\", "?%61", "?100%", "?/../..", "?a;b"] {
        let raw = format!("/{query}");
        assert_eq!(canonical(&raw).as_deref(), Ok(&*raw));
    }
}

#[test]
fn a_query_holds_no_controls_and_nothing_beyond_ascii() {
    is_refused(&["/?a b", "/?a#b", "/?\t", "/?\0", "/?%00", "/?a=%00&b", "/?\u{e9}", "/?\u{7f}"]);
}

#[test]
fn what_does_not_begin_with_a_slash_is_no_path() {
    for raw in ["", "a", "?x", "*", "%2f", "http://a/"] {
        assert_eq!(canonical(raw), Err(ParseError::Syntax), "{raw}");
    }
}
