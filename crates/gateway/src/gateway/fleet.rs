//! The thread that takes part in a fleet of gateways.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use bywash_config::Fleet;
use bywash_control::{Note, Second};
use bywash_engine::{Offered, OtherCounts};
use bywash_fleet::Holding;
use bywash_fleet_nats::{Gateway, Start};
use bywash_units::{Time, TimeSpan};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::counts::{self, NamedCounts};
use crate::driver::Counted;
use crate::error::GatewayError;
use crate::process::lifecycle::Lifecycle;
use crate::process::{boot_clock, wall_clock};
use crate::shared::Shared;
use crate::{admin, decisions};

/// Listens on the address that shows to the fleet that this process lives.
pub(super) fn show_life(fleet: &Fleet) -> Result<(), GatewayError> {
    bywash_fleet_nats::show_life(fleet).map_err(|source| GatewayError::Listen {
        what: "fleet.liveness",
        address: fleet.own_liveness().map(|address| address.to_string()).unwrap_or_default(),
        source,
    })
}

/// The part of the gateway that its fleet needs.
struct Member {
    shared: Arc<Shared>,
    /// A random number, which tells the seconds of this process from those of an earlier one.
    process: u64,
    /// The observations of each other gateway, by name.
    observed: Mutex<BTreeMap<String, Observed>>,
}

/// The observations of another gateway.
#[derive(Default)]
struct Observed {
    /// The process that wrote the last document.
    process: u64,
    /// The number of the last second of requests that was read; 0 if none was.
    second: u64,
    /// The last counts, and the time at which they were read.
    counts: Option<(Time, NamedCounts)>,
}

/// The first part of the path of the document with the observations of a gateway. The number of the
/// last process and of its last second that the reader knows follow.
const OBSERVED: &str = "observed/";

impl Member {
    /// Returns the document for a reader that knows the requests of `process` up to second `after`.
    fn observed_after(&self, process: u64, after: u64) -> String {
        let (shared, settings) = (&self.shared, self.shared.settings());
        let mut document = counts::write(&shared.driver.counted(), &settings);
        // The fleet's thread must not wait while the watch computes. The reader asks again.
        if let Some(mut watch) = shared.elephants.try_watched() {
            let after = if process == self.process { after } else { 0 };
            let seconds = watch.seconds(shared.driver.now(), after);
            document.insert("process".to_owned(), json!(self.process));
            document.insert("seconds".to_owned(), json!(seconds));
        }
        Value::Object(document).to_string()
    }

    /// Adds the requests of a document to the watch. Returns `None` if the document has none, or if
    /// the watch computes at present. Then the next document has them.
    fn take_seconds(&self, observed: &mut Observed, document: &Value, age: TimeSpan) -> Option<()> {
        let process = document["process"].as_u64()?;
        let seconds = Vec::<Second>::deserialize(&document["seconds"]).ok()?;
        let mut watch = self.shared.elephants.try_watched()?;
        if process != observed.process {
            (observed.process, observed.second) = (process, 0);
        }
        let now = self.shared.driver.now();
        for mut second in seconds {
            if second.number > observed.second {
                observed.second = second.number;
                second.age_ms = second.age_ms.saturating_add(age.as_millis());
                watch.elsewhere(now, &second);
            }
        }
        Some(())
    }

    /// Replaces the counts of the other gateways in the engine by the sum of all that were read.
    /// Older counts weigh less, as the gateway's own do.
    fn count_all(&self, observed: &BTreeMap<String, Observed>) {
        let (now, settings) = (self.now(), self.shared.settings());
        let (learn, classes) = (settings.config.engine.learn, &settings.config.classes);
        let mut others = OtherCounts::new(classes.len());
        for (at, counts) in observed.values().filter_map(|observed| observed.counts.as_ref()) {
            let Counted { classes, signals: (kinds, signals) } = counts.numbered(&settings);
            let counts: Vec<_> = classes.into_iter().map(|(counts, _)| counts).collect();
            let signals = if kinds == learn.kinds { &*signals } else { &[] };
            let age = now.since(*at).as_secs_f64() / learn.half_life.as_secs_f64();
            others.add(&counts, signals, (-age).exp2());
        }
        self.shared.driver.set_other_counts(others);
    }
}

impl Gateway for Member {
    fn now(&self) -> Time {
        boot_clock::now()
    }

    fn limit(&self) -> u32 {
        self.shared.settings().config.engine.limit.start()
    }

    fn offered(&self) -> Offered {
        self.shared.driver.offered()
    }

    fn running(&self) -> u32 {
        self.shared.driver.running()
    }

    fn hold(&self, holding: Holding) {
        self.shared.driver.hold(holding);
    }

    fn clock(&self) -> u64 {
        wall_clock::unix_ms()
    }

    fn settings(&self) -> String {
        self.shared.settings().for_fleet()
    }

    fn decisions(&self) -> String {
        self.shared.audit.notes().fleet.summary(wall_clock::now())
    }

    fn known_decisions(&self) -> Vec<Note> {
        self.shared.audit.notes().fleet.known(wall_clock::now())
    }

    fn take_unsent_decisions(&self) -> Vec<Note> {
        self.shared.audit.notes().fleet.take_unsent()
    }

    fn observed(&self, gateway: &str) -> String {
        let all = self.observed.lock().unwrap_or_else(PoisonError::into_inner);
        let (process, second) = all.get(gateway).map_or((0, 0), |one| (one.process, one.second));
        format!("{OBSERVED}{process}/{second}")
    }

    fn learn(&self, gateway: &str, document: &str, age: TimeSpan) -> bool {
        // Another version may have another format.
        let Ok(document) = serde_json::from_str::<Value>(document) else { return false };
        let counts = NamedCounts::read(
            &document["classes"],
            document.get("counts"),
            document.get("signals"),
        );
        let mut all = self.observed.lock().unwrap_or_else(PoisonError::into_inner);
        let observed = all.entry(gateway.to_owned()).or_default();
        if let Some(counts) = counts {
            observed.counts = Some((self.now(), counts));
        }
        let takes = self.take_seconds(observed, &document, age);
        self.count_all(&all);
        takes.is_some()
    }

    fn document(&self, path: &str) -> Option<String> {
        match path.strip_prefix(OBSERVED) {
            Some(known) => {
                let (process, after) = known.split_once('/')?;
                Some(self.observed_after(process.parse().ok()?, after.parse().ok()?))
            }
            None => admin::fleet::text(&self.shared, path),
        }
    }

    fn follow(&self, decision: Note) {
        decisions::fleet::follow(&self.shared, decision);
    }
}

/// Takes part in `fleet` until the gateway drains.
///
/// A gateway that drains keeps its own share for the requests that still wait, or less if it has
/// lent slots. It reports no more, so that a new program with its name can report.
pub(super) fn run(
    shared: &Arc<Shared>,
    fleet: Fleet,
    mut lifecycle: watch::Receiver<Lifecycle>,
) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let process = RandomState::new().hash_one(0_u8);
    let gateway = Member { shared: Arc::clone(shared), process, observed: Mutex::default() };
    let start = Start { fleet, gateway, board: shared.fleet.clone() };
    // Before that, an earlier process may still decide, and its decisions are not read yet. An error
    // means that the gateway has ended.
    let runs = lifecycle.wait_for(|lifecycle| *lifecycle >= Lifecycle::Runs);
    let _ = runtime.block_on(runs);
    let end = async move {
        let _ = lifecycle.wait_for(|lifecycle| *lifecycle >= Lifecycle::Drains).await;
    };
    let done = runtime.block_on(bywash_fleet_nats::run(start, end));
    // A name look-up without an answer must not delay the end of the gateway.
    runtime.shutdown_background();
    let slots = shared.driver.status().limit.min(shared.fleet.status().share).max(1);
    shared.driver.hold(Holding { slots, until: None, then: slots });
    done
}
