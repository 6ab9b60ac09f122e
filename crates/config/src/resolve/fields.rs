//! Names of fields and cookies in the file.

use std::ops::Range;

use crate::code;
use crate::report::{Finding, Report};
use crate::source::shown;

/// Fields of an answer that clients, caches or the way to them need: whoever takes one of them
/// away has meant another.
const NEEDED: [&str; 18] = [
    "alt-svc",
    "cache-control",
    "connection",
    "content-encoding",
    "content-length",
    "content-range",
    "content-type",
    "date",
    "etag",
    "location",
    "proxy-status",
    "retry-after",
    "server",
    "set-cookie",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "vary",
];

/// A field that is taken from answers before they go on.
pub(super) fn taken_away(
    path: &str,
    text: &str,
    at: Range<usize>,
    report: &mut Report,
) -> Option<String> {
    let name = text.to_ascii_lowercase();
    if is_token(text) && !NEEDED.contains(&&*name) {
        return Some(name);
    }
    let message = format!("`{path}` takes the name of a field, not \"{}\"", shown(text));
    let help = if is_token(text) {
        format!(
            "answers need their `{name}`, and this one goes no further: give it a name of its own"
        )
    } else {
        "letters, digits and hyphens, like \"Order-Total\"".to_string()
    };
    report.add(Finding::new(&code::FIELD_NAME, at, message).help(help));
    None
}

/// A token of RFC 9110 §5.6.2, which RFC 6265 §4.1.1 asks of a cookie's name.
pub(super) fn is_token(name: &str) -> bool {
    let is_mark = |c: char| "!#$%&'*+-.^_`|~".contains(c);
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || is_mark(c))
}
