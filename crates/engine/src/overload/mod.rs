//! Is it overload? One detector is one file.

mod cpu;
mod head_age;

pub use cpu::Cpu;
pub use head_age::HeadAge;
