//! An application that runs requests as tasks on threads, as paper 3 does.
//!
//! In [`system`], the operating system schedules the threads, as in the paper. In [`pool`],
//! bywash's levels of service do. The demand of a request is its work on one thread. It consists of
//! tasks of equal size, and of a serial rest. The next free thread of the request takes each task,
//! and one thread does the serial rest at the end. Starting and switching threads costs nothing.

mod pool;
mod system;

use bywash_scenario::{Parallel, Scenario, ThreadScheduler};
use bywash_units::TimeSpan;

use crate::application::{Application, Meters};

/// Returns the application of a scenario that has threads; `None` for any other scenario.
pub(crate) fn application(scenario: &Scenario) -> Option<Box<dyn Application>> {
    let threads = scenario.servers.threads.as_ref()?;
    let classes: Vec<Parallel> = scenario.classes.iter().map(|class| class.parallel).collect();
    Some(match threads.scheduler {
        ThreadScheduler::System => {
            Box::new(system::System::new(scenario.workers, threads.serial, classes))
        }
        ThreadScheduler::Levels => Box::new(pool::Pool::new(scenario.workers, threads, classes)),
    })
}

/// Adds a period of length `time` to `meters`. In this period, `busy` of `processors` processors
/// worked, and `without` requests had no processor.
fn pass(meters: &mut Meters, time: TimeSpan, processors: u32, busy: u32, without: u32) {
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

/// The work of a request that is not done yet.
#[derive(Clone, Copy, Debug)]
struct Left {
    /// The number of tasks that no thread has taken.
    tasks: u32,
    /// The work of one task, in nanoseconds.
    task: u64,
    /// The work of the serial rest, in nanoseconds.
    serial: u64,
}

impl Left {
    fn of(demand: TimeSpan, serial: f64, parallel: Parallel) -> Self {
        let rest = demand.scale(serial).as_nanos();
        let task = (demand.as_nanos() - rest) / u64::from(parallel.tasks);
        Self { tasks: parallel.tasks, task: task.max(1), serial: rest }
    }
}
