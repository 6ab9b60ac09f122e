//! A network of its own: devices and addresses that nobody else on this machine sees.
//!
//! It has no name. A `cat` lives in it and reads from us; when we are gone, however we went, it reads
//! the end, ends, and the network with it.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::process::{Child, Command, Stdio};
use std::thread;

use crate::sys;

/// A network namespace, see `network_namespaces(7)`. It goes when this is dropped and nobody is in it.
#[derive(Debug)]
pub struct Namespace {
    keeper: Child,
    place: File,
}

impl Namespace {
    /// A new one, with nothing in it but a loopback device that is up.
    ///
    /// # Errors
    /// Of kind `PermissionDenied` if this process may not make one, `NotFound` without `unshare`.
    pub fn new() -> io::Result<Self> {
        let mut command = Command::new("unshare");
        command.args(["--net", "sh", "-c", "ip link set lo up && echo && exec cat"]);
        let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut keeper = pipes.spawn()?;
        let mut begun = [0];
        let said = keeper.stdout.as_mut().map_or(Ok(()), |pipe| pipe.read_exact(&mut begun));
        let place = said.and_then(|()| File::open(format!("/proc/{}/ns/net", keeper.id())));
        let Ok(place) = place else {
            let _ = keeper.kill();
            let _ = keeper.wait();
            let why = "no network namespace: it takes root and the programs unshare and ip";
            return Err(io::Error::new(ErrorKind::PermissionDenied, why));
        };
        Ok(Self { keeper, place })
    }

    /// Two of them and a cable between: each has the device `v0`, the first 10.77.0.1, the second
    /// 10.77.0.2.
    pub fn pair() -> io::Result<(Self, Self)> {
        let (one, other) = (Self::new()?, Self::new()?);
        one.cable(("v0", "10.77.0.1/24"), &other, ("v0", "10.77.0.2/24"))?;
        Ok((one, other))
    }

    /// Lays a cable (a veth) from here to `other`: of each end the device's name and its address.
    pub fn cable(&self, ours: (&str, &str), other: &Self, theirs: (&str, &str)) -> io::Result<()> {
        let (near, far, there) = (ours.0, theirs.0, other.keeper.id());
        self.run(&format!("ip link add {near} type veth peer name {far} netns {there}"))?;
        for (end, (device, address)) in [(self, ours), (other, theirs)] {
            end.run(&format!("ip address add {address} dev {device}"))?;
            end.run(&format!("ip link set {device} up"))?;
        }
        Ok(())
    }

    /// Calls `work` on a thread of its own in there, and waits for it.
    ///
    /// # Panics
    /// When `work` does.
    pub fn within<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        thread::scope(|scope| {
            let inside = scope.spawn(|| {
                self.enter().expect("who has made it may go there");
                work()
            });
            inside.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Moves this thread there, for good, with all that it starts from now on.
    pub fn enter(&self) -> io::Result<()> {
        sys::enter_network(&self.place)
    }

    /// Runs a command there, and gives what it prints.
    ///
    /// # Errors
    /// When it fails: what it says.
    pub fn run(&self, words: &str) -> io::Result<String> {
        let mut words = words.split(' ');
        let mut command = Command::new(words.next().unwrap_or_default());
        command.args(words).stdin(Stdio::null());
        let output = self.within(|| command.output())?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        if output.status.success() {
            Ok(text(&output.stdout))
        } else {
            Err(io::Error::other(text(&output.stderr)))
        }
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = self.keeper.kill();
        let _ = self.keeper.wait();
    }
}
