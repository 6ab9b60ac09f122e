use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use proptest::prelude::*;
use ring::signature::{Ed25519KeyPair, KeyPair as _};

use super::*;
use crate::keys::read_keys;
use crate::keys::tests::RFC_KEY;

const NOW: u64 = 1_800_000_000;

#[derive(Clone, Default)]
struct Request {
    fields: Vec<(&'static str, String)>,
}

impl Message for Request {
    fn derived(&self, name: &str) -> Option<Cow<'_, str>> {
        let derived = [("@authority", "example.com"), ("@method", "GET"), ("@path", "/a")];
        derived.iter().find(|(one, _)| *one == name).map(|(_, value)| Cow::Borrowed(*value))
    }

    fn fields(&self, name: &str) -> impl Iterator<Item = &[u8]> {
        self.fields.iter().filter(move |(one, _)| *one == name).map(|(_, value)| value.as_bytes())
    }
}

fn key_pair() -> Ed25519KeyPair {
    Ed25519KeyPair::from_seed_unchecked(&[7; 32]).unwrap()
}

fn directory(dates: &str) -> String {
    let x = URL_SAFE_NO_PAD.encode(key_pair().public_key());
    format!(r#"{{"keys": [{{"kty": "OKP", "crv": "Ed25519", "x": "{x}"{dates}}}]}}"#)
}

fn key(dates: &str) -> PublicKey {
    read_keys(&directory(dates)).unwrap().remove(0)
}

/// Returns what the recipient says of a request, if it knows one key.
fn verified(request: &Request, key: &PublicKey) -> Option<Result<(), Refusal>> {
    verify(request, NOW, |id| (id == key.id()).then_some(((), key)))
}

/// Returns a request with these fields, and with a signature over the lines of `signed`. `input` is
/// what stands in `Signature-Input`.
fn signed(fields: &[(&'static str, &str)], signed: &[&str], input: &str) -> Request {
    let base = format!("{}\n\"@signature-params\": {input}", signed.join("\n"));
    let signature = STANDARD.encode(key_pair().sign(base.as_bytes()));
    let fields = fields.iter().map(|(name, value)| (*name, (*value).to_owned()));
    let own = [
        ("signature-input", format!("one=(\"@path\");tag=\"other\", sig1={input}")),
        ("signature", format!("one=:AAAA:, sig1=:{signature}:")),
    ];
    Request { fields: fields.chain(own).collect() }
}

/// Returns the parameters of a signature that is valid now.
fn parameters() -> String {
    let id = key("").id().to_owned();
    format!(
        ";created={};keyid=\"{id}\";alg=\"ed25519\";expires={};nonce=\"a\";tag=\"web-bot-auth\"",
        NOW - 10,
        NOW + 10
    )
}

const AUTHORITY: &str = "\"@authority\": example.com";

#[test]
fn the_signature_of_another_implementation_is_valid() {
    // An example of draft-meunier-web-bot-auth-architecture, with the key of RFC 9421 §B.1.4.
    let input = "sig1=(\"@authority\");created=1735689600;\
                 keyid=\"poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U\";alg=\"ed25519\";\
                 expires=1735693200;nonce=\"gubxywVx7hzbYKatLgzuKDllDAIXAkz41PydU7aOY7vT+Mb3GJNxW0\
                 qD4zJ+IOQ1NVtg+BNbTCRUMt1Ojr5BgA==\";tag=\"web-bot-auth\"";
    let signature = "sig1=:uz2SAv+VIemw+Oo890bhYh6Xf5qZdLUgv6/PbiQfCFXcX/vt1A8Pf7OcgL2yUDUYXFtff\
                     NpkEr5W6dldqFrkDg==:";
    let fields = [("signature-input", input), ("signature", signature)];
    let request = Request { fields: fields.map(|(name, value)| (name, value.to_owned())).into() };
    let key = read_keys(RFC_KEY).unwrap().remove(0);
    let at = |now| verify(&request, now, |id| (id == key.id()).then_some((1, &key)));
    assert_eq!(at(1_735_690_000), Some(Ok(1)));
    assert_eq!(at(1_735_693_200), Some(Err(Refusal::Expired)));
    assert_eq!(at(1_735_689_000), Some(Err(Refusal::Expired)), "it is of the future");
}

#[test]
fn a_signature_covers_fields_and_members_of_fields() {
    let input = format!(
        "(\"@method\" \"@path\" \"@authority\" \"accept\" \"signature-agent\";key=\"a\"){}",
        parameters()
    );
    let lines = [
        "\"@method\": GET",
        "\"@path\": /a",
        AUTHORITY,
        "\"accept\": text/html, */*",
        "\"signature-agent\";key=\"a\": \"https://a.example\";b",
    ];
    let fields = [
        ("accept", " text/html "),
        ("signature-agent", "z=?0, a=\"https://a.example\";b"),
        ("accept", "*/*"),
    ];
    let request = signed(&fields, &lines, &input);
    assert_eq!(verified(&request, &key("")), Some(Ok(())));
    let mut other = request;
    other.fields[2].1 = "text/plain".to_owned();
    assert_eq!(verified(&other, &key("")), Some(Err(Refusal::Forged)));
}

#[test]
fn a_request_without_a_signature_of_an_agent_is_of_no_agent() {
    assert_eq!(verified(&Request::default(), &key("")), None);
    let input = format!("(\"@authority\"){}", parameters());
    let mut request = signed(&[], &[AUTHORITY], &input);
    for (_, value) in &mut request.fields {
        *value = value.replace("web-bot-auth", "other");
    }
    assert_eq!(verified(&request, &key("")), None);
}

#[test]
fn a_signature_that_proves_nothing_is_refused_with_the_reason() {
    let input = format!("(\"@authority\"){}", parameters());
    let with = |from: &str, to: &str| signed(&[], &[AUTHORITY], &input.replacen(from, to, 1));
    let created = |seconds: u64| with(&format!("={}", NOW - 10), &format!("={seconds}"));
    let expires = |seconds: u64| with(&format!("={}", NOW + 10), &format!("={seconds}"));
    assert_eq!(verified(&signed(&[], &[AUTHORITY], &input), &key("")), Some(Ok(())));
    let ahead = input.replace(&(NOW - 10).to_string(), &(NOW + 60).to_string());
    let ahead = ahead.replace(&(NOW + 10).to_string(), &(NOW + 70).to_string());
    assert_eq!(verified(&signed(&[], &[AUTHORITY], &ahead), &key("")), Some(Ok(())), "clocks");
    for (request, why) in [
        (created(NOW + 11), Refusal::Expired),
        (signed(&[], &[AUTHORITY], &ahead.replace("0060", "0061")), Refusal::Expired),
        (created(NOW + 10 - MAX_VALIDITY - 1), Refusal::Expired),
        (expires(NOW), Refusal::Expired),
        (expires(NOW - 10 + MAX_VALIDITY + 1), Refusal::Expired),
        (with(";created", ";made"), Refusal::Malformed),
        (with(";expires", ";ends"), Refusal::Malformed),
        (with(";keyid", ";key"), Refusal::Malformed),
        (with("keyid=\"", "keyid=\"x"), Refusal::UnknownKey),
        (with("alg=\"ed25519\"", "alg=\"hmac-sha256\""), Refusal::Malformed),
        (with("\"@authority\"", "\"@path\""), Refusal::Malformed),
        (with("\"@authority\"", "\"@authority\" \"@authority\""), Refusal::NotCovered),
        (with("\"@authority\"", "\"@authority\";req"), Refusal::NotCovered),
        (with("\"@authority\"", "\"@authority\" \"@status\""), Refusal::NotCovered),
        (with("\"@authority\"", "\"@authority\" \"accept\""), Refusal::NotCovered),
        (with("\"@authority\"", &"\"@authority\" ".repeat(17)), Refusal::NotCovered),
        (signed(&[], &["\"@authority\": example.org"], &input), Refusal::Forged),
        (signed(&[("signature-agent", "\"a\"")], &[AUTHORITY], &input), Refusal::Malformed),
    ] {
        assert_eq!(verified(&request, &key("")), Some(Err(why)), "{:?}", request.fields);
    }
}

#[test]
fn long_fields_are_not_read() {
    let long = parameters().replace("nonce=\"a\"", &format!("nonce=\"{}\"", "a".repeat(MAX_BYTES)));
    let request = signed(&[], &[AUTHORITY], &format!("(\"@authority\"){long}"));
    assert_eq!(verified(&request, &key("")), None);
    let members = (0..8).map(|n| format!("\"x\";key=\"a{n}\"")).collect::<Vec<_>>().join(" ");
    let input = format!("(\"@authority\" {members}){}", parameters());
    let lines = (0..8).map(|n| format!("\"x\";key=\"a{n}\": 1")).collect::<Vec<_>>().join("\n");
    let x = (0..8).map(|n| format!("a{n}=1")).collect::<Vec<_>>().join(", ");
    let with = |x: &str| verified(&signed(&[("x", x)], &[AUTHORITY, &lines], &input), &key(""));
    assert_eq!(with(&x), Some(Ok(())));
    assert_eq!(with(&format!("{x}, b=\"{}\"", "b".repeat(1024))), Some(Err(Refusal::NotCovered)));
    let input = format!("(\"@authority\" \"x\"){}", parameters());
    let whole = |length: usize| {
        let x = "x".repeat(length);
        let lines = [AUTHORITY, &format!("\"x\": {x}")];
        verified(&signed(&[("x", &x)], &lines, &input), &key(""))
    };
    assert_eq!((whole(3000), whole(4000)), (Some(Ok(())), Some(Err(Refusal::NotCovered))));
}

#[test]
fn a_key_that_has_expired_signs_nothing() {
    let request = signed(&[], &[AUTHORITY], &format!("(\"@authority\"){}", parameters()));
    let dated = |dates: String| verified(&request, &key(&dates));
    assert_eq!(dated(format!(", \"exp\": {NOW}")), Some(Ok(())));
    assert_eq!(dated(format!(", \"exp\": {}", NOW - 1)), Some(Err(Refusal::Expired)));
    assert_eq!(dated(format!(", \"nbf\": {}", NOW + 1)), Some(Err(Refusal::Expired)));
}

#[test]
fn a_signature_must_be_bytes_under_the_label_of_its_input() {
    let input = format!("(\"@authority\"){}", parameters());
    for (from, to) in [("sig1=:", "sig2=:"), ("sig1=:", "sig1=a;b=:"), ("sig1=:", "sig1=(:")] {
        let mut request = signed(&[], &[AUTHORITY], &input);
        request.fields[1].1 = request.fields[1].1.replace(from, to);
        assert_eq!(verified(&request, &key("")), Some(Err(Refusal::Malformed)), "{to}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2048, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn nothing_but_the_signed_request_is_valid(place in 0_usize..400, to in 0_u8..=127) {
        let input = format!("(\"@authority\" \"accept\"){}", parameters());
        let lines = [AUTHORITY, "\"accept\": */*"];
        let request = signed(&[("accept", "*/*")], &lines, &input);
        let mut changed = request.clone();
        let lengths: Vec<usize> = request.fields.iter().map(|(_, value)| value.len()).collect();
        let (mut field, mut place) = (0, place % lengths.iter().sum::<usize>());
        while place >= lengths[field] {
            (place, field) = (place - lengths[field], field + 1);
        }
        changed.fields[field].1.replace_range(place..=place, &char::from(to).to_string());
        if let Some(Ok(())) = verified(&changed, &key("")) {
            // Not signed are spaces, the other signature of the two fields, and those bits of the
            // last digit that stand for no byte of the signature.
            let signed_part = |request: &Request| {
                let fields = request.fields.iter().map(|(_, value)| {
                    let own = value.split_once("sig1").map_or(&**value, |(_, own)| own);
                    let own = own.replace(' ', "");
                    own.strip_suffix("==:").map_or(own.clone(), |own| own[..own.len() - 1].into())
                });
                fields.collect::<Vec<_>>()
            };
            prop_assert_eq!(signed_part(&changed), signed_part(&request));
        }
    }

    #[test]
    fn no_field_makes_it_fail(
        items in "( \"[@a-z-]{0,12}\"(;key=\"[a-z]\")?(;[a-z]{1,3})?){0,4}",
        rest in "[ -~]{0,40}",
        signature in "(a=:[A-Za-z0-9+/]{0,8}={0,2}:)?[ -~]{0,20}",
    ) {
        let times = format!("created={};expires={}", NOW - 1, NOW + 1);
        let input = format!("a=(\"@authority\"{items});keyid=\"a\";tag=\"web-bot-auth\";{times}{rest}");
        let fields = vec![("signature-input", input), ("signature", signature)];
        let request = Request { fields };
        let known = key("");
        let found = verify(&request, NOW, |_| Some(((), &known)));
        prop_assert_ne!(found, Some(Ok(())));
    }
}
