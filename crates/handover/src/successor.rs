//! The side of the new process: it takes over what the old process hands over.
//!
//! Nothing here has a time limit. While the old process lives, it kills a successor that takes too
//! long. When the old process dies, the channel is closed.

use std::io::{self, ErrorKind, IoSliceMut, Read};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendFlags,
    SocketType, sockopt,
};

use crate::error::HandoverError;
use crate::head::{Head, SERVING, TAKEN, VARIABLE, VERSION};
use crate::socket::{Listener, Name, Sockets};

/// The sockets and the state that the previous process has handed over. The previous process serves
/// until [`serving`](Self::serving).
#[derive(Debug)]
pub struct Inherited {
    /// The listening sockets, by name.
    pub sockets: Sockets,
    /// The learned state, as it was given to [`hand_over`](crate::hand_over).
    pub state: Vec<u8>,
    channel: UnixStream,
}

/// Returns what a previous process hands over. Returns `None` if this process was not started as a
/// successor. Call this once, early in `main`. Standard input is `/dev/null` afterwards.
///
/// # Errors
/// Returns an error if the protocol fails. Then this process must end with a message; the old
/// process notices that and continues.
pub fn from_predecessor() -> Result<Option<Inherited>, HandoverError> {
    match std::env::var_os(VARIABLE.0) {
        None => Ok(None),
        Some(place) if place == VARIABLE.1 => Inherited::receive(channel()?).map(Some),
        Some(_) => Err(HandoverError::NoPredecessor),
    }
}

/// Takes the channel from standard input, and replaces standard input by `/dev/null`. The variable
/// stays in the environment, but a child that inherits the variable finds no channel there.
fn channel() -> Result<UnixStream, HandoverError> {
    let stdin = io::stdin();
    // If the descriptor is not a socket, reading its domain or type is an error.
    let is_channel = sockopt::socket_domain(&stdin) == Ok(AddressFamily::UNIX)
        && sockopt::socket_type(&stdin) == Ok(SocketType::STREAM);
    if !is_channel {
        return Err(HandoverError::NoPredecessor);
    }
    let channel = stdin.as_fd().try_clone_to_owned()?;
    rustix::stdio::dup2_stdin(std::fs::File::open("/dev/null")?).map_err(io::Error::from)?;
    Ok(channel.into())
}

impl Inherited {
    fn receive(mut channel: UnixStream) -> Result<Self, HandoverError> {
        let (head, descriptors) = receive_head(&channel)?;
        // The version is sent whatever the head contains, so that the other side learns whether the
        // versions match.
        send(&channel, &VERSION.to_le_bytes())?;
        let head = Head::from_bytes(&head)?;
        if head.names.len() != descriptors.len() {
            return Err(HandoverError::Garbled("the number of sockets is not that of the names"));
        }
        let mut sockets = Sockets::default();
        for (name, descriptor) in head.names.iter().zip(descriptors) {
            let not_listening = |source| HandoverError::NotListening { name: *name, source };
            sockets.add(*name, Listener::check(descriptor).map_err(not_listening)?);
        }
        let mut state = Vec::new();
        if channel.by_ref().take(head.state).read_to_end(&mut state)? as u64 != head.state {
            return Err(HandoverError::Garbled("the state is incomplete"));
        }
        Ok(Self { sockets, state, channel })
    }

    /// Reports that this process serves, and waits for the old process's answer. From then on the
    /// old process accepts no more connections, finishes its requests, and ends.
    ///
    /// Call this when everything that can fail has been done, and accept connections only after it.
    /// The old process serves until then. If it kills this process after all, connections that this
    /// process has already accepted are lost. It is not an error if the old process is gone,
    /// because then only this process can serve.
    ///
    /// # Errors
    /// Returns an error if the old process sends another answer. The old process then continues to
    /// serve, and this process must end.
    pub fn serving(mut self) -> Result<(), HandoverError> {
        let mut word = [0];
        let heard =
            send(&self.channel, &[SERVING]).and_then(|()| self.channel.read_exact(&mut word));
        match heard.map_err(|error| error.kind()) {
            Ok(()) if word == [TAKEN] => Ok(()),
            Ok(()) => {
                Err(HandoverError::Garbled("it does not confirm that this process has the sockets"))
            }
            Err(ErrorKind::UnexpectedEof | ErrorKind::BrokenPipe | ErrorKind::ConnectionReset) => {
                Ok(())
            }
            Err(other) => Err(io::Error::from(other).into()),
        }
    }
}

/// Receives the first message, with the descriptors that are attached to it.
fn receive_head(channel: &UnixStream) -> Result<([u8; Head::LENGTH], Vec<OwnedFd>), HandoverError> {
    let mut head = [0; Head::LENGTH];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(Name::ALL.len()))];
    let mut attached = RecvAncillaryBuffer::new(&mut space);
    let message = rustix::io::retry_on_intr(|| {
        let mut bytes = [IoSliceMut::new(&mut head)];
        rustix::net::recvmsg(channel, &mut bytes, &mut attached, RecvFlags::CMSG_CLOEXEC)
    })
    .map_err(io::Error::from)?;
    let mut descriptors = Vec::new();
    for part in attached.drain() {
        if let RecvAncillaryMessage::ScmRights(received) = part {
            descriptors.extend(received);
        }
    }
    if message.flags.contains(ReturnFlags::CTRUNC) {
        return Err(HandoverError::Garbled("it has more sockets than there are names"));
    }
    if message.bytes != head.len() {
        return Err(HandoverError::Garbled("it is empty"));
    }
    Ok((head, descriptors))
}

/// Sends a few bytes. They always fit into the channel, because the other side reads each message
/// before it sends the next.
fn send(channel: &UnixStream, bytes: &[u8]) -> io::Result<()> {
    let sent =
        rustix::io::retry_on_intr(|| rustix::net::send(channel, bytes, SendFlags::NOSIGNAL))?;
    if sent == bytes.len() { Ok(()) } else { Err(ErrorKind::WriteZero.into()) }
}

#[cfg(test)]
mod tests {
    use std::io::{IoSlice, Write};
    use std::net::TcpListener;
    use std::os::fd::BorrowedFd;

    use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage};

    use super::*;

    /// Returns the result of a successor that receives a head with these descriptors, followed by
    /// `rest`.
    fn receive(
        head: &[u8],
        descriptors: &[BorrowedFd<'_>],
        rest: &[u8],
    ) -> Result<Inherited, HandoverError> {
        let (mut old, new) = UnixStream::pair().unwrap();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
        let mut attached = SendAncillaryBuffer::new(&mut space);
        attached.push(SendAncillaryMessage::ScmRights(descriptors));
        let head = [IoSlice::new(head)];
        rustix::net::sendmsg(&old, &head, &mut attached, SendFlags::empty()).unwrap();
        old.write_all(rest).unwrap();
        old.shutdown(std::net::Shutdown::Write).unwrap();
        Inherited::receive(new)
    }

    fn head(names: Vec<Name>, state: u64) -> [u8; Head::LENGTH] {
        Head::new(names, state).unwrap().to_bytes()
    }

    fn listener() -> TcpListener {
        TcpListener::bind("127.0.0.1:0").unwrap()
    }

    #[test]
    fn sockets_and_state_arrive() {
        let (http, admin) = (listener(), listener());
        let sent = [admin.as_fd(), http.as_fd()];
        let head = head(vec![Name::Admin, Name::Http], 5);
        let mut inherited = receive(&head, &sent, b"state").unwrap();
        assert_eq!(inherited.state, b"state");
        for (name, original) in [(Name::Http, http), (Name::Admin, admin)] {
            let Some(Listener::Tcp(socket)) = inherited.sockets.take(name) else {
                panic!("no socket for {name}");
            };
            assert_eq!(socket.local_addr().unwrap(), original.local_addr().unwrap());
        }
        assert!(inherited.sockets.is_empty());
    }

    #[test]
    fn names_without_sockets_and_sockets_without_names_are_refused() {
        let socket = listener();
        let one = [socket.as_fd()];
        let four = [socket.as_fd(); 4];
        let wrong = [
            receive(&head(vec![Name::Http, Name::Https], 0), &one, b""),
            receive(&head(vec![], 0), &one, b""),
            receive(&head(vec![Name::Http], 0), &[], b""),
            receive(&head(Name::ALL.to_vec(), 0), &four, b""),
        ];
        for result in wrong {
            assert!(matches!(result, Err(HandoverError::Garbled(_))), "{result:?}");
        }
    }

    #[test]
    fn a_socket_that_does_not_listen_is_refused_by_name() {
        let file = std::fs::File::open("/dev/null").unwrap();
        let error = receive(&head(vec![Name::Https], 0), &[file.as_fd()], b"").unwrap_err();
        assert!(matches!(error, HandoverError::NotListening { name: Name::Https, .. }), "{error}");
    }

    #[test]
    fn a_message_that_breaks_off_is_refused() {
        let whole = head(vec![], 5);
        for result in [receive(&whole[..20], &[], b""), receive(&whole, &[], b"stat")] {
            assert!(matches!(result, Err(HandoverError::Garbled(_))), "{result:?}");
        }
    }

    #[test]
    fn an_old_process_of_another_version_is_told_ours() {
        let (mut old, new) = UnixStream::pair().unwrap();
        let mut head = head(vec![], 0);
        head[8..12].copy_from_slice(&7_u32.to_le_bytes());
        old.write_all(&head).unwrap();
        let error = Inherited::receive(new).unwrap_err();
        assert!(matches!(error, HandoverError::OtherVersion { ours: VERSION, theirs: 7 }));
        let mut answer = [0; 4];
        old.read_exact(&mut answer).unwrap();
        assert_eq!(u32::from_le_bytes(answer), VERSION);
    }

    /// Returns a successor that has received everything, and the old process's end of the channel.
    fn ready() -> (UnixStream, Inherited) {
        let (old, channel) = UnixStream::pair().unwrap();
        (old, Inherited { sockets: Sockets::default(), state: Vec::new(), channel })
    }

    #[test]
    fn it_serves_when_the_old_process_leaves_or_has_gone() {
        let (mut old, inherited) = ready();
        old.write_all(&[TAKEN]).unwrap();
        inherited.serving().unwrap();
        let mut received = Vec::new();
        old.read_to_end(&mut received).unwrap();
        assert_eq!(received, [SERVING]);
        let (old, inherited) = ready();
        drop(old);
        inherited.serving().unwrap();
    }

    #[test]
    fn it_does_not_serve_on_any_other_word() {
        let (mut old, inherited) = ready();
        old.write_all(b"N").unwrap();
        assert!(matches!(inherited.serving(), Err(HandoverError::Garbled(_))));
    }
}
