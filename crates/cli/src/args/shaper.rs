//! The command line of `bywash shaper`: the only instructions that the privileged program gets.

use bywash_shaper::{BitRate, Device, NoPlan, Plan};
use clap::Subcommand;

const RUN_EXAMPLES: &str = "\
Examples:
  bywash shaper run --device eth0 --total 950mbit --elephants 50mbit --ceiling 400mbit

--device names the device by which answers leave this machine. Set --total a little below the rate
of the line, so that the queue forms on this machine and the kernel can choose from it. Elephants
always get their own rate. They may use more, up to their ceiling, while other traffic leaves it
free. All other traffic may use the whole total, and goes first.

A gateway on this machine finds the lanes by itself. It needs CAP_NET_RAW to use them (before Linux
5.17: CAP_NET_ADMIN). Without that capability it limits elephants by buckets.

If another program has installed a queueing discipline on the device, the command fails and leaves
the discipline alone. The command replaces a discipline that the kernel has chosen by itself,
which returns when the command ends by SIGTERM or Ctrl-C. In between, a device with several
hardware queues has only one. If the device vanishes, or if another program changes the lanes, the
command removes the rest and exits with code 1. It needs CAP_NET_ADMIN and no other right.";

/// The actions on a network device.
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
