//! Tests the invariants that hold after any sequence of events.

use std::sync::Arc;

use bywash_units::{Time, TimeSpan};
use proptest::prelude::*;

use super::{Failure, Load, Options, ServerState, ServerStatus, Servers};

const OPTIONS: Options = Options {
    rise: 2,
    fall: 2,
    eject_after: 2,
    eject_for: TimeSpan::from_secs(10),
    eject_share: 0.5,
    slow_start: TimeSpan::from_secs(10),
};

/// The possible events. Indices are taken modulo the number of servers or loads.
#[derive(Clone, Copy, Debug)]
enum Step {
    Choose { tried: u64 },
    Answered { load: usize },
    Succeed { load: usize },
    Fail { load: usize, failure: Failure },
    Err { load: usize },
    Leave { load: usize },
    Probe { server: usize, ok: bool },
    Pass { milliseconds: u64 },
    Reload { added: bool },
}

fn step() -> impl Strategy<Value = Step> {
    let failure = prop_oneof![Just(Failure::Connect), Just(Failure::Response)];
    let load = any::<usize>();
    prop_oneof![
        8 => prop_oneof![Just(0), any::<u64>()].prop_map(|tried| Step::Choose { tried }),
        1 => load.prop_map(|load| Step::Answered { load }),
        2 => load.prop_map(|load| Step::Succeed { load }),
        // One step causes many errors, because fewer than twenty responses say nothing.
        2 => load.prop_map(|load| Step::Err { load }),
        5 => (load, failure).prop_map(|(load, failure)| Step::Fail { load, failure }),
        1 => load.prop_map(|load| Step::Leave { load }),
        2 => (load, any::<bool>()).prop_map(|(server, ok)| Step::Probe { server, ok }),
        3 => (0..8_000_u64).prop_map(|milliseconds| Step::Pass { milliseconds }),
        1 => prop::bool::weighted(0.2).prop_map(|added| Step::Reload { added }),
    ]
}

/// The servers, the running loads by generation, and the time.
struct Play {
    servers: Arc<Servers>,
    loads: Vec<Load>,
    old: Vec<Load>,
    now: Time,
}

impl Play {
    fn new(count: usize) -> Self {
        let servers = Arc::new(Servers::new(count, OPTIONS, Time::ZERO));
        Self { servers, loads: Vec::new(), old: Vec::new(), now: Time::ZERO }
    }

    fn remove(&mut self, load: usize) -> Option<Load> {
        if self.loads.is_empty() {
            return self.old.pop();
        }
        Some(self.loads.swap_remove(load % self.loads.len()))
    }

    fn step(&mut self, step: Step) {
        let (now, before) = (self.now, self.servers.snapshot(self.now));
        match step {
            Step::Choose { tried } => self.choose(tried, &before),
            Step::Answered { load } if !self.loads.is_empty() => {
                let load = load % self.loads.len();
                self.loads[load].answered(now);
            }
            Step::Answered { .. } => {}
            Step::Succeed { load } => {
                self.remove(load).into_iter().for_each(|load| load.succeeded(now));
            }
            Step::Fail { load, failure } => {
                self.remove(load).into_iter().for_each(|load| load.failed(now, failure));
                let serve = |all: &[ServerStatus]| all.iter().any(serves);
                assert!(!serve(&before) || serve(&self.servers.snapshot(now)), "the last is out");
            }
            Step::Err { load } => {
                for _ in 0..30 {
                    let load = self.servers.choose(now, !(1 << (load % before.len())));
                    if let Some(load) = load {
                        load.errs(now);
                    }
                }
                let out = |all: &[ServerStatus]| all.iter().filter(|one| !serves(one)).count();
                let (was, is) = (out(&before), out(&self.servers.snapshot(now)));
                assert!(is <= was || 2 * is <= before.len(), "{is} of {} are out", before.len());
            }
            Step::Leave { load } => drop(self.remove(load)),
            Step::Probe { server, ok } => self.servers.probed(server % before.len(), now, ok),
            Step::Pass { milliseconds } => self.now = now + TimeSpan::from_millis(milliseconds),
            Step::Reload { added } => self.reload(before.len(), added),
        }
        self.counts_agree();
    }

    fn choose(&mut self, tried: u64, before: &[ServerStatus]) {
        let may =
            |server: usize| tried >> server & 1 == 0 && before[server].state != ServerState::Down;
        let good = |server: &usize| may(*server) && serves(&before[*server]);
        match self.servers.choose(self.now, tried) {
            Some(load) => {
                let chosen = &before[load.server()];
                assert!(may(load.server()), "{chosen:?} was chosen");
                if let ServerState::Ejected { .. } = chosen.state {
                    let better = (0..before.len())
                        .filter(good)
                        .find(|s| before[*s].failures < OPTIONS.eject_after);
                    assert_eq!(better, None, "{chosen:?} was chosen");
                }
                self.loads.push(load);
            }
            None => assert!(!(0..before.len()).any(may), "nobody works"),
        }
    }

    fn reload(&mut self, count: usize, added: bool) {
        let mut kept: Vec<Option<usize>> = (0..count).map(Some).collect();
        if added && count < 6 {
            kept.push(None);
        }
        self.servers = Arc::new(self.servers.reloaded(&kept, OPTIONS, self.now));
        self.old.append(&mut self.loads);
    }

    /// Checks that every server counts exactly the loads that run there.
    fn counts_agree(&self) {
        for (server, status) in self.servers.snapshot(self.now).iter().enumerate() {
            let alive = self.loads.iter().filter(|load| load.server() == server).count();
            assert_eq!(status.running as usize, alive, "at server {server}");
        }
    }
}

fn serves(status: &ServerStatus) -> bool {
    matches!(status.state, ServerState::Up | ServerState::SlowStart { .. })
}

proptest! {
    #[test]
    fn any_sequence_keeps_the_rules(
        count in 1..6_usize,
        steps in prop::collection::vec(step(), 1..300),
    ) {
        let mut play = Play::new(count);
        for step in steps {
            play.step(step);
        }
        while play.remove(0).is_some() {}
        play.counts_agree();
    }
}
