//! Paths of Unix sockets, as they are written after `unix:`.
//!
//! A path is absolute, because the process that serves and the one that connects need not run in
//! the same folder. A path is also short: `sun_path` of unix(7) has room for 108 bytes, the last of
//! which is zero.

use std::path::PathBuf;

/// The prefix that marks a text as the path of a Unix socket.
pub(crate) const PREFIX: &str = "unix:";

/// The maximum length of a path, in bytes.
const LONGEST: usize = 107;

/// Returns the path after the prefix, or the reason why the text is not a valid path.
pub(crate) fn path(text: &str) -> Result<PathBuf, &'static str> {
    if !text.starts_with('/') {
        Err("the path of a socket must be absolute")
    } else if text.contains(char::is_control) {
        Err("the path contains a control character")
    } else if text.len() > LONGEST {
        Err("the path of a socket has at most 107 bytes")
    } else if text.ends_with('/') {
        Err("the path is a folder, not a socket")
    } else {
        Ok(text.into())
    }
}

/// Returns the path that was probably meant by a text such as `run/app.sock` or `///run/app.sock`;
/// `None` if no guess is possible.
pub(crate) fn meant(text: &str) -> Option<String> {
    let meant = format!("/{}", text.trim_matches('/'));
    (text != meant && path(&meant).is_ok()).then(|| format!("{PREFIX}{meant}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_absolute_and_fits_into_the_kernels_address() {
        let of_length = |length: usize| format!("/{}", "x".repeat(length - 1));
        assert_eq!(path("/run/app.sock"), Ok("/run/app.sock".into()));
        assert!(path(&of_length(LONGEST)).is_ok());
        for text in ["", "run/app.sock", "/run/", "/", "/a\nb", &of_length(LONGEST + 1)] {
            assert!(path(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_relative_path_is_made_absolute_in_the_suggestion() {
        assert_eq!(meant("run/app.sock").as_deref(), Some("unix:/run/app.sock"));
        assert_eq!(meant("/run/app.sock/").as_deref(), Some("unix:/run/app.sock"));
        assert_eq!(meant("/run/app.sock"), None);
        assert_eq!(meant(""), None);
    }
}
