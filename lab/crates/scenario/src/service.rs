//! Service times of a class: one distribution, or a mixture of several.
//!
//! In a scenario file the value is a distribution, or a list of distributions with their `share`:
//!
//! ```toml
//! service = [{ share = 0.95, mean = "5ms", shape = "constant" }, { share = 0.05, … }]
//! ```

use bywash_units::TimeSpan;
use serde::Deserialize;

use crate::distribution::{self, Distribution, Stream};

/// The service times of a class as a mixture: pairs of a component's share and its distribution.
#[derive(Clone, Debug, PartialEq)]
pub struct Service(Vec<(f64, Distribution)>);

/// The maximum number of components of a mixture. More components could not be told apart in
/// results.
const MOST: usize = 16;

impl Service {
    /// Draws the service time of one request of the class.
    pub fn draw(&self, stream: &mut Stream) -> TimeSpan {
        let [(_, only)] = &self.0[..] else {
            let mut left = stream.unit();
            let part = self.0.iter().find(|(share, _)| {
                left -= share;
                left < 0.0
            });
            // The shares sum to one except for rounding.
            let (_, distribution) = part.unwrap_or(&self.0[self.0.len() - 1]);
            return distribution.draw(stream);
        };
        only.draw(stream)
    }

    /// Returns the mean service time of a request of the class.
    pub fn mean(&self) -> TimeSpan {
        let seconds =
            |(share, distribution): &(f64, Distribution)| share * distribution.mean().as_secs_f64();
        match &self.0[..] {
            [(_, only)] => only.mean(),
            several => TimeSpan::from_secs_f64(several.iter().map(seconds).sum()),
        }
    }

    /// Returns whether every request ends and takes some time, that is, whether the mean service
    /// time is finite and above zero.
    pub(crate) fn ends(&self) -> bool {
        self.0.iter().all(|(_, distribution)| *distribution != Distribution::Never)
            && self.mean() > TimeSpan::ZERO
    }
}

impl From<Distribution> for Service {
    fn from(distribution: Distribution) -> Self {
        Self(vec![(1.0, distribution)])
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Part {
    share: f64,
    #[serde(default)]
    mean: Option<String>,
    shape: distribution::Shape,
    #[serde(default)]
    cv: Option<f64>,
    #[serde(default)]
    alpha: Option<f64>,
    #[serde(default)]
    least: Option<String>,
    #[serde(default)]
    most: Option<String>,
}

impl Part {
    fn distribution(self) -> Result<(f64, Distribution), String> {
        let Self { share, mean, shape, cv, alpha, least, most } = self;
        let distribution =
            distribution::RawSpec { mean, shape, cv, alpha, least, most }.distribution()?;
        Ok((share, distribution))
    }
}

impl<'de> Deserialize<'de> for Service {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Either)
    }
}

/// A visitor of `serde` that deserialises a service from a table or a list. It reports the errors
/// of the form that the file uses.
struct Either;

impl<'de> serde::de::Visitor<'de> for Either {
    type Value = Service;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a distribution, or a list of distributions with their shares")
    }

    fn visit_map<A: serde::de::MapAccess<'de>>(self, map: A) -> Result<Service, A::Error> {
        Distribution::deserialize(serde::de::value::MapAccessDeserializer::new(map))
            .map(Service::from)
    }

    fn visit_seq<A: serde::de::SeqAccess<'de>>(self, list: A) -> Result<Service, A::Error> {
        use serde::de::Error;
        let parts = Vec::<Part>::deserialize(serde::de::value::SeqAccessDeserializer::new(list))?;
        let parts: Result<Vec<_>, _> = parts.into_iter().map(Part::distribution).collect();
        let parts = parts.map_err(A::Error::custom)?;
        let sum: f64 = parts.iter().map(|(share, _)| share).sum();
        let shares = parts.iter().all(|(share, _)| *share > 0.0) && (sum - 1.0).abs() < 1e-9;
        if !(1..=MOST).contains(&parts.len()) || !shares {
            let why =
                format!("write 1 to {MOST} distributions with shares above 0 that add up to 1");
            return Err(A::Error::custom(why));
        }
        Ok(Service(parts))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Deserialize)]
    struct File {
        service: Service,
    }

    fn read(text: &str) -> Result<Service, String> {
        let file: Result<File, _> = toml::from_str(&format!("service = {text}"));
        file.map(|file| file.service).map_err(|error| error.to_string())
    }

    const MIXED: &str = "[{ share = 0.9, mean = \"15ms\", shape = \"exponential\" }, \
                         { share = 0.1, shape = \"pareto\", alpha = 1.1, least = \"500ms\", most = \"8s\" }]";

    #[test]
    fn a_mixture_has_the_mean_of_what_is_drawn_from_it() {
        let service = read(MIXED).unwrap();
        let mut stream = Stream::new(1, 1, 1);
        let mut sum = 0.0;
        let mut long = 0;
        for _ in 0..200_000 {
            let seconds = service.draw(&mut stream).as_secs_f64();
            assert!(seconds < 8.0 + 1e-6);
            long += u32::from(seconds >= 0.5);
            sum += seconds;
        }
        let mean = service.mean().as_secs_f64();
        assert!((sum / 200_000.0 / mean - 1.0).abs() < 0.02, "{} and {mean}", sum / 200_000.0);
        assert!((f64::from(long) / 20_000.0 - 1.0).abs() < 0.03, "{long}");
    }

    #[test]
    fn mistakes_are_named() {
        for (text, words) in [
            ("[]", "1 to 16 distributions"),
            ("[{ share = 0.5, mean = \"1s\", shape = \"constant\" }]", "add up to 1"),
            ("[{ mean = \"1s\", shape = \"constant\" }]", "missing field `share`"),
            ("{ share = 1.0, mean = \"1s\", shape = \"constant\" }", "unknown field `share`"),
            ("[{ share = 1.0, mean = \"1s\", shape = \"pareto\" }]", "`mean` does not belong"),
            (
                "{ shape = \"pareto\", alpha = 1.1, least = \"2s\", most = \"1s\" }",
                "above 0 and below `most`",
            ),
            ("{ shape = \"pareto\", alpha = 0, least = \"1s\", most = \"2s\" }", "`alpha`"),
            ("3", "a distribution, or a list of distributions"),
        ] {
            let error = read(text).expect_err(text);
            assert!(error.contains(words), "{words:?} is not in {error}");
        }
    }
}
