//! Readers of `/proc`: CPU time and memory of processes, and CPU time and sockets of the machine.
//! Relations between processes are in `bywash_peer`.
//!
//! Each file of `/proc` has a pure parser, which is tested on text, and a reader. Sources: man
//! pages `proc_pid_stat(5)`, `proc_pid_smaps(5)`, `proc_stat(5)`.

use crate::sys;
use bywash_peer::processes::after_name;
pub use bywash_peer::processes::{descendants, is_alive, program};
use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};

/// CPU time since a process started, in clock ticks, summed over its threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CpuTicks {
    /// CPU time in user mode, in clock ticks.
    pub user: u64,
    /// CPU time in the kernel, in clock ticks.
    pub system: u64,
}

/// Returns the CPU time that process `pid` has used since it started.
pub fn cpu_ticks(pid: u32) -> io::Result<CpuTicks> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    parse_stat(&text).ok_or_else(|| io::Error::other(format!("cannot read /proc/{pid}/stat")))
}

/// Returns the CPU time that process `pid` and its ended children have used since they started.
pub fn cpu_ticks_of_family(pid: u32) -> io::Result<CpuTicks> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let own = parse_stat(&text).zip(cpu_times(&text, 13));
    let (own, ended) = own.ok_or_else(|| io::Error::other(format!("cannot read {pid}'s stat")))?;
    Ok(CpuTicks { user: own.user + ended.user, system: own.system + ended.system })
}

fn parse_stat(text: &str) -> Option<CpuTicks> {
    cpu_times(text, 11)
}

/// Returns the user and the system time in a line of `/proc/PID/stat`. They follow `skip` fields
/// after the command name. Returns `None` if the line is malformed.
fn cpu_times(text: &str, skip: usize) -> Option<CpuTicks> {
    let mut fields = after_name(text)?.skip(skip);
    let mut next = || fields.next()?.parse().ok();
    Some(CpuTicks { user: next()?, system: next()? })
}

/// Returns the memory of process `pid` in bytes: private memory plus its proportional part of
/// shared memory (PSS).
pub fn memory(pid: u32) -> io::Result<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup"))?;
    parse_pss(&text).ok_or_else(|| io::Error::other(format!("no Pss of {pid}")))
}

fn parse_pss(text: &str) -> Option<u64> {
    parse_kib(text, "Pss:")
}

/// Returns the size in bytes that the line with the prefix `name` states in KiB; `None` if there is
/// no such line.
fn parse_kib(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().strip_suffix(" kB")?.parse::<u64>().ok().map(|kib| kib * 1024)
}

/// Returns the peak resident memory of process `pid`, in bytes (`VmHWM`).
pub fn peak_memory(pid: u32) -> io::Result<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/status"))?;
    parse_kib(&text, "VmHWM:").ok_or_else(|| io::Error::other(format!("no VmHWM of {pid}")))
}

/// Converts a number of clock ticks to microseconds.
pub fn micros(ticks: u64) -> f64 {
    ticks as f64 * 1e6 / sys::ticks_per_second() as f64
}

/// Clock ticks summed over all cores, since the machine started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MachineTicks {
    /// Ticks spent in processes: user, nice and system.
    pub worked: u64,
    /// Ticks in which the hypervisor ran other virtual machines.
    pub stolen: u64,
    /// All ticks, including idle time and interrupts.
    pub total: u64,
}

/// Returns the machine's ticks since it started.
pub fn machine_ticks() -> io::Result<MachineTicks> {
    let text = fs::read_to_string("/proc/stat")?;
    parse_machine(&text).ok_or_else(|| io::Error::other("cannot read /proc/stat"))
}

fn parse_machine(text: &str) -> Option<MachineTicks> {
    let line = text.lines().find(|line| line.starts_with("cpu "))?;
    let ticks: Vec<u64> = line.split_ascii_whitespace().skip(1).flat_map(str::parse).collect();
    // The last two fields, guest time, are already contained in user and nice.
    let [user, nice, system, .., stolen] = ticks.get(..8)? else { return None };
    let total = ticks[..8].iter().sum();
    Some(MachineTicks { worked: user + nice + system, stolen: *stolen, total })
}

/// Returns the local addresses of those sockets of the machine that are connecting to `port` (state
/// `SYN_SENT`).
pub fn connecting_to(port: u16) -> io::Result<Vec<SocketAddrV4>> {
    Ok(parse_connecting(&fs::read_to_string("/proc/net/tcp")?, port))
}

fn parse_connecting(text: &str, port: u16) -> Vec<SocketAddrV4> {
    let local_of = |line: &str| {
        let mut fields = line.split_ascii_whitespace().skip(1);
        let local = parse_address(fields.next()?)?;
        let remote = parse_address(fields.next()?)?;
        (fields.next()? == "02" && remote.port() == port).then_some(local)
    };
    text.lines().skip(1).filter_map(local_of).collect()
}

fn parse_address(text: &str) -> Option<SocketAddrV4> {
    let (ip, port) = text.split_once(':')?;
    // The kernel prints the address as a number in its own byte order.
    let ip = Ipv4Addr::from(u32::from_str_radix(ip, 16).ok()?.to_ne_bytes());
    Some(SocketAddrV4::new(ip, u16::from_str_radix(port, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_name_with_parentheses_does_not_shift_the_fields() {
        let text = "42 (odd) name) S 1 42 42 0 -1 4194560 1 2 3 4 1234 567 8 9 20 0 1 0 5 6 7";
        assert_eq!(parse_stat(text), Some(CpuTicks { user: 1234, system: 567 }));
        assert_eq!(parse_stat("42 (x) S 1"), None);
    }

    #[test]
    fn guest_time_is_not_counted_twice() {
        let text = "cpu  10 1 20 300 4 0 5 60 7 8\ncpu0 1 2 3 4 5 6 7 8 9 10\n";
        let expected = MachineTicks { worked: 31, stolen: 60, total: 400 };
        assert_eq!(parse_machine(text), Some(expected));
        assert_eq!(parse_machine("cpu  1 2 3\n"), None);
    }

    #[test]
    fn only_sockets_still_connecting_to_the_port_are_listed() {
        let text = "  sl  local_address rem_address   st tx_queue\n\
             0: 0100007F:C350 0100007F:1F90 02 00000001:00000000\n\
             1: 0100007F:C351 0100007F:1F90 01 00000000:00000000\n\
             2: 0100007F:C352 0100007F:1F91 02 00000000:00000000\n";
        let expected: SocketAddrV4 = "127.0.0.1:50000".parse().unwrap();
        assert_eq!(parse_connecting(text, 8080), [expected]);
    }

    #[test]
    fn memory_is_given_in_bytes() {
        let text = "5600-7ffe ---p 00000000 00:00 0 [rollup]\nRss: 9 kB\nPss:      12 kB\n";
        assert_eq!(parse_pss(text), Some(12 * 1024));
        assert_eq!(parse_pss("Pss: x"), None);
        assert!(memory(std::process::id()).is_ok_and(|bytes| bytes > 0));
        assert!(peak_memory(std::process::id()).is_ok_and(|bytes| bytes > 0));
    }

    #[test]
    fn this_process_can_read_its_own_cpu_time() {
        assert!(cpu_ticks(std::process::id()).is_ok());
        assert!(machine_ticks().is_ok_and(|ticks| ticks.stolen + ticks.worked <= ticks.total));
    }
}
