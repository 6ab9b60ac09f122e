//! Tests of sources on copies of the files of two hosts, and on this host. One of the two has
//! control groups of version 1, the other of version 2.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use bywash_sense::series::{
    Disks, Group, Network, Processes, Processors, Reading, Root, Sampler, Source, Stalls, Unit,
};
use bywash_units::TimeSpan;
use tempfile::TempDir;

use super::{clock, copy, file, read, values_of};

/// A copy of a host's files that a test may change.
struct Host(TempDir);

impl Host {
    fn new(name: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        copy(&file("hosts").join(name), folder.path());
        Self(folder)
    }

    fn root(&self) -> Root {
        Root::at(self.0.path())
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        fs::write(self.0.path().join(name), text).unwrap();
    }
}

fn fails(source: &mut impl Source) -> String {
    source.read(&clock()).unwrap_err().to_string()
}

#[test]
fn processors_are_busy_but_not_by_waiting_and_not_for_other_machines() {
    let host = Host::new("two");
    let readings = read(&mut Processors::new(host.root()));
    assert_eq!(values_of(&readings), [("host/cpu", 15.3, Some(2.0))]);
    assert_eq!(readings[0].unit, Unit::Seconds);
    for strange in [&b""[..], b"cpu 1", b"\xff\xfe", &b"1".repeat(2 << 20)] {
        host.write("proc/stat", strange);
        let message = fails(&mut Processors::new(host.root()));
        assert!(message.contains("proc/stat"), "{message}");
    }
}

#[test]
fn disks_are_whole_ones() {
    let host = Host::new("two");
    let disks = [("host/disk/vda", 520.32, Some(1.0)), ("host/disk/nvme0n1", 1.5, Some(1.0))];
    assert_eq!(values_of(&read(&mut Disks::new(host.root()))), disks);
    fs::remove_dir_all(host.0.path().join("sys/block/vda")).unwrap();
    assert_eq!(
        values_of(&read(&mut Disks::new(host.root()))),
        disks[1..],
        "the kernel knows better"
    );
    fs::remove_dir_all(host.0.path().join("sys")).unwrap();
    assert_eq!(values_of(&read(&mut Disks::new(host.root()))), disks, "names alone tell it too");
    host.write("proc/diskstats", "254 0 vda 1 2 three\n");
    assert!(fails(&mut Disks::new(host.root())).contains("diskstats: unexpected content"));
}

#[test]
fn interfaces_lead_elsewhere_unless_asked() {
    let host = Host::new("two");
    let speed = Some(125e6);
    let eth0 = [
        ("host/net/eth0/received", 534_620_687.0, speed),
        ("host/net/eth0/sent", 1_326_119.0, speed),
    ];
    let tun0 = [("host/net/tun0/received", 0.0, None), ("host/net/tun0/sent", 7.0, None)];
    assert_eq!(values_of(&read(&mut Network::new(host.root()))), [eth0, tun0].concat());
    let all = read(&mut Network::new(host.root()).with_loopback());
    assert_eq!((all.len(), &*all[0].name), (6, "host/net/lo/received"));
    host.write("sys/class/net/eth0/speed", "-1\n");
    assert_eq!(read(&mut Network::new(host.root()))[0].capacity, None);
    for strange in ["", "a\n", "a\nb\neth0: 1 2 3\n", "a\nb\neth0 1 2 3 4 5 6 7 8 9\n"] {
        host.write("proc/net/dev", strange);
        assert!(fails(&mut Network::new(host.root())).contains("unexpected content"), "{strange}");
    }
}

#[test]
fn names_that_a_terminal_would_obey_are_not_read_and_there_is_a_bound() {
    let host = Host::new("two");
    let counters = "1 0 0 0 0 0 0 0 2 0 0 0 0 0 0 0";
    let named = |name: &str| format!("{name}: {counters}\n");
    let mut lines = vec!["a\nb\n".to_owned(), named("\u{1b}[2J"), named("x/y")];
    lines.extend((0..2000).map(|number| named(&format!("veth{number}"))));
    host.write("proc/net/dev", lines.concat());
    let readings = read(&mut Network::new(host.root()));
    assert_eq!(readings.len(), bywash_sense::series::MOST);
    assert!(readings.iter().all(|one| one.name.starts_with("host/net/veth")));
}

#[test]
fn pressure_is_told_of_a_host_and_of_a_group() {
    for (name, group_has_full) in [("one", false), ("two", true)] {
        let host = Host::new(name);
        let readings = read(&mut Stalls::host(host.root()));
        let names: Vec<&str> =
            readings.iter().map(|one| &one.name["host/pressure/".len()..]).collect();
        assert_eq!(names, ["cpu/some", "io/some", "io/full", "memory/some", "memory/full"]);
        assert_eq!(values_of(&readings)[0].1, 8_609.590_335);
        let group = Group::new(host.root(), "/system.slice/mariadb.service").unwrap();
        let readings = read(&mut Stalls::group(group));
        assert_eq!(readings.len(), if group_has_full { 6 } else { 3 });
        let some = ("cgroup/system.slice/mariadb.service/pressure/cpu/some", 1.5, Some(1.0));
        assert_eq!(values_of(&readings)[0], some);
        host.write("proc/pressure/io", "full total=1\n");
        assert!(fails(&mut Stalls::host(host.root())).contains("pressure/io: unexpected content"));
    }
}

#[test]
fn a_group_has_processors_up_to_its_quota_and_bytes_of_disks() {
    let name = "system.slice/mariadb.service";
    let expected = |cpu, quota, read, written| {
        let of = |what: &str| format!("cgroup/{name}/{what}");
        [(of("cpu"), cpu, quota), (of("read"), read, None), (of("written"), written, None)]
    };
    let says = |host: &Host| {
        let readings = read(&mut Group::new(host.root(), name).unwrap());
        readings
            .into_iter()
            .map(|one| (one.name, one.value.get(), one.capacity))
            .collect::<Vec<_>>()
    };
    let one = Host::new("one");
    assert_eq!(says(&one), expected(12.345_678_901, Some(1.5), 1000.0, 300.0));
    let two = Host::new("two");
    assert_eq!(
        says(&two),
        expected(12.345_678, Some(0.5), 2024.0, 606.0),
        "half a one for its slice"
    );
    let blocks = two.0.path().join("sys/dev/block");
    fs::create_dir_all(&blocks).unwrap();
    symlink("../../devices/virtual/block/dm-0", blocks.join("253:0")).unwrap();
    assert_eq!(says(&two), expected(12.345_678, Some(0.5), 1024.0, 306.0), "once for each byte");
    two.write("sys/fs/cgroup/system.slice/cpu.max", "max 100000\n");
    fs::remove_file(two.0.path().join("sys/fs/cgroup/system.slice/mariadb.service/io.stat"))
        .unwrap();
    assert_eq!(says(&two), expected(12.345_678, Some(2.0), 0.0, 0.0)[..1], "all the host has");
    two.write("sys/fs/cgroup/system.slice/mariadb.service/cpu.stat", "usage_usec -1\n");
    let mut group = Group::new(two.root(), name).unwrap();
    assert!(fails(&mut group).contains("cpu.stat: unexpected content"));
    let mut none = Group::new(two.root(), "system.slice/none.service").unwrap();
    assert!(fails(&mut none).contains("No such file"));
}

#[test]
fn processes_of_a_host_are_chosen_with_what_they_start() {
    for name in ["one", "two"] {
        let host = Host::new(name);
        let stat = |number, name: &str, parent, started, own, ended| {
            let times = format!("{own} 0 {ended} 0 20 0 1 0 {started} 0 0");
            host.write(
                &format!("proc/{number}/stat"),
                format!("{number} ({name}) S {parent} 1 1 0 -1 0 0 0 0 0 {times}\n"),
            );
        };
        let mut named = Processes::named(host.root(), "php-fpm8.2").unwrap();
        let mut grouped =
            Processes::in_group(host.root(), "php", "/system.slice/php8.2-fpm.service").unwrap();
        assert_eq!(values_of(&read(&mut named)), [("process/php-fpm8.2/cpu", 0.0, Some(2.0))]);
        assert_eq!(values_of(&read(&mut grouped))[0].0, "process/php/cpu");
        // The child has ended and its parent has waited for it and works on; another child began in
        // the meantime.
        stat(601, "php-fpm8.2", 600, 9000, 100, 42);
        fs::remove_dir_all(host.0.path().join("proc/602")).unwrap();
        fs::create_dir(host.0.path().join("proc/603")).unwrap();
        stat(603, "php-fpm8.2", 600, 9900, 7, 0);
        fs::copy(host.0.path().join("proc/600/cgroup"), host.0.path().join("proc/603/cgroup"))
            .unwrap();
        for source in [&mut named, &mut grouped] {
            assert_eq!(values_of(&read(source))[0].1, 0.49, "30 ticks of its own, 12 and 7");
        }
        let file = Path::new("/run/fpm.pid");
        let mut led = Processes::led(host.root(), "fpm", file).unwrap();
        assert!(fails(&mut led).contains("fpm.pid: No such file"));
        fs::create_dir(host.0.path().join("run")).unwrap();
        for text in ["", "php", "-5", "0", "1", "99999999999"] {
            host.write("run/fpm.pid", text);
            assert!(fails(&mut led).contains("the PID of a process in the first line"), "{text}");
        }
        host.write("run/fpm.pid", "601\n/var/lib/php\n");
        assert_eq!(values_of(&read(&mut led)), [("process/fpm/cpu", 0.0, Some(2.0))]);
        stat(601, "php-fpm8.2", 600, 9000, 105, 42);
        stat(603, "php-fpm8.2", 600, 9900, 70, 0);
        assert_eq!(values_of(&read(&mut led))[0].1, 0.05, "its own, and not its neighbour's");
        host.write("run/fpm.pid", "4000000\n");
        assert!(fails(&mut led).contains("no process of /run/fpm.pid"));
        let mut none = Processes::named(host.root(), "postgres").unwrap();
        assert!(fails(&mut none).contains("no process named postgres"));
    }
}

#[test]
fn this_host_can_be_read() {
    let mut sampler = Sampler::new(clock(), TimeSpan::from_secs(60));
    let root = Root::host;
    sampler.add("here", Processors::new(root()));
    sampler.add("here", Disks::new(root()));
    sampler.add("here", Network::new(root()).with_loopback());
    let own = fs::read_to_string("/proc/self/comm").unwrap();
    sampler.add("here", Processes::named(root(), own.trim()).expect("ours is a plain name"));
    if fs::exists("/proc/pressure").unwrap() {
        sampler.add("here", Stalls::host(root()));
    } else {
        eprintln!("NOT TESTED: this kernel tells no pressure");
    }
    let first = sampler.step();
    assert!(first.uses.is_empty() && first.changes.is_empty(), "{:?}", first.changes);
    let mut sum = 0_u64;
    let step = loop {
        // Use some CPU time, so that the step has a use to report.
        sum = (0..20_000_000).fold(sum, |sum, next| std::hint::black_box(sum ^ next));
        let step = sampler.step();
        assert!(step.changes.is_empty() && step.unread.is_empty(), "{step:?}");
        if step.uses.iter().any(|one| one.resource.name == "host/cpu" && one.used > 0.0) {
            break step;
        }
    };
    let names: Vec<&str> = step.uses.iter().map(|one| &*one.resource.name).collect();
    for name in ["host/cpu", "host/net/lo/sent", &format!("process/{}/cpu", own.trim())] {
        assert!(names.contains(&name), "{name} is none of {names:?}");
    }
    let processors = std::fs::read_to_string("/proc/stat").unwrap().matches("\ncpu").count();
    let cpu: &_ = step.uses.iter().find(|one| one.resource.name == "host/cpu").unwrap();
    assert_eq!(cpu.resource.capacity, Some(processors as f64));
    assert!(cpu.to > cpu.from, "{cpu:?}");
}

#[test]
fn groups_of_this_host_can_be_read() {
    let text = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let groups = text.lines().filter_map(|line| line.splitn(3, ':').nth(2));
    let read: Vec<Vec<Reading>> = groups
        .filter_map(|name| Group::new(Root::host(), name))
        .filter_map(|mut group| group.read(&clock()).ok().flatten())
        .map(|taken| taken.readings)
        .collect();
    if read.is_empty() {
        eprintln!("NOT TESTED: this process is in no control group that is counted");
    }
    for readings in read {
        assert!(readings[0].name.ends_with("/cpu") && readings[0].capacity.is_some());
    }
}
