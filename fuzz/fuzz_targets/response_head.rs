//! Checks that `httparse` understands every accepted head of a response as bywash does. Also checks
//! that a head that is written and parsed again is unchanged.
#![no_main]

use bywash_fuzz::{AMPLE, SMALL, end, listed, others};
use bywash_message::{Name, Response, write_response};
use http::Method;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let head = end(bytes, &SMALL).map_or(bytes, |end| &bytes[..end]);
    let to_head = Response::parse(head, &Method::HEAD, &SMALL);
    let Ok(answer) = Response::parse(head, &Method::GET, &SMALL) else {
        assert!(to_head.is_err());
        return;
    };
    assert!(to_head.is_ok());
    let mut headers = [httparse::EMPTY_HEADER; 32];
    let mut other = httparse::Response::new(&mut headers);
    assert_eq!(other.parse(head), Ok(httparse::Status::Complete(head.len())));
    assert_eq!(other.code, Some(answer.status.as_u16()));
    let mut fields = answer.fields.clone();
    fields.remove(Name::ContentLength);
    assert_eq!(others(other.headers), listed(&fields));

    let mut out = Vec::new();
    write_response(&mut out, answer.status, &answer.reason, &answer.fields, answer.framing, None);
    assert_eq!(end(&out, &AMPLE), Some(out.len()));
    let again = Response::parse(&out, &Method::GET, &AMPLE).expect("it was accepted before");
    assert_eq!(again.status, answer.status);
    assert_eq!(again.reason, answer.reason);
    assert_eq!(again.framing, answer.framing);
    assert_eq!(listed(&again.fields), listed(&answer.fields));
});
