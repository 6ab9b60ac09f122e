//! `bywash status`: somebody else's view of a running gateway.

use crate::binary::bywash;
use crate::gateway::{Gateway, get};
use crate::upstream::{Upstream, nobody};

#[test]
fn a_running_gateway_tells_how_it_stands() {
    let upstream = Upstream::new();
    let gateway = Gateway::start(&["--upstream", &upstream.url()]);
    get(&gateway.clients(), "/");
    let text = bywash(&["status", "--admin", &gateway.operators()]);
    assert_eq!((text.code, text.err.as_str()), (Some(0), ""), "{text:?}");
    for words in ["observe", "no overload", "session-first", &upstream.address.to_string(), "other"]
    {
        assert!(text.out.contains(words), "{words}: {}", text.out);
    }
    // As pasted from the line that `bywash run` prints.
    let url = format!("http://{}/", gateway.operators());
    let json = bywash(&["status", "--json", "--admin", &url]).json();
    assert_eq!(json["mode"], "observe");
    assert_eq!(json["classes"][0]["outcomes"]["served"], 1);
    assert_eq!(json["uploads"], 0);
}

#[test]
fn where_nobody_answers_is_an_exit_code_of_its_own() {
    let gone = nobody().to_string();
    for json in [&[][..], &["--json"]] {
        let outcome = bywash(&[&["status", "--admin", &gone], json].concat());
        assert_eq!((outcome.code, outcome.out.as_str()), (Some(69), ""));
        assert!(outcome.err.contains(&gone), "{}", outcome.err);
    }
}

#[test]
fn somebody_else_is_not_taken_for_a_gateway() {
    let upstream = Upstream::new();
    let outcome = bywash(&["status", "--admin", &upstream.address.to_string()]);
    assert_eq!(outcome.code, Some(69));
    assert!(outcome.err.contains("no bywash"), "{}", outcome.err);
}
