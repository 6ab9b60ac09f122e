//! An estimate of how far the figures of a run can be trusted.

use super::round::Sample;
use super::series::Series;
use std::fmt;

/// The worst disturbances in all rounds of a run.
#[derive(Debug, Default)]
pub struct Noise {
    widest: f64,
    stolen: f64,
    others: f64,
    idlest: Option<f64>,
}

impl Noise {
    /// The range of the results of rounds, divided by their median, above which the rounds count as
    /// widely spread.
    const WIDE: f64 = 0.1;
    /// The fraction of its core below which a proxy counts as waiting for the load generator.
    const IDLE: f64 = 0.95;

    /// Includes the disturbances of all rounds of `series` in this estimate.
    pub fn add(&mut self, series: &Series) {
        let cpu = series.spread(Sample::cpu_us);
        self.widest = cpu.map_or(self.widest, |spread| self.widest.max(spread.width()));
        for sample in &series.samples {
            self.stolen = self.stolen.max(sample.stolen);
            self.others = self.others.max(sample.others);
            self.idlest = Some(self.idlest.map_or(sample.busy(), |busy| busy.min(sample.busy())));
        }
    }
}

impl fmt::Display for Noise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [widest, stolen, others] = [self.widest, self.stolen, self.others].map(|x| x * 100.0);
        write!(
            f,
            "noise: CPU ranges are up to {widest:.0} % of their median wide; the hypervisor took \
             up to {stolen:.1} % of the\nmachine, and other programs up to {others:.1} %."
        )?;
        if self.widest > Self::WIDE {
            write!(
                f,
                "\nThe ranges are wide: compare [min–max] and the ratio per round, not the medians."
            )?;
        }
        if self.idlest.is_some_and(|busy| busy < Self::IDLE) {
            write!(
                f,
                "\nWhere busy is below {}, the load generator was the bottleneck, not the proxy.",
                Self::IDLE
            )?;
        }
        Ok(())
    }
}
