//! Resolves `[terminate]`, and the running time that a class grants its requests.

use bywash_engine::Bounds;
use bywash_engine::catalog::{TERMINATIONS, TerminationSettings};
use bywash_units::TimeSpan;

use super::policy;
use crate::code;
use crate::document::Document;
use crate::keys;
use crate::kind::span_text;
use crate::read::Values;
use crate::report::{Finding, Report};
use crate::source::shown;
use crate::value::Value;

/// The default lower bound of the running time in a cancellable class.
const LEAST: TimeSpan = TimeSpan::from_secs(1);
/// The default upper bound of the running time in a cancellable class.
const MOST: TimeSpan = TimeSpan::from_secs(60);

pub(super) fn settings(document: &Document<'_>, report: &mut Report) -> TerminationSettings {
    let chosen = policy::chosen(document, &keys::TERMINATE, &TERMINATIONS, report);
    let share = |name: &str| {
        let key = chosen.key(name).filter(|key| !chosen.values.refused(key))?;
        Some(chosen.values.of(key).number())
    };
    if let (Some(low), Some(high)) = (share("low"), share("high"))
        && low > high
    {
        let given = |name| chosen.values.given(chosen.key(name)?).map(|(_, at)| at);
        let at = given("low").or_else(|| given("high")).unwrap_or_else(|| chosen.values.table());
        let message = format!("`terminate.low` {low} is above `terminate.high` {high}");
        let help = format!("set `low` to {high} or less");
        report.add(Finding::new(&code::WATERMARKS, at, message).help(help));
    }
    chosen.settings
}

/// Warns of a `run_max` in the file that is never reached, because the timeout `response` ends the
/// request first. A default causes no warning.
pub(super) fn check_reach(name: &str, values: &Values, response: TimeSpan, report: &mut Report) {
    let is_cancellable = values.of(&keys::CANCELLABLE).truth();
    let Some((max, at)) = values.given(&keys::RUN_MAX).filter(|_| is_cancellable) else { return };
    if max.span() >= response && !values.refused(&keys::RUN_MAX) {
        let (max, response) = (span_text(max.span()), span_text(response));
        let path = format!("class.{}", shown(name));
        let message = format!(
            "`{path}.run_max` {max} is never reached: a server must have answered within \
             {response}"
        );
        let help =
            format!("set `{path}.response_timeout` to more than {max}, or `run_max` to less");
        report.add(Finding::new(&code::RUN_UNREACHED, at, message).help(help));
    }
}

/// Returns the bounds of the running time of a class; `None` if its requests must not be stopped.
pub(super) fn bounds(name: &str, values: &Values, report: &mut Report) -> Option<Bounds> {
    let min = values.get(&keys::RUN_MIN).map_or(LEAST, Value::span);
    let max = values.get(&keys::RUN_MAX).map_or(MOST.max(min), Value::span);
    let given = values.given(&keys::RUN_MIN).or_else(|| values.given(&keys::RUN_MAX));
    let at = given.map(|(_, at)| at);
    let path = format!("class.{}", shown(name));
    if !values.of(&keys::CANCELLABLE).truth() {
        if let Some(at) = at {
            let message =
                format!("`{path}` is not cancellable: `run_min` and `run_max` have no effect");
            let help =
                "write cancellable = true if its requests change nothing, or remove these keys";
            report.add(Finding::new(&code::NOT_CANCELLABLE, at, message).help(help.to_string()));
        }
        return None;
    }
    if min > max && !values.refused(&keys::RUN_MIN) && !values.refused(&keys::RUN_MAX) {
        let message = format!("`{path}.run_min` {min} is above `{path}.run_max` {max}");
        let help = format!("set `run_min` to \"{max}\" or less, or `run_max` to more");
        let at = at.unwrap_or_else(|| values.at(&keys::RUN_MAX));
        report.add(Finding::new(&code::RUN_BOUNDS, at, message).help(help));
    }
    Some(Bounds { min, max })
}
