//! Connects to one of several addresses with the algorithm "happy eyeballs" (RFC 8305 §4 and §5).

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use futures_util::stream::{FuturesUnordered, StreamExt};
use tokio::net::TcpStream;

/// The delay before the attempt to the next address. If the attempt before has failed, the next one
/// begins at once (§8).
const NEXT_ATTEMPT: Duration = Duration::from_millis(250);

/// Returns the addresses in the order in which they are tried. The IP families alternate, beginning
/// with IPv4 if `v4_first`. Each family begins with its `turn`-th address.
pub(super) fn in_order(addresses: &[SocketAddr], turn: usize, v4_first: bool) -> Vec<SocketAddr> {
    let (mut first, mut second): (Vec<_>, Vec<_>) =
        addresses.iter().copied().partition(|address| address.is_ipv4() == v4_first);
    for family in [&mut first, &mut second] {
        let length = family.len().max(1);
        family.rotate_left(turn % length);
    }
    let mut ordered = Vec::with_capacity(addresses.len());
    let (mut first, mut second) = (first.into_iter(), second.into_iter());
    while ordered.len() < addresses.len() {
        ordered.extend(first.next());
        ordered.extend(second.next());
    }
    ordered
}

/// Tries the addresses in their order. Returns the first connection that succeeds, with its
/// address.
///
/// # Errors
/// Returns the error of the first attempt that failed, if none succeeds.
pub(super) async fn dial(addresses: &[SocketAddr]) -> io::Result<(TcpStream, SocketAddr)> {
    let attempt = |address| async move { Ok((TcpStream::connect(address).await?, address)) };
    let (mut left, mut attempts) = (addresses.iter().copied(), FuturesUnordered::new());
    let mut first_error = None;
    loop {
        attempts.extend(left.next().map(attempt));
        tokio::select! {
            ended = attempts.next() => match ended {
                Some(Ok(connected)) => return Ok(connected),
                Some(Err(error)) => drop(first_error.get_or_insert(error)),
                None => return Err(first_error.unwrap_or_else(|| io::ErrorKind::NotFound.into())),
            },
            () = tokio::time::sleep(NEXT_ATTEMPT), if left.len() > 0 => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use socket2::{Domain, Socket, Type};

    use super::*;

    fn addresses<const COUNT: usize>(texts: [&str; COUNT]) -> Vec<SocketAddr> {
        texts.map(|text| text.parse().unwrap()).to_vec()
    }

    #[test]
    fn families_take_turns_and_so_do_addresses() {
        let all = addresses(["[::1]:1", "[::2]:1", "1.1.1.1:1", "2.2.2.2:1", "3.3.3.3:1"]);
        let expected = ["[::2]:1", "2.2.2.2:1", "[::1]:1", "3.3.3.3:1", "1.1.1.1:1"];
        assert_eq!(in_order(&all, 1, false), addresses(expected));
        let expected = ["3.3.3.3:1", "[::1]:1", "1.1.1.1:1", "[::2]:1", "2.2.2.2:1"];
        assert_eq!(in_order(&all, 2, true), addresses(expected));
        assert_eq!(in_order(&[], 7, true), []);
    }

    fn listener() -> (std::net::TcpListener, SocketAddr) {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        (listener, address)
    }

    fn refusing() -> SocketAddr {
        listener().1
    }

    /// Returns a listener whose backlog is full, so that it neither accepts nor refuses
    /// connections.
    fn deaf() -> (Socket, Vec<Socket>, SocketAddr) {
        let listener = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        listener.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
        listener.listen(0).unwrap();
        let address = listener.local_addr().unwrap();
        let fill = |_| {
            let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
            socket.set_nonblocking(true).unwrap();
            let _ = socket.connect(&address);
            socket
        };
        let fillers = (0..8).map(fill).collect();
        (listener, fillers, address.as_socket().unwrap())
    }

    #[tokio::test]
    async fn an_address_that_refuses_or_swallows_does_not_keep_the_next_from_being_reached() {
        let (_listener, good) = listener();
        let (_deaf, _fillers, swallowing) = deaf();
        for first in [refusing(), swallowing] {
            let (stream, address) = dial(&[first, good]).await.unwrap();
            assert_eq!((stream.peer_addr().unwrap(), address), (good, good));
        }
    }

    #[tokio::test]
    async fn where_all_refuse_the_error_is_the_first() {
        let error = dial(&[refusing(), refusing()]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
        assert!(dial(&[]).await.is_err());
    }
}
