//! Tests of properties that hold for any bytes.

use bywash_message::{
    Decoder, Fields, Framing, Head, Limits, Part, Request, Response, Target, write_chunk,
    write_last_chunk, write_request, write_response,
};
use http::Method;
use proptest::collection::vec;
use proptest::prelude::*;

use crate::bodies::decode;
use crate::made::{chunked, field, path, request_head, response_head, soup};
use crate::{LIMITS, listed};

/// Lists the fields that `httparse` found, except the framing, in the form of [`listed`].
fn others(headers: &[httparse::Header<'_>]) -> Vec<String> {
    let text = |bytes: &[u8]| bytes.escape_ascii().to_string();
    let framing = |name: &str| {
        name.eq_ignore_ascii_case("content-length")
            || name.eq_ignore_ascii_case("transfer-encoding")
    };
    let rest = headers.iter().filter(|header| !framing(header.name));
    rest.map(|header| format!("{}: {}", text(header.name.as_bytes()), text(header.value))).collect()
}

/// Searches for the end of the head in `bytes`. First `cuts[0]` bytes have arrived, then `cuts[1]`,
/// and so on.
fn end_in_pieces(bytes: &[u8], cuts: &[usize], limits: &Limits) -> Result<Option<usize>, u8> {
    let mut head = Head::default();
    for cut in cuts.iter().chain([&bytes.len()]) {
        match head.end(&bytes[..*cut], limits) {
            Ok(None) => {}
            Ok(end) => return Ok(end),
            Err(error) => return Err(error as u8),
        }
    }
    Ok(None)
}

fn cuts(bytes: &[u8], at: &[prop::sample::Index]) -> Vec<usize> {
    let mut cuts: Vec<usize> = at.iter().map(|at| at.index(bytes.len() + 1)).collect();
    cuts.sort_unstable();
    cuts
}

fn pieces<'a>(bytes: &'a [u8], cuts: &[usize]) -> Vec<&'a [u8]> {
    let mut from = 0;
    let mut pieces = Vec::new();
    for cut in cuts.iter().chain([&bytes.len()]) {
        pieces.push(&bytes[from..*cut]);
        from = *cut;
    }
    pieces
}

/// Returns those facts that must be the same after a message is written and parsed again.
fn again(fields: &Fields, framing: Framing) -> (Vec<String>, Framing) {
    (listed(fields), framing)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2048, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn httparse_understands_the_same_in_what_is_accepted(head in request_head()) {
        let Ok(request) = Request::parse(&head, &LIMITS) else { return Ok(()) };
        let mut headers = [httparse::EMPTY_HEADER; 100];
        let mut other = httparse::Request::new(&mut headers);
        prop_assert_eq!(other.parse(&head), Ok(httparse::Status::Complete(head.len())));
        prop_assert_eq!(other.method, Some(request.method.as_str()));
        let minor = u8::from(request.version == http::Version::HTTP_11);
        prop_assert_eq!(other.version, Some(minor));
        let mut fields = listed(&request.fields);
        let path = other.path.unwrap();
        if path.starts_with('/') {
            let target = Target::canonical(path.as_bytes()).unwrap();
            prop_assert_eq!(target, request.target);
            prop_assert_eq!(others(other.headers), fields);
        } else if others(other.headers) != fields {
            // The authority of an absolute target replaces a missing Host, which HTTP/1.0 allows.
            let host = fields.pop().unwrap();
            prop_assert!(host.starts_with("Host: ") && minor == 0, "{}", host);
            prop_assert_eq!(others(other.headers), fields);
        }
    }

    #[test]
    fn httparse_understands_the_same_in_answers_that_are_accepted(head in response_head()) {
        let Ok(answer) = Response::parse(&head, &Method::HEAD, &LIMITS) else { return Ok(()) };
        let mut headers = [httparse::EMPTY_HEADER; 100];
        let mut other = httparse::Response::new(&mut headers);
        prop_assert_eq!(other.parse(&head), Ok(httparse::Status::Complete(head.len())));
        prop_assert_eq!(other.code, Some(answer.status.as_u16()));
        let mut fields = answer.fields;
        fields.remove(bywash_message::Name::ContentLength);
        prop_assert_eq!(others(other.headers), listed(&fields));
    }

    #[test]
    fn a_request_that_is_written_is_parsed_the_same(head in request_head()) {
        let Ok(request) = Request::parse(&head, &LIMITS) else { return Ok(()) };
        let mut out = Vec::new();
        let target = request.target.path_and_query();
        write_request(&mut out, &request.method, target, &request.fields, request.framing);
        let limits = Limits { target: 3 * LIMITS.target, bytes: 2 * LIMITS.bytes, ..LIMITS };
        prop_assert_eq!(Head::default().end(&out, &limits), Ok(Some(out.len())));
        let parsed = Request::parse(&out, &limits);
        if request.fields.has(bywash_message::Name::Host) && request.version != http::Version::HTTP_10 {
            let parsed = parsed.unwrap();
            prop_assert_eq!(&parsed.method, &request.method);
            prop_assert_eq!(&parsed.target, &request.target);
            prop_assert_eq!(&parsed.authority, &request.authority);
            prop_assert_eq!(
                again(&parsed.fields, parsed.framing),
                again(&request.fields, request.framing)
            );
        }
    }

    #[test]
    fn an_answer_that_is_written_is_parsed_the_same(head in response_head()) {
        let Ok(answer) = Response::parse(&head, &Method::GET, &LIMITS) else { return Ok(()) };
        let mut out = Vec::new();
        write_response(&mut out, answer.status, &answer.reason, &answer.fields, answer.framing, None);
        let limits = Limits { bytes: 2 * LIMITS.bytes, ..LIMITS };
        prop_assert_eq!(Head::default().end(&out, &limits), Ok(Some(out.len())));
        let parsed = Response::parse(&out, &Method::GET, &limits).unwrap();
        prop_assert_eq!((parsed.status, &parsed.reason), (answer.status, &answer.reason));
        prop_assert_eq!(
            again(&parsed.fields, parsed.framing),
            again(&answer.fields, answer.framing)
        );
    }

    #[test]
    fn fields_that_are_written_are_parsed_the_same(
        lines in vec(field(), 0..20),
        removed in vec(any::<prop::sample::Index>(), 0..5),
    ) {
        let mut fields = Fields::new();
        for (name, value) in &lines {
            fields.push(name, value.trim_ascii());
        }
        for at in removed.iter().filter(|_| !lines.is_empty()) {
            fields.remove_named(&lines[at.index(lines.len())].0);
        }
        let mut out = b"HTTP/1.1 200\r\n".to_vec();
        fields.write(&mut out);
        out.extend_from_slice(b"\r\n");
        if let Ok(parsed) = Response::parse(&out, &Method::GET, &LIMITS) {
            prop_assert_eq!(listed(&parsed.fields), listed(&fields));
        }
    }

    #[test]
    fn a_head_ends_in_the_same_place_however_it_comes(
        head in prop_oneof![request_head(), response_head()],
        at in vec(any::<prop::sample::Index>(), 0..8),
        limits in prop_oneof![Just(LIMITS), (0..60usize, 0..60usize).prop_map(|(target, bytes)| {
            Limits { target, fields: 9, bytes }
        })],
    ) {
        let whole = end_in_pieces(&head, &[], &limits);
        prop_assert_eq!(end_in_pieces(&head, &cuts(&head, &at), &limits), whole);
        prop_assert_eq!(end_in_pieces(&head, &(0..head.len()).collect::<Vec<_>>(), &limits), whole);
    }

    #[test]
    fn what_is_parsed_has_ended_where_the_search_for_its_end_does(head in request_head()) {
        if Request::parse(&head, &LIMITS).is_ok() {
            prop_assert_eq!(Head::default().end(&head, &LIMITS), Ok(Some(head.len())));
        }
    }

    #[test]
    fn chunks_mean_the_same_however_they_come(
        (coded, plain) in chunked(),
        behind in vec(any::<u8>(), 0..20),
        at in vec(any::<prop::sample::Index>(), 0..8),
    ) {
        let bytes = [&coded[..], &behind].concat();
        let whole = decode(Framing::Chunked, [&bytes[..]]).unwrap();
        prop_assert_eq!(&whole.data, &plain);
        prop_assert!(whole.ended && whole.used == coded.len());
        let split = decode(Framing::Chunked, pieces(&bytes, &cuts(&bytes, &at)));
        prop_assert_eq!(split.as_ref(), Ok(&whole));
        prop_assert_eq!(decode(Framing::Chunked, bytes.chunks(1)), Ok(whole));
    }

    #[test]
    fn any_bytes_decode_the_same_however_they_come(
        bytes in prop_oneof![soup(), vec(any::<u8>(), 0..100)],
        at in vec(any::<prop::sample::Index>(), 0..8),
        length in 0..100u64,
    ) {
        for framing in
            [Framing::None, Framing::Length(length), Framing::Chunked, Framing::UntilClose]
        {
            let whole = decode(framing, [&bytes[..]]);
            prop_assert_eq!(&decode(framing, pieces(&bytes, &cuts(&bytes, &at))), &whole);
            prop_assert_eq!(&decode(framing, bytes.chunks(1)), &whole);
        }
    }

    #[test]
    fn what_is_written_in_chunks_is_decoded(data in vec(vec(any::<u8>(), 0..300), 0..6)) {
        let mut out = Vec::new();
        for data in &data {
            write_chunk(&mut out, data);
        }
        write_last_chunk(&mut out, None);
        let body = decode(Framing::Chunked, [&out[..]]).unwrap();
        prop_assert_eq!((body.data, body.used, body.ended), (data.concat(), out.len(), true));
    }

    #[test]
    fn a_broken_body_stays_broken(bytes in soup()) {
        let mut decoder = Decoder::new(Framing::Chunked, &LIMITS);
        let mut rest = &bytes[..];
        loop {
            match decoder.decode(rest) {
                Ok((_, Part::End(_) | Part::More)) => break,
                Ok((used, Part::Data(_))) => rest = &rest[used..],
                Err(_) => {
                    prop_assert!(decoder.decode(b"0\r\n\r\n").is_err());
                    prop_assert!(decoder.closed().is_err() && !decoder.is_ended());
                    break;
                }
            }
        }
    }

    #[test]
    fn a_canonical_path_is_its_own_canonical_form(raw in path()) {
        let Ok(target) = Target::canonical(&raw) else { return Ok(()) };
        let again = Target::canonical(target.path_and_query().as_bytes()).unwrap();
        prop_assert_eq!(&again, &target);
        let path = target.path();
        prop_assert!(path.starts_with('/'));
        for segment in path.split('/') {
            prop_assert!(segment != "." && segment != "..", "{}", path);
        }
        let unslashed = path.replace("%2F", "/").replace("%5C", "/");
        for segment in unslashed.split('/') {
            let name = segment.split(';').next().unwrap();
            prop_assert!(name != "." && name != "..", "{}", path);
        }
        prop_assert!(path.bytes().all(|byte| byte.is_ascii_graphic()));
        prop_assert!(!path.contains(['\\', '#', '?']) && !path.contains("%00"));
    }

    #[test]
    fn any_escaping_of_a_path_has_the_same_canonical_form(
        segments in vec("[a-z.~_-]{0,3}", 0..6),
        escaped in vec(any::<bool>(), 30),
    ) {
        let path = format!("/{}", segments.join("/"));
        let mut choices = escaped.iter().cycle();
        let spelled: String = path.chars().map(|letter| match letter {
            '/' => "/".to_owned(),
            letter if *choices.next().unwrap() => format!("%{:02x}", letter as u32),
            letter => letter.to_string(),
        }).collect();
        prop_assert_eq!(Target::canonical(spelled.as_bytes()), Target::canonical(path.as_bytes()));
    }
}
