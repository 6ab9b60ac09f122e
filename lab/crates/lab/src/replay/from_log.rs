//! Creates the scenario of a log, with the classes of the configuration and the recorded visitors.

use bywash_config::Config;
use bywash_engine::{ClassId, ClassSet, Tier as EngineTier};
use bywash_scenario::client::Client;
use bywash_scenario::file::Length;
use bywash_scenario::{
    Class, Closes, Distribution, Graph, Profile, Recording, Scenario, Servers, Source, Tier,
    WaitsFor,
};
use bywash_units::{TimeSpan, Utility};

use super::options::ReplayOptions;
use super::workload::{Mean, PAUSE};
use crate::args::Replay;

pub(super) fn scenario(
    name: &str,
    config: &Config,
    options: &ReplayOptions,
    means: &[Mean],
    recording: Recording,
    (rho, lasted): (f64, TimeSpan),
    args: &Replay,
) -> Scenario {
    let classes = config.classes.iter().enumerate().map(|(index, class)| Class {
        name: class.class.name.clone(),
        // These fields are empty because the simulator sends no HTTP request.
        method: String::new(),
        path: String::new(),
        form: String::new(),
        status: None,
        tier: match class.class.tier {
            EngineTier::Transaction => Tier::Transaction,
            EngineTier::Browsing => Tier::Browsing,
        },
        utility: class.class.utility,
        queue: class.class.queue,
        requires: indices(class.class.requires),
        service: Distribution::Constant(means[index].time).into(),
        shift: None,
        stop: None,
        revenue: match class.class.revenue {
            revenue if revenue.get() > 0.0 => revenue,
            _ => Utility::new(1.0),
        },
        fixed_value: class.class.fixed_value,
        station: None,
        parallel: bywash_scenario::Parallel::default(),
        think: None,
        patience: class.patience.map(Distribution::Constant),
    });
    Scenario {
        sets: Vec::new(),
        name: name.to_owned(),
        about: String::new(),
        workers: options.workers,
        servers: Servers::default(),
        max_wait: config.engine.max_wait,
        sessions: Some(config.engine.sessions),
        classes: classes.collect(),
        // The graph is empty because all visitors are recorded and none is drawn.
        graph: Graph { start: 0, next: vec![Vec::new(); config.classes.len()], order: 0 },
        starts: Vec::new(),
        profile: Profile::Times(recording.starts(args.speed)),
        source: Source::Recorded(recording),
        rho: vec![rho * args.speed],
        client: client(args),
        signals: Vec::new(),
        closes: vec![if args.hidden { Closes::Hidden } else { Closes::Visible }],
        adversaries: Vec::new(),
        policies: Vec::new(),
        seeds: 1,
        first_seed: 1,
        length: Length::Duration(lasted.scale(1.0 / args.speed)),
    }
}

fn client(args: &Replay) -> Client {
    Client {
        // The think times are recorded, so this distribution is not used.
        think: Distribution::Constant(TimeSpan::ZERO),
        patience: Distribution::Exponential(args.patience),
        waits_for: WaitsFor::Answer,
        retries: args.retries,
        retries_after_refusal: args.retries,
        pause_after_timeout: PAUSE,
        pause_after_refusal: Distribution::Constant(PAUSE),
        obeys_retry_after: false,
        declares_retries: false,
        abandon: 0.0,
        returns_cookies: true,
        shapes: 0,
        targets: 0,
    }
}

fn indices(set: ClassSet) -> Vec<usize> {
    set.iter().map(ClassId::index).collect()
}
