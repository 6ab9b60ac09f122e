//! Checks that `httparse` understands every accepted head of a request as bywash does. Also checks
//! that a head that is written and parsed again is unchanged.
#![no_main]

use bywash_fuzz::{AMPLE, SMALL, end, listed, others};
use bywash_message::{Name, Request, Target, write_request};
use http::Version;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Some(end) = end(bytes, &SMALL) else {
        assert!(Request::parse(bytes, &SMALL).is_err());
        return;
    };
    let head = &bytes[..end];
    let Ok(request) = Request::parse(head, &SMALL) else { return };
    compare(head, &request);
    let mut out = Vec::new();
    let target = request.target.path_and_query();
    write_request(&mut out, &request.method, target, &request.fields, request.framing);
    assert_eq!(bywash_fuzz::end(&out, &AMPLE), Some(out.len()));
    if !request.fields.has(Name::Host) {
        assert_eq!(request.version, Version::HTTP_10);
        return;
    }
    match Request::parse(&out, &AMPLE) {
        Ok(again) => {
            assert_eq!(again.method, request.method);
            assert_eq!(again.target, request.target);
            assert_eq!(again.framing, request.framing);
            assert_eq!(again.authority, request.authority);
            assert_eq!(listed(&again.fields), listed(&request.fields));
        }
        // A field that HTTP/1.0 ignores can have a meaning in HTTP/1.1, until the gateway removes
        // the field.
        Err(error) => assert_eq!(request.version, Version::HTTP_10, "{error:?}"),
    }
    let mut fields = request.fields.clone();
    fields.remove_hop_by_hop();
    assert!(fields.has(Name::Host));
});

fn compare(head: &[u8], request: &Request) {
    let mut headers = [httparse::EMPTY_HEADER; 32];
    let mut other = httparse::Request::new(&mut headers);
    assert_eq!(other.parse(head), Ok(httparse::Status::Complete(head.len())));
    assert_eq!(other.method, Some(request.method.as_str()));
    assert_eq!(other.version, Some(u8::from(request.version == Version::HTTP_11)));
    let path = other.path.expect("it is complete");
    if path.starts_with('/') {
        assert_eq!(Target::canonical(path.as_bytes()).as_ref(), Ok(&request.target));
    }
    let mut fields = listed(&request.fields);
    if others(other.headers) != fields {
        // The field `Host` was added from an absolute target, because HTTP/1.0 does not require it.
        let host = fields.pop().expect("one was added");
        assert!(host.0 == b"Host" && request.version == Version::HTTP_10);
        assert_eq!(others(other.headers), fields);
    }
}
