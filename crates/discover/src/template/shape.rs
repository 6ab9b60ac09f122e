//! The shape of a segment: a name that a person chose, or a value such as a number or a hash.

/// The maximum length of a name, in bytes. Longer segments are titles or keys.
const LONGEST: usize = 40;

/// How a segment of a path is written in a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape<'t> {
    /// The segment is written unchanged, because it looks like a name.
    Name,
    /// The segment is written as `*` with this ending, which is `.js`, for example, or empty.
    Any(&'t str),
}

/// Returns how a segment is written in a pattern. Only the text of the segment decides.
pub(super) fn shape(segment: &str) -> Shape<'_> {
    let (stem, ending) = split(segment);
    if is_name(stem) { Shape::Name } else { Shape::Any(ending) }
}

/// Splits a segment into stem and ending: `main-3f2a.js` into `main-3f2a` and `.js`. The ending may
/// be empty.
pub(super) fn split(segment: &str) -> (&str, &str) {
    let Some(dot) = segment.rfind('.') else { return (segment, "") };
    let ending = &segment[dot + 1..];
    let is_kind = (1..=5).contains(&ending.len())
        && ending.bytes().all(|byte| byte.is_ascii_alphanumeric())
        && ending.bytes().any(|byte| byte.is_ascii_alphabetic());
    if is_kind && dot > 0 { segment.split_at(dot) } else { (segment, "") }
}

fn is_name(stem: &str) -> bool {
    let digits = stem.bytes().filter(u8::is_ascii_digit).count();
    let letters = stem.bytes().filter(u8::is_ascii_alphabetic).count();
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~!@$+:".contains(&byte);
    stem.len() <= LONGEST
        && stem.bytes().all(is_plain)
        && (digits == 0 || (letters > 0 && (digits == 1 || digits * 3 <= letters)))
        && !stem.split(['-', '_', '.']).any(is_hash)
}

/// Returns whether a part looks like a hash: at least eight hexadecimal digits with a decimal digit
/// among them, or at least twelve characters with three digits.
fn is_hash(part: &str) -> bool {
    let digits = part.bytes().filter(u8::is_ascii_digit).count();
    let is_hex = part.len() >= 8 && part.bytes().all(|byte| byte.is_ascii_hexdigit());
    (is_hex && digits > 0) || (part.len() >= 12 && digits >= 3)
}

/// Returns whether the value of a parameter looks like the name of a page, an action or a place in
/// the application, which may select a route.
pub(super) fn may_route(value: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:~".contains(&byte);
    let starts = value.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/' || c == '_');
    starts && value.len() <= LONGEST && value.bytes().all(is_plain) && is_name_of_parts(value)
}

fn is_name_of_parts(value: &str) -> bool {
    value.split(['/', ':']).all(is_name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_from_numbers_hashes_dates_and_titles() {
        for name in [
            "search",
            "wp-json",
            "v2",
            "ViewItem.php",
            "SearchItemsByCategory.php",
            "api",
            "main.css",
            "utf8",
            "index.html",
            "",
            "a",
            "jquery.min.js",
            "html5",
            "@scope",
            "logo@2x.png",
            "posts",
            "2fa-setup",
        ] {
            assert_eq!(shape(name), Shape::Name, "{name}");
        }
        for (many, ending) in [
            ("17", ""),
            ("2024-03-01", ""),
            ("main-3f2a91bc.js", ".js"),
            ("deadbeef12", ""),
            ("550e8400-e29b-41d4-a716-446655440000", ""),
            ("a%20b", ""),
            ("12.html", ".html"),
            ("*", ""),
            ("the-longest-title-that-anybody-ever-gave-a-page-of-theirs", ""),
            ("x9Kq27LmZp31", ""),
            ("item42", ""),
        ] {
            assert_eq!(shape(many), Shape::Any(ending), "{many}");
        }
    }

    #[test]
    fn values_that_route_look_like_names() {
        for name in
            ["product/search", "Special:Search", "query", "edit-post", "_menu", "checkout/cart.add"]
        {
            assert!(may_route(name), "{name}");
        }
        for value in ["", "17", "a+b", "red%20shoes", "3f2a91bc77", "2024-01-01", &"x".repeat(50)] {
            assert!(!may_route(value), "{value}");
        }
    }
}
