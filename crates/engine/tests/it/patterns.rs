//! Tests that mistakes in a list of patterns are found, wherever they are in the list.

use bywash_engine::ClassId;
use bywash_engine::classify::{Classifier, RequestParts, Rule};

fn rule(text: &str, class: u8) -> Rule {
    Rule::new(text.parse().expect("the pattern is well-formed"), ClassId(class))
}

#[test]
fn the_same_pattern_in_two_classes_is_found_with_another_method_between_them() {
    let rules = ["GET /p", "POST /p", "GET /p"];
    let rules = (0..).zip(rules).map(|(class, text)| rule(text, class));
    let errors = Classifier::new(rules, ClassId(9), false).unwrap_err();
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert_eq!(errors[0].to_string(), "`/p` is in two classes");
}

#[test]
fn the_order_of_the_list_does_not_matter() {
    let rules =
        [("* /**", 0), ("GET /a/**", 1), ("* /a/**", 2), ("GET /a/*/c", 3), ("PUT /a/**", 4)];
    let cases = [
        ("GET", "/", 0),
        ("GET", "/a/b", 1),
        ("POST", "/a/b", 2),
        ("GET", "/a/b/c", 3),
        ("PUT", "/a/b/c", 4),
    ];
    for turn in 0..rules.len() {
        let mut turned = rules;
        turned.rotate_left(turn);
        let turned = turned.map(|(text, class)| rule(text, class));
        let classifier = Classifier::new(turned, ClassId(9), false).unwrap();
        for (method, path, class) in cases {
            assert_eq!(
                classifier.class(&RequestParts::new(method, path)),
                ClassId(class),
                "{method} {path}"
            );
        }
    }
}
