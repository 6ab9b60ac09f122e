//! A way to a server that can be cut, blocked and opened again.

use std::io;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// Forwards connections to a server.
pub(crate) struct Forwarder {
    pub(crate) address: String,
    shared: Arc<Mutex<Way>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    /// Every connection ends as soon as it is made.
    Cut,
    /// Connections are made and nothing passes.
    Blocked,
}

struct Way {
    state: State,
    sockets: Vec<TcpStream>,
}

impl Forwarder {
    pub(crate) fn new(server: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let shared = Arc::new(Mutex::new(Way { state: State::Open, sockets: Vec::new() }));
        let (server, way) = (server.to_owned(), Arc::clone(&shared));
        // It ends with the process of the tests.
        thread::spawn(move || {
            for client in listener.incoming() {
                forward(client.unwrap(), &server, &way);
            }
        });
        Self { address, shared }
    }

    /// Ends every connection, and those to come.
    pub(crate) fn cut(&self) {
        self.now(State::Cut);
    }

    /// Ends every connection; those to come hear nothing.
    pub(crate) fn block(&self) {
        self.now(State::Blocked);
    }

    /// Connections made from now on reach the server.
    pub(crate) fn open(&self) {
        self.now(State::Open);
    }

    fn now(&self, state: State) {
        let mut way = self.shared.lock().unwrap();
        way.state = state;
        for socket in way.sockets.drain(..) {
            let _ = socket.shutdown(Shutdown::Both);
        }
    }
}

fn forward(client: TcpStream, server: &str, way: &Mutex<Way>) {
    let mut way = way.lock().unwrap();
    match way.state {
        State::Cut => {}
        State::Blocked => way.sockets.push(client),
        State::Open => {
            let server = TcpStream::connect(server).unwrap();
            for (mut from, mut to) in [(&client, &server), (&server, &client)]
                .map(|(from, to)| (from.try_clone().unwrap(), to.try_clone().unwrap()))
            {
                thread::spawn(move || {
                    let _ = io::copy(&mut from, &mut to);
                    let _ = to.shutdown(Shutdown::Both);
                });
            }
            way.sockets.extend([client, server]);
        }
    }
}
