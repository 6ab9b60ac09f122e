//! The validated name of a network device.

use std::fmt;
use std::str::FromStr;

/// The name of a network device, which may not exist. The name contains only characters that are
/// safe to print and to pass on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device(String);

/// The maximum length of a name in bytes: `IFNAMSIZ` without the terminating zero.
const LONGEST: usize = 15;

impl Device {
    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The error for a text that is not a device name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a device's name is 1 to 15 letters, digits, `.`, `_` or `-`, as `ip link` lists them")]
pub struct NoDevice;

impl FromStr for Device {
    type Err = NoDevice;

    /// Parses the name of a device. The kernel allows more: all characters except blanks, `/` and
    /// `:`. But real devices do not have such names by accident.
    fn from_str(text: &str) -> Result<Self, NoDevice> {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        let named = !text.is_empty() && text.len() <= LONGEST && text.chars().all(plain);
        let odd = text.starts_with('-') || text == "." || text == "..";
        if named && !odd { Ok(Self(text.to_owned())) } else { Err(NoDevice) }
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_devices_have_are_taken() {
        for name in ["lo", "eth0", "enp3s0f1", "br-1a2b3c4d5e6f", "eth0.100", "wg_home"] {
            assert_eq!(name.parse::<Device>().unwrap().as_str(), name);
        }
    }

    #[test]
    fn what_could_be_anything_else_is_refused() {
        let long = "sixteen-letters-";
        for name in ["", "-h", ".", "..", "eth0 root", "eth/0", "eth0:1", "é", "a\nb", "a\0", long]
        {
            assert_eq!(name.parse::<Device>(), Err(NoDevice), "{name:?}");
        }
    }
}
