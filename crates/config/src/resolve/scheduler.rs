//! Resolves `[scheduler]`: the scheduling policy and its parameters from the engine's catalogue.

use bywash_engine::catalog::{POLICIES, Schedulers, Settings, Value};
use bywash_units::{Ratio, Utility};

use super::policy::{self, Chosen};
use crate::code;
use crate::config::ClassConfig;
use crate::document::Document;
use crate::keys;
use crate::report::{Finding, Report};

pub(super) fn settings(
    document: &Document<'_>,
    classes: &[ClassConfig],
    report: &mut Report,
) -> Settings {
    let chosen = policy::chosen(document, &keys::SCHEDULER, &POLICIES, report);
    check_thresholds(&chosen, report);
    check_revenue(&chosen, classes, report);
    chosen.settings
}

/// Warns of a policy that learns from revenue if no class has revenue, because nothing can then be
/// learned.
fn check_revenue(chosen: &Chosen<Schedulers>, classes: &[ClassConfig], report: &mut Report) {
    let has_revenue = |class: &ClassConfig| class.class.revenue > Utility::default();
    if chosen.settings.name() != "value-index" || classes.iter().any(has_revenue) {
        return;
    }
    let message = "`value-index` ranks by the learned worth of requests, and no class has revenue";
    let help = "set `revenue` of the class that is an order; until then `value-index` ranks as \
                `session-first`";
    let finding = Finding::new(&code::LEARNS_NOTHING, chosen.values.table(), message.to_string());
    report.add(finding.help(help.to_string()));
}

/// Checks that the lower threshold of overload is not above the upper one (see
/// `engine::overload::Thresholds`). Otherwise overload could never end.
fn check_thresholds(chosen: &Chosen<Schedulers>, report: &mut Report) {
    let settings = &chosen.settings;
    let (Some(lower), Some(upper)) = (share(settings, "lower"), share(settings, "upper")) else {
        return;
    };
    if lower <= upper {
        return;
    }
    let given = |name: &str| chosen.values.given(chosen.key(name)?).map(|(_, at)| at);
    let (lower, upper) = (lower.get(), upper.get());
    let message = format!("`scheduler.lower` {lower} is above `scheduler.upper` {upper}");
    let at = given("lower").or_else(|| given("upper")).unwrap_or_else(|| chosen.values.table());
    let mut finding = Finding::new(&code::THRESHOLDS, at, message)
        .help(format!("overload ends below `lower`: set it to {upper} or less"));
    if let (Some(_), Some(at)) = (given("lower"), given("upper")) {
        finding = finding.elsewhere(at, "upper");
    }
    report.add(finding);
}

fn share(settings: &Settings, name: &str) -> Option<Ratio> {
    let (_, value) = settings.values().find(|(parameter, _)| parameter.name == name)?;
    match value {
        Value::Ratio(share) => Some(share),
        Value::Count(_) | Value::Number(_) | Value::TimeSpan(_) | Value::Choice(_) => None,
    }
}
