//! Sockets from the supervisor (socket activation, `sd_listen_fds(3)`).
//!
//! The supervisor binds and listens, and keeps the socket open while the service is not running. So
//! ports below 1024 need no privilege. After a crash, clients wait for a moment in the socket's
//! backlog instead of being refused.
//!
//! The variables `LISTEN_*` stay in the environment, because removing them while another thread may
//! read them is undefined behaviour. `LISTEN_PID` names this process, so no child uses them by
//! mistake. [`hand_over`](crate::hand_over) starts the only child of this process, and removes the
//! variables from its environment.

use std::io::{self, ErrorKind};

use crate::descriptors;
use crate::socket::{Listener, Name, Sockets};

/// Returns the sockets that the supervisor created for this process. The result is empty if the
/// supervisor created none. Call this once, early in `main`.
///
/// The name of a socket (`FileDescriptorName=`) is `http`, `https` or `admin`. A socket without a
/// configured name gets the first name in this order that no other socket has.
///
/// # Errors
/// Returns an error if a name is unknown or occurs twice, if there are more than three sockets, or
/// if one is not a listening stream socket. Then the unit file is wrong. The gateway must not
/// listen elsewhere instead, because no client would find it there.
pub fn from_supervisor() -> io::Result<Sockets> {
    let given = descriptors::take()?;
    let words: Vec<&str> = given.iter().map(|(_, word)| word.as_str()).collect();
    let names = names_in_order(&words)?;
    let mut sockets = Sockets::default();
    for (name, (descriptor, _)) in names.into_iter().zip(given) {
        let listener = Listener::check(descriptor).map_err(|error| {
            io::Error::new(
                error.kind(),
                format!("the supervisor's socket for {name} cannot be used: {error}"),
            )
        })?;
        sockets.add(name, listener);
    }
    Ok(sockets)
}

/// Returns the name of each socket, in the order of the supervisor's names `words`. No name occurs
/// twice.
fn names_in_order(words: &[&str]) -> io::Result<Vec<Name>> {
    let mut free = Name::ALL.to_vec();
    let mut names = vec![None; words.len()];
    // Sockets with a configured name come first. The others then share the remaining names.
    for unnamed in [false, true] {
        let those = |(_, word): &(_, &&str)| is_unnamed(word) == unnamed;
        for (name, word) in names.iter_mut().zip(words).filter(those) {
            let fits = |free: &Name| unnamed || free.as_str() == *word;
            let place = free.iter().position(fits).ok_or_else(|| wrong(word))?;
            *name = Some(free.remove(place));
        }
    }
    Ok(names.into_iter().flatten().collect())
}

/// Returns whether `word` is the name that a supervisor passes for a socket without a
/// `FileDescriptorName=`: the empty name, `unknown`, or the name of the unit, which ends with
/// `.socket` (`systemd.socket(5)`).
fn is_unnamed(word: &str) -> bool {
    word.is_empty() || word == "unknown" || word.ends_with(".socket")
}

fn wrong(word: &str) -> io::Error {
    let why = format!(
        "the supervisor passed a socket named `{word}`: the names are http, https and admin, once \
         each (FileDescriptorName=)"
    );
    io::Error::new(ErrorKind::InvalidInput, why)
}

#[cfg(test)]
mod tests {
    use super::Name::{Admin, Http, Https};
    use super::*;

    fn names(words: &[&str]) -> Option<Vec<Name>> {
        names_in_order(words).ok()
    }

    #[test]
    fn a_name_counts_and_not_the_place() {
        assert_eq!(names(&["admin", "https", "http"]), Some(vec![Admin, Https, Http]));
    }

    #[test]
    fn sockets_without_a_name_are_taken_in_order() {
        assert_eq!(names(&["unknown", "unknown"]), Some(vec![Http, Https]));
        assert_eq!(names(&["bywash.socket", "", "bywash.socket"]), Some(vec![Http, Https, Admin]));
    }

    #[test]
    fn a_socket_without_a_name_does_not_take_the_place_of_a_named_one() {
        assert_eq!(names(&["unknown", "http"]), Some(vec![Https, Http]));
    }

    #[test]
    fn an_unknown_name_and_a_name_given_twice_are_refused() {
        assert_eq!(names(&["htpp"]), None);
        assert_eq!(names(&["http", "http"]), None);
        assert_eq!(names(&["", "", "", ""]), None);
    }
}
