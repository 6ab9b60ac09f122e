//! Tests of the names, deadlines, passed-on header fields and responses of requests, through the
//! layer.

use std::collections::{BTreeMap, HashSet};

use bytes::Bytes;
use bywash_tower::{
    Class, DatabaseName, HEADER, REQUEST_HEADER, Reason, TerminateLayer, Terminated, Token,
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response};
use http_body_util::{BodyExt, Full};
use serde_json::Value;
use tower_layer::Layer;
use tower_service::Service;

use super::{reason, text, time, vectors, why};
use crate::layer::Handler;
use crate::{Search, secs};

type Body = Full<Bytes>;

/// Sends a request through `layer` to a handler that calls `look` with its token. Returns the
/// response.
async fn ask(
    layer: &TerminateLayer,
    request: Request<()>,
    mut look: impl FnMut(&Token),
) -> Response<Body> {
    let mut service = layer.layer(Handler(|request: Request<()>| {
        look(request.extensions().get::<Token>().unwrap());
        std::future::ready(Ok::<_, Terminated>(Response::new(Body::from("done"))))
    }));
    service.call(request).await.unwrap()
}

fn layer(search: &Search) -> TerminateLayer {
    TerminateLayer::new(&search.controller, "search").unwrap()
}

/// Returns a request with these header fields.
fn request<'a>(fields: impl IntoIterator<Item = (&'a str, &'a str)>) -> Request<()> {
    let mut request = Request::new(());
    for (field, value) in fields {
        let field: HeaderName = field.parse().unwrap();
        request.headers_mut().append(field, HeaderValue::from_bytes(value.as_bytes()).unwrap());
    }
    request
}

/// Returns each of `values` paired with the name of this header field.
fn each<'a>(field: &'a str, values: &'a Value) -> impl Iterator<Item = (&'a str, &'a str)> {
    values.as_array().unwrap().iter().map(move |value| (field, text(value)))
}

/// Returns whether a setting that is on by default is off in this vector.
fn is_off(vector: &Value, setting: &str) -> bool {
    vector[setting].as_bool() == Some(false)
}

/// Returns whether `name` has the format of the names that the layer makes, like
/// `mod_bywash_sentry`.
fn is_made(name: &str) -> bool {
    name.len() == 16 && name.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

#[tokio::test]
async fn names_of_requests() {
    let mut made = HashSet::new();
    for vector in vectors("names.json", "requests") {
        // A `HeaderValue` cannot have the characters of these vectors.
        if vector["in_memory"].as_bool() == Some(true) {
            continue;
        }
        let search = Search::new();
        let trusting = layer(&search);
        let layer =
            if is_off(&vector, "trusts_names") { trusting.distrust_request() } else { trusting };
        let mut name = String::new();
        let brings = request(each(REQUEST_HEADER, &vector["values"]));
        ask(&layer, brings, |token| name = token.request().unwrap().to_string()).await;
        if let Some(expected) = vector["name"].as_str() {
            assert_eq!(name, expected, "{}", why(&vector));
        } else {
            assert!(is_made(&name) && made.insert(name.clone()), "{name}: {}", why(&vector));
        }
    }
}

#[test]
fn names_of_databases() {
    for vector in vectors("names.json", "databases") {
        let is_valid = text(&vector["name"]).parse::<DatabaseName>().is_ok();
        assert_eq!(Some(is_valid), vector["is_valid"].as_bool(), "{}", why(&vector));
    }
}

#[tokio::test]
async fn deadlines() {
    for vector in vectors("deadlines.json", "requests") {
        let search = Search::of(Class::new("search", secs(1), secs(3600)));
        let trusting = layer(&search);
        let layer = if is_off(&vector, "trusts_deadlines") {
            trusting.distrust_deadline()
        } else {
            trusting
        };
        let mut left = None;
        let brings = request(each(HEADER, &vector["values"]));
        let answer = ask(&layer, brings, |token| left = token.left()).await;
        // A request with no time left is not passed to the handler.
        let expected = time(&vector["left_ms"]).filter(|left| !left.is_zero());
        let (status, ended) = if expected.is_some() { (200, 0) } else { (504, 1) };
        let counts = search.stats();
        assert_eq!(
            (left, answer.status().as_u16(), counts.deadline, counts.lost),
            (expected, status, ended, 0),
            "{}",
            why(&vector)
        );
    }
}

/// Returns the header fields by name. Several values of one field are joined by commas.
fn joined(head: &HeaderMap) -> BTreeMap<String, String> {
    let values = |name: &HeaderName| {
        let all = head.get_all(name).iter().map(|value| value.to_str().unwrap());
        all.collect::<Vec<_>>().join(",")
    };
    head.keys().map(|name| (name.as_str().to_owned(), values(name))).collect()
}

#[tokio::test]
async fn what_is_passed_on() {
    for vector in vectors("outgoing.json", "requests") {
        let search = Search::new();
        let trusting = layer(&search);
        let layer =
            if is_off(&vector, "trusts_names") { trusting.distrust_request() } else { trusting };
        let fields = vector["fields"].as_array().unwrap().iter();
        let brings = request(fields.map(|field| (text(&field[0]), text(&field[1]))));
        let after = time(&vector["after_ms"]).unwrap_or_default();
        let settles = vector["settles"].as_bool() == Some(true);
        let mut outgoing = BTreeMap::new();
        ask(&layer, brings, |token| {
            search.goes(after);
            if settles {
                token.settle();
            }
            outgoing = joined(&token.outgoing());
        })
        .await;
        let mut expected = BTreeMap::new();
        for (field, value) in vector["outgoing"].as_object().unwrap() {
            let value = value.as_str().unwrap_or_else(|| {
                let made = outgoing[field].as_str();
                assert!(is_made(made), "{made}: {}", why(&vector));
                made
            });
            expected.insert(field.clone(), value.to_owned());
        }
        assert_eq!(outgoing, expected, "{}", why(&vector));
    }
}

/// Returns the response to a request that ends with the vector's reason. The reason is either a
/// deadline of zero or a failed checkpoint.
async fn answer(vector: &Value, method: Method) -> Response<Body> {
    let mut brings = request(each("accept", &vector["accept"]));
    *brings.method_mut() = method;
    let (class, reason) = ("search".to_owned(), reason(&vector["reason"]).unwrap());
    if reason == Reason::Deadline {
        brings.headers_mut().insert(HEADER, HeaderValue::from_static("0"));
        return ask(&layer(&Search::new()), brings, |_| panic!("it ran")).await;
    }
    let retry_after = time(&vector["retry_after_ms"]).unwrap();
    Terminated { class, reason, retry_after }.answer(brings.method(), brings.headers())
}

async fn body_of(answer: Response<Body>) -> String {
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    String::from_utf8(body.to_vec()).unwrap()
}

#[tokio::test]
async fn answers() {
    for vector in vectors("answers.json", "answers") {
        let method: Method = text(&vector["method"]).parse().unwrap();
        let body = body_of(answer(&vector, Method::GET).await).await;
        let answer = answer(&vector, method.clone()).await;
        let fields = vector["fields"].as_object().unwrap().iter();
        let mut expected: BTreeMap<String, String> =
            fields.map(|(field, value)| (field.clone(), text(value).to_owned())).collect();
        expected.insert("content-length".into(), body.len().to_string());
        assert_eq!(
            (Some(u64::from(answer.status().as_u16())), joined(answer.headers())),
            (vector["status"].as_u64(), expected),
            "{}",
            why(&vector)
        );
        let said = if method == Method::HEAD { "" } else { body.as_str() };
        assert_eq!(body_of(answer).await, said, "{}", why(&vector));
        if let Some(text) = vector["text"].as_str() {
            assert_eq!(body, text, "{}", why(&vector));
        } else {
            let problem: Value = serde_json::from_str(&body).unwrap();
            assert_eq!(problem, vector["problem"], "{}", why(&vector));
        }
    }
}
