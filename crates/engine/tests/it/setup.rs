//! Random settings of an engine, for laws that hold whatever the settings are.

use bywash_engine::Bounds;
use bywash_engine::catalog::{
    Domain, POLICIES, Policy, Settings, TERMINATIONS, TerminationSettings, Value,
};
use bywash_engine::{Class, Engine, Learn, Options, Tier};
use bywash_units::{Ratio, TimeSpan, Utility};

use crate::dice::Dice;
use crate::site::classes;

/// The settings of an engine: classes, scheduler and options.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    pub(crate) settings: Settings,
    pub(crate) options: Options,
    pub(crate) classes: Vec<Class>,
}

/// The maximum number of classes after a new configuration. The engine accepts 64.
const MOST_CLASSES: usize = 12;

impl Setup {
    /// Returns the classes of the shop, with the scheduler `policy` and random parameters and
    /// options.
    pub(crate) fn random(policy: &'static Policy, dice: &mut Dice) -> Self {
        let settings = settings(policy, dice);
        let mut classes = classes();
        for class in &mut classes {
            class.stop = bounds(dice);
        }
        Self { settings, options: options(dice), classes }
    }

    pub(crate) fn engine(&self) -> Engine {
        let scheduler = self.settings.scheduler(&self.classes);
        Engine::new(self.classes.clone(), scheduler, self.options.clone())
    }

    pub(crate) fn policy(&self) -> &'static str {
        self.settings.name()
    }

    /// Returns whether the scheduler ranks by standing. Our own schedulers do while nothing is
    /// learned, and in these cases no request brings revenue.
    pub(crate) fn ranks(&self) -> bool {
        ["session-first", "value-index"].contains(&self.policy())
    }

    /// Returns the value of a parameter that is a count; `None` if the scheduler has no such
    /// parameter.
    pub(crate) fn count(&self, name: &str) -> Option<usize> {
        let (_, value) = self.settings.values().find(|(parameter, _)| parameter.name == name)?;
        match value {
            Value::Count(count) => Some(count as usize),
            other => panic!("{name} is no count: {other:?}"),
        }
    }

    /// Returns the value of a parameter that is a duration; `None` if the scheduler has no such
    /// parameter.
    pub(crate) fn span(&self, name: &str) -> Option<TimeSpan> {
        let (_, value) = self.settings.values().find(|(parameter, _)| parameter.name == name)?;
        match value {
            Value::TimeSpan(span) => Some(span),
            other => panic!("{name} is no span: {other:?}"),
        }
    }

    /// Returns these settings with a few random changes, or with none.
    pub(crate) fn changed(&self, dice: &mut Dice) -> Self {
        let mut new = self.clone();
        if dice.percent(60) {
            let policy = dice.below(POLICIES.len() as u64) as usize;
            new.settings = settings(&POLICIES[policy], dice);
        }
        if dice.percent(60) {
            new.options = options(dice);
        }
        if dice.percent(40) {
            new.change_class(dice);
        }
        new
    }

    /// Changes the properties that a scheduler sees of one class, or adds a class.
    fn change_class(&mut self, dice: &mut Dice) {
        let class = dice.below(MOST_CLASSES as u64) as usize;
        if class >= self.classes.len() {
            self.classes.push(self.classes[0].clone());
        }
        let class = class.min(self.classes.len() - 1);
        self.classes[class].tier =
            if dice.percent(50) { Tier::Browsing } else { Tier::Transaction };
        self.classes[class].queue = dice.percent(30).then(|| dice.below(6) as u32);
        self.classes[class].utility = Utility::new(dice.share());
        self.classes[class].stop = bounds(dice);
    }
}

/// Returns bounds for a class that can be stopped. They are so short that requests reach them.
fn bounds(dice: &mut Dice) -> Option<Bounds> {
    let min = TimeSpan::from_millis(dice.below(500));
    let max = min + TimeSpan::from_millis(dice.below(100_000));
    dice.percent(60).then_some(Bounds { min, max })
}

fn options(dice: &mut Dice) -> Options {
    Options {
        limit: (1 + dice.below(4) as u32).into(),
        termination: termination(dice),
        max_wait: dice.percent(50).then(|| TimeSpan::from_millis(1 + dice.below(5_000))),
        sessions: 1 + dice.below(7) as u32,
        session_ttl: TimeSpan::from_secs(1 + dice.below(19)),
        retry_window: TimeSpan::from_secs(dice.below(30)),
        learn: Learn {
            every: TimeSpan::from_secs(1 + dice.below(20)),
            half_life: TimeSpan::from_secs(10 + dice.below(1000)),
            max_change_per_hour: 1.0 + dice.share(),
            orders: dice.below(3) as u32,
            kinds: dice.below(2),
        },
        slow_share: Ratio::new(dice.share()),
    }
}

/// Returns a termination policy, in most cases `marginal`, because it stops a request only under
/// several conditions.
fn termination(dice: &mut Dice) -> TerminationSettings {
    let other = dice.below(TERMINATIONS.len() as u64) as usize;
    let policy = &TERMINATIONS[if dice.percent(50) { 0 } else { other }];
    policy.settings([]).expect("nothing is given")
}

/// Returns a random value for each parameter of a scheduler. Counts are small, so that queues fill.
fn settings(policy: &'static Policy, dice: &mut Dice) -> Settings {
    let mut value = |domain: &Domain| match domain {
        Domain::Count { min, max, .. } => (min + dice.below(12) as u32).min(*max).to_string(),
        Domain::Ratio { min, max, .. } | Domain::Number { min, max, .. } => {
            (min + dice.share() * (max - min)).to_string()
        }
        Domain::TimeSpan { min, max, .. } => {
            let span = *min + TimeSpan::from_millis(dice.below(30_000));
            format!("{}ms", span.min(*max).as_millis())
        }
        Domain::Choice(words) => dice.pick(words).expect("a choice has words").to_string(),
    };
    let given: Vec<(&str, String)> =
        policy.parameters.iter().map(|one| (one.name, value(&one.domain))).collect();
    // `running_share` is 1, because the laws of ranks hold only without a running share. Tests of
    // that share are in `shares.rs`.
    let no_share =
        |(name, text)| if name == "running_share" { (name, "1".into()) } else { (name, text) };
    let given: Vec<(&str, String)> = given.into_iter().map(no_share).collect();
    let given = given.iter().map(|(name, text)| (*name, text.as_str()));
    policy.settings(given).expect("the values are in their ranges")
}
