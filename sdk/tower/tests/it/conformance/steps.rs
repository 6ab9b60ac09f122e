//! Runs the sequences of `controller.json`: a controller, its clock and its requests.

use std::collections::HashMap;
use std::time::Duration;

use bywash_tower::{Brought, REQUEST_HEADER, Terminated, Token};
use http::{HeaderMap, HeaderValue};
use serde_json::Value;

use super::{flat, number, reason, text, time, vectors, why};
use crate::Search;

/// The state of the sequence that is being run.
pub(super) struct Steps {
    search: Search,
    pub(super) tokens: HashMap<String, Vec<Token>>,
}

impl Steps {
    pub(super) fn new() -> Self {
        Self { search: Search::new(), tokens: HashMap::new() }
    }

    pub(super) fn step(&mut self, step: &[Value]) {
        let (name, args) = step.split_first().unwrap();
        match (text(name), args) {
            ("go", [span]) => self.search.goes(time(span).unwrap()),
            ("arrived", [count]) => self.search.load(number(count), 0),
            ("lost", [count]) => self.search.load(0, number(count)),
            ("begin", [token, more @ ..]) => self.begin(text(token), more),
            ("threshold", [class, expected]) => {
                let class = self.search.controller.class(text(class)).unwrap();
                is_about(Some(class.threshold()), expected);
            }
            ("stats", [expected]) => self.has_stats(expected),
            (name, [token, args @ ..]) => {
                for token in &self.tokens[text(token)] {
                    step_of(token, name, args);
                }
            }
            (name, []) => panic!("no step without arguments is called {name}"),
        }
    }

    pub(super) fn begin_nameless(&mut self, name: &str) {
        self.tokens.insert(name.to_owned(), vec![self.search.class.begin(None)]);
    }

    fn begin(&mut self, name: &str, args: &[Value]) {
        let left = args.first().and_then(time);
        let count = args.get(1).map_or(1, number);
        let mut head = HeaderMap::new();
        head.insert(REQUEST_HEADER, HeaderValue::from_str(name).unwrap());
        let brought = Brought::of(&head);
        let tokens: Vec<Token> =
            (0..count).map(|_| self.search.class.begin_with(left, brought.clone())).collect();
        self.tokens.insert(name.to_owned(), tokens);
    }

    fn has_stats(&self, expected: &Value) {
        let stats = self.search.stats();
        for (name, expected) in expected.as_object().unwrap() {
            let count = match name.as_str() {
                "arrived" => stats.arrived,
                "lost" => stats.lost,
                "terminated" => stats.terminated,
                "deadline" => stats.deadline,
                "client_left" => stats.client_left,
                "deferred" => stats.deferred,
                "running" => stats.running,
                // The engine does not expose this value.
                "p" => continue,
                _ => panic!("no count is called {name}"),
            };
            assert_eq!(Some(count), expected.as_u64(), "{name}: {stats:?}");
        }
    }
}

pub(super) fn step_of(token: &Token, step: &str, args: &[Value]) {
    match (step, args) {
        ("settle", []) => token.settle(),
        ("leave", []) => token.leave(),
        ("end", []) => token.end(),
        ("checkpoint", [expected]) => passes(token, token.checkpoint(), expected),
        ("cancel_termination", [expected]) => passes(token, token.cancel_termination(), expected),
        ("is_terminated", [expected]) => {
            assert_eq!(Some(token.is_terminated()), expected.as_bool());
        }
        ("reason", [expected]) => assert_eq!(token.reason(), reason(expected)),
        ("left", [expected]) => is_about(token.left(), expected),
        ("due", [expected]) => is_about(token.deadline(), expected),
        _ => panic!("no step is called {step}"),
    }
}

/// Checks that a call returned `Ok`, or the error of the expected reason.
fn passes(token: &Token, result: Result<(), Terminated>, expected: &Value) {
    let Some(reason) = reason(expected) else {
        assert_eq!(result, Ok(()));
        assert!(!token.is_terminated());
        return;
    };
    assert_eq!(result.unwrap_err().reason, reason);
    assert!(token.is_terminated());
    assert_eq!((token.reason(), token.left()), (Some(reason), Some(Duration::ZERO)));
}

/// Checks that two times differ by less than 100 ns.
fn is_about(is: Option<Duration>, expected: &Value) {
    let expected = time(expected);
    let is_close = match (is, expected) {
        (Some(is), Some(expected)) => is.abs_diff(expected) < Duration::from_nanos(100),
        (is, expected) => is == expected,
    };
    assert!(is_close, "{is:?} is not {expected:?}");
}

#[test]
fn sequences() {
    for vector in vectors("controller.json", "sequences") {
        // The harness shows this output only if the test fails.
        println!("{}", why(&vector));
        let mut steps = Steps::new();
        for step in flat(&vector["steps"]) {
            steps.step(step);
        }
    }
}
