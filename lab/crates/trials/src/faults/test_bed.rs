//! Runs one fault in the middle of a steady load. Causes the fault, ends it, and records the values
//! that are specific to this kind of fault.

use super::fault::{Cause, Fault};
use bywash_harness::confine::{Confinement, OwnedGroup};
use bywash_harness::machine::PROXY_CORE;
use bywash_harness::open_loop::{self, Answer, End, Load, Phase, Reuse};
use bywash_harness::peer::{PeerKind, Programs, Setup, Task};
use bywash_harness::proxy::{Plan, Proxy};
use bywash_harness::sys::Signal;
use bywash_harness::upstream::{Behaviour, Upstream};
use bywash_peer::Scratch;
use std::fs;
use std::io::{self, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The conditions of every run, as text for the report.
pub(super) const METHOD: &str = "100 requests/s, half of them on new connections; 16 slots; the \
                                 upstream takes 10 ms per request; the timeout until the \
                                 first\nbyte of an answer is 1 s; clients wait 5 s. The fault \
                                 begins in the 4th second and lasts 3 s (gateway stopped: 10 s; \
                                 clock\nand disk: 5 s). 256 MiB: 4,000 requests/s for 5 s, of \
                                 which 400/s can be served; clients wait 2 s.";

/// Service time of the upstream while there is no fault.
pub(super) const SERVICE: Duration = Duration::from_millis(10);
const RATE: f64 = 100.0;
const LIMIT: u32 = 16;
const PATIENCE: Duration = Duration::from_secs(5);
/// Length of normal load before the fault. Its first second is not counted.
const BEFORE: Duration = Duration::from_secs(4);
const UNCOUNTED: Duration = Duration::from_secs(1);
/// Length of normal load after the fault.
const AFTER: Duration = Duration::from_secs(6);

/// Load in the memory fault: requests per second, service time, and patience of the clients.
const CROWD: (f64, Duration, Duration) =
    (4000.0, Duration::from_millis(40), Duration::from_secs(2));
const MEMORY: u64 = 256 << 20;
const DISK_KIB: u32 = 1024;

/// The observations of one fault.
pub(super) struct Seen {
    /// The outcomes of all requests of the run.
    pub(super) answers: Vec<Answer>,
    /// The counted time before the fault, on the load's clock.
    pub(super) calm: Range<Duration>,
    /// The time of the fault, on the load's clock.
    pub(super) period: Range<Duration>,
    /// The gateway after the run, without load.
    pub(super) proxy: Proxy,
    /// Text of a result that is specific to the fault; empty for most faults.
    pub(super) note: String,
    /// The reason why the result in `note` is wrong; `None` if it is right.
    pub(super) broken: Option<String>,
}

/// The parts of a run with one fault.
struct TestBed {
    cause: Cause,
    length: Duration,
    upstream: Upstream,
    proxy: Proxy,
    folder: Scratch,
    group: Option<OwnedGroup>,
}

/// Runs one fault and returns the observations. Fails if the fault cannot be caused on this
/// machine.
pub(super) fn run(fault: Fault, programs: &Programs) -> io::Result<Seen> {
    let length = fault.length();
    let test_bed = TestBed::start(fault.cause(), length, programs)?;
    let load = test_bed.load();
    let running = load.start();
    running.wait_until(BEFORE);
    test_bed.begin()?;
    let begun = running.elapsed();
    running.wait_until(BEFORE + length / 2);
    test_bed.at_midpoint()?;
    running.wait_until(BEFORE + length);
    let period = begun..running.elapsed();
    test_bed.end()?;
    let answers = running.finish()?;
    let (note, broken) = test_bed.note(&answers);
    Ok(Seen { answers, calm: UNCOUNTED..BEFORE, period, proxy: test_bed.proxy, note, broken })
}

impl TestBed {
    fn start(cause: Cause, length: Duration, programs: &Programs) -> io::Result<Self> {
        let folder = Scratch::new("fault")?;
        let upstream = Upstream::start()?;
        let mut plan =
            Plan::new(PeerKind::Bywash, Task::Forward { limit: LIMIT }, upstream.port(), programs);
        plan.core = Some(PROXY_CORE);
        plan.setup = Setup { response_timeout: 1, connections: 10_000, ..Setup::default() };
        let mut group = None;
        match cause {
            Cause::Upstream(_) | Cause::Stop => {}
            Cause::Clock => plan.confinement.environment = clock(folder.path())?,
            Cause::Disk => {
                plan.confinement.disk = Some((folder.path().to_owned(), DISK_KIB));
                plan.setup.access_log = Some(folder.join("access.log"));
            }
            Cause::Memory => {
                let own = OwnedGroup::new(MEMORY)?;
                plan.confinement.memory = Some(own.group());
                group = Some(own);
            }
        }
        let proxy = plan.start()?;
        let test_bed = Self { cause, length, upstream, proxy, folder, group };
        test_bed.upstream.set_behaviour(test_bed.usual());
        Ok(test_bed)
    }

    fn usual(&self) -> Behaviour {
        Behaviour::After(if self.cause == Cause::Memory { CROWD.1 } else { SERVICE })
    }

    fn load(&self) -> Load {
        let is_crowd = self.cause == Cause::Memory;
        let (rate, patience) = if is_crowd { (CROWD.0, CROWD.2) } else { (RATE, PATIENCE) };
        let phases =
            vec![Phase::new(RATE, BEFORE), Phase::new(rate, self.length), Phase::new(RATE, AFTER)];
        Load { port: self.proxy.port(), phases, patience, reuse: Reuse::Half, sources: 0..0 }
    }

    fn begin(&self) -> io::Result<()> {
        match self.cause {
            Cause::Upstream(behaviour) => self.upstream.set_behaviour(behaviour),
            Cause::Stop => self.proxy.signal(Signal::Stop)?,
            Cause::Clock => set_clock(self.folder.path(), "+10d")?,
            Cause::Disk => fill(&self.disk().join("filler"))?,
            Cause::Memory => {}
        }
        Ok(())
    }

    /// Changes the fault at half of its length. Only the clock fault changes: the clock is set
    /// back.
    fn at_midpoint(&self) -> io::Result<()> {
        match self.cause {
            Cause::Clock => set_clock(self.folder.path(), "-10d"),
            Cause::Upstream(_) | Cause::Stop | Cause::Disk | Cause::Memory => Ok(()),
        }
    }

    fn end(&self) -> io::Result<()> {
        match self.cause {
            Cause::Upstream(_) => self.upstream.set_behaviour(self.usual()),
            Cause::Stop => self.proxy.signal(Signal::Continue)?,
            Cause::Clock => set_clock(self.folder.path(), "+0d")?,
            Cause::Disk => fs::remove_file(self.disk().join("filler"))?,
            Cause::Memory => {}
        }
        Ok(())
    }

    /// Returns the path of the gateway's small disk, as this process sees it. The disk is mounted
    /// only in the gateway's mount namespace.
    fn disk(&self) -> PathBuf {
        let folder = self.folder.path();
        let inside = folder.strip_prefix("/").unwrap_or(folder);
        Path::new("/proc").join(self.proxy.pid().to_string()).join("root").join(inside)
    }

    /// Returns the text of the result that is specific to the fault, and the reason if the result
    /// is wrong.
    fn note(&self, answers: &[Answer]) -> (String, Option<String>) {
        match self.cause {
            Cause::Upstream(_) | Cause::Clock => (String::new(), None),
            Cause::Stop => {
                let served = open_loop::ends(answers).remove(&End::Status(200)).unwrap_or(0);
                let vain = self.upstream.requests().saturating_sub(served as u64);
                // Up to twice the limit is tolerated, for requests that were running when the
                // gateway was stopped.
                let broken = vain > u64::from(2 * LIMIT);
                (
                    format!("in vain: {vain}"),
                    broken.then(|| {
                        format!("{vain} requests were served after their clients had left")
                    }),
                )
            }
            Cause::Disk => {
                let dropped = self.proxy.status("access_log_dropped").unwrap_or(0);
                let log = fs::metadata(self.disk().join("access.log")).map_or(0, |file| file.len());
                let note = format!("dropped: {dropped} lines, kept: {} KiB", log / 1024);
                (note, (dropped == 0).then(|| "the gateway counted no dropped line".to_owned()))
            }
            Cause::Memory => {
                let most = self.group.as_ref().and_then(OwnedGroup::most).unwrap_or(0);
                (format!("at most {} MiB", most >> 20), None)
            }
        }
    }
}

/// Writes into `file` until its disk is full.
fn fill(file: &Path) -> io::Result<()> {
    let mut file = fs::File::create(file)?;
    loop {
        match file.write(&[b'x'; 512]) {
            Ok(_) => {}
            Err(e) if e.kind() == io::ErrorKind::StorageFull => return Ok(()),
            Err(e) => return Err(e),
        }
    }
}

/// Returns the environment variables of a library that changes a program's wall clock by an offset
/// in a file. The monotonic clock is unchanged. Fails if the library is not installed or has no
/// effect.
fn clock(folder: &Path) -> io::Result<Vec<(String, String)>> {
    let found = fs::read_dir("/usr/lib")?.flatten().map(|entry| entry.path());
    let library = found.map(|path| path.join("faketime/libfaketimeMT.so.1")).find(|p| p.exists());
    let library = library.ok_or_else(|| io::Error::other("libfaketime is not installed"))?;
    let file = folder.join("clock");
    let environment = [
        ("LD_PRELOAD", library.display().to_string()),
        ("FAKETIME_TIMESTAMP_FILE", file.display().to_string()),
        ("FAKETIME_CACHE_DURATION", "1".to_owned()),
        ("FAKETIME_DONT_FAKE_MONOTONIC", "1".to_owned()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .to_vec();
    set_clock(folder, "+10d")?;
    let confinement = Confinement { environment: environment.clone(), ..Confinement::default() };
    let output = confinement.command(Path::new("date")).arg("+%s").output()?;
    let shown: u64 = String::from_utf8_lossy(&output.stdout).trim().parse().unwrap_or(0);
    let now = std::time::UNIX_EPOCH.elapsed().map_err(io::Error::other)?.as_secs();
    set_clock(folder, "+0d")?;
    if shown < now + 9 * 24 * 3600 {
        return Err(io::Error::other("libfaketime has no effect on this machine"));
    }
    Ok(environment)
}

/// Writes the offset of the wall clock, such as `-10d`, into the file. The library reads the file
/// once per second.
fn set_clock(folder: &Path, offset: &str) -> io::Result<()> {
    fs::write(folder.join("clock"), format!("{offset}\n"))
}
