//! Finds the process whose limits are checked. It is the running gateway, whose supervisor may have
//! set limits. Otherwise it is this process, with the limits of its shell, which a gateway would
//! inherit.

use std::fs;
use std::path::PathBuf;

use bywash_api::Status;
use bywash_command::admin_client;
use bywash_command::which::Which;
use bywash_config::Config;
use bywash_terminal::text::escaped;

use super::finding::Finding;
use super::session;

/// A process whose limits are checked.
#[derive(Clone, Debug)]
pub(super) struct Process {
    /// The folder of the process in `/proc`.
    folder: PathBuf,
    /// Whether the process is a running gateway, and not this process.
    pub(super) is_gateway: bool,
}

const CHECK: &str = "gateway";

impl Process {
    /// Returns the process of the gateway that answers at the admin address of `config`, and the
    /// findings about it. Returns this process if no gateway answers, or if its process is not
    /// visible.
    pub(super) fn of(config: &Config) -> (Self, Vec<Finding>) {
        let admin = &config.listen.admin;
        let which = Which { admin: admin.clone(), key: config.listen.operators_key.clone() };
        let Ok(status) = admin_client::get::<Status>(&which, "/v1/status") else {
            let found =
                format!("no gateway answers at {admin}: the limits below are those of this shell");
            let remedy = "run the doctor again while the service runs, which may have other limits";
            return (Self::here(), vec![Finding::unknown(CHECK, found, remedy)]);
        };
        let cookie = session::findings(&status);
        let (version, id) = (escaped(&status.version), status.pid);
        let Some(process) = Self::at(id) else {
            let found = format!("bywash {version} answers, but its process is not visible here");
            let remedy =
                "run the doctor where the gateway runs: these limits are those of this shell";
            let gateway = Finding::unknown(CHECK, found, remedy);
            return (Self::here(), [gateway].into_iter().chain(cookie).collect());
        };
        let found = format!("bywash {version} runs as process {id}: the limits below are its own");
        let gateway = Finding::ok(CHECK, found).with("pid", id);
        (process, [gateway].into_iter().chain(cookie).collect())
    }

    pub(super) fn here() -> Self {
        Self { folder: PathBuf::from("/proc/self"), is_gateway: false }
    }

    /// Returns the process with this ID. Returns `None` if the name of the process shows that it is
    /// another program. That can happen because a container has its own process IDs.
    fn at(id: u32) -> Option<Self> {
        let process = Self { folder: PathBuf::from(format!("/proc/{id}")), is_gateway: true };
        process.read("comm").is_some_and(|name| name.starts_with("bywash")).then_some(process)
    }

    /// Returns the effective user ID of the process, which is the second number in `Uid` (proc(5)).
    pub(super) fn user(&self) -> Option<u32> {
        let status = self.read("status")?;
        let users = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
        users.split_ascii_whitespace().nth(1)?.parse().ok()
    }

    /// Reads the file `name` in the process's folder in `/proc`; `None` if it cannot be read.
    pub(super) fn read(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.folder.join(name)).ok()
    }

    /// Returns the number of the process's threads that serve clients; `None` if it is not a
    /// gateway.
    pub(super) fn workers(&self) -> Option<usize> {
        if !self.is_gateway {
            return None;
        }
        let tasks = fs::read_dir(self.folder.join("task")).ok()?;
        let name = |task: fs::DirEntry| fs::read_to_string(task.path().join("comm")).ok();
        let names = tasks.flatten().filter_map(name);
        Some(names.filter(|name| name.starts_with("worker-")).count()).filter(|count| *count > 0)
    }
}
