//! Reads all sources repeatedly. Each step returns the uses since the preceding step, and the
//! sources that have started or stopped failing.
//!
//! A source that fails loses a window of its own resources only. The sampler reads it again at
//! every step. Only changes are reported, so that a database that is down causes one log line and
//! not one every second.

use std::collections::BTreeMap;

use bywash_units::{Time, TimeSpan};

use super::meter::{Meter, Unread};
use super::resource::{Reading, Resource, Use};
use super::source::{Clock, MOST, Source, Taken, Unreadable};

/// All sources, with the last readings of their resources.
pub struct Sampler {
    clock: Clock,
    longest: TimeSpan,
    sources: Vec<MeteredSource>,
}

/// A source, and the meters of its resources.
struct MeteredSource {
    tier: String,
    source: Box<dyn Source>,
    /// The meters by the names of their resources. A resource that has not been read for the
    /// `longest` interval of the sampler is removed. So there are at most a few times [`MOST`]
    /// meters.
    meters: BTreeMap<String, Meter>,
    fails: bool,
}

/// The result of one step of a [`Sampler`].
#[derive(Debug, Default)]
pub struct Step {
    /// The uses of all resources since their preceding readings, in the order of the sources.
    pub uses: Vec<Use>,
    /// The sources that have started or stopped failing.
    pub changes: Vec<Change>,
    /// The resources whose use since the preceding reading is unknown, except at their first
    /// readings. Their windows are left out.
    pub unread: Vec<Left>,
}

/// A change of a source: it has started or stopped failing.
#[derive(Debug)]
pub struct Change {
    /// The number of the source, as returned by [`Sampler::add`].
    pub source: usize,
    /// The name of the source.
    pub name: String,
    /// The reason for the failure, or `None` if the source can be read again.
    pub failed: Option<Unreadable>,
}

/// A resource whose use is unknown for an interval.
#[derive(Clone, Debug, PartialEq)]
pub struct Left {
    /// The number of the source, as returned by [`Sampler::add`].
    pub source: usize,
    /// The name of the resource.
    pub name: String,
    /// The reason why the use is unknown.
    pub why: Unread,
}

impl Sampler {
    /// Creates a sampler without sources. Two readings of a resource that are further apart than
    /// `longest` are a gap. If `longest` is two and a half steps, one reading may be missing.
    pub const fn new(clock: Clock, longest: TimeSpan) -> Self {
        Self { clock, longest, sources: Vec::new() }
    }

    /// Adds a source of a tier. Returns the number of the source, which is the number of sources
    /// before it.
    pub fn add(&mut self, tier: &str, source: impl Source + 'static) -> usize {
        let (tier, source) = (tier.to_owned(), Box::new(source));
        self.sources.push(MeteredSource { tier, source, meters: BTreeMap::new(), fails: false });
        self.sources.len() - 1
    }

    /// Returns the clock that all times of this sampler refer to.
    pub const fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Reads every source once. This call does not wait for the network: an exporter's response is
    /// taken at a later step. Readings that cannot be used are in the returned [`Step`].
    pub fn step(&mut self) -> Step {
        let mut step = Step::default();
        for (number, fed) in self.sources.iter_mut().enumerate() {
            let failed = match fed.source.read(&self.clock) {
                Ok(Some(taken)) => {
                    fed.meter(number, taken, self.longest, &mut step);
                    None
                }
                Ok(None) => continue,
                Err(failed) => Some(failed),
            };
            if fed.fails != failed.is_some() {
                fed.fails = failed.is_some();
                let name = fed.source.name().to_owned();
                step.changes.push(Change { source: number, name, failed });
            }
        }
        step
    }
}

impl MeteredSource {
    fn meter(&mut self, source: usize, taken: Taken, longest: TimeSpan, step: &mut Step) {
        let Taken { at, readings } = taken;
        for reading in readings.into_iter().take(MOST) {
            let meter = self.meters.entry(reading.name.clone());
            let meter = meter.or_insert_with(|| Meter::new(longest));
            match meter.read(at, reading.value, reading.most()) {
                Ok(used) => {
                    let resource = self.resource(reading);
                    let (from, to, used) = (used.from, used.to, used.used);
                    step.uses.push(Use { resource, source, from, to, used });
                }
                Err(Unread::First) => {}
                Err(why) => step.unread.push(Left { source, name: reading.name, why }),
            }
        }
        self.forget(at, longest);
    }

    fn resource(&self, reading: Reading) -> Resource {
        let Reading { name, unit, capacity, value: _ } = reading;
        Resource { tier: self.tier.clone(), name, unit, capacity }
    }

    /// Removes the meters that were not read within `longest` before `now`, such as those of disks
    /// and container interfaces that no longer exist.
    fn forget(&mut self, now: Time, longest: TimeSpan) {
        self.meters.retain(|_, meter| meter.is_read_since(now - longest));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::time::Instant;

    use super::super::resource::Unit;
    use super::*;

    type Reply = Result<Option<Taken>, Unreadable>;

    /// A source that returns prepared results.
    struct ScriptedSource(VecDeque<Reply>);

    impl Source for ScriptedSource {
        fn name(&self) -> &'static str {
            "script"
        }

        fn read(&mut self, _: &Clock) -> Reply {
            self.0.pop_front().expect("no test steps further")
        }
    }

    #[allow(clippy::unnecessary_wraps, reason = "beside those that fail")]
    fn says(second: u64, readings: &[(&str, f64)]) -> Reply {
        let reading = |(name, value): &(&str, f64)| {
            Reading::counter((*name).to_owned(), Unit::Seconds, *value).of(Some(2.0))
        };
        let at = Time::ZERO + TimeSpan::from_secs(second);
        Ok(Some(Taken { at, readings: readings.iter().map(reading).collect() }))
    }

    fn fails() -> Reply {
        Err(Unreadable::NoProcess("named x".to_owned()))
    }

    fn sampler(script: Vec<Vec<Reply>>) -> Sampler {
        let mut sampler = Sampler::new(Clock::since(Instant::now()), TimeSpan::from_secs(2));
        for (number, script) in script.into_iter().enumerate() {
            assert_eq!(sampler.add("db", ScriptedSource(script.into())), number);
        }
        sampler
    }

    #[test]
    fn a_source_that_fails_is_said_once_and_the_rest_goes_on() {
        let bad = vec![fails(), fails(), Ok(None), says(3, &[("b", 1.0)]), says(4, &[("b", 2.0)])];
        let good = (0..5).map(|second| says(second, &[("a", second as f64 / 2.0)])).collect();
        let mut sampler = sampler(vec![bad, good]);
        let steps: Vec<Step> = (0..5).map(|_| sampler.step()).collect();
        let changes = |step: &Step| {
            step.changes.iter().map(|one| (one.source, one.failed.is_some())).collect::<Vec<_>>()
        };
        let reported: Vec<_> = steps.iter().map(changes).collect();
        assert_eq!(reported, [vec![(0, true)], vec![], vec![], vec![(0, false)], vec![]]);
        let counts: Vec<usize> = steps.iter().map(|step| step.uses.len()).collect();
        assert_eq!(counts, [0, 1, 1, 1, 2]);
        let used = &steps[4].uses[0];
        assert_eq!(
            (used.source, &*used.resource.name, used.resource.capacity),
            (0, "b", Some(2.0))
        );
        assert_eq!((used.from.as_secs_f64(), used.to.as_secs_f64(), used.used), (3.0, 4.0, 1.0));
    }

    #[test]
    fn a_resource_that_is_gone_is_forgotten_and_one_that_leaps_is_left_out() {
        let script = vec![
            says(0, &[("a", 0.0), ("gone", 1.0)]),
            says(1, &[("a", 1e9)]),
            says(3, &[("a", 1e9)]),
        ];
        let mut sampler = sampler(vec![script]);
        assert!(sampler.step().unread.is_empty());
        let left = Left { source: 0, name: "a".to_owned(), why: Unread::Leap };
        assert_eq!(sampler.step().unread, [left]);
        assert_eq!(sampler.sources[0].meters.len(), 2);
        assert_eq!(sampler.step().uses.len(), 1);
        assert_eq!(sampler.sources[0].meters.len(), 1);
    }

    #[test]
    fn sources_that_say_the_same_name_are_told_apart() {
        let mut sampler = sampler(vec![
            vec![says(0, &[("a", 0.0)]), says(1, &[("a", 1.0)])],
            vec![says(0, &[("a", 5.0)]), says(1, &[("a", 5.5)])],
        ]);
        sampler.step();
        let used: Vec<(usize, f64)> =
            sampler.step().uses.iter().map(|one| (one.source, one.used)).collect();
        assert_eq!(used, [(0, 1.0), (1, 0.5)]);
    }
}
