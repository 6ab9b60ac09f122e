//! Checks names of header fields and cookies in the file.

use std::ops::Range;

use crate::code;
use crate::report::{Finding, Report};
use crate::source::shown;
use crate::token::is_token;

/// The response fields that must not be removed, because clients, caches or intermediaries need
/// them.
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

/// Returns the name of a field to be removed from responses; `None` if it must not be removed,
/// which is reported.
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
    report.add(no_field(path, text, at, ("answers", "Order-Total")));
    None
}

/// The request fields that must not be removed, because gateways and applications read them.
const ASKED_WITH: [&str; 22] = [
    "accept",
    "accept-encoding",
    "authorization",
    "cache-control",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "cookie",
    "expect",
    "forwarded",
    "grpc-timeout",
    "host",
    "range",
    "te",
    "traceparent",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "user-agent",
    "via",
    "x-real-ip",
];
/// The prefixes of further request fields that must not be removed.
const ASKED_WITH_MANY: [&str; 4] = ["bywash-", "if-", "proxy-", "x-forwarded-"];

/// Returns the name of a field to be removed from requests; `None` if it must not be removed, which
/// is reported. The field is removed in every spelling: `_` and `.` count as `-`.
pub(super) fn taken_from_requests(
    path: &str,
    text: &str,
    at: Range<usize>,
    report: &mut Report,
) -> Option<String> {
    let name = text.to_ascii_lowercase();
    let plain = name.replace(['_', '.'], "-");
    let is_many = ASKED_WITH_MANY.iter().any(|begin| plain.starts_with(begin));
    if is_token(text) && !is_many && !ASKED_WITH.contains(&&*plain) {
        return Some(name);
    }
    report.add(no_field(path, text, at, ("requests", "X-Customer-Level")));
    None
}

/// The request fields that are never passed on, because the gateway rewrites them or no trusted
/// party sets them.
const NEVER_PASSED: [&str; 8] = [
    "forwarded",
    "proxy",
    "x-forwarded",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-port",
    "x-forwarded-proto",
    "x-real-ip",
];

/// Returns the name of a request field to be passed on although an application may trust it; `None`
/// if it is never passed on, which is reported.
pub(super) fn passed(text: &str, at: Range<usize>, report: &mut Report) -> Option<String> {
    let name = text.to_ascii_lowercase();
    let is_plain = is_token(text) && !name.contains(['_', '.']);
    if is_plain && !NEVER_PASSED.contains(&&*name) && !name.starts_with("bywash-") {
        return Some(name);
    }
    let message =
        format!("`listen.pass_fields` takes the name of a header field, not \"{}\"", shown(text));
    let help = if is_plain {
        format!("the gateway writes `{name}` itself, or never passes it: remove it")
    } else {
        "use letters, digits and hyphens, like \"x-http-method-override\"".to_string()
    };
    report.add(Finding::new(&code::FIELD_NAME, at, message).help(help));
    None
}

fn no_field(path: &str, text: &str, at: Range<usize>, (messages, like): (&str, &str)) -> Finding {
    let message = format!("`{path}` takes the name of a header field, not \"{}\"", shown(text));
    let help = if is_token(text) {
        let name = text.to_ascii_lowercase();
        format!(
            "{messages} need `{name}` for something else, and the gateway removes this field: \
             choose another name"
        )
    } else {
        format!("use letters, digits and hyphens, like \"{like}\"")
    };
    Finding::new(&code::FIELD_NAME, at, message).help(help)
}
