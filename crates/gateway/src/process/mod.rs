//! Facilities of the whole process: locks, clocks, runtimes, standard error, panics, the memory
//! budget, the secret of hashes.

pub(crate) mod boot_clock;
pub(crate) mod lifecycle;
pub(crate) mod local_fault;
pub(crate) mod memory;
pub(crate) mod names;
pub(crate) mod panics;
pub(crate) mod runtime;
pub(crate) mod secret;
pub(crate) mod sync;
pub(crate) mod wall_clock;
