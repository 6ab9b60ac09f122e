//! A template becomes a pattern of a class. Classes know paths and no parameters, and whole segments only: what of a
//! template they cannot say is left out, which makes a pattern wider. Two templates may have the same one then.

use bywash_engine::classify::Pattern;

/// Bytes of the longest pattern that is proposed.
const LONGEST: usize = 200;

/// The pattern of a template, as the configuration takes it; `None` if there is none.
pub(crate) fn pattern(template: &str) -> Option<String> {
    let (method, target) = template.split_once(' ').unwrap_or(("GET", template));
    let path = target.split('?').next()?;
    let is_text = path.bytes().all(|byte| byte.is_ascii_graphic());
    if method == "OTHER" || !is_text || path.contains(['#', '%', ';', '\\', '"', '\'']) {
        return None;
    }
    let wide = |part: &str| if part.starts_with('*') { "*".to_owned() } else { part.to_owned() };
    let path = path.split('/').map(wide).collect::<Vec<_>>().join("/");
    let pattern = format!("{method} {path}");
    let is_one = pattern.len() <= LONGEST && Pattern::parse(&pattern).is_ok();
    is_one.then_some(pattern)
}

/// Whether a pattern takes whatever is asked for with its method.
pub(crate) fn takes_all(pattern: &str) -> bool {
    let path = pattern.split_once(' ').map_or(pattern, |(_, path)| path);
    path.len() > 1 && path.split('/').all(|part| part.is_empty() || part == "*")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_pattern_is_as_wide_as_it_must_be() {
        let cases = [
            ("/", Some("GET /")),
            ("/item/*", Some("GET /item/*")),
            ("/img/*.png?v", Some("GET /img/*")),
            ("POST /cart/**?...", Some("POST /cart/*")),
            ("/*/reviews", Some("GET /*/reviews")),
            ("OTHER /**?...", None),
            ("/a;b", None),
            ("/a%2F", None),
            ("/../x", None),
            ("/a\"\n[class.x]", None),
        ];
        for (template, expected) in cases {
            assert_eq!(pattern(template).as_deref(), expected, "{template}");
        }
        assert!(takes_all("GET /*") && takes_all("GET /*/*") && !takes_all("GET /"));
        assert!(!takes_all("GET /a/*"));
    }

    proptest! {
        #[test]
        fn whatever_a_template_says_a_pattern_can_be_read(template in ".{0,40}|(POST )?/[ -~]{0,40}") {
            if let Some(pattern) = pattern(&template) {
                prop_assert!(Pattern::parse(&pattern).is_ok());
                prop_assert!(pattern.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic()));
            }
        }
    }
}
