//! Readings of the machine, such as processor use, for the gateway's engine.

use std::io;
use std::time::Duration;

use bywash_command::Failure;
use bywash_engine::{Meter, Reading};
use bywash_gateway::Gateway;
use bywash_sense::{Cpu, Pressure};
use bywash_units::Ratio;

/// Starts a thread that gives the engine the readings that its policies need. If a reload changes
/// the policies, the thread gives the readings that the new ones need.
///
/// # Errors
/// If a reading that is needed now is not available, or if the thread cannot be started.
pub(crate) fn read(gateway: &Gateway) -> Result<(), Failure> {
    /// The interval at which the thread checks for new policies while the present ones need no
    /// reading.
    const UNTIL_WANTED: Duration = Duration::from_secs(1);
    let senses = gateway.senses();
    if let Some((meter, _)) = senses.meter() {
        let wants =
            |error| Failure::running(format!("cannot measure what the policy needs: {error}"));
        Meters::default().read(meter).map_err(wants)?;
    }
    let read = move || {
        let mut meters = Meters::default();
        loop {
            let wanted = senses.meter();
            std::thread::sleep(wanted.map_or(UNTIL_WANTED, |(_, interval)| interval.to_std()));
            // If a reading fails, the policy keeps its last one.
            if let Some((meter, _)) = wanted
                && let Ok(Some(share)) = meters.read(meter)
            {
                senses.read(Reading { meter, share });
            }
        }
    };
    std::thread::Builder::new()
        .name("meters".into())
        .spawn(read)
        .map(drop)
        .map_err(Failure::running)
}

/// The meters of the machine that policies may need.
#[derive(Default)]
struct Meters {
    cpu: Cpu,
    pressure: Pressure,
}

impl Meters {
    /// Returns the reading of a meter since the previous call; `None` at the first call.
    fn read(&mut self, meter: Meter) -> io::Result<Option<Ratio>> {
        match meter {
            Meter::Cpu => self.cpu.read(),
            Meter::Pressure => self.pressure.read(),
        }
    }
}
