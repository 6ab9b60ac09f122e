//! Sockets that the supervisor has made (socket activation, `sd_listen_fds(3)`).
//!
//! The supervisor binds and listens, and keeps the socket open while the service is away. So
//! ports below 1024 need no privilege, and a crash costs clients a moment in the queue instead of
//! a refusal.
//!
//! The variables `LISTEN_*` stay in the environment: taking them out while another thread may
//! read them is undefined behaviour. They name this process in `LISTEN_PID`, so no child takes
//! them for its own, and [`hand_over`](crate::hand_over), which starts the only child there is,
//! leaves them out of its environment.

use std::io::{self, ErrorKind};

use crate::descriptors;
use crate::socket::{Listener, Name, Sockets};

/// The sockets that the supervisor made for this process; none if it made none. To be called
/// once, early in `main`.
///
/// A socket is `http`, `https` or `admin` by its name (`FileDescriptorName=`). One without a name
/// of its own is the first in this order that no other is named.
///
/// # Errors
/// When a name is unknown or comes twice, when there are more than three, or when one is no
/// listening stream socket. The unit file is wrong then, and a gateway that listened elsewhere
/// instead would not be found by anybody.
pub fn from_supervisor() -> io::Result<Sockets> {
    let given = descriptors::take()?;
    let words: Vec<&str> = given.iter().map(|(_, word)| word.as_str()).collect();
    let names = names_in_order(&words)?;
    let mut sockets = Sockets::default();
    for (name, (descriptor, _)) in names.into_iter().zip(given) {
        let listener = Listener::check(descriptor).map_err(|error| {
            io::Error::new(error.kind(), format!("the supervisor's socket for {name}: {error}"))
        })?;
        sockets.add(name, listener);
    }
    Ok(sockets)
}

/// What each socket is for, by the supervisor's words for them. Never the same twice.
fn names_in_order(words: &[&str]) -> io::Result<Vec<Name>> {
    let mut free = Name::ALL.to_vec();
    let mut names = vec![None; words.len()];
    // Those with a name first: the others share what is left.
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

/// Whether it is what a supervisor says when nobody has given a name: nothing, `unknown`, or the
/// name of the unit (`systemd.socket(5)`, `FileDescriptorName=`).
fn is_unnamed(word: &str) -> bool {
    word.is_empty() || word == "unknown" || word.ends_with(".socket")
}

fn wrong(word: &str) -> io::Error {
    let why = format!(
        "the supervisor gave a socket named `{word}`: one each of http, https and admin has a use"
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
