//! Answers `/v1/policy`, `/v1/bypass`, `/v1/export` and `/v1/audit`: the policy in force, the
//! overrides of the configuration file, and the log of decisions.

use bywash_api::{
    Audit, ClassPolicy, Code, Exported, Policy, RankPopulation, SetBypass, SetClass, Undo,
};
use bywash_config::{ClassConfig, Mode};
use bywash_control::{DecisionMeta, Mode as ShownMode, NotOverridden, Overrides, Target};
use bywash_units::TimeSpan;

use super::answer::{Answered, Refused, document};
use super::auth::Caller;
use super::input::{meta, meta_with_default};
use super::status;
use crate::decisions::overrides::{self, BYPASSED, is_less};
use crate::process::wall_clock;
use crate::settings::Settings;
use crate::shared::Shared;
use crate::state::stored::DecisionError;
use crate::state::writer::Version;

pub(super) fn policy(shared: &Shared) -> Policy {
    let overrides = shared.overrides();
    let settings = shared.settings();
    let config = &settings.config;
    Policy {
        revision: overrides.get().revision(),
        file: config.file.as_ref().map(|file| file.display().to_string()),
        read_ms: settings.read,
        mode: shown_mode(config.mode),
        bypassed: shared.is_bypassed(),
        scheduler: status::policy(&config.scheduler),
        concurrency: status::policy(&config.engine.limit),
        terminate: status::policy(&config.engine.termination),
        classes: classes(&settings, overrides.get()),
        overrides: overrides.get().list().to_vec(),
        kept: overrides.is_saved(),
        remarks: Vec::new(),
    }
}

fn classes(settings: &Settings, overrides: &Overrides) -> Vec<ClassPolicy> {
    let class = |(class, (mode, enforce_percent)): (&ClassConfig, &(Mode, u8))| ClassPolicy {
        name: class.class.name.clone(),
        tier: class.class.tier.name().to_owned(),
        matches: class.patterns.clone(),
        utility: class.class.utility.get(),
        patience_ms: class.patience.map(TimeSpan::as_millis),
        cancellable: class.class.stop.is_some(),
        mode: shown_mode(class.mode),
        enforce_percent: class.enforce_percent,
        file_mode: shown_mode(*mode),
        file_enforce_percent: *enforce_percent,
        overridden: overrides.of_class(&class.class.name).map(|(one, ..)| one.number),
    };
    let classes = settings.config.classes.iter().zip(settings.of_file());
    classes.filter(|(class, _)| !class.is_removed).map(class).collect()
}

const fn shown_mode(mode: Mode) -> ShownMode {
    match mode {
        Mode::Observe => ShownMode::Observe,
        Mode::Enforce => ShownMode::Enforce,
    }
}

/// Overrides the mode of a class for a limited time, and returns the policy after it. Returns an
/// error if the override is not possible.
pub(super) async fn set_class(shared: &Shared, caller: &Caller, set: SetClass) -> Answered {
    let SetClass { class, mode, enforce_percent, by, why, lasts, revision } = set;
    let meta = meta(caller.author(by)?, why, lasts.as_deref())?;
    let target = Target::Class { class, mode, enforce_percent: enforce_percent.unwrap_or(100) };
    override_for(shared, target, meta, lasts.is_some(), revision).await
}

/// Overrides the level of a population for a limited time, and returns the policy after it. Returns
/// an error if the override is not possible.
pub(super) async fn rank_population(
    shared: &Shared,
    caller: &Caller,
    rank: RankPopulation,
) -> Answered {
    let RankPopulation { population, level, by, why, lasts, revision } = rank;
    let meta = meta(caller.author(by)?, why, lasts.as_deref())?;
    let target = Target::Population { population, level };
    override_for(shared, target, meta, lasts.is_some(), revision).await
}

/// Overrides the configuration file for a limited time. If the operator gave no duration
/// (`says_how_long` is false), an existing override of the same target keeps its end.
async fn override_for(
    shared: &Shared,
    target: Target,
    meta: DecisionMeta,
    says_how_long: bool,
    revision: Option<u64>,
) -> Answered {
    let mut remarks = Vec::new();
    let decided = overrides::decide(shared, is_less(&target), |overrides, settings| {
        let now = wall_clock::now();
        let mut meta = meta;
        if let Some(end) = overrides.end_of(&target).filter(|_| !says_how_long) {
            meta = meta.until(now, end);
            remarks.push(format!(
                "the override still ends at {end}, as decided before; --for sets another time"
            ));
        }
        overrides.set(now, target, meta, revision, &settings.present_class_names())
    });
    answered(shared, decided, remarks).await
}

/// Ends the override with this number, and returns the policy after it. Returns an error if there
/// is no such override.
pub(super) async fn undo(shared: &Shared, caller: &Caller, number: &str, undo: Undo) -> Answered {
    let number = number.parse().map_err(|_| {
        Refused::not_found("the path needs the number of an override, as in /v1/policy/3/undo")
    })?;
    let by = caller.author(undo.by)?;
    let decided = overrides::decide(shared, false, |overrides, _| {
        overrides.undo(wall_clock::now(), number, &by, &undo.why, undo.revision)
    });
    answered(shared, decided, Vec::new()).await
}

/// Starts a bypass for a limited time, or ends it, and returns the policy after it.
pub(super) async fn set_bypass(shared: &Shared, caller: &Caller, set: SetBypass) -> Answered {
    let SetBypass { on, by, why, lasts, revision } = set;
    let meta = meta_with_default(caller.author(by)?, why, lasts.as_deref(), BYPASSED)?;
    if on {
        return override_for(shared, Target::Bypass, meta, lasts.is_some(), revision).await;
    }
    let decided = overrides::end_bypass(shared, meta, revision);
    answered(shared, decided, Vec::new()).await
}

/// Returns the policy after a decision, with remarks. Returns an error if `decided` is an error.
async fn answered(
    shared: &Shared,
    decided: Result<Option<Version>, DecisionError<NotOverridden>>,
    mut remarks: Vec<String>,
) -> Answered {
    match decided {
        Ok(version) => {
            remarks.extend(unwritten(shared, version).await);
            Ok(document(&Policy { remarks, ..policy(shared) }))
        }
        Err(DecisionError::Refused(why)) => Err(Refused::new(code_of(&why), why)),
        Err(why @ DecisionError::HandedOver) => Err(Refused::new(Code::Unavailable, why)),
    }
}

/// Waits for a bounded time until the state with this version is saved. Returns a remark for the
/// operator if it could not be saved.
pub(super) async fn unwritten(shared: &Shared, version: Option<Version>) -> Option<String> {
    let why = shared.state_writer.result(version).await?;
    Some(format!("the decision holds until the process ends, because it could not be saved: {why}"))
}

const fn code_of(why: &NotOverridden) -> Code {
    match why {
        NotOverridden::Unknown(_) | NotOverridden::NoClass(_) => Code::NotFound,
        NotOverridden::Conflict { .. } => Code::Conflict,
        NotOverridden::Population
        | NotOverridden::TooManyPopulations
        | NotOverridden::EnforcePercent
        | NotOverridden::Observed
        | NotOverridden::DecisionMeta(_) => Code::Invalid,
    }
}

/// Returns the overrides of classes and the rules for elephants that are in force, as text in the
/// format of the configuration file.
pub(super) fn export(shared: &Shared) -> Exported {
    let classes = shared.overrides().get().exported();
    let rules = shared.elephants.findings().store.get().exported();
    Exported { toml: classes + &rules }
}

/// Returns the last `most` decisions of the audit log, and whether the log is saved.
pub(super) fn audit(shared: &Shared, most: usize) -> Audit {
    let notes = shared.audit.notes();
    Audit {
        revision: notes.revision,
        kept: notes.are_kept(),
        notes: notes.newest(most, &shared.state_writer),
    }
}
