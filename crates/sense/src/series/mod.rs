//! Measures the use of each resource between two points in time. The detection of expensive
//! requests compares requests with these series [paper 5.1].
//!
//! A [`Source`] is read as a whole and returns [`Reading`]s: counters since some start, or the
//! amount in use now. A [`Meter`] computes from two readings what was used between them, or the
//! reason why that is unknown. Windows that were not read are left out and never guessed. A
//! [`Sampler`] reads all sources in steps and yields [`Use`]s. [`Windows`] aligns the uses of
//! several sources to the same windows.
//!
//! | source | reads | resources |
//! |---|---|---|
//! | [`Processors`] | `/proc/stat` | `host/cpu` |
//! | [`Disks`] | `/proc/diskstats` | `host/disk/NAME` |
//! | [`Network`] | `/proc/net/dev` | `host/net/NAME/sent`, `/received` |
//! | [`Processes`] | `/proc/PID/stat` | `process/NAME/cpu` |
//! | [`Group`] | control groups, both versions | `cgroup/NAME/cpu`, `/read`, `/written` |
//! | [`Stalls`] | pressure stall information | `host/pressure/…`, `cgroup/NAME/pressure/…` |
//! | [`Exporter`] | exporters of Prometheus | those of a host, and `database/…` |
//! | [`Sadf`] | files of `sadf -j` | `host/cpu`, `host/disk/NAME`, `host/net/NAME/…` |
//!
//! Sources may be wrong or hostile, exporters in particular. So their size and time are bounded,
//! names are short and printable, and values that are impossible are not readings.
//!
//! ```
//! use bywash_sense::series::{Clock, Processors, Root, Sampler};
//! use bywash_units::TimeSpan;
//!
//! let clock = Clock::since(std::time::Instant::now());
//! let mut sampler = Sampler::new(clock, TimeSpan::from_millis(2500));
//! sampler.add("web", Processors::new(Root::host()));
//! assert!(sampler.step().uses.is_empty(), "the first has nothing to compare with");
//! let step = sampler.step();
//! for one in step.uses {
//!     println!(
//!         "{} of {}: {} s of {:?}",
//!         one.resource.name, one.resource.tier, one.used, one.resource.capacity
//!     );
//! }
//! ```

mod disks;
mod exporter;
mod exposition;
mod groups;
mod meter;
mod metrics;
mod network;
mod processes;
mod processors;
mod resource;
mod sadf;
mod sampler;
mod source;
mod stalls;
mod windows;

pub use disks::Disks;
pub use exporter::{Exporter, Failed, Refused};
pub use exposition::Sample;
pub use groups::Group;
pub use meter::{Meter, Unread, Used};
pub use network::Network;
pub use processes::Processes;
pub(crate) use processes::parse as parse_stat;
pub use processors::Processors;
pub use resource::{Reading, Resource, Unit, Use, Value};
pub use sadf::{NoSadf, RecordCounts, Sadf};
pub use sampler::{Change, Left, Sampler, Step};
pub use source::{Clock, MOST, Root, Source, Taken, Unreadable};
pub use stalls::Stalls;
pub use windows::{Window, Windows};
