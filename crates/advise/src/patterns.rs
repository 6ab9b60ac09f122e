//! Converts a template into a pattern of a class. A template names all parameters of its requests.
//! A class contains a page regardless of parameters that do not change the page's purpose.
//! Therefore only the parameters that determine the purpose remain in the pattern. Two templates
//! may then have the same pattern.

use bywash_engine::classify::Pattern;

use crate::role::Role;

/// The maximum length of a proposed pattern, in bytes.
const LONGEST: usize = 200;

/// Returns the pattern of a template for this role, in the syntax of the configuration; `None` if
/// no accepted pattern remains.
pub(crate) fn pattern(template: &str, role: Role) -> Option<String> {
    let (method, target) = template.split_once(' ').unwrap_or(("GET", template));
    let is_text = target.bytes().all(|byte| byte.is_ascii_graphic());
    if method == "OTHER" || !is_text || target.contains(['"', '\'']) {
        return None;
    }
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut pattern = format!("{method} {path}");
    for (at, part) in query.split('&').filter(|part| role.is_named_by(part)).enumerate() {
        pattern.push(if at == 0 { '?' } else { '&' });
        pattern.push_str(part);
    }
    if pattern.contains('?') {
        pattern.push_str("&...");
    }
    (pattern.len() <= LONGEST && is_fit(&pattern)).then_some(pattern)
}

/// Returns the pattern that the operator named for the order, with its method; `None` if the
/// configuration does not accept it.
pub(crate) fn order_pattern(named: &str) -> Option<String> {
    let pattern = if named.contains(' ') { named.to_owned() } else { format!("GET {named}") };
    is_fit(&pattern).then_some(pattern)
}

/// Returns whether the configuration accepts a pattern.
fn is_fit(pattern: &str) -> bool {
    pattern.parse::<Pattern>().is_ok_and(|pattern| pattern.has_one_reading())
}

/// Returns the pattern of all pages in the folder of a page, such as `GET /a/*` for `GET /a/b`.
/// Returns `None` for a page at the root and for a pattern that ends in `*`.
pub(crate) fn folder(pattern: &str) -> Option<String> {
    let (path, query) = pattern.split_at(pattern.find('?').unwrap_or(pattern.len()));
    let bare = path.strip_suffix('/').unwrap_or(path);
    let slash = &path[bare.len()..];
    let (folder, page) = bare.rsplit_once('/')?;
    let is_below = folder.contains('/') && !page.contains('*');
    is_below.then(|| format!("{folder}/*{slash}{query}"))
}

/// Returns whether a pattern matches every request with its method.
pub(crate) fn takes_all(pattern: &str) -> bool {
    pattern.parse::<Pattern>().is_ok_and(|pattern| pattern.takes_all())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_pattern_is_as_wide_as_it_must_be() {
        let cases = [
            ("/", Role::Home, Some("GET /")),
            ("/item/*", Role::Item, Some("GET /item/*")),
            ("/img/*.png?v", Role::Static, Some("GET /img/*.png")),
            ("POST /cart/**", Role::Cart, Some("POST /cart/**")),
            ("/*/reviews", Role::Browse, Some("GET /*/reviews")),
            ("/?p", Role::Item, Some("GET /?p&...")),
            ("/?page&s", Role::Search, Some("GET /?s&...")),
            ("/index.php?id&route=cart/add", Role::Cart, Some("GET /index.php?route=cart/add&...")),
            ("/?key&order-received&page_id", Role::Order, Some("GET /?order-received&...")),
            ("OTHER /**", Role::Other, None),
            ("/a;b", Role::Browse, None),
            ("/a%2F", Role::Browse, None),
            ("/../x", Role::Browse, None),
            ("/a\"\n[class.x]", Role::Browse, None),
        ];
        for (template, role, expected) in cases {
            assert_eq!(pattern(template, role).as_deref(), expected, "{template}");
        }
        for (named, expected) in [
            ("POST /buy?key&...", Some("POST /buy?key&...")),
            ("/thanks?", Some("GET /thanks?")),
            ("/a;b", None),
        ] {
            assert_eq!(order_pattern(named).as_deref(), expected, "{named}");
        }
        let folders = [
            ("GET /a/b", Some("GET /a/*")),
            ("GET /a/b/?page&...", Some("GET /a/*/?page&...")),
            ("POST /a/b/c", Some("POST /a/b/*")),
            ("GET /a", None),
            ("GET /a/*", None),
            ("GET /", None),
        ];
        for (pattern, expected) in folders {
            assert_eq!(folder(pattern).as_deref(), expected, "{pattern}");
        }
        assert!(takes_all("GET /*") && takes_all("GET /*/*") && !takes_all("GET /"));
        assert!(!takes_all("GET /a/*") && !takes_all("GET /**?q"));
    }

    proptest! {
        #[test]
        fn whatever_a_template_says_a_pattern_can_be_read(template in ".{0,40}|(POST )?/[ -~]{0,40}") {
            if let Some(pattern) = pattern(&template, Role::Item) {
                prop_assert!(pattern.parse::<Pattern>().is_ok());
                prop_assert!(pattern.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic()));
            }
        }
    }
}
