//! A running gateway, for tests.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStderr, Command};
use std::sync::mpsc::{Receiver, channel, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::binary::{command, reader, signal, wait};

/// The arguments of `bywash run` on free ports.
pub(crate) const RUN: [&str; 5] = ["run", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"];

/// A running `bywash run`. The process is killed when the value is dropped.
pub(crate) struct Gateway {
    child: Child,
    out: Option<JoinHandle<String>>,
    err: Receiver<String>,
    /// The lines of the gateway's standard error that were read so far.
    pub(crate) error_lines: Vec<String>,
}

impl Gateway {
    /// Starts `bywash run` with `args` on free ports, and returns when the gateway listens.
    pub(crate) fn start(args: &[&str]) -> Self {
        Self::begin(command(&[&RUN, args].concat()))
    }

    /// Starts a gateway with a command that the test has prepared, and returns when the gateway
    /// listens.
    pub(crate) fn begin(mut command: Command) -> Self {
        let mut child = command.spawn().unwrap();
        let out = Some(reader(child.stdout.take()));
        let err = lines(child.stderr.take().unwrap());
        let mut gateway = Self { child, out, err, error_lines: Vec::new() };
        gateway.hear("clients at ");
        gateway
    }

    /// Waits for a line with these words on the gateway's standard error, and returns the line.
    pub(crate) fn hear(&mut self, words: &str) -> String {
        loop {
            if let Some(line) = self.error_lines.iter().find(|line| line.contains(words)) {
                return line.clone();
            }
            let line = self.err.recv_timeout(Duration::from_secs(20));
            self.error_lines
                .push(line.unwrap_or_else(|_| panic!("no {words:?} in {:?}", self.error_lines)));
        }
    }

    /// Stops reading the gateway's standard error.
    pub(crate) fn stop_hearing(&mut self) {
        self.err = channel().1;
    }

    pub(crate) fn clients(&self) -> String {
        self.address("clients at http://")
    }

    pub(crate) fn operators(&self) -> String {
        self.address("operators at http://")
    }

    /// Returns the process ID of the gateway.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    fn address(&self, before: &str) -> String {
        let rest = self.error_lines.iter().find_map(|line| line.split_once(before)).unwrap().1;
        rest.split(',').next().unwrap().to_owned()
    }

    pub(crate) fn signal(&self, name: &str) {
        signal(&self.child, name);
    }

    /// Waits until the gateway ends, and returns its exit code and its whole standard output.
    pub(crate) fn end(mut self, limit: Duration) -> (Option<i32>, String) {
        let code = wait(&mut self.child, limit);
        (code, self.out.take().unwrap().join().unwrap())
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        // The kill fails if the process has ended already, which is no problem.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn lines(pipe: ChildStderr) -> Receiver<String> {
    // The channel is bounded, so that the pipe fills when a test no longer reads.
    let (sender, lines) = sync_channel(64);
    thread::spawn(move || {
        let lines = BufReader::new(pipe).lines().map_while(Result::ok);
        // When the test no longer reads, the next line ends this thread and closes the pipe.
        let _ = lines.map(|line| sender.send(line)).find(Result::is_err);
    });
    lines
}

/// Sends a GET request for a path to `address`, and returns the whole answer.
pub(crate) fn get(address: &str, path: &str) -> String {
    get_with(address, path, "")
}

/// Sends a GET request with additional header fields, and returns the whole answer.
pub(crate) fn get_with(address: &str, path: &str, fields: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let head =
        format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{fields}\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}
