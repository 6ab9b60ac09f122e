//! The command line of `bywash shaper`: the only instructions that the privileged program gets.

use bywash_shaper::{BitRate, Device, NoPlan, Plan};
use clap::Subcommand;

const RUN_EXAMPLES: &str = "\
Examples:
  bywash shaper run --device eth0 --total 950mbit --elephants 50mbit --ceiling 400mbit

The device is the one by which answers leave this machine. The total is a little below what the
line carries: a queue elsewhere cannot be chosen from. Of it, elephants have their rate in any case,
and up to their ceiling what others leave; everything else may use all of it, and goes first. A
gateway on this machine finds the lanes by itself; it needs CAP_NET_RAW to use them (before Linux
5.17: CAP_NET_ADMIN), and holds elephants back by buckets without.

Whatever somebody has installed on the device is left alone, and is an error. What the kernel has
chosen by itself is replaced, and comes back when this ends by SIGTERM or Ctrl-C; a device with
several hardware queues has one meanwhile. When the device vanishes, or somebody changes what is
installed, it ends with code 1 and removes the rest. It needs CAP_NET_ADMIN and no other right.";

/// The actions on a device.
#[derive(Debug, Subcommand)]
pub(crate) enum Shaper {
    /// Install the lanes, check that they stay, and remove them at the end
    #[command(after_help = RUN_EXAMPLES)]
    Run(Lanes),
    /// Install the lanes and leave them there
    Install(Lanes),
    /// Check whether the lanes are installed as wanted; needs no privileges
    Check(Lanes),
    /// Remove the lanes, no matter which process installed them
    Remove {
        /// The network device
        #[arg(long)]
        device: Device,
    },
}

#[derive(Debug, clap::Args)]
pub(crate) struct Lanes {
    /// The network device by which answers leave
    #[arg(long)]
    device: Device,
    /// Rate of all traffic together: `50mbit`, `1gbit`
    #[arg(long, value_name = "RATE")]
    total: BitRate,
    /// Rate that elephants always get
    #[arg(long, value_name = "RATE")]
    elephants: BitRate,
    /// Rate that elephants may reach while other traffic leaves it free
    #[arg(long, value_name = "RATE")]
    ceiling: BitRate,
}

impl Lanes {
    pub(crate) fn plan(&self) -> Result<Plan, NoPlan> {
        Plan::new(self.device.clone(), self.total, self.elephants, self.ceiling)
    }
}
