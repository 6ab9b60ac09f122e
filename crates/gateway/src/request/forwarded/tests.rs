//! Tests of the client's address and of the fields for the upstream.

use proptest::prelude::*;

use super::super::tests::fields;
use super::*;

const XFF: ForwardingField = ForwardingField::XForwardedFor;
const RFC_7239: ForwardingField = ForwardingField::Forwarded;

fn peer(is_trusted: bool) -> Peer {
    let address: IpAddr = "10.0.0.1".parse().unwrap();
    Peer::of(address, is_trusted)
}

fn listen(forwarded: ForwardingField) -> Listen {
    let text = "version = 1\nupstream.server = 'http://127.0.0.1:1'\n\
                listen.trusted_proxies = ['10.0.0.0/8']\n";
    let (config, _) = bywash_config::Config::parse(text, "test").unwrap();
    Listen { forwarded, ..config.listen }
}

fn origin_of(lines: &[(&str, &str)], is_trusted: bool, field: ForwardingField) -> Origin {
    origin(&fields(lines), &peer(is_trusted), &listen(field))
}

fn client_of(lines: &[(&str, &str)], is_trusted: bool) -> String {
    origin_of(lines, is_trusted, XFF).client.to_string()
}

/// Returns the forwarding fields as they are sent to the upstream.
fn rebuilt(lines: &[(&str, &str)], is_trusted: bool, field: ForwardingField) -> String {
    let mut map = fields(lines);
    rebuild(&mut map, &peer(is_trusted), &listen(field));
    let mut out = Vec::new();
    map.write(&mut out);
    String::from_utf8(out).unwrap()
}

#[test]
fn a_stranger_is_who_its_connection_says() {
    assert_eq!(client_of(&[("x-forwarded-for", "192.0.2.9")], false), "10.0.0.1");
    let line = [("Forwarded", "for=192.0.2.9;proto=https")];
    let origin = origin_of(&line, false, RFC_7239);
    assert_eq!((origin.client.to_string().as_str(), origin.secure), ("10.0.0.1", false));
    assert_eq!(origin.doubt, None);
}

#[test]
fn the_client_is_the_last_that_is_no_trusted_hop() {
    let chain = |text| client_of(&[("X-Forwarded-For", text)], true);
    assert_eq!(chain("192.0.2.9"), "192.0.2.9");
    assert_eq!(chain("198.51.100.1, 192.0.2.9, 10.9.9.9"), "192.0.2.9");
    assert_eq!(chain("10.1.1.1, 10.2.2.2"), "10.1.1.1");
    assert_eq!(chain("198.51.100.1, unknown, 10.9.9.9"), "10.9.9.9");
    assert_eq!(chain("198.51.100.1, \"192.0.2.9\", 10.9.9.9"), "10.9.9.9");
    assert_eq!(chain("192.0.2.9:443"), "192.0.2.9");
    assert_eq!(chain("2001:db8::7"), "2001:db8::7");
    assert_eq!(chain("[2001:db8::7]"), "2001:db8::7");
    assert_eq!(chain("[2001:db8::7]:443"), "2001:db8::7");
    assert_eq!(chain("::ffff:192.0.2.1"), "192.0.2.1");
    assert_eq!(chain("192.0.2.9,, ,"), "192.0.2.9");
    assert_eq!(chain(""), "10.0.0.1");
    let two = [("X-Forwarded-For", "192.0.2.1"), ("X-Forwarded-For", "192.0.2.2, 10.3.3.3")];
    assert_eq!(client_of(&two, true), "192.0.2.2");
}

#[test]
fn the_hop_of_rfc_7239_says_client_scheme_and_host_in_one_element() {
    let client_of = |line: &str| {
        let origin = origin_of(&[("Forwarded", line)], true, RFC_7239);
        assert_eq!(origin.doubt, None, "{line}");
        (origin.client.to_string(), origin.secure)
    };
    let expected = |client: &str, secure| (client.to_owned(), secure);
    assert_eq!(client_of("for=192.0.2.9;proto=https"), expected("192.0.2.9", true));
    assert_eq!(
        client_of("for=192.0.2.9;proto=https, for=10.2.2.2;proto=http"),
        expected("192.0.2.9", true)
    );
    assert_eq!(client_of("for=192.0.2.9, for=10.2.2.2;proto=https"), expected("192.0.2.9", false));
    assert_eq!(client_of("for=6.6.6.6;proto=https, for=192.0.2.9"), expected("192.0.2.9", false));
    // The hop knows how the request came to it, even if it does not name the sender.
    assert_eq!(client_of("for=6.6.6.6, for=_hidden;proto=https"), expected("10.0.0.1", true));
    assert_eq!(client_of("for=\"[2001:db8::1]:47\";proto=wss"), expected("2001:db8::1", true));
}

/// Tests that a quoted string that a client leaves open does not reach the hop's own line.
#[test]
fn a_malformed_line_hides_what_is_before_it_and_nothing_else() {
    let lines = [
        ("Forwarded", "for=6.6.6.6"),
        ("Forwarded", "for=\"6.6.6.6, for=7.7.7.7"),
        ("Forwarded", "for=192.0.2.9;proto=https, for=10.3.3.3"),
    ];
    let origin = origin_of(&lines, true, RFC_7239);
    assert_eq!((origin.client.to_string().as_str(), origin.secure), ("192.0.2.9", true));
    assert_eq!(origin.doubt, Some(Doubt::Malformed));
    assert_eq!(
        rebuilt(&lines, true, RFC_7239),
        "X-Forwarded-For: unknown, 192.0.2.9, 10.3.3.3, 10.0.0.1\r\nX-Forwarded-Proto: https\r\n\
         X-Real-IP: 192.0.2.9\r\n\
         Forwarded: for=unknown, for=192.0.2.9;proto=https, for=10.3.3.3, for=10.0.0.1;proto=http\r\n"
    );
}

#[test]
fn where_the_fields_name_different_clients_neither_is_believed() {
    for (x_forwarded_for, forwarded, doubt) in [
        ("6.6.6.6", "for=192.0.2.9", Some(Doubt::Differ)),
        ("192.0.2.9", "for=192.0.2.9", None),
        ("6.6.6.6, 192.0.2.9", "for=\"192.0.2.9:80\", for=10.4.4.4", None),
        ("192.0.2.9", "for=\"192.0.2.9", None),
        ("192.0.2.9", "for=_hidden", None),
    ] {
        let lines = [("X-Forwarded-For", x_forwarded_for), ("Forwarded", forwarded)];
        let origin = origin_of(&lines, true, XFF);
        let client = if doubt.is_some() { "10.0.0.1" } else { "192.0.2.9" };
        assert_eq!(
            (origin.client.to_string().as_str(), origin.doubt),
            (client, doubt),
            "{lines:?}"
        );
        if doubt.is_some() {
            assert_eq!(origin_of(&lines, true, RFC_7239).doubt, doubt);
            let text = rebuilt(&lines, true, XFF);
            assert!(text.contains("X-Real-IP: unknown\r\n") && !text.contains("6.6.6.6"), "{text}");
        }
    }
}

#[test]
fn the_other_field_alone_names_nobody() {
    let line = [("Forwarded", "for=192.0.2.9")];
    let origin = origin_of(&line, true, XFF);
    assert_eq!(origin.client.to_string(), "10.0.0.1");
    assert_eq!(origin.doubt, Some(Doubt::NotAuthoritative));
    let line = [("X-Forwarded-For", "192.0.2.9"), ("X-Forwarded-Proto", "https")];
    let origin = origin_of(&line, true, RFC_7239);
    assert_eq!((origin.client.to_string().as_str(), origin.secure), ("10.0.0.1", false));
    assert_eq!(origin.doubt, Some(Doubt::NotAuthoritative));
}

#[test]
fn what_a_trusted_hop_lets_through_in_another_spelling_is_nobodys_word() {
    let lines = [
        ("X-Forwarded-For", "192.0.2.9"),
        ("X_Forwarded_For", "6.6.6.6"),
        ("x.forwarded.for", "6.6.6.6"),
        ("X-Forwarded-Proto", "https"),
        ("X_Forwarded_Proto", "http"),
        ("X_Real_IP", "6.6.6.6"),
        ("X_Forwarded_User", "root"),
    ];
    assert_eq!(client_of(&lines, true), "192.0.2.9");
    assert_eq!(
        rebuilt(&lines, true, XFF),
        "X-Forwarded-For: 192.0.2.9, 10.0.0.1\r\nX-Forwarded-Proto: https\r\n\
         X-Real-IP: 192.0.2.9\r\n"
    );
}

#[test]
fn what_a_stranger_says_is_thrown_away() {
    let lines = [
        ("Host", "shop.example"),
        ("X-Forwarded-For", "192.0.2.9"),
        ("X_Forwarded_For", "192.0.2.9"),
        ("X-Forwarded-Proto", "https"),
        ("X-Forwarded-Host", "evil.example"),
        ("X-Forwarded-Port", "1"),
        ("X-Real-IP", "192.0.2.9"),
        ("Forwarded", "for=192.0.2.9"),
    ];
    for field in [XFF, RFC_7239] {
        assert_eq!(
            rebuilt(&lines, false, field),
            "Host: shop.example\r\nX-Forwarded-For: 10.0.0.1\r\nX-Forwarded-Proto: http\r\n\
             X-Forwarded-Host: shop.example\r\nX-Real-IP: 10.0.0.1\r\n"
        );
    }
}

#[test]
fn what_a_trusted_hop_says_is_gone_on_from() {
    let lines = [
        ("X-Forwarded-For", "_x, 192.0.2.9:80"),
        ("X-Forwarded-Proto", "https"),
        ("X-Forwarded-Host", "shop.example"),
        ("X-Forwarded-Port", "443"),
    ];
    assert_eq!(
        rebuilt(&lines, true, XFF),
        "X-Forwarded-For: unknown, 192.0.2.9, 10.0.0.1\r\nX-Forwarded-Proto: https\r\n\
         X-Forwarded-Host: shop.example\r\nX-Forwarded-Port: 443\r\nX-Real-IP: 192.0.2.9\r\n"
    );
}

#[test]
fn a_scheme_or_a_host_that_is_none_is_not_passed_on() {
    let lines = [
        ("Host", "a"),
        ("X-Forwarded-Proto", "https, http"),
        ("X-Forwarded-Host", "b/c"),
        ("X-Forwarded-Port", "1234567"),
    ];
    assert_eq!(
        rebuilt(&lines, true, XFF),
        "Host: a\r\nX-Forwarded-For: 10.0.0.1\r\nX-Forwarded-Proto: http\r\n\
         X-Forwarded-Host: a\r\nX-Real-IP: 10.0.0.1\r\n"
    );
}

#[test]
fn a_connection_is_as_secure_as_a_trusted_hop_says() {
    let secure =
        |proto, is_trusted| origin_of(&[("X-Forwarded-Proto", proto)], is_trusted, XFF).secure;
    assert_eq!((secure("https", true), secure("https", false)), (true, false));
    assert_eq!((secure("http", true), secure("https, http", true)), (false, false));
    let none = |peer| origin(&fields(&[]), &peer, &listen(XFF)).secure;
    assert!(!none(peer(true)));
    assert!(none(peer(false).secure()));
}

/// Generates values of forwarding fields: from meaningful parts in any order, and from any bytes
/// that a value may contain.
fn value() -> impl Strategy<Value = String> {
    let pieces = prop::sample::select(vec![
        "for=",
        "proto=",
        "host=",
        ";",
        ",",
        ", ",
        "\"",
        "\\",
        "[",
        "]",
        ":80",
        "https",
        "http",
        "192.0.2.1",
        "192.0.2.2",
        "10.1.1.1",
        "2001:db8::1",
        "unknown",
        "_x",
        "shop.example",
        "..",
    ]);
    let built = prop::collection::vec(pieces, 0..10).prop_map(|pieces| pieces.concat());
    prop_oneof![built, "[ -~]{0,40}"].prop_map(|text| text.trim().to_owned())
}

proptest! {
    #[test]
    fn whatever_is_said_what_goes_on_is_understood_by_the_next_gateway_alike(
        lines in prop::collection::vec((0..7_usize, value()), 0..6),
        is_trusted: bool,
        speaks_rfc_7239: bool,
    ) {
        const NAMES: [&str; 7] = [
            "X-Forwarded-For", "Forwarded", "X-Forwarded-Proto", "X-Forwarded-Host",
            "X-Forwarded-Port", "X-Real-IP", "X_Forwarded_For",
        ];
        let lines: Vec<_> = lines.iter().map(|(name, value)| (NAMES[*name], &**value)).collect();
        let (peer, listen) = (peer(is_trusted), listen(if speaks_rfc_7239 { RFC_7239 } else { XFF }));
        let mut map = fields(&lines);
        let before = origin(&map, &peer, &listen);
        prop_assert!(is_trusted || before.client == peer.address);
        rebuild(&mut map, &peer, &listen);
        for once in [Name::XForwardedFor, Name::XForwardedProto, Name::XRealIp] {
            prop_assert_eq!(map.all(once).count(), 1);
        }
        let hop = Peer::of("10.0.0.2".parse().unwrap(), true);
        if is_trusted || !speaks_rfc_7239 {
            let after = origin(&map, &hop, &listen);
            prop_assert_eq!((after.client, after.doubt), (before.client, None));
            prop_assert_eq!(after.secure, before.secure);
        }
        for element in map.get(Name::XForwardedFor).unwrap().split(|byte| *byte == b',') {
            let text = std::str::from_utf8(element.trim_ascii()).unwrap();
            let canonical = text.parse::<IpAddr>().is_ok_and(|ip| ip.to_canonical().to_string() == text);
            prop_assert!(canonical || text == "unknown", "{}", text);
        }
        if let Some(line) = map.get(Name::Forwarded) {
            let mut again = Vec::new();
            for (index, element) in Forwarded::parse_line(line).unwrap().iter().enumerate() {
                again.extend_from_slice(if index > 0 { b", " } else { b"" });
                element.write(&mut again);
            }
            prop_assert_eq!(line, &again[..]);
        }
    }
}
