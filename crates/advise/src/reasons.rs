//! Explains the proposed limit, one sentence per line, for the written configuration and for the
//! terminal.

use crate::limit::{
    By, Capacity, Limit, MAX_ABANDONED_RATIO, OVERLOAD_FACTOR, SLOTS_PER_CORE, Shows,
};

/// The minimum difference between two mixes of pages that the reasons mention, as a fraction of the
/// pages.
const MIN_MIX_DIFFERENCE: f64 = 0.3;
/// The minimum number of abandoned pages per answered page that the reasons mention.
const MIN_DEPARTURES: f64 = 0.05;
/// The minimum ratio of the mean service times of two groups of pages that may be several
/// applications.
const MIN_GROUP_RATIO: f64 = 10.0;

impl Limit {
    /// Returns the reasons for the limit as sentences, in the order of the derivation.
    pub fn reasons(&self) -> Vec<String> {
        let mut lines = vec![self.shown()];
        if let Some(found) = &self.capacity {
            measured(found, self.shows, &mut lines);
        }
        let named = |what: &str, flag: &str, of: Option<u32>| match of {
            Some(of) => format!("{what}: {of}"),
            None => format!("{what}: not given ({flag})"),
        };
        lines.push(format!(
            "{}. {}.",
            named("Cores", "--cores", self.cores),
            named("Workers", "--workers", self.workers)
        ));
        lines.push(self.by.decided());
        lines
    }

    fn shown(&self) -> String {
        let minutes = self.minutes;
        match self.shows {
            Shows::Knee => "The log has calm and overloaded minutes, so it shows the knee of \
                            throughput."
                .into(),
            Shows::NeverFull => "The log has no overloaded minute with the highest throughput, so \
                                 it does not show how much the application can do."
                .into(),
            Shows::Unseen => "The log has calm and overloaded minutes, but many pages of the \
                              overloaded ones are not in the calm ones. So their service time is \
                              unknown."
                .into(),
            Shows::Overload => format!(
                "The log shows only overload: over {minutes} minutes concurrency rises and \
                 throughput does not. Durations contain waiting, so the service time is unknown."
            ),
            Shows::NoCalm => format!(
                "Of {minutes} whole minutes, too few are calm, with at most half of the highest \
                 throughput and little latency. Waiting therefore cannot be told from work, and \
                 the service time is unknown."
            ),
            Shows::TooLittle => {
                "The log has too few answered pages in whole minutes to measure service time and \
                 throughput."
                    .into()
            }
            Shows::NoDurations => {
                "The log has no usable durations, so nothing can be measured.".into()
            }
        }
    }
}

impl By {
    /// Returns a sentence that derives the limit from this fact.
    pub(crate) fn decided(self) -> String {
        match self {
            Self::Knee => "Decided by the knee: the limit is the knee and an eighth more.".into(),
            Self::Workers => {
                "Decided by workers: the application cannot work on more at once.".into()
            }
            Self::Cores => format!(
                "Decided by cores: {SLOTS_PER_CORE} for each, because pages also wait for \
                 databases."
            ),
            Self::Load => "Decided by the highest load that the application has carried: that \
                           load and two of its square roots. This is only a start: policy = \
                           \"slope\" finds the limit."
                .into(),
            Self::Nothing => "The log cannot decide. This is only a start: policy = \"slope\" \
                              finds the limit. --workers or --cores would give a number."
                .into(),
        }
    }
}

fn measured(found: &Capacity, shows: Shows, lines: &mut Vec<String>) {
    lines.push(format!(
        "Calm minutes: {} with {} pages. Service time S there: {}.",
        found.calm,
        found.pages,
        time(found.service)
    ));
    let law = match shows {
        Shows::Knee => "Knee",
        _ => "Concurrency",
    };
    let counted = if found.left >= MIN_DEPARTURES {
        format!(
            ", including pages that clients left ({:.0} %, of which up to {:.0} % count)",
            100.0 * found.left,
            100.0 * MAX_ABANDONED_RATIO
        )
    } else {
        String::new()
    };
    lines.push(format!(
        "Highest throughput X: {:.1} pages/s, of pages that take {} in calm minutes. {law} X*S: \
         {:.1}{counted}.",
        found.throughput,
        time(found.demand),
        found.knee
    ));
    if found.overloaded > 0 {
        lines.push(format!(
            "Overloaded minutes (latency or concurrency at least {OVERLOAD_FACTOR:.0} times what \
             X*S needs): {}. Only their throughput counts.",
            found.overloaded
        ));
    }
    if found.mix > MIN_MIX_DIFFERENCE {
        lines.push(format!(
            "In the busiest minutes clients asked for other pages than in the calm ones ({:.0} % \
             differ). Each group of pages counts with its own service time.",
            100.0 * found.mix
        ));
    }
    let [least, most] = found.services;
    if most >= MIN_GROUP_RATIO * least {
        lines.push(format!(
            "Parts of the site take from {} to {} in calm minutes. If these are several \
             applications, run advise on the log of each: a limit belongs to one application.",
            time(least),
            time(most)
        ));
    }
}

fn time(seconds: f64) -> String {
    if seconds < 1.0 { format!("{:.1} ms", 1e3 * seconds) } else { format!("{seconds:.2} s") }
}
