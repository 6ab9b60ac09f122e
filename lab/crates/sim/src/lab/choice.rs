//! Resolves the policies of a scenario: their names, their parameters and those of their parts.

use bywash_engine::catalog::{
    self, Decides, LimitSettings, Parameter, ParameterError, Policy, Schedulers, Settings,
    TerminationSettings,
};
use bywash_scenario::{Departures, Mode, PartChoice, PolicyChoice, PrincipalKind, Throttle, guess};

use super::SimError;
use crate::peers;

/// The resolved settings of a scenario's policy.
#[derive(Clone, Debug)]
pub(super) struct Chosen {
    pub(super) settings: Settings,
    pub(super) limit: LimitSettings,
    pub(super) termination: TerminationSettings,
    pub(super) throttles: Vec<Throttle>,
    pub(super) principal: PrincipalKind,
    pub(super) departures: Departures,
    pub(super) mode: Mode,
}

/// Resolves the names and parameters of policies. A policy without a concurrency limit of its own
/// gets a limit of `slots` slots. Reports the errors of all policies together.
pub(super) fn choose(policies: &[PolicyChoice], slots: u32) -> Result<Vec<Chosen>, SimError> {
    if policies.is_empty() {
        return Err(SimError::NoPolicy);
    }
    let (mut chosen, mut wrong) = (Vec::new(), Vec::new());
    for choice in policies {
        match choose_one(choice, slots) {
            Ok(one) => chosen.push(one),
            Err(error) => wrong.push(match choice.line {
                Some(line) => SimError::At { line, source: Box::new(error) },
                None => error,
            }),
        }
    }
    match wrong.len() {
        0 => Ok(chosen),
        1 => Err(wrong.remove(0)),
        _ => Err(SimError::Several(wrong)),
    }
}

fn choose_one(choice: &PolicyChoice, slots: u32) -> Result<Chosen, SimError> {
    let limit = match &choice.concurrency {
        None => LimitSettings::from(slots),
        Some(limit) => limit_of(limit)?,
    };
    let settings = settings(choice, limit.limit().slots())?;
    // A peer is another program. It identifies clients by address, whatever the scenario sets for
    // the gateway.
    let is_peer = peers::find(&choice.name).is_some();
    if is_peer && choice.mode == Mode::Observe {
        let wrong = "only the gateway's own policies have mode `observe`".into();
        return Err(SimError::Parameters { policy: choice.name.clone(), wrong });
    }
    let principal = if is_peer { PrincipalKind::Address } else { choice.principal };
    let termination = match &choice.termination {
        // A peer terminates no request by default.
        None if is_peer => TerminationSettings::never(),
        None => TerminationSettings::default(),
        Some(termination) => termination_of(termination)?,
    };
    let (throttles, departures, mode) = (choice.throttles.clone(), choice.departures, choice.mode);
    Ok(Chosen { settings, limit, termination, throttles, principal, departures, mode })
}

fn limit_of(choice: &PartChoice) -> Result<LimitSettings, SimError> {
    let found = catalog::find_limit(&choice.name).or_else(|| peers::find_limit(&choice.name));
    let policy = found.ok_or_else(|| SimError::UnknownLimit {
        name: choice.name.clone(),
        there_is: describe_known(&choice.name, &catalog::LIMITS, &peers::LIMITS),
    })?;
    let given = choice.parameters.iter().map(|(name, text)| (name.as_str(), text.as_str()));
    let settings = policy.settings(given).map_err(|errors| refused(policy, &errors))?;
    match settings.contradiction() {
        Some(wrong) => Err(SimError::Parameters { policy: policy.name.into(), wrong }),
        None => Ok(settings),
    }
}

fn termination_of(choice: &PartChoice) -> Result<TerminationSettings, SimError> {
    let policy =
        catalog::find_termination(&choice.name).ok_or_else(|| SimError::UnknownTermination {
            name: choice.name.clone(),
            there_is: describe_known(&choice.name, &catalog::TERMINATIONS, &[]),
        })?;
    let given = choice.parameters.iter().map(|(name, text)| (name.as_str(), text.as_str()));
    policy.settings(given).map_err(|errors| refused(policy, &errors))
}

/// Resolves the parameters of a policy in front of a server with `slots` slots. If the policy is a
/// peer's and has a parameter for the number of slots, this function sets that parameter to
/// `slots`.
fn settings(choice: &PolicyChoice, slots: u32) -> Result<Settings, SimError> {
    let found = catalog::find(&choice.name).or_else(|| peers::find(&choice.name));
    let policy: &'static Policy<Schedulers> = found.ok_or_else(|| SimError::UnknownPolicy {
        name: choice.name.clone(),
        there_is: describe_known(&choice.name, &catalog::POLICIES, &peers::POLICIES),
    })?;
    let slots = slots.to_string();
    let takes_slots = policy.parameters.iter().any(|parameter| parameter.name == peers::SLOTS);
    let limit = takes_slots.then_some((peers::SLOTS, slots.as_str()));
    let given = choice.parameters.iter().map(|(name, text)| (name.as_str(), text.as_str()));
    policy.settings(limit.into_iter().chain(given)).map_err(|errors| refused(policy, &errors))
}

/// Returns the help text for an unknown policy name. The name that was probably meant comes first,
/// because a command line truncates long text.
fn describe_known<D: Decides>(name: &str, own: &[Policy<D>], peers: &[Policy<D>]) -> String {
    let meant = guess(name, own.iter().chain(peers).map(|policy| policy.name));
    let meant = meant.map_or(String::new(), |best| format!("did you mean `{best}`? "));
    let and = if peers.is_empty() { "" } else { ", and the peers' are " };
    let [own, peers] = [own, peers].map(names);
    format!("{meant}the names are {own}{and}{peers}")
}

fn names<D: Decides>(policies: &[Policy<D>]) -> String {
    policies.iter().map(|policy| policy.name).collect::<Vec<_>>().join(", ")
}

/// Returns the error for rejected parameters of `policy`. For each unknown parameter it names the
/// parameter that was probably meant.
fn refused<D: Decides>(policy: &Policy<D>, errors: &[ParameterError]) -> SimError {
    let words = |error: &ParameterError| match meant(error, policy.parameters) {
        Some(best) => format!("{error}; did you mean `{best}`?"),
        None => error.to_string(),
    };
    let wrong = errors.iter().map(words).collect::<Vec<_>>().join("; ");
    SimError::Parameters { policy: policy.name.into(), wrong }
}

fn meant(error: &ParameterError, parameters: &'static [Parameter]) -> Option<&'static str> {
    match error {
        ParameterError::Unknown { name } => {
            guess(name, parameters.iter().map(|parameter| parameter.name))
        }
        ParameterError::Value { .. } => None,
    }
}
