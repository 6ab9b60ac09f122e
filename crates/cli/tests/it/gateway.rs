//! A running gateway.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStderr, Command};
use std::sync::mpsc::{Receiver, channel, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::binary::{command, reader, signal, wait};

/// `bywash run` on free ports.
pub(crate) const RUN: [&str; 5] = ["run", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"];

/// `bywash run`, killed if a test forgets it.
pub(crate) struct Gateway {
    child: Child,
    out: Option<JoinHandle<String>>,
    err: Receiver<String>,
    /// What it has said so far.
    pub(crate) said: Vec<String>,
}

impl Gateway {
    /// `bywash run` with `args` on free ports, once it listens.
    pub(crate) fn start(args: &[&str]) -> Self {
        Self::begin(command(&[&RUN, args].concat()))
    }

    /// The same, prepared by the test.
    pub(crate) fn begin(mut command: Command) -> Self {
        let mut child = command.spawn().unwrap();
        let out = Some(reader(child.stdout.take()));
        let err = lines(child.stderr.take().unwrap());
        let mut gateway = Self { child, out, err, said: Vec::new() };
        gateway.hear("clients at ");
        gateway
    }

    /// Waits until it says so, and gives the line.
    pub(crate) fn hear(&mut self, words: &str) -> String {
        loop {
            if let Some(line) = self.said.iter().find(|line| line.contains(words)) {
                return line.clone();
            }
            let line = self.err.recv_timeout(Duration::from_secs(20));
            self.said.push(line.unwrap_or_else(|_| panic!("no {words:?} in {:?}", self.said)));
        }
    }

    /// Nobody reads any more what it says.
    pub(crate) fn stop_hearing(&mut self) {
        self.err = channel().1;
    }

    pub(crate) fn clients(&self) -> String {
        self.address("clients at http://")
    }

    pub(crate) fn operators(&self) -> String {
        self.address("operators at http://")
    }

    /// Of its process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    fn address(&self, before: &str) -> String {
        let rest = self.said.iter().find_map(|line| line.split_once(before)).unwrap().1;
        rest.split(',').next().unwrap().to_owned()
    }

    pub(crate) fn signal(&self, name: &str) {
        signal(&self.child, name);
    }

    /// Its exit code and all of its standard output.
    pub(crate) fn end(mut self, limit: Duration) -> (Option<i32>, String) {
        let code = wait(&mut self.child, limit);
        (code, self.out.take().unwrap().join().unwrap())
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        // One that has ended cannot be killed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn lines(pipe: ChildStderr) -> Receiver<String> {
    // Bounded, so that the pipe fills where a test hears no more.
    let (told, lines) = sync_channel(64);
    thread::spawn(move || {
        let lines = BufReader::new(pipe).lines().map_while(Result::ok);
        // Whoever hears no more closes it, with the next line.
        let _ = lines.map(|line| told.send(line)).find(Result::is_err);
    });
    lines
}

/// Asks for a path, and gives the whole answer.
pub(crate) fn get(address: &str, path: &str) -> String {
    get_with(address, path, "")
}

/// The same with more fields.
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
