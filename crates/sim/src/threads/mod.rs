//! An application whose requests are tasks on threads: what seed 3 varies.
//!
//! [`system`] leaves threads to the operating system, as the seed does; [`pool`] asks the product's levels. A request's
//! demand is its work on one thread: a serial rest, done at the end by one thread, and before it tasks of equal size,
//! taken one after the other by whichever of its threads is free. Threads cost nothing to start and nothing to switch.

mod pool;
mod system;

use bywash_scenario::{Parallel, Scenario, Scheduler};
use bywash_units::Span;

use crate::servers::Meters;
use crate::stations::Application;

/// The application of a scenario that has threads.
pub(crate) fn application(scenario: &Scenario) -> Option<Box<dyn Application>> {
    let threads = scenario.servers.threads.as_ref()?;
    let classes: Vec<Parallel> = scenario.classes.iter().map(|class| class.parallel).collect();
    Some(match threads.scheduler {
        Scheduler::System => {
            Box::new(system::System::new(scenario.workers, threads.serial, classes))
        }
        Scheduler::Levels => Box::new(pool::Pool::new(scenario.workers, threads, classes)),
    })
}

/// Adds up a time in which so many processors were busy, and so many requests had none.
fn pass(meters: &mut Meters, time: Span, processors: u32, busy: u32, without: u32) {
    let nanos = time.as_nanos() as f64;
    meters.busy += time * u64::from(busy);
    meters.waited += time * u64::from(without);
    meters.manned += time * u64::from(processors);
    meters.capacity += nanos * f64::from(processors);
    meters.work += nanos * f64::from(busy);
    if without > 0 {
        meters.stalled += time;
    }
}

/// What is left of a request.
#[derive(Clone, Copy, Debug)]
struct Left {
    /// Tasks that nobody has taken.
    tasks: u32,
    /// Work of one, in nanoseconds.
    task: u64,
    /// Work of the rest, in nanoseconds.
    serial: u64,
}

impl Left {
    fn of(demand: Span, serial: f64, parallel: Parallel) -> Self {
        let rest = demand.scale(serial).as_nanos();
        let task = (demand.as_nanos() - rest) / u64::from(parallel.tasks);
        Self { tasks: parallel.tasks, task: task.max(1), serial: rest }
    }
}
