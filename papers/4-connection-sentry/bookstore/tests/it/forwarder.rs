//! A TCP proxy in front of a database server. It can be cut, blocked and opened again.

use std::io;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// A running proxy that forwards connections to a server.
pub(crate) struct Forwarder {
    pub(crate) address: String,
    shared: Arc<Mutex<ForwarderState>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Open,
    /// Every connection is closed as soon as it is accepted.
    Cut,
    /// Connections are accepted, but no data is forwarded.
    Blocked,
}

struct ForwarderState {
    mode: Mode,
    sockets: Vec<TcpStream>,
}

impl Forwarder {
    pub(crate) fn new(server: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let shared = Arc::new(Mutex::new(ForwarderState { mode: Mode::Open, sockets: Vec::new() }));
        let (server, state) = (server.to_owned(), Arc::clone(&shared));
        // The thread runs until the process of the tests ends.
        thread::spawn(move || {
            for client in listener.incoming() {
                forward(client.unwrap(), &server, &state);
            }
        });
        Self { address, shared }
    }

    /// Closes every present connection, and every later one as soon as it is accepted.
    pub(crate) fn cut(&self) {
        self.set_mode(Mode::Cut);
    }

    /// Closes every present connection. Later connections are accepted, but no data is forwarded.
    pub(crate) fn block(&self) {
        self.set_mode(Mode::Blocked);
    }

    /// Forwards later connections to the server.
    pub(crate) fn open(&self) {
        self.set_mode(Mode::Open);
    }

    fn set_mode(&self, mode: Mode) {
        let mut state = self.shared.lock().unwrap();
        state.mode = mode;
        for socket in state.sockets.drain(..) {
            let _ = socket.shutdown(Shutdown::Both);
        }
    }
}

fn forward(client: TcpStream, server: &str, state: &Mutex<ForwarderState>) {
    let mut state = state.lock().unwrap();
    match state.mode {
        Mode::Cut => {}
        Mode::Blocked => state.sockets.push(client),
        Mode::Open => {
            let server = TcpStream::connect(server).unwrap();
            for (mut from, mut to) in [(&client, &server), (&server, &client)]
                .map(|(from, to)| (from.try_clone().unwrap(), to.try_clone().unwrap()))
            {
                thread::spawn(move || {
                    let _ = io::copy(&mut from, &mut to);
                    let _ = to.shutdown(Shutdown::Both);
                });
            }
            state.sockets.extend([client, server]);
        }
    }
}
