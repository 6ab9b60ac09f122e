//! `bywash policy`: shows the policy in force, and sets overrides that apply for a limited time.

mod export;

use std::fmt::Write;

use bywash_api::{ClassPolicy, Mode, Policy, Populations, RankPopulation, SetClass, Undo};
use bywash_command::Failure;
use bywash_command::streams::print;
use bywash_command::{admin_client, operators};
use bywash_terminal::text::escaped;
use bywash_terminal::{Align, Table};

use crate::args::policy::{OfClass, Policy as What, Rank, Undone};
use crate::read::read;

pub(crate) use export::export;

pub(crate) fn policy(what: &What) -> Result<(), Failure> {
    match what {
        What::Show(args) => read(args, "/v1/policy", describe),
        What::Enforce(args) => set(&args.class, Mode::Enforce, args.percent),
        What::Observe(args) => set(args, Mode::Observe, None),
        What::Rank(args) => rank(args),
        What::Undo(args) => undo(args),
    }
}

fn rank(args: &Rank) -> Result<(), Failure> {
    let terms = &args.terms;
    let by = operators::author(terms.author.by.as_deref())?;
    let request = RankPopulation {
        population: args.population.clone(),
        level: args.level,
        by: Some(by.clone()),
        why: terms.author.why.clone(),
        lasts: terms.lasts.map(|lasts| lasts.to_string()),
        revision: None,
    };
    let policy = admin_client::post(&terms.which, &by, "/v1/policy/population", &request)?;
    print(&describe(&policy))?;
    let found: Populations = admin_client::get(&terms.which, "/v1/populations")?;
    if found.populations.iter().any(|one| one.name == args.population) {
        return Ok(());
    }
    print("\nNone of the 100 populations with the most requests has this name.\n")
}

fn set(args: &OfClass, mode: Mode, enforce_percent: Option<u8>) -> Result<(), Failure> {
    let terms = &args.terms;
    let by = operators::author(terms.author.by.as_deref())?;
    let request = SetClass {
        class: args.name.clone(),
        mode,
        enforce_percent,
        by: Some(by.clone()),
        why: terms.author.why.clone(),
        lasts: terms.lasts.map(|lasts| lasts.to_string()),
        revision: None,
    };
    let policy = admin_client::post(&terms.which, &by, "/v1/policy/class", &request)?;
    print(&describe(&policy))
}

fn undo(args: &Undone) -> Result<(), Failure> {
    let by = &operators::author(args.author.by.as_deref())?;
    let request = Undo { by: Some(by.clone()), why: args.author.why.clone(), revision: None };
    let path = format!("/v1/policy/{}/undo", args.number);
    print(&describe(&admin_client::post(&args.which, by, &path, &request)?))
}

pub(crate) fn describe(policy: &Policy) -> String {
    let file = policy.file.as_deref().map_or("no file".into(), escaped);
    let mut words = format!(
        "{file}: scheduler {}, concurrency {}, terminate {}{}\n\n{}",
        escaped(&policy.scheduler.name),
        escaped(&policy.concurrency.name),
        escaped(&policy.terminate.name),
        if policy.bypassed { "; bypassed: no decisions" } else { "" },
        classes(policy),
    );
    for one in &policy.overrides {
        let what = match &one.target {
            bywash_control::Target::Class { class, mode, enforce_percent } => {
                format!("{} {} {enforce_percent} %", escaped(class), mode.name())
            }
            bywash_control::Target::Population { population, level } => {
                format!("population {} level {level}", escaped(population))
            }
            bywash_control::Target::Bypass => "bypass".to_owned(),
        };
        let (number, by, why, until) = (one.number, escaped(&one.by), escaped(&one.why), one.until);
        let _ = write!(words, "\n{number}  {what} until {until}, {by}: {why}");
    }
    if !policy.overrides.is_empty() {
        let lost = if policy.kept {
            ""
        } else {
            " (it is lost when the process ends: no state.directory)"
        };
        let _ = writeln!(
            words,
            "\n\nAn override ends by itself{lost}; `bywash export` prints it as lines for the file."
        );
    }
    for remark in &policy.remarks {
        let _ = writeln!(words, "\n{}", escaped(remark));
    }
    words
}

fn classes(policy: &Policy) -> Table {
    let mut table = Table::new(&[
        ("class", Align::Left),
        ("tier", Align::Left),
        ("mode", Align::Left),
        ("clients", Align::Right),
        ("in the file", Align::Left),
        ("utility", Align::Right),
    ]);
    for class in &policy.classes {
        let ClassPolicy {
            name,
            tier,
            mode,
            enforce_percent,
            file_mode,
            file_enforce_percent,
            utility,
            ..
        } = class;
        table.push(vec![
            escaped(name),
            escaped(tier),
            mode.name().to_owned(),
            format!("{enforce_percent} %"),
            match class.overridden {
                Some(number) => {
                    format!("{} {file_enforce_percent} %  [{number}]", file_mode.name())
                }
                None => String::new(),
            },
            utility.to_string(),
        ]);
    }
    table
}
