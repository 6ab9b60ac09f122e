//! Checks that header fields keep their values and their order in three cases: other fields are
//! removed, fields are written and parsed again, and fields are converted to HTTP/2 and back.
#![no_main]

use bywash_fuzz::{AMPLE, SMALL, listed};
use bywash_message::{Fields, Name, Response};
use http::Method;
use libfuzzer_sys::fuzz_target;

/// Parses the lines of fields as those of a response that has neither a body nor a length.
fn parse(lines: &[u8], limits: &bywash_message::Limits) -> Option<Fields> {
    let head = [b"HTTP/1.1 204\r\n", lines, b"\r\n"].concat();
    Response::parse(&head, &Method::GET, limits).ok().map(|answer| answer.fields)
}

fn written(fields: &Fields) -> Vec<u8> {
    let mut out = Vec::new();
    fields.write(&mut out);
    out
}

fuzz_target!(|lines: &[u8]| {
    let Some(mut fields) = parse(lines, &SMALL) else { return };
    for field in fields.iter() {
        assert_eq!(Name::of(field.spelled), field.name);
        assert!(field.name == Name::Other || fields.has(field.name));
        assert!(fields.named(field.spelled).any(|value| value == field.value));
    }
    let again = parse(&written(&fields), &AMPLE).expect("it was accepted before");
    assert_eq!(listed(&again), listed(&fields));

    // `set` leaves one field of this name, which is the last field.
    fields.set(b"X-Forwarded-For", b"127.0.0.1");
    assert_eq!(fields.all(Name::XForwardedFor).count(), 1);
    fields.remove_hop_by_hop();
    for name in [Name::Connection, Name::KeepAlive, Name::Te, Name::Upgrade, Name::ProxyConnection]
    {
        assert!(!fields.has(name) && fields.get(name).is_none());
    }
    let again = parse(&written(&fields), &AMPLE).expect("fewer of the same");
    assert_eq!(listed(&again), listed(&fields));

    // HTTP/2 keeps the fields, except for the case of names, the cookies, and the positions of
    // fields with the same name.
    fields.remove(Name::Cookie);
    let map = fields.to_header_map();
    assert_eq!(map.len(), fields.len());
    let back = Fields::from_header_map(&map);
    for field in fields.iter() {
        let values: Vec<_> = fields.named(field.spelled).collect();
        assert_eq!(back.named(field.spelled).collect::<Vec<_>>(), values);
    }
});
