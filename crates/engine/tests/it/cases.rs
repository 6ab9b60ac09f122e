//! Random cases for the laws in `catalogue_laws.rs`.
//!
//! A failing test prints the shortest sequence of events that shows the failure, and the seed.

use bywash_engine::catalog::{POLICIES, Policy};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed, TestRunner};

use crate::dice::Dice;
use crate::setup::Setup;

/// A step of a case. A step that concerns a request has a number, which chooses one of the requests
/// to which the step can happen.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Arrive {
        class: u8,
        session: Option<u8>,
        address: Option<u8>,
    },
    LeaveWaiting(u8),
    LeaveRunning(u8),
    /// A request reaches the deadline that its client had announced.
    OutOfTime(u8),
    Answering(u8),
    Finish(u8, bool),
    /// A report arrives about a request number that is no longer in use.
    Late(u8),
    Serve(u8, u8),
    Cpu(f64),
    Limit(u32),
    /// The given number of milliseconds passes. If the flag is true, the timer is then called if it
    /// is due. Otherwise the driver is late.
    Pass(u64, bool),
    /// A new configuration is applied, which is drawn with this seed.
    Reconfigure(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let who = || prop::option::of(0..8_u8);
    prop_oneof![
        12 => (any::<u8>(), who(), who())
            .prop_map(|(class, session, address)| Step::Arrive { class, session, address }),
        2 => any::<u8>().prop_map(Step::LeaveWaiting),
        1 => any::<u8>().prop_map(Step::LeaveRunning),
        1 => any::<u8>().prop_map(Step::OutOfTime),
        1 => any::<u8>().prop_map(Step::Answering),
        6 => (any::<u8>(), prop::bool::weighted(0.9))
            .prop_map(|(who, answered)| Step::Finish(who, answered)),
        1 => any::<u8>().prop_map(Step::Late),
        3 => (0..8_u8, 0..8_u8).prop_map(|(session, class)| Step::Serve(session, class)),
        1 => (0.0..=1.0).prop_map(Step::Cpu),
        1 => (1..5_u32).prop_map(Step::Limit),
        4 => (0..800_u64, prop::bool::weighted(0.8)).prop_map(|(ms, timer)| Step::Pass(ms, timer)),
    ]
}

/// Draws a step, which may be a new configuration.
fn step_or_reload() -> impl Strategy<Value = Step> {
    prop_oneof![20 => step(), 1 => any::<u64>().prop_map(Step::Reconfigure)]
}

/// A policy with its parameters, and the steps of the case.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) policy: &'static str,
    pub(crate) setup: Setup,
    pub(crate) steps: Vec<Step>,
}

/// Draws cases of up to `length` steps for a policy.
fn case(
    policy: &'static Policy,
    step: impl Strategy<Value = Step>,
    length: usize,
) -> impl Strategy<Value = Case> {
    (any::<u64>(), prop::collection::vec(step, 1..length)).prop_map(move |(seed, steps)| {
        let setup = Setup::random(policy, &mut Dice::new(seed));
        Case { policy: policy.name, setup, steps }
    })
}

/// Runs `property` on random cases of every policy.
pub(crate) fn for_every_policy(cases: u32, length: usize, property: impl Fn(&Case)) {
    for_every(cases, |policy| case(policy, step(), length), property);
}

/// Runs `property` on random cases of every policy, with new configurations in between. After a new
/// configuration any policy may be in force.
pub(crate) fn for_every_policy_and_reloads(cases: u32, length: usize, property: impl Fn(&Case)) {
    for_every(cases, |policy| case(policy, step_or_reload(), length), property);
}

fn for_every<S: Strategy<Value = Case>>(
    cases: u32,
    case: impl Fn(&'static Policy) -> S,
    property: impl Fn(&Case),
) {
    let mut config = Config { cases, failure_persistence: None, ..Config::default() };
    if config.rng_seed == RngSeed::Random {
        config.rng_seed = RngSeed::Fixed(2004);
    }
    let seed = config.rng_seed;
    for policy in &POLICIES {
        let tried = TestRunner::new(config.clone()).run(&case(policy), |case| {
            property(&case);
            Ok(())
        });
        if let Err(failure) = tried {
            panic!("{} with {seed:?} (PROPTEST_RNG_SEED sets it): {failure}", policy.name);
        }
    }
}
