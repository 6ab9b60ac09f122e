//! `bywash shaper`: installs lanes on a network device.
//!
//! The command is a process of its own, because a program that reads input from the network should
//! not have the right to configure devices. The process reads its arguments, the kernel's answers
//! and signals, and nothing else.

use std::time::Duration;

use bywash_command::Failure;
use bywash_command::signals::{SignalRequest, Signals};
use bywash_command::streams::say;
use bywash_handover::Supervisor;
use bywash_shaper::{Plan, ShapedDevice, ShaperError};

use crate::args::{Lanes, Shaper};

/// The interval between checks that the lanes are still installed as wanted.
const TURN: Duration = Duration::from_secs(1);

pub(crate) fn shaper(command: &Shaper) -> Result<(), Failure> {
    match command {
        Shaper::Run(lanes) => run(plan(lanes)?),
        Shaper::Install(lanes) => bywash_shaper::install(&plan(lanes)?).map_err(Failure::running),
        Shaper::Check(lanes) => bywash_shaper::check(&plan(lanes)?).map_err(Failure::running),
        Shaper::Remove { device } => match bywash_shaper::remove(device) {
            Ok(true) => Ok(()),
            Ok(false) => Err(Failure::running(ShaperError::Missing(device.clone()))),
            Err(error) => Err(Failure::running(error)),
        },
    }
}

fn plan(lanes: &Lanes) -> Result<Plan, Failure> {
    lanes.plan().map_err(Failure::usage)
}

fn run(plan: Plan) -> Result<(), Failure> {
    let supervisor = Supervisor::from_environment().map_err(Failure::running)?;
    // Signals are caught before anything is installed, so that no signal leaves the lanes behind.
    let mut signals = Signals::catch().map_err(Failure::running)?;
    let device = plan.device().clone();
    let held = ShapedDevice::take(plan).map_err(Failure::running)?;
    say(format!("bywash: elephants have a lane on {device}"));
    // A supervisor that does not get this message waits until its own timeout, and logs that.
    let _ = supervisor.ready();
    loop {
        match signals.wait_for(TURN) {
            Some(SignalRequest::End(_)) => return held.end().map_err(Failure::running),
            Some(SignalRequest::Reload | SignalRequest::Upgrade) => {
                say("bywash: other rates need other arguments and a restart, which loses no \
                     connection");
            }
            None => held.check().map_err(Failure::running)?,
        }
    }
}
