//! Tests of messages that arrive over HTTP/2 (RFC 9113 §8), and of fields that are sent over it.

use bywash_message::{Fields, Framing, Limits, Name, ParseError, Request, Response};
use http::{HeaderMap, Method, StatusCode, Version};

use crate::{LIMITS, listed, with};

fn ask(uri: &str, fields: &[(&str, &str)], ends: bool) -> Result<Request, ParseError> {
    let mut request = http::Request::builder().method("POST").uri(uri);
    for (name, value) in fields {
        request = request.header(*name, *value);
    }
    Request::from_h2(request.body(()).unwrap().into_parts().0, ends, &LIMITS)
}

fn answer(
    asked: &Method,
    status: u16,
    fields: &[(&str, &str)],
    ends: bool,
) -> Result<Response, ParseError> {
    let mut answer = http::Response::builder().status(status);
    for (name, value) in fields {
        answer = answer.header(*name, *value);
    }
    Response::from_h2(answer.body(()).unwrap().into_parts().0, asked, ends, &LIMITS)
}

#[test]
fn a_plain_request_is_understood() {
    let request = ask("https://Shop.example/%61/../b?c", &[("x", "y"), ("te", "trailers")], false);
    let request = request.unwrap();
    assert_eq!((request.method, request.version), (Method::POST, Version::HTTP_2));
    assert_eq!(request.target.path_and_query(), "/b?c");
    assert_eq!(&request.authority[..], b"Shop.example");
    assert_eq!(listed(&request.fields), ["x: y", "te: trailers", "Host: Shop.example"]);
    assert_eq!(request.framing, Framing::Chunked);
    assert!(request.keep_alive && request.takes_trailers);
    assert!(!request.upgrades && !request.expects_continue);
}

/// Checks that an announced length must agree with the end of the message (RFC 9113 §8.1.1).
#[test]
fn a_length_must_agree_with_the_end() {
    let framing = |fields: &[_], ends| ask("http://a/", fields, ends).map(|ask| ask.framing);
    assert_eq!(framing(&[], true), Ok(Framing::None));
    assert_eq!(framing(&[("content-length", "0")], true), Ok(Framing::Length(0)));
    assert_eq!(framing(&[("content-length", "3")], false), Ok(Framing::Length(3)));
    assert_eq!(framing(&[("content-length", "3")], true), Err(ParseError::Framing));
    assert_eq!(framing(&[("content-length", "x")], false), Err(ParseError::Framing));
    let twice = [("content-length", "3"), ("content-length", "3")];
    assert_eq!(framing(&twice, false), Err(ParseError::Framing));
    assert_eq!(framing(&[("content_length", "3")], false), Err(ParseError::Framing));
    let length = ask("http://a/", &[("content-length", "3")], false).unwrap();
    assert!(!length.fields.has(Name::ContentLength));
}

/// Checks that the pseudo-field for the authority replaces `Host`, and must agree with it if both
/// are present (RFC 9113 §8.3.1).
#[test]
fn the_authority_stands_for_host_and_must_agree_with_it() {
    let hosts = |uri: &str, fields: &[_]| {
        ask(uri, fields, true).map(|ask| (ask.authority.to_vec(), listed(&ask.fields)))
    };
    let a = || Ok((b"a".to_vec(), vec!["host: a".to_owned()]));
    assert_eq!(hosts("/", &[("host", "a")]), a());
    assert_eq!(hosts("http://A/", &[("host", "a")]), a());
    assert_eq!(hosts("http://b/", &[("host", "a")]), Err(ParseError::Host));
    assert_eq!(hosts("http://a:80/", &[("host", "a")]), Err(ParseError::Host));
    assert_eq!(hosts("http://u@a/", &[]), Err(ParseError::Host));
    assert_eq!(hosts("/", &[]), Err(ParseError::Host));
    assert_eq!(hosts("/", &[("host", "a"), ("host", "a")]), Err(ParseError::Host));
}

/// Checks that fields that belong to a connection make a message malformed (RFC 9113 §8.2.2).
#[test]
fn fields_of_a_connection_make_a_message_malformed() {
    for field in [
        ("connection", "close"),
        ("keep-alive", "1"),
        ("proxy-connection", "close"),
        ("transfer-encoding", "chunked"),
        ("upgrade", "websocket"),
    ] {
        assert_eq!(ask("http://a/", &[field], true).unwrap_err(), ParseError::Syntax, "{field:?}");
        let error = answer(&Method::GET, 200, &[field], true).unwrap_err();
        assert_eq!(error, ParseError::Syntax, "{field:?}");
    }
    for te in ["gzip", "trailers, gzip", ""] {
        assert_eq!(ask("http://a/", &[("te", te)], true).unwrap_err(), ParseError::Syntax, "{te}");
    }
}

/// Checks that space around a value makes a message malformed (RFC 9113 §8.2.1).
#[test]
fn space_around_a_value_makes_a_message_malformed() {
    for value in [" x", "x ", "\tx", "x\t", " "] {
        assert_eq!(
            ask("http://a/", &[("x", value)], true).unwrap_err(),
            ParseError::Syntax,
            "{value:?}"
        );
    }
    assert!(ask("http://a/", &[("x", ""), ("y", "a b\tc")], true).is_ok());
}

/// Checks that the parts of a split cookie field are joined (RFC 9113 §8.2.3).
#[test]
fn crumbs_of_a_cookie_are_joined() {
    let request = ask("http://a/", &[("cookie", "a=1"), ("x", "y"), ("cookie", "b=2")], true);
    assert_eq!(request.unwrap().fields.all(Name::Cookie).collect::<Vec<_>>(), [b"a=1; b=2"]);
}

#[test]
fn the_rules_of_requests_hold() {
    let fields = [("expect", "100-continue")];
    assert!(ask("http://a/", &fields, false).unwrap().expects_continue);
    assert!(!ask("http://a/", &fields, true).unwrap().expects_continue);
    assert_eq!(ask("http://a/", &[("expect", "x")], true).unwrap_err(), ParseError::Expectation);
    assert_eq!(ask("http://a/%00", &[], true).unwrap_err(), ParseError::Path);
    assert_eq!(ask("http://a/..", &[], true).unwrap_err(), ParseError::Path);
    assert_eq!(ask("ftp://a/", &[], true).unwrap_err(), ParseError::Syntax);
    assert_eq!(ask("*", &[("host", "a")], true).unwrap_err(), ParseError::Syntax);
    let of_method = |length: usize| {
        let request = http::Request::builder().method(&*"X".repeat(length)).uri("http://a/");
        Request::from_h2(request.body(()).unwrap().into_parts().0, true, &LIMITS).map(|_| ())
    };
    assert_eq!((of_method(32), of_method(33)), (Ok(()), Err(ParseError::Syntax)));
    let connect = http::Request::connect("a:80").body(()).unwrap().into_parts().0;
    assert_eq!(Request::from_h2(connect, false, &LIMITS).unwrap_err(), ParseError::Method);
    let options = http::Request::options("*").header("host", "a").body(()).unwrap().into_parts().0;
    assert!(Request::from_h2(options, true, &LIMITS).unwrap().target.is_asterisk());
}

#[test]
fn the_limits_hold() {
    let limits = Limits { target: 4, fields: 2, bytes: 20 };
    let ask = |uri: &str, fields: &[(&str, &str)]| {
        let mut request = http::Request::builder().uri(uri);
        for (name, value) in fields {
            request = request.header(*name, *value);
        }
        Request::from_h2(request.body(()).unwrap().into_parts().0, true, &limits).map(|_| ())
    };
    assert_eq!(ask("http://a/abc", &[]), Ok(()));
    assert_eq!(ask("http://a/abcd", &[]), Err(ParseError::UriTooLong));
    assert_eq!(ask("http://a/", &[("x", ""), ("x", "")]), Ok(()));
    assert_eq!(ask("http://a/", &[("x", ""), ("x", ""), ("x", "")]), Err(ParseError::HeadTooLarge));
    assert_eq!(ask("http://a/", &[("x", &"y".repeat(15))]), Ok(()));
    assert_eq!(ask("http://a/", &[("x", &"y".repeat(16))]), Err(ParseError::HeadTooLarge));
}

#[test]
fn an_answer_has_an_end_that_http_1_can_write() {
    let get = |status, fields: &[_], ends| {
        answer(&Method::GET, status, fields, ends).map(|answer| answer.framing)
    };
    let length = [("content-length", "3")];
    assert_eq!(get(200, &[], false), Ok(Framing::Chunked));
    assert_eq!(get(200, &[], true), Ok(Framing::Length(0)));
    assert_eq!(get(200, &length, false), Ok(Framing::Length(3)));
    assert_eq!(get(200, &length, true), Err(ParseError::Framing));
    assert_eq!(get(304, &length, true), Ok(Framing::None));
    assert_eq!(get(204, &length, true), Ok(Framing::None));
    assert_eq!(get(600, &[], true), Err(ParseError::Syntax));
    let head = answer(&Method::HEAD, 200, &length, true).unwrap();
    assert_eq!(
        (head.framing, listed(&head.fields)),
        (Framing::None, vec!["content-length: 3".into()])
    );
    let empty = answer(&Method::GET, 204, &length, true).unwrap();
    assert!(empty.fields.is_empty());
    assert_eq!((empty.status, empty.version), (StatusCode::NO_CONTENT, Version::HTTP_2));
}

#[test]
fn fields_for_http_2_are_in_lower_case_and_keep_their_order() {
    let fields = with("X-One: 1\r\nSet-Cookie: a\r\nSET-COOKIE: b\r\nX-Bytes: \u{e9}\r\n").unwrap();
    let map: HeaderMap = fields.fields.to_header_map();
    assert_eq!(map.get("x-one").unwrap(), "1");
    assert_eq!(map.get_all("set-cookie").iter().collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(map.get("x-bytes").unwrap().as_bytes(), "\u{e9}".as_bytes());
    assert_eq!(map.len(), 5);
    let back = Fields::from_header_map(&map);
    assert_eq!(back.len(), 5);
    assert_eq!(back.all(Name::SetCookie).collect::<Vec<_>>(), [b"a", b"b"]);
}

/// Checks that trailers are accepted and dropped as over HTTP/1 (RFC 9110 §6.5.1).
#[test]
fn trailers_are_taken_as_from_http_1() {
    let mut map = HeaderMap::new();
    for (name, value) in [("grpc-status", "0"), ("cookie", ""), ("cookie", ""), ("x", " y\t")] {
        map.append(name, value.parse().unwrap());
    }
    for name in ["content-length", "content_length", "host", "bywash-class", "set-cookie", "vary"] {
        map.append(name, "1".parse().unwrap());
    }
    assert_eq!(listed(&Fields::from_trailers(&map)), ["grpc-status: 0", "x: y"]);
}
