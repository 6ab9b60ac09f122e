//! `/v1/policy`, `/v1/bypass`, `/v1/export` and `/v1/audit`: what is in force, what overrides the file, and who has decided
//! what.

use bywash_api::{Audit, ClassPolicy, Code, Exported, Policy, SetBypass, SetClass, Undo};
use bywash_config::{ClassConfig, Mode};
use bywash_control::{Mode as Said, NotOverridden, Note, Overrides, Target};
use bywash_units::Span;

use super::answer::{Answered, Refused, document};
use super::door::Who;
use super::said::word;
use super::status;
use crate::settings::Settings;
use crate::shared::Shared;
use crate::undecided::Undecided;
use crate::wall;

pub(super) fn policy(shared: &Shared) -> Policy {
    let desk = shared.overriding.desk();
    let settings = shared.settings();
    let config = &settings.config;
    Policy {
        revision: desk.overrides().revision(),
        file: config.file.as_ref().map(|file| file.display().to_string()),
        read_ms: settings.read,
        mode: said(config.mode),
        bypassed: shared.is_bypassed(),
        order: status::policy(&config.order),
        limit: status::policy(&config.engine.limit),
        terminate: status::policy(&config.engine.termination),
        classes: classes(&settings, desk.overrides()),
        overrides: desk.overrides().list().to_vec(),
        kept: desk.is_kept(),
    }
}

fn classes(settings: &Settings, overrides: &Overrides) -> Vec<ClassPolicy> {
    let class = |(class, (mode, percent)): (&ClassConfig, &(Mode, u8))| ClassPolicy {
        name: class.class.name.clone(),
        tier: class.class.tier.name().to_owned(),
        matches: class.patterns.clone(),
        utility: class.class.utility.get(),
        patience_ms: class.patience.map(Span::as_millis),
        stoppable: class.class.stop.is_some(),
        mode: said(class.mode),
        percent: class.percent,
        file_mode: said(*mode),
        file_percent: *percent,
        overridden: overrides.of_class(&class.class.name).map(|(one, ..)| one.number),
    };
    settings.config.classes.iter().zip(settings.of_file()).map(class).collect()
}

const fn said(mode: Mode) -> Said {
    match mode {
        Mode::Observe => Said::Observe,
        Mode::Enforce => Said::Enforce,
    }
}

/// A class is treated otherwise than the file says, for a while.
pub(super) fn set_class(shared: &Shared, who: &Who, set: SetClass) -> Answered {
    let SetClass { class, mode, percent, by, why, lasts, revision } = set;
    let word = word(who.author(by)?, why, lasts.as_deref())?;
    let target = Target::Class { class, mode, percent: percent.unwrap_or(100) };
    decide(shared, |overrides, settings| {
        overrides.set(wall::now(), target, word, revision, &settings.class_names())
    })
}

/// What the file says holds again.
pub(super) fn undo(shared: &Shared, who: &Who, number: &str, undo: Undo) -> Answered {
    let number =
        number.parse().map_err(|_| Refused::not_found("an override is called by its number"))?;
    let by = who.author(undo.by)?;
    decide(shared, |overrides, _| {
        overrides.undo(wall::now(), number, &by, &undo.why, undo.revision)
    })
}

/// Nothing is decided for a while, or decisions are taken again.
pub(super) fn set_bypass(shared: &Shared, who: &Who, set: SetBypass) -> Answered {
    let SetBypass { on, by, why, lasts, revision } = set;
    let word = word(who.author(by)?, why, lasts.as_deref())?;
    if on {
        return decide(shared, |overrides, _| {
            overrides.set(wall::now(), Target::Bypass, word, revision, &[])
        });
    }
    let decided = shared.overriding.desk().end_bypass(shared, word, revision);
    answered(shared, decided)
}

fn decide(
    shared: &Shared,
    decision: impl FnOnce(&mut Overrides, &Settings) -> Result<Note, NotOverridden>,
) -> Answered {
    let decided = shared.overriding.desk().decide(shared, decision);
    answered(shared, decided)
}

fn answered(shared: &Shared, decided: Result<(), Undecided<NotOverridden>>) -> Answered {
    match decided {
        Ok(()) => Ok(document(&policy(shared))),
        Err(Undecided::Refused(why)) => Err(Refused::new(code_of(&why), why)),
        Err(why @ (Undecided::NotKept(_) | Undecided::GivenAway)) => {
            Err(Refused::new(Code::Unavailable, why))
        }
    }
}

const fn code_of(why: &NotOverridden) -> Code {
    match why {
        NotOverridden::Unknown(_) | NotOverridden::NoClass(_) => Code::NotFound,
        NotOverridden::Conflict { .. } => Code::Conflict,
        NotOverridden::Percent | NotOverridden::Observed | NotOverridden::Word(_) => Code::Invalid,
    }
}

/// All that holds beside the file, as it would stand there.
pub(super) fn export(shared: &Shared) -> Exported {
    let classes = shared.overriding.desk().overrides().exported();
    let rules = shared.elephants.desk().book().exported();
    Exported { toml: classes + &rules }
}

/// The last decisions.
pub(super) fn audit(shared: &Shared, most: usize) -> Audit {
    let notes = shared.audit.notes();
    Audit { revision: notes.revision, kept: notes.are_kept(), notes: notes.newest(most) }
}
