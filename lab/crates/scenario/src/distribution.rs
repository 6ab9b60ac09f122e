//! Probability distributions of durations, such as service times, pauses and patience.

use bywash_units::TimeSpan;
use rand_core::Rng;
use rand_pcg::Pcg64Mcg;
use serde::Deserialize;

/// A stream of random numbers. The same seed gives the same numbers on every machine.
#[derive(Clone, Debug)]
pub struct Stream(Pcg64Mcg);

impl Stream {
    /// Creates the random stream for one `purpose` of the `index`-th object in a run with `seed`.
    ///
    /// Streams of different purposes or indices are independent. If one visitor draws more numbers,
    /// for example for a second retry, the next visitor therefore does not change.
    pub fn new(seed: u64, purpose: u64, index: u64) -> Self {
        let key = mix(mix(mix(seed) ^ purpose) ^ index);
        // Both halves must differ between streams. The generator's output is a rotation of the
        // exclusive-or of the halves, and streams that share the low half are not evenly
        // distributed.
        let halves = [1, 2].map(|half| u128::from(mix(key.wrapping_add(half))));
        Self(Pcg64Mcg::new((halves[0] << 64) | halves[1]))
    }

    /// Returns a random number that is uniform between 0 and 1, and never 0 itself.
    pub fn unit(&mut self) -> f64 {
        ((self.0.next_u64() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }
}

/// Applies one step of `SplitMix64`. A change of one input bit changes about half of the output
/// bits.
fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ (value >> 31)
}

/// The distribution of a duration. In a scenario file: `{ mean = "250ms", shape = "exponential" }`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Distribution {
    /// Always the given duration.
    Constant(TimeSpan),
    /// Exponential (memoryless), with the given mean.
    Exponential(TimeSpan),
    /// Lognormal, which is skewed to the right, with this mean and coefficient of variation.
    Lognormal {
        /// The mean duration.
        mean: TimeSpan,
        /// The coefficient of variation: the standard deviation divided by the mean.
        cv: f64,
    },
    /// Truncated Pareto: a heavy tail between `least` and `most`. Apart from the truncation, the
    /// probability of exceeding *t* is proportional to t^−α.
    Pareto {
        /// The tail index α. A lower index means a heavier tail.
        alpha: f64,
        /// The shortest duration.
        least: TimeSpan,
        /// The longest duration.
        most: TimeSpan,
    },
    /// Uniform between `least` and `most`.
    Uniform {
        /// The shortest duration.
        least: TimeSpan,
        /// The longest duration.
        most: TimeSpan,
    },
    /// An infinite duration, for example for a client whose patience never ends.
    Never,
}

impl Distribution {
    /// Draws a random duration.
    pub fn draw(&self, stream: &mut Stream) -> TimeSpan {
        match *self {
            Self::Constant(span) => span,
            Self::Exponential(mean) => mean.scale(-libm::log(stream.unit())),
            Self::Lognormal { mean, cv } => {
                let variance = libm::log1p(cv * cv);
                let normal = gaussian(stream);
                mean.scale(libm::exp(libm::sqrt(variance) * normal - variance / 2.0))
            }
            Self::Pareto { alpha, least, most } => pareto(alpha, least, most, stream.unit()),
            Self::Uniform { least, most } => between(least, most, stream.unit()),
            Self::Never => TimeSpan::MAX,
        }
    }

    /// Returns the mean duration; for [`Self::Never`], the longest possible one.
    pub fn mean(&self) -> TimeSpan {
        match *self {
            Self::Pareto { alpha, least, most } => {
                let (low, high) = (least.as_secs_f64(), most.as_secs_f64());
                let kept = 1.0 - libm::pow(low / high, alpha);
                let mean = if (alpha - 1.0).abs() < 1e-9 {
                    low * libm::log(high / low) / kept
                } else {
                    let part = 1.0 - libm::pow(low / high, alpha - 1.0);
                    low * alpha / (alpha - 1.0) * part / kept
                };
                TimeSpan::from_secs_f64(mean)
            }
            Self::Constant(mean) | Self::Exponential(mean) | Self::Lognormal { mean, .. } => mean,
            Self::Uniform { least, most } => between(least, most, 0.5),
            Self::Never => TimeSpan::MAX,
        }
    }

    /// Returns the median duration; for [`Self::Never`], the longest possible one.
    pub fn median(&self) -> TimeSpan {
        match *self {
            Self::Constant(span) => span,
            Self::Exponential(mean) => mean.scale(core::f64::consts::LN_2),
            Self::Lognormal { mean, cv } => mean.scale(1.0 / libm::sqrt(1.0 + cv * cv)),
            Self::Pareto { alpha, least, most } => pareto(alpha, least, most, 0.5),
            Self::Uniform { least, most } => between(least, most, 0.5),
            Self::Never => TimeSpan::MAX,
        }
    }
}

fn between(least: TimeSpan, most: TimeSpan, u: f64) -> TimeSpan {
    least + TimeSpan::from_nanos(most.as_nanos() - least.as_nanos()).scale(u)
}

/// Returns the `u`-quantile of a truncated Pareto distribution, with `u` from 0 to 1.
fn pareto(alpha: f64, least: TimeSpan, most: TimeSpan, u: f64) -> TimeSpan {
    let kept = 1.0 - libm::pow(least.as_secs_f64() / most.as_secs_f64(), alpha);
    least.scale(libm::pow(1.0 - u * kept, -1.0 / alpha))
}

/// Draws a standard normal number with the Box–Muller method.
fn gaussian(stream: &mut Stream) -> f64 {
    let radius = libm::sqrt(-2.0 * libm::log(stream.unit()));
    radius * libm::cos(core::f64::consts::TAU * stream.unit())
}

/// The form of a distribution in a scenario file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawSpec {
    #[serde(default)]
    pub(crate) mean: Option<String>,
    pub(crate) shape: Shape,
    #[serde(default)]
    pub(crate) cv: Option<f64>,
    #[serde(default)]
    pub(crate) alpha: Option<f64>,
    #[serde(default)]
    pub(crate) least: Option<String>,
    #[serde(default)]
    pub(crate) most: Option<String>,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Shape {
    Constant,
    Exponential,
    Lognormal,
    Pareto,
    Uniform,
    None,
}

impl Shape {
    const fn name(self) -> &'static str {
        match self {
            Self::Constant => "constant",
            Self::Exponential => "exponential",
            Self::Lognormal => "lognormal",
            Self::Pareto => "pareto",
            Self::Uniform => "uniform",
            Self::None => "none",
        }
    }
}

impl RawSpec {
    /// Returns the distribution. Fails unless the keys are exactly those that its shape needs.
    pub(crate) fn distribution(self) -> Result<Distribution, String> {
        let shape = self.shape;
        let needs: &[&str] = match shape {
            Shape::Constant | Shape::Exponential => &["mean"],
            Shape::Lognormal => &["mean", "cv"],
            Shape::Pareto => &["alpha", "least", "most"],
            Shape::Uniform => &["least", "most"],
            Shape::None => &[],
        };
        let given = [
            ("mean", self.mean.is_some()),
            ("cv", self.cv.is_some()),
            ("alpha", self.alpha.is_some()),
            ("least", self.least.is_some()),
            ("most", self.most.is_some()),
        ];
        for (key, given) in given {
            match (given, needs.contains(&key)) {
                (true, false) => {
                    return Err(format!("`{key}` does not belong to shape = \"{}\"", shape.name()));
                }
                (false, true) => return Err(format!("missing field `{key}`")),
                _ => {}
            }
        }
        let above_0 = |key: &str, number: Option<f64>| {
            let number = number.filter(|number| *number > 0.0 && number.is_finite());
            number.ok_or_else(|| format!("`{key}` must be above 0"))
        };
        let span = |text: Option<String>| {
            let text = text.unwrap_or_default();
            text.parse::<TimeSpan>().map_err(|error| error.to_string())
        };
        Ok(match shape {
            Shape::Constant => Distribution::Constant(span(self.mean)?),
            Shape::Exponential => Distribution::Exponential(span(self.mean)?),
            Shape::Lognormal => {
                Distribution::Lognormal { mean: span(self.mean)?, cv: above_0("cv", self.cv)? }
            }
            Shape::Pareto => {
                let (least, most) = (span(self.least)?, span(self.most)?);
                if least == TimeSpan::ZERO || least >= most {
                    return Err(
                        "a Pareto distribution needs a `least` above 0 and below `most`".into()
                    );
                }
                Distribution::Pareto { alpha: above_0("alpha", self.alpha)?, least, most }
            }
            Shape::Uniform => {
                let (least, most) = (span(self.least)?, span(self.most)?);
                if least >= most {
                    return Err("a uniform distribution needs a `least` below `most`".into());
                }
                Distribution::Uniform { least, most }
            }
            Shape::None => Distribution::Never,
        })
    }
}

impl<'de> Deserialize<'de> for Distribution {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        RawSpec::deserialize(from)?.distribution().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(distribution: Distribution) -> (f64, f64) {
        let mut stream = Stream::new(7, 1, 1);
        let mut draws: Vec<f64> =
            (0..200_000).map(|_| distribution.draw(&mut stream).as_secs_f64()).collect();
        draws.sort_by(f64::total_cmp);
        (draws.iter().sum::<f64>() / draws.len() as f64, draws[draws.len() / 2])
    }

    #[test]
    fn draws_have_the_mean_and_the_median_of_their_law() {
        let mean = TimeSpan::from_secs(2);
        let uniform =
            Distribution::Uniform { least: TimeSpan::from_secs(1), most: TimeSpan::from_secs(3) };
        let lognormal = Distribution::Lognormal { mean, cv: 1.5 };
        for distribution in
            [Distribution::Constant(mean), Distribution::Exponential(mean), lognormal, uniform]
        {
            let (average, middle) = sample(distribution);
            assert!((average - 2.0).abs() < 0.03, "{distribution:?}: mean {average}");
            assert!(
                (middle / distribution.median().as_secs_f64() - 1.0).abs() < 0.02,
                "{distribution:?}: {middle}"
            );
        }
    }

    #[test]
    fn first_and_second_draws_of_many_streams_are_even() {
        let n = 100_000;
        for seed in 1..=5 {
            let mut sums = [0.0; 2];
            for index in 0..n {
                let mut stream = Stream::new(seed, 1, index);
                for sum in &mut sums {
                    *sum += stream.unit();
                }
            }
            // The standard error of the mean over `n` draws is 0.2887/√n = 0.0009.
            for mean in sums.map(|sum| sum / n as f64) {
                assert!((mean - 0.5).abs() < 0.004, "seed {seed}: mean {mean}");
            }
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_stream_and_another_index_another() {
        let take = |index| {
            let mut stream = Stream::new(1, 2, index);
            [stream.unit(), stream.unit()].map(f64::to_bits)
        };
        assert_eq!(take(3), take(3));
        assert_ne!(take(3), take(4));
    }
}
