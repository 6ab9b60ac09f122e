//! The number of processor cores as an argument.

/// Reads a number of cores, or `local` for those of this machine.
pub(super) fn read(text: &str) -> Result<u32, String> {
    if text == "local" {
        return local();
    }
    let cores = text.parse().ok().filter(|cores| (1..=10_000).contains(cores));
    cores.ok_or_else(|| "a number from 1 to 10000, or `local`".to_owned())
}

/// Returns the number of cores of this machine that this process may use.
pub(crate) fn local() -> Result<u32, String> {
    let cores = std::thread::available_parallelism().map_err(|error| error.to_string())?;
    u32::try_from(cores.get()).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_are_a_number_or_those_of_this_machine() {
        assert_eq!(read("2"), Ok(2));
        assert!(read("local").is_ok_and(|cores| cores > 0));
        for wrong in ["", "0", "-1", "10001", "2.5", "Local"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
