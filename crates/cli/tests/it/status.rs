//! Tests of `bywash status`: the state of a running gateway, seen from another process.

use crate::binary::bywash;
use crate::folder::Folder;
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
    // The URL has the form that `bywash run` prints.
    let url = format!("http://{}/", gateway.operators());
    let json = bywash(&["status", "--json", "--admin", &url]).json();
    assert_eq!(json["mode"], "observe");
    assert_eq!(json["classes"][0]["outcomes"]["served"], 1);
    assert_eq!(json["uploads"], 0);
}

#[test]
fn a_session_cookie_that_no_request_has_is_told_wherever_somebody_looks() {
    let (upstream, folder) = (Upstream::new(), Folder::new());
    let text = format!(
        "version = 1\nupstream.server = \"{}\"\nidentify.session = \"cookie:sid\"\n",
        upstream.url()
    );
    let file = folder.file("bywash.toml", &text);
    let mut gateway = Gateway::start(&["--config", &file]);
    for _ in 0..100 {
        get(&gateway.clients(), "/login");
    }
    let words = "no request had the cookie `sid`; responses set `PHPSESSID` (HttpOnly)";
    let line = gateway.hear("sid");
    assert!(line.contains(words), "{line}");
    let status = bywash(&["status", "--admin", &gateway.operators()]);
    assert!(status.out.contains(words), "{}", status.out);
    let text = format!("{text}listen.admin = \"{}\"\n", gateway.operators());
    let file = folder.file("doctor.toml", &text);
    let doctor = bywash(&["doctor", "--config", &file, "--json"]).json();
    let checks = doctor["checks"].as_array().unwrap();
    let found = checks.iter().find(|one| one["check"] == "session cookie").unwrap();
    assert_eq!(found["verdict"], "warning", "{found}");
    assert!(found["found"].as_str().unwrap().contains(words), "{found}");
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
    assert!(outcome.err.contains("is not bywash"), "{}", outcome.err);
}
