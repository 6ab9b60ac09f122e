//! Tests with real exporters of real databases, and with a real file of `sar`.
//! `scripts/test-databases` starts these parts. A test reports the parts that are missing.

use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use bywash_sense::series::{
    Clock, Exporter, Processes, Processors, Reading, Root, Sadf, Sampler, Use,
};
use bywash_units::{Time, TimeSpan};

use super::{clock, read, wait_for};

const PATIENCE: TimeSpan = TimeSpan::from_secs(20);

/// The lock of tests that count statements in MariaDB, which must not run at the same time.
static MARIADB: Mutex<()> = Mutex::new(());

/// Returns the exporter whose URL is in the environment variable `variable`.
fn exporter(variable: &str) -> Option<Exporter> {
    let Ok(address) = std::env::var(variable) else {
        eprintln!("NOT TESTED: no {variable}: see scripts/test-databases");
        return None;
    };
    Some(Exporter::new(&format!("http://{address}/metrics"), PATIENCE).unwrap())
}

/// A client of a database that runs one statement.
struct Client(Child);

impl Client {
    fn start(program: &str, arguments: &[&str]) -> Self {
        let mut client = Command::new(program);
        client.args(arguments).env("PGPASSWORD", "lab").stdout(Stdio::null()).stderr(Stdio::null());
        Self(client.spawn().unwrap())
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ended = self.0.kill();
        let _waited = self.0.wait();
    }
}

fn value(exporter: &mut Exporter, name: &str) -> f64 {
    let readings = wait_for(exporter).unwrap().readings;
    let is_it = |one: &&Reading| one.name == name;
    readings.iter().find(is_it).unwrap_or_else(|| panic!("no {name} in {readings:?}")).value.get()
}

/// The statement that uses CPU time for up to 15 seconds. Without that limit, the server would
/// continue with it after its client has left.
const WORK: &str =
    "set statement max_statement_time = 15 for select benchmark(1000000000, md5('a'))";

/// Waits until the exporter reports this value, for a minute at most.
fn until(exporter: &mut Exporter, name: &str, wanted: f64) {
    let mut last = f64::NAN;
    for _ in 0..600 {
        last = value(exporter, name);
        if last == wanted {
            return;
        }
        thread::sleep(Duration::from_millis(100));
    }
    panic!("{name} is {last} and not {wanted}");
}

#[test]
fn a_hosts_exporter_says_what_the_host_says() {
    let Some(mut exporter) = exporter("BYWASH_NODE_EXPORTER") else { return };
    let here = || Processors::new(Root::host());
    let before = read(&mut here())[0].value.get();
    let readings = wait_for(&mut exporter).unwrap().readings;
    let after = read(&mut here())[0].clone();
    let cpu = readings.iter().find(|one| one.name == "host/cpu").unwrap();
    assert_eq!(cpu.capacity, after.capacity);
    // The tolerance is a tick for each processor and each of five kinds of use. The file sums the
    // kinds before it rounds.
    let (used, ticks) = (cpu.value.get(), 0.01 * 5.0 * cpu.capacity.unwrap());
    assert!(
        (before - ticks..=after.value.get() + ticks).contains(&used),
        "{before} {used} {after:?}"
    );
}

#[test]
fn statements_that_run_in_mariadb_are_told_without_the_exporters_own() {
    let Some(mut exporter) = exporter("BYWASH_MYSQLD_EXPORTER") else { return };
    let _alone = MARIADB.lock().unwrap_or_else(PoisonError::into_inner);
    let address = std::env::var("BYWASH_MARIADB").unwrap();
    let port = address.rsplit_once(':').unwrap().1;
    until(&mut exporter, "database/threads_running", 0.0);
    let client = |sql| {
        let who = ["--no-defaults", "-h127.0.0.1", "-P", port, "-ushop", "-plab", "shop", "-e"];
        Client::start("mariadb", &[&who[..], &[sql]].concat())
    };
    let clients = ["select sleep(300)"; 3].map(client);
    until(&mut exporter, "database/threads_running", 3.0);
    drop(clients);
    // The server wakes a sleeping statement when its client has disconnected.
    until(&mut exporter, "database/threads_running", 0.0);
}

#[test]
fn statements_that_run_in_postgresql_are_told_without_the_exporters_own() {
    let Some(mut exporter) = exporter("BYWASH_POSTGRES_EXPORTER") else { return };
    let address = std::env::var("BYWASH_POSTGRES").unwrap();
    let url = format!("postgresql://shop@{address}/shop");
    until(&mut exporter, "database/active", 0.0);
    let clients = ["select pg_sleep(3)"; 3].map(|sql| Client::start("psql", &[&url, "-c", sql]));
    until(&mut exporter, "database/active", 3.0);
    drop(clients);
    until(&mut exporter, "database/active", 0.0);
}

#[test]
fn a_database_that_works_is_seen_in_its_processes_and_in_its_host() {
    let Some(exporter) = exporter("BYWASH_NODE_EXPORTER") else { return };
    let Ok(address) = std::env::var("BYWASH_MARIADB") else { return };
    let _alone = MARIADB.lock().unwrap_or_else(PoisonError::into_inner);
    let mut sampler = Sampler::new(clock(), TimeSpan::from_secs(60));
    sampler.add("db", exporter);
    sampler.add("db", Processes::named(Root::host(), "mariadbd").unwrap());
    let port = address.rsplit_once(':').unwrap().1;
    let who = ["--no-defaults", "-h127.0.0.1", "-P", port, "-ushop", "-plab", "-e"];
    let _works = Client::start("mariadb", &[&who[..], &[WORK]].concat());
    let (mut host, mut process) = (0.0, 0.0);
    for _ in 0..600 {
        let step = sampler.step();
        assert!(step.changes.is_empty(), "{:?}", step.changes);
        let of = |name: &str| -> f64 {
            let these = step.uses.iter().filter(|one: &&Use| one.resource.name == name);
            these.map(|one| one.used).sum()
        };
        host += of("host/cpu");
        process += of("process/mariadbd/cpu");
        if host > 1.0 && process > 1.0 {
            return;
        }
        thread::sleep(Duration::from_millis(100));
    }
    panic!("after a minute {host} s of the host and {process} s of its database");
}

#[test]
fn a_file_that_sar_has_just_made_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("sa");
    let made = Command::new("sar")
        .args(["-u", "-d", "-n", "DEV", "-o"])
        .arg(&file)
        .args(["1", "2"])
        .output();
    let Ok(made) = made else {
        eprintln!("NOT TESTED: sysstat is not installed");
        return;
    };
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let mut printed = Command::new("sadf");
    printed
        .arg("-j")
        .arg(&file)
        .args(["--", "-u", "-d", "-n", "DEV"])
        .env("TZ", "America/New_York");
    let printed = printed.output().unwrap();
    let sadf =
        Sadf { tier: "web".into(), source: 0, longest: TimeSpan::from_secs(60), ahead: None };
    let mut uses = Vec::new();
    let began = clock_of_host() - TimeSpan::from_secs(60);
    let counts = sadf.read(&printed.stdout[..], |one| uses.push(one)).unwrap();
    assert!(counts.records >= 1 && counts.left_out == 0, "{counts:?}");
    let names: Vec<&str> = uses.iter().map(|one| &*one.resource.name).collect();
    assert!(names.contains(&"host/cpu"), "{names:?}");
    let now = clock_of_host() + TimeSpan::from_secs(1);
    for one in &uses {
        assert!(one.from >= began && one.to <= now && one.from < one.to, "{one:?} at {now:?}");
        assert!(one.used <= one.resource.capacity.unwrap_or(f64::MAX) * 3.0, "{one:?}");
    }
}

fn clock_of_host() -> Time {
    Clock::since_1970().now()
}
