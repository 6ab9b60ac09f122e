//! A separate network, whose devices and addresses no other process on this machine sees.
//!
//! The network has no name. A `cat` process runs in it and reads from this process. When this
//! process ends for any reason, `cat` reads the end of its input and ends. The network ends with
//! `cat`.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::process::{Child, Command, Stdio};
use std::thread;

use crate::sys;

/// A network namespace, see `network_namespaces(7)`. It ends when this value is dropped and no
/// process is in it.
#[derive(Debug)]
pub struct Namespace {
    keeper: Child,
    handle: File,
}

impl Namespace {
    /// Creates a namespace that contains only a loopback device, which is up.
    ///
    /// # Errors
    /// Returns `PermissionDenied` if this process may not create a namespace, and `NotFound` if
    /// there is no program `unshare`.
    pub fn new() -> io::Result<Self> {
        let mut command = Command::new("unshare");
        command.args(["--net", "sh", "-c", "ip link set lo up && echo && exec cat"]);
        let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut keeper = pipes.spawn()?;
        let mut begun = [0];
        let read = keeper.stdout.as_mut().map_or(Ok(()), |pipe| pipe.read_exact(&mut begun));
        let handle = read.and_then(|()| File::open(format!("/proc/{}/ns/net", keeper.id())));
        let Ok(handle) = handle else {
            let _ = keeper.kill();
            let _ = keeper.wait();
            let why =
                "cannot make a network namespace: this needs root and the programs unshare and ip";
            return Err(io::Error::new(ErrorKind::PermissionDenied, why));
        };
        Ok(Self { keeper, handle })
    }

    /// Creates two namespaces with a cable between them. Each has the device `v0`; the first has
    /// the address 10.77.0.1, the second 10.77.0.2.
    pub fn pair() -> io::Result<(Self, Self)> {
        let (one, other) = (Self::new()?, Self::new()?);
        one.cable(("v0", "10.77.0.1/24"), &other, ("v0", "10.77.0.2/24"))?;
        Ok((one, other))
    }

    /// Connects this namespace to `other` by a virtual cable (a veth pair). `ours` and `theirs`
    /// give the name and the address of the device at each end.
    pub fn cable(&self, ours: (&str, &str), other: &Self, theirs: (&str, &str)) -> io::Result<()> {
        let (near, far, there) = (ours.0, theirs.0, other.keeper.id());
        self.run(&format!("ip link add {near} type veth peer name {far} netns {there}"))?;
        for (end, (device, address)) in [(self, ours), (other, theirs)] {
            end.run(&format!("ip address add {address} dev {device}"))?;
            end.run(&format!("ip link set {device} up"))?;
        }
        Ok(())
    }

    /// Calls `work` on a new thread inside the namespace, waits for it and returns its result.
    ///
    /// # Panics
    /// Panics if `work` panics.
    pub fn within<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        thread::scope(|scope| {
            let inside = scope.spawn(|| {
                self.enter().expect("the process that has made it may enter it");
                work()
            });
            inside.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Moves this thread into the namespace permanently. All processes and threads that it starts
    /// from now on are in the namespace as well.
    pub fn enter(&self) -> io::Result<()> {
        sys::enter_network(&self.handle)
    }

    /// Runs the command `words`, split at blanks, inside the namespace, and returns its output.
    ///
    /// # Errors
    /// Returns the command's standard error if the command fails.
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
