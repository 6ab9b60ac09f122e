//! The rounds of one proxy in one case, and its cost relative to HAProxy's.

use super::Case;
use super::round::Sample;
use bywash_harness::peer::PeerKind;
use bywash_harness::stats::Spread;
use serde_json::{Value, json};

/// The samples of one proxy in one case, one for each round.
#[derive(Debug)]
pub struct Series {
    /// The kind of the proxy.
    pub kind: PeerKind,
    /// The samples in the order of the rounds. All proxies of a case have the same rounds.
    pub samples: Vec<Sample>,
}

/// CPU time per request relative to HAProxy's in the same run. It is computed in two ways, whose
/// results should agree.
#[derive(Debug, Clone, Copy)]
pub struct Ratio {
    /// Median of the proxy's samples divided by the median of HAProxy's samples.
    pub of_medians: f64,
    /// Spread of the ratios, with one ratio for each round. A disturbance that lasts for a whole
    /// round cancels out.
    pub per_round: Spread,
}

impl Series {
    /// Headers of the columns of [`Series::cells`]. The first two columns are texts, the others
    /// numbers.
    pub const HEAD: [&str; 9] = [
        "case",
        "proxy",
        "CPU µs/request",
        "user",
        "system",
        "requests/s",
        "busy",
        "× HAProxy",
        "per round",
    ];

    /// Returns the spread of `quantity` over the rounds; `None` without rounds.
    pub fn spread(&self, quantity: impl Fn(&Sample) -> f64) -> Option<Spread> {
        Spread::of(self.samples.iter().map(quantity))
    }

    /// Returns the CPU time per request relative to `haproxy`; `None` without rounds or without
    /// HAProxy.
    pub fn ratio(&self, haproxy: Option<&Self>) -> Option<Ratio> {
        let haproxy = haproxy?;
        let medians = [self, haproxy].map(|series| series.spread(Sample::cpu_us));
        let [Some(own), Some(peer)] = medians else { return None };
        let rounds = self.samples.iter().zip(&haproxy.samples);
        let per_round = Spread::of(rounds.map(|(own, peer)| own.cpu_us() / peer.cpu_us()))?;
        Some(Ratio { of_medians: own.median / peer.median, per_round })
    }

    /// Formats the row of the table for this proxy.
    pub fn cells(&self, case: Case, haproxy: Option<&Self>) -> Vec<String> {
        let show = |decimals: usize, quantity: fn(&Sample) -> f64| {
            self.spread(quantity).map_or("-".into(), |spread| spread.show(decimals))
        };
        let ratio = self.ratio(haproxy);
        vec![
            case.to_string(),
            self.kind.to_string(),
            show(2, Sample::cpu_us),
            show(2, |sample| sample.user_us),
            show(2, |sample| sample.system_us),
            show(0, Sample::rate),
            show(2, Sample::busy),
            ratio.map_or("-".into(), |ratio| format!("{:.3}", ratio.of_medians)),
            ratio.map_or("-".into(), |ratio| ratio.per_round.show(3)),
        ]
    }

    /// Returns the series as JSON for a report.
    pub fn json(&self, haproxy: Option<&Self>) -> Value {
        let ratio = self.ratio(haproxy);
        let rounds: Vec<Value> = self.samples.iter().map(sample_json).collect();
        json!({
            "proxy": self.kind.to_string(),
            "cpu_us": self.spread(Sample::cpu_us).map(|spread| spread.json()),
            "user_us": self.spread(|sample| sample.user_us).map(|spread| spread.json()),
            "system_us": self.spread(|sample| sample.system_us).map(|spread| spread.json()),
            "requests_per_s": self.spread(Sample::rate).map(|spread| spread.json()),
            "busy": self.spread(Sample::busy).map(|spread| spread.json()),
            "ratio_of_medians": ratio.map(|ratio| ratio.of_medians),
            "ratio_per_round": ratio.map(|ratio| ratio.per_round.json()),
            "rounds": rounds,
        })
    }
}

fn sample_json(sample: &Sample) -> Value {
    json!({
        "requests": sample.requests, "seconds": sample.seconds, "user_us": sample.user_us,
        "system_us": sample.system_us, "stolen": sample.stolen, "others": sample.others, "reopened": sample.reopened,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(kind: PeerKind, cpu_us: &[f64]) -> Series {
        let sample = |&us: &f64| Sample {
            requests: 1000,
            seconds: 1.0,
            user_us: us / 2.0,
            system_us: us / 2.0,
            stolen: 0.0,
            others: 0.0,
            reopened: 0,
        };
        Series { kind, samples: cpu_us.iter().map(sample).collect() }
    }

    #[test]
    fn a_disturbance_of_one_round_leaves_the_ratio_per_round_alone() {
        let haproxy = series(PeerKind::Haproxy, &[10.0, 20.0, 10.0]);
        let own = series(PeerKind::Bywash, &[11.0, 22.0, 22.0]);
        let ratio = own.ratio(Some(&haproxy)).unwrap();
        assert!((ratio.of_medians - 2.2).abs() < 1e-9);
        assert!((ratio.per_round.median - 1.1).abs() < 1e-9);
    }

    #[test]
    fn without_haproxy_there_is_a_row_but_no_ratio() {
        let cells = series(PeerKind::Bywash, &[10.0]).cells(Case::Proxied, None);
        assert_eq!(cells.len(), Series::HEAD.len());
        assert_eq!(cells[2], "10.00 [10.00–10.00]");
        assert_eq!(cells[7..], ["-", "-"]);
    }
}
