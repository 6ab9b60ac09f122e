//! Resolves the timeouts of servers. `[upstream]` sets them for all classes, and a class can
//! override them.

use bywash_units::TimeSpan;

use crate::code;
use crate::key::Key;
use crate::keys;
use crate::kind::span_text;
use crate::read::Values;
use crate::report::{Finding, Report};
use crate::upstream::Timeouts;
use crate::value::Value;

pub(super) fn of_upstream(values: &Values, report: &mut Report) -> Timeouts {
    let timeouts = Timeouts {
        connect: values.of(&keys::CONNECT_TIMEOUT).span(),
        response: values.of(&keys::RESPONSE_TIMEOUT).span(),
        idle: values.of(&keys::IDLE_TIMEOUT).span(),
        total: values.of(&keys::TOTAL_TIMEOUT).span(),
    };
    check_parts(keys::UPSTREAM.name, values, timeouts.total, report);
    timeouts
}

/// Returns the timeouts of the class whose table is `path`. A timeout that the class does not set
/// is taken from `others`.
pub(super) fn of_class(
    path: &str,
    values: &Values,
    others: Timeouts,
    report: &mut Report,
) -> Timeouts {
    let own = |key: &Key| values.get(key).map(Value::span);
    let timeouts = Timeouts {
        connect: own(&keys::CLASS_CONNECT_TIMEOUT).unwrap_or(others.connect),
        response: own(&keys::CLASS_RESPONSE_TIMEOUT).unwrap_or(others.response),
        idle: own(&keys::CLASS_IDLE_TIMEOUT).unwrap_or(others.idle),
        total: own(&keys::CLASS_TOTAL_TIMEOUT).unwrap_or(others.total),
    };
    check_parts(path, values, timeouts.total, report);
    timeouts
}

/// Warns of a timeout in this table that is longer than the total, and so has no effect. A longer
/// timeout that is a default, or that a class inherits from `[upstream]`, is correct: the total is
/// meant to cut other timeouts short.
fn check_parts(path: &str, values: &Values, total: TimeSpan, report: &mut Report) {
    if values.refused(&keys::TOTAL_TIMEOUT) {
        return;
    }
    for key in [keys::CONNECT_TIMEOUT, keys::RESPONSE_TIMEOUT, keys::IDLE_TIMEOUT] {
        if let Some((part, at)) = values.given(&key).filter(|(part, _)| part.span() > total) {
            let (name, part, total) = (key.name, span_text(part.span()), span_text(total));
            let message = format!("`{path}.{name}` {part} is never reached: the total is {total}");
            let help =
                format!("set `{path}.total_timeout` to more than {part}, or `{name}` to less");
            let finding = Finding::new(&code::UNREACHED, at, message).help(help);
            report.add(match values.given(&keys::TOTAL_TIMEOUT) {
                Some((_, at_total)) => finding.elsewhere(at_total, "the total"),
                None => finding,
            });
        }
    }
}
