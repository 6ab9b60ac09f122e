//! Laws of chance: how long a service, a pause or a patience lasts.

use bywash_units::Span;
use rand_core::Rng;
use rand_pcg::Pcg64Mcg;
use serde::Deserialize;

/// A stream of random numbers, the same on every machine for the same seed.
#[derive(Clone, Debug)]
pub struct Stream(Pcg64Mcg);

impl Stream {
    /// The stream for `purpose` of the `index`-th thing in a run of `seed`.
    ///
    /// Streams of different purposes or indices are independent, so that one visitor's second
    /// retry does not change what the next visitor does.
    pub fn new(seed: u64, purpose: u64, index: u64) -> Self {
        let key = mix(mix(mix(seed) ^ purpose) ^ index);
        // Both halves must differ between streams: the generator's output is a rotation of their
        // exclusive-or, and streams that share the low half are not evenly distributed.
        let halves = [1, 2].map(|half| u128::from(mix(key.wrapping_add(half))));
        Self(Pcg64Mcg::new((halves[0] << 64) | halves[1]))
    }

    /// Evenly between 0 (never 0 itself) and 1.
    pub fn unit(&mut self) -> f64 {
        ((self.0.next_u64() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }
}

/// One step of `SplitMix64`: every bit of the input moves about half of the output.
fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    value ^ (value >> 31)
}

/// How a length of time is distributed. In the file: `{ mean = "250ms", shape = "exponential" }`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Law {
    /// Always the same.
    Constant(Span),
    /// Memoryless, with this mean.
    Exponential(Span),
    /// Skewed to the right, with this mean and this ratio of standard deviation to mean.
    Lognormal {
        /// The mean.
        mean: Span,
        /// Standard deviation divided by mean.
        cv: f64,
    },
    /// For ever: a client without this limit.
    Never,
}

impl Law {
    /// Draws one length of time.
    pub fn draw(&self, stream: &mut Stream) -> Span {
        match *self {
            Self::Constant(span) => span,
            Self::Exponential(mean) => mean.scale(-libm::log(stream.unit())),
            Self::Lognormal { mean, cv } => {
                let variance = libm::log1p(cv * cv);
                let normal = gaussian(stream);
                mean.scale(libm::exp(libm::sqrt(variance) * normal - variance / 2.0))
            }
            Self::Never => Span::MAX,
        }
    }

    /// The mean length.
    pub fn mean(&self) -> Span {
        match *self {
            Self::Constant(mean) | Self::Exponential(mean) | Self::Lognormal { mean, .. } => mean,
            Self::Never => Span::MAX,
        }
    }

    /// The length that half of all draws exceed.
    pub fn median(&self) -> Span {
        match *self {
            Self::Constant(span) => span,
            Self::Exponential(mean) => mean.scale(core::f64::consts::LN_2),
            Self::Lognormal { mean, cv } => mean.scale(1.0 / libm::sqrt(1.0 + cv * cv)),
            Self::Never => Span::MAX,
        }
    }
}

/// A standard normal draw by Box and Muller's method.
fn gaussian(stream: &mut Stream) -> f64 {
    let radius = libm::sqrt(-2.0 * libm::log(stream.unit()));
    radius * libm::cos(core::f64::consts::TAU * stream.unit())
}

/// How a law stands in the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    #[serde(default)]
    mean: Option<String>,
    shape: Shape,
    #[serde(default)]
    cv: Option<f64>,
}

#[derive(Deserialize, PartialEq)]
#[serde(rename_all = "lowercase")]
enum Shape {
    Constant,
    Exponential,
    Lognormal,
    None,
}

impl<'de> Deserialize<'de> for Law {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        use serde::de::Error;
        let written = Written::deserialize(from)?;
        if written.shape == Shape::None {
            return Ok(Self::Never);
        }
        if written.cv.is_some() && written.shape != Shape::Lognormal {
            return Err(D::Error::custom("`cv` belongs to shape = \"lognormal\" only"));
        }
        let mean = written.mean.ok_or_else(|| D::Error::missing_field("mean"))?;
        let mean = mean.parse::<Span>().map_err(D::Error::custom)?;
        match written.shape {
            Shape::Constant => Ok(Self::Constant(mean)),
            Shape::Exponential => Ok(Self::Exponential(mean)),
            Shape::Lognormal => match written.cv {
                Some(cv) if cv > 0.0 && cv.is_finite() => Ok(Self::Lognormal { mean, cv }),
                Some(_) => Err(D::Error::custom("`cv` must be above 0")),
                None => Err(D::Error::missing_field("cv")),
            },
            Shape::None => Ok(Self::Never),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(law: Law) -> (f64, f64) {
        let mut stream = Stream::new(7, 1, 1);
        let mut draws: Vec<f64> =
            (0..200_000).map(|_| law.draw(&mut stream).as_secs_f64()).collect();
        draws.sort_by(f64::total_cmp);
        (draws.iter().sum::<f64>() / draws.len() as f64, draws[draws.len() / 2])
    }

    #[test]
    fn draws_have_the_mean_and_the_median_of_their_law() {
        let mean = Span::from_secs(2);
        for law in [Law::Constant(mean), Law::Exponential(mean), Law::Lognormal { mean, cv: 1.5 }] {
            let (average, middle) = sample(law);
            assert!((average - 2.0).abs() < 0.03, "{law:?}: mean {average}");
            assert!((middle / law.median().as_secs_f64() - 1.0).abs() < 0.02, "{law:?}: {middle}");
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
            // Standard deviation of the mean: 0.2887/√n = 0.0009.
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
