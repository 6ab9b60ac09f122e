//! Tests of finding, adding, removing and writing fields.

use bywash_message::{Fields, Name};

use crate::{listed, with};

fn written(fields: &Fields) -> String {
    let mut out = Vec::new();
    fields.write(&mut out);
    out.escape_ascii().to_string().replace("\\r\\n", "\n")
}

#[test]
fn fields_are_found_by_name_and_by_spelling() {
    let fields = with("COOKIE: a=1\r\nX-Own: 1\r\ncookie: b=2\r\nx-OWN: 2\r\n").unwrap().fields;
    assert_eq!(fields.len(), 5);
    assert!(fields.has(Name::Cookie) && !fields.has(Name::Via));
    assert_eq!(fields.get(Name::Cookie), Some(&b"a=1"[..]));
    assert_eq!(fields.get(Name::Via), None);
    assert_eq!(fields.all(Name::Cookie).collect::<Vec<_>>(), [b"a=1", b"b=2"]);
    assert_eq!(fields.named(b"X-own").collect::<Vec<_>>(), [b"1", b"2"]);
    assert_eq!(fields.named(b"X-ow").count(), 0);
}

#[test]
fn other_is_no_name() {
    let mut fields = with("X: y\r\n").unwrap().fields;
    assert!(!fields.has(Name::Other));
    assert_eq!(fields.all(Name::Other).count(), 0);
    fields.remove(Name::Other);
    assert_eq!(fields.len(), 2);
}

#[test]
fn what_is_removed_is_gone() {
    let mut fields = with("Via: 1\r\nX: 1\r\nvia: 2\r\nx: 2\r\nY: 3\r\n").unwrap().fields;
    fields.remove(Name::Via);
    assert!(!fields.has(Name::Via));
    fields.remove_named(b"X");
    assert_eq!(listed(&fields), ["Host: a", "Y: 3"]);
    fields.push(b"Via", b"3");
    fields.retain(|field| field.name != Name::Host);
    assert!(!fields.has(Name::Host) && fields.has(Name::Via));
    assert_eq!(fields.get(Name::Via), Some(&b"3"[..]));
    assert_eq!(written(&fields), "Y: 3\nVia: 3\n");
}

#[test]
fn aliases_of_forwarded_fields_have_a_name_of_their_own() {
    let mut fields = with(
        "X_Forwarded_For: 1\r\nx.forwarded.for: 2\r\nX-Forwarded_For: 3\r\nX-Forwarded-For: 4\r\n\
         X_Real_IP: 5\r\nBYWASH.Class: 6\r\nbywash_level: 7\r\nX-Forwarded: 8\r\n\
         X_Forwarded_Ssl: 9\r\nX-Forwarded-Preferred_Username: 10\r\nBywashing: day\r\nX-Forwardedly: x\r\nForwarded: y\r\n",
    )
    .unwrap()
    .fields;
    let values: Vec<_> = fields.all(Name::ForwardedAlias).collect();
    assert_eq!(values, [&b"1"[..], b"2", b"3", b"5", b"9", b"10"]);
    assert_eq!(fields.all(Name::XForwardedFor).collect::<Vec<_>>(), [b"4"]);
    for name in [Name::ForwardedAlias, Name::XForwardedFor, Name::Ours, Name::XForwardedOther] {
        assert!(fields.has(name), "{name:?}");
        fields.remove(name);
    }
    assert_eq!(listed(&fields), ["Host: a", "Bywashing: day", "X-Forwardedly: x", "Forwarded: y"]);
}

#[test]
fn setting_a_field_replaces_those_of_its_name() {
    let mut fields = with("Via: 1\r\nX: 1\r\nvia: 2\r\nx: 2\r\n").unwrap().fields;
    fields.set(b"Via", b"3");
    fields.set(b"X", b"4");
    assert_eq!(listed(&fields), ["Host: a", "Via: 3", "X: 4"]);
    fields.set(b"bywash-class", b"a");
    fields.set(b"bywash-level", b"b");
    fields.set(b"Bywash_Class", b"c");
    assert_eq!(listed(&fields)[3..], ["bywash-level: b", "Bywash_Class: c"]);
}

#[test]
fn fields_are_written_as_they_came_with_one_space_behind_the_colon() {
    let mut fields =
        with("A:1\r\nB: 2\r\nC:  3\r\nD: 4 \r\nE:\r\nF: \r\nG: 7\r\nh: 8\r\n").unwrap().fields;
    fields.push(b"I", b"9");
    fields.push(b"J", b"");
    let all = "Host: a\nA: 1\nB: 2\nC: 3\nD: 4\nE: \nF: \nG: 7\nh: 8\nI: 9\nJ: \n";
    assert_eq!(written(&fields), all);
    fields.remove_named(b"b");
    fields.remove_named(b"G");
    assert_eq!(written(&fields), all.replace("B: 2\n", "").replace("G: 7\n", ""));
}

#[test]
fn names_are_known_in_any_case_and_by_nothing_less() {
    for (spelled, name) in [
        ("te", Name::Te),
        ("HOST", Name::Host),
        ("Content-LENGTH", Name::ContentLength),
        ("http2-settings", Name::Http2Settings),
        ("X-Forwarded-Proto", Name::XForwardedProto),
        ("bywash-", Name::Ours),
        ("Bywash-Anything", Name::Ours),
        ("bywash", Name::Other),
        ("hos", Name::Other),
        ("hosts", Name::Other),
        ("proxy_connection", Name::Other),
        ("", Name::Other),
    ] {
        assert_eq!(Name::of(spelled.as_bytes()), name, "{spelled}");
    }
}

#[test]
fn fields_are_shown_without_bytes_that_move_a_terminal() {
    let head = b"GET / HTTP/1.1\r\nHost: a\r\nX: \xff\ty\r\n\r\n";
    let fields = crate::request(head).unwrap().fields;
    assert_eq!(format!("{fields:?}"), r"[Host: a, X: \xff\ty]");
}
