//! Answers `/v1/sessions`: the learned behaviour and worth of sessions.

use std::collections::BTreeMap;

use bywash_api::{ClassLearned, Sessions, SessionsEvicted, SignalsSeen};
use bywash_config::Signal;
use bywash_engine::{Class, Learned, Learning, Signals};

use crate::shared::Shared;

/// Returns what was learned about every class and every combination of signals, and the numbers of
/// sessions.
pub(super) fn sessions(shared: &Shared) -> Sessions {
    let (learning, classes) = shared.driver.learning();
    let learned = learning.learned(&classes);
    let kinds = &shared.settings().config.identify.signals;
    let (proven, evictions) = shared.driver.session_counts();
    Sessions {
        remembered: shared.driver.status().sessions,
        proven,
        evicted: SessionsEvicted {
            fresh: evictions.fresh,
            proven: evictions.proven,
            over_quota: evictions.over_quota,
        },
        orders: learning.orders(),
        ranked_by_worth: learning.is_known(),
        classes: learned.iter().map(|of| class(of, &classes)).collect(),
        signals: signals(kinds, &learning),
    }
}

/// Returns every combination of signals with which a session has begun; empty if no signals are
/// configured.
fn signals(kinds: &[Signal], learning: &Learning) -> Vec<SignalsSeen> {
    if kinds.is_empty() {
        return Vec::new();
    }
    let seen = (0..1 << kinds.len()).map(Signals::from_index).filter_map(|shown| {
        let (sessions, ordered, times_as_likely) = learning.signals(shown);
        let names = kinds.iter().enumerate().filter(|(kind, _)| shown.has(*kind));
        (sessions > 0.0).then(|| SignalsSeen {
            shown: names.map(|(_, signal)| signal.to_string()).collect(),
            sessions,
            ordered,
            times_as_likely,
        })
    });
    seen.collect()
}

fn class(learned: &Learned, classes: &[Class]) -> ClassLearned {
    let probable = classes.iter().zip(&learned.next).filter(|(_, part)| **part >= 0.001);
    let next: BTreeMap<String, f64> =
        probable.map(|(class, part)| (class.name.clone(), *part)).collect();
    let [index_per_s, first_index_per_s] = learned.index;
    ClassLearned {
        name: classes[learned.class.index()].name.clone(),
        first_visits: learned.first_visits,
        later_visits: learned.later_visits,
        next,
        worth: learned.utility,
        worth_before: learned.before,
        fixed: learned.fixed,
        index_per_s,
        first_index_per_s,
        service_ms: learned.work.map(|seconds| seconds * 1e3),
        completes: learned.completes,
    }
}
