//! Tests that a shortage of resources on this machine does not count as a fault of a server.
//!
//! The gateway runs in a child process, which is a second instance of this test program. The test
//! lowers the child's limit of open files while it runs.

use std::io::{self, BufRead, BufReader, Lines, Read};
use std::net::SocketAddr;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;
use std::{fs, mem, thread};

use crate::setup::{Setup, eventually, get};
use crate::upstream::{Calls, Upstream};
use crate::wire::Wire;

const SERVERS: &str = "BYWASH_TEST_SERVERS";

/// The environment variable that enables probes of the servers, ten times a second.
const PROBES: &str = "BYWASH_TEST_PROBES";

/// A gateway in a separate process.
struct Process {
    child: Child,
    /// The process's standard output. It stays open, because the test program in the process writes
    /// its result there at the end.
    _output: Lines<BufReader<ChildStdout>>,
    http: SocketAddr,
    /// A connection for metrics. It stays open, so that metrics can be read when the process has no
    /// file descriptor left.
    operator: Wire,
}

impl Process {
    fn start(servers: &[SocketAddr]) -> Self {
        Self::start_with(servers, &[])
    }

    fn start_with(servers: &[SocketAddr], more: &[(&str, &str)]) -> Self {
        let servers: Vec<String> = servers.iter().map(|at| format!("http://{at}")).collect();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "local_faults::a_gateway_in_a_process_of_its_own"])
            .args(["--ignored", "--nocapture"])
            .env(SERVERS, servers.join(" "))
            .envs(more.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut addresses = lines.by_ref().map_while(Result::ok).filter_map(|line| {
            let (http, admin) = line.split_once("gateway at ")?.1.split_once(' ')?;
            Some((http.parse().unwrap(), admin.parse().unwrap()))
        });
        let (http, admin) = addresses.next().expect("the gateway starts");
        let operator = Wire::connect(admin);
        let process = Self { child, _output: lines, http, operator };
        process.settle();
        process
    }

    fn client(&self) -> Wire {
        Wire::connect(self.http)
    }

    /// Returns the sum of the samples whose name and labels begin with `sample`.
    fn metric(&mut self, sample: &str) -> f64 {
        self.operator.send("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
        let text = self.operator.answer().expect("operators are answered").text();
        let found = text.lines().filter(|line| line.starts_with(sample));
        found.map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap()).sum()
    }

    /// Waits until the process has opened the files that it needs. A thread of the gateway opens a
    /// socket for a moment, soon after the start.
    fn settle(&self) {
        let mut open = self.open_files();
        let mut as_before = 0;
        eventually("the same files stay open", || {
            thread::sleep(Duration::from_millis(50));
            let before = mem::replace(&mut open, self.open_files());
            as_before = if before == open { as_before + 1 } else { 0 };
            as_before == 10
        });
    }

    /// Returns the numbers of the process's open files.
    fn open_files(&self) -> Vec<usize> {
        let number = |entry: io::Result<fs::DirEntry>| {
            entry.unwrap().file_name().to_str().unwrap().parse().unwrap()
        };
        let folder = format!("/proc/{}/fd", self.child.id());
        let mut open: Vec<usize> = fs::read_dir(folder).unwrap().map(number).collect();
        open.sort_unstable();
        open
    }

    /// Lets the process open `more` further files and no others.
    fn may_open(&self, more: usize) {
        let open = self.open_files();
        let free = |limit: usize| limit - open.iter().filter(|number| **number < limit).count();
        let highest = open.iter().max().unwrap() + 1 + more;
        let limit = (0..=highest).rev().find(|limit| free(*limit) == more).unwrap();
        let (pid, limit) = (self.child.id().to_string(), format!("--nofile={limit}:"));
        let set = Command::new("prlimit").args(["--pid", &pid, &limit]).status();
        assert!(set.unwrap().success(), "prlimit is of util-linux");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // The process ends when its standard input ends.
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

#[test]
#[ignore = "is the process of the tests below"]
fn a_gateway_in_a_process_of_its_own() {
    let Ok(servers) = std::env::var(SERVERS) else { return };
    let servers: Vec<String> = servers.split(' ').map(str::to_owned).collect();
    let mut setup =
        Setup::before_address(SocketAddr::from(([127, 0, 0, 1], 1))).servers(&servers).limit(100);
    if std::env::var(PROBES).is_ok() {
        setup = setup.set("health.path", "'/well'").set("health.interval", "'100ms'");
    }
    let gateway = setup.start();
    println!("\ngateway at {} {}", gateway.gateway().http(), gateway.admin());
    let _ = std::io::stdin().read(&mut [0]);
}

fn two_servers() -> ([Upstream; 2], [Calls; 2]) {
    let ((one, calls_of_one), (other, calls_of_other)) = (Upstream::by_hand(), Upstream::by_hand());
    ([one, other], [calls_of_one, calls_of_other])
}

#[test]
fn without_files_requests_get_a_503_and_no_server_is_ejected() {
    let (upstreams, calls) = two_servers();
    let mut gateway = Process::start(&[upstreams[0].address, upstreams[1].address]);
    let mut clients: Vec<Wire> = (0..8).map(|_| gateway.client()).collect();
    eventually("all are accepted", || gateway.metric("bywash_connections ") == 8.0);
    gateway.may_open(2);
    for client in &mut clients {
        client.send(get("/"));
    }
    // Two connections to servers could be opened, so two requests run.
    let mut running: Vec<_> = Vec::new();
    eventually("two requests run", || {
        running.extend(calls.iter().filter_map(Calls::by_now));
        running.len() == 2
    });
    let faults = "bywash_local_faults_total{cause=\"process_files\"}";
    eventually("six find no server", || gateway.metric(faults) >= 12.0);
    for call in running {
        call.answer("served");
    }
    let mut statuses: Vec<u16> = Vec::new();
    for client in &mut clients {
        let answer = client.answer().expect("everybody is answered");
        let status = answer.status().unwrap();
        if status == 503 {
            let why = answer.field("proxy-status").unwrap();
            assert_eq!(why, "bywash; error=proxy_internal_error; details=\"process_files\"");
        }
        statuses.push(status);
    }
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 200, 503, 503, 503, 503, 503, 503]);
    assert_eq!(gateway.metric("bywash_server_failures_total"), 0.0);
    let up = gateway.metric("bywash_server_state{server=\"");
    assert_eq!(up, 2.0, "each server is in one state");
    for upstream in &upstreams {
        let server = format!("http://{}", upstream.address);
        let state = format!("bywash_server_state{{server=\"{server}\",state=\"up\"}}");
        assert_eq!(gateway.metric(&state), 1.0, "{server}");
    }
    // The existing connections to servers are used again.
    clients[0].send(get("/"));
    let mut call = None;
    eventually("it runs", || {
        call = calls.iter().find_map(Calls::by_now);
        call.is_some()
    });
    call.unwrap().answer("again");
    assert_eq!(clients[0].answer().unwrap().text(), "again");
}

#[test]
fn an_accept_that_fails_is_counted_by_cause_and_tried_again() {
    let upstream = Upstream::echo();
    let mut gateway = Process::start(&[upstream.address]);
    let _clients: Vec<Wire> = (0..4).map(|_| gateway.client()).collect();
    eventually("all are accepted", || gateway.metric("bywash_connections ") == 4.0);
    gateway.may_open(0);
    let mut newcomer = gateway.client();
    newcomer.send(get("/late"));
    let failed = "bywash_failed_accepts_total{cause=\"process_files\"}";
    eventually("it is not accepted, again and again", || gateway.metric(failed) >= 3.0);
    // Another thread of the gateway may have closed a file, so that there was room for it at last.
    // The attempts that failed count as no connections.
    assert!(gateway.metric("bywash_connections ") <= 5.0);
    assert_eq!(gateway.metric("bywash_failed_accepts_total{cause=\"other\"}"), 0.0);
    // There is room again for the new client's connection and for a connection to the server. If
    // another thread of the gateway opens a file meanwhile, the request is answered 503. Closing
    // clients would not always make room: the limit is one of file numbers, and theirs may be above
    // it.
    gateway.may_open(2);
    newcomer.answer().expect("it is accepted");
    drop(newcomer);
    eventually("another is served", || {
        let mut another = gateway.client();
        another.send(get("/late"));
        another.answer().is_ok_and(|answer| answer.text() == "/late")
    });
}

#[test]
fn a_probe_that_finds_no_file_takes_no_server_out() {
    let upstreams = [Upstream::echo(), Upstream::echo()];
    let servers = [upstreams[0].address, upstreams[1].address];
    let mut gateway = Process::start_with(&servers, &[(PROBES, "yes")]);
    eventually("servers are probed", || upstreams.iter().all(|one| one.accepted() > 0));
    gateway.may_open(0);
    // A probe's connection that was open when the limit was set may serve a few more probes.
    let faults = "bywash_local_faults_total{cause=\"process_files\"}";
    let limit = gateway.metric(faults) + 20.0;
    eventually("probes find no file", || {
        gateway.may_open(0);
        gateway.metric(faults) >= limit
    });
    for server in servers {
        let state = format!("bywash_server_state{{server=\"http://{server}\",state=\"up\"}}");
        assert_eq!(gateway.metric(&state), 1.0, "{server}");
    }
}
