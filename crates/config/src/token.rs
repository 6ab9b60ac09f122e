//! Tokens, as HTTP defines them.

/// Returns whether a text is a token of RFC 9110 §5.6.2, as RFC 6265 §4.1.1 requires of a cookie's
/// name.
pub(crate) fn is_token(name: &str) -> bool {
    let is_mark = |c: char| "!#$%&'*+-.^_`|~".contains(c);
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || is_mark(c))
}
